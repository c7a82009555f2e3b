//! `[array.NAME]`: a simulated disk array, in the text form of the experiments.
//!
//! `weir-lab` owns this form and reads it with serde, because the same text stands in experiments and in
//! files of its own. This module only gives the form its place in the configuration, and gives its errors
//! their places.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_lab::{ArraySpec, ArraySpecError};
use weir_sim::ArrayOptions;

use super::origin::Resolved;
use super::reader::{Element, Section};
use super::{NAMES, is_name};

/// A simulated array.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Array {
    /// The array's options.
    pub(crate) options: Arc<ArrayOptions>,
    /// The values in the file, by full key. All others have the defaults of `docs/config.md`.
    pub(super) written: Vec<(String, Resolved<String>)>,
}

/// The arrays of the file, by name; and the names of those with a mistake, which is noted as a problem.
pub(super) fn resolve(root: &Section<'_>) -> (BTreeMap<String, Array>, BTreeSet<String>) {
    let (mut arrays, mut wrong) = (BTreeMap::new(), BTreeSet::new());
    for (name, element) in root.named_values("array") {
        if !is_name(&name) {
            element.refuse_found(format!("the name {name:?}"), NAMES);
        }
        if let Some(options) = resolve_one(&element) {
            arrays.insert(name, Array { options: Arc::new(options), written: element.written() });
        } else {
            wrong.insert(name);
        }
    }
    (arrays, wrong)
}

fn resolve_one(element: &Element<'_>) -> Option<ArrayOptions> {
    let spec: ArraySpec = element.deserialize()?;
    match spec.options() {
        Ok(options) => Some(options),
        Err(ArraySpecError::Value { key, found, accepted }) => {
            element.refuse_key(key, found, accepted);
            None
        }
        Err(ArraySpecError::Array { key, cause }) => {
            let (found, accepted) = halves(&cause.to_string());
            element.refuse_key(key, found, accepted);
            None
        }
    }
}

/// The two halves of a message: what was found, and what is accepted. The form of a message is `[WHERE:
/// ]found THIS; accepted[ FOR THAT]: OTHERS`.
fn halves(cause: &str) -> (String, String) {
    let (found, accepted) = cause.split_once("; accepted").unwrap_or((cause, ": parts that go together"));
    let found = match found.split_once("found ") {
        Some(("", found)) => found.to_owned(),
        Some((place, found)) => format!("{found} ({})", place.trim_end_matches([':', ' '])),
        None => found.to_owned(),
    };
    (found, accepted.trim_start_matches([':', ' ']).to_owned())
}
