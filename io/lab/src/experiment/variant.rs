//! An experiment once more, with another law in the place of the paper's: a **variant**.
//!
//! - **Without** is the negative control. A row that holds without its law says nothing about the law, and is
//!   not called one that holds.
//! - **Promise** is the law of promises, which a pool has by default. It says what an operator gets who does
//!   not choose a paper's law.
//!
//! A variant is the experiment's own file with other values in some places. So everything else is the same,
//! and the variant is run, studied and checked like any experiment. The alternative is more runs in each
//! file. A file could then forget one of them, or change more than the law.
//!
//! Some rows are about a cost, which nobody has to pay without a law. The file of such a row names other
//! values that must break it, or says why there are none ([`WithoutSpec`]).

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use toml::Value;

use super::{ControlSpec, Experiment, ExperimentError};

/// What stands in the place of the paper's law.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// No law; or what the file names in its place ([`WithoutSpec`]).
    Without,
    /// The law of promises.
    Promise,
}

/// What becomes of an experiment as a variant.
#[derive(Clone, PartialEq, Debug)]
pub enum Variation {
    /// It can be run.
    Runnable(Box<Experiment>),
    /// It cannot, for this reason.
    Impossible(String),
}

/// The negative control of a row that says nothing without a law.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithoutSpec {
    /// Why the row is not run without a law; and what is done instead, or why nothing can be.
    pub because: String,
    /// The values that must break the row. If there are none, the row has no negative control.
    #[serde(default)]
    pub set: Vec<ValueSpec>,
}

/// A key of the file, and its value.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueSpec {
    /// The key with its full path, such as `engine.growth`.
    pub key: String,
    /// The value.
    pub value: Value,
}

impl Variant {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 2] = [Self::Without, Self::Promise];

    /// The name, also of the folder of the results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Without => "without",
            Self::Promise => "promise",
        }
    }

    /// In words.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Without => "without the law",
            Self::Promise => "under the law of promises",
        }
    }

    /// What a run's law is replaced with; `None`: it stays.
    const fn instead_of(self, control: ControlSpec) -> Option<&'static str> {
        match (control, self) {
            (ControlSpec::None | ControlSpec::Promise, _) => None,
            (ControlSpec::Facade | ControlSpec::Maestro, Self::Without) => Some("none"),
            (ControlSpec::Facade | ControlSpec::Maestro, Self::Promise) => Some("promise"),
        }
    }
}

impl Experiment {
    /// This experiment as a variant; `None` if no run of it has a law that could be replaced.
    ///
    /// # Errors
    /// If the values that the file names for its negative control do not fit.
    pub fn variant(&self, variant: Variant) -> Result<Option<Variation>, ExperimentError> {
        let laws: Vec<_> = self
            .run
            .iter()
            .filter_map(|(name, run)| Some((format!("run.{name}.control"), variant.instead_of(run.control)?)))
            .collect();
        let instead = self.without.as_ref().filter(|_| variant == Variant::Without);
        // A row about the machine has no law, and a negative control all the same.
        if laws.is_empty() && instead.is_none() {
            return Ok(None);
        }
        let reason = match instead {
            Some(WithoutSpec { because, set }) if set.is_empty() => Some(because.clone()),
            _ if variant == Variant::Promise => self.beyond_promises(),
            _ => None,
        };
        if let Some(reason) = reason {
            return Ok(Some(Variation::Impossible(reason)));
        }
        let values: Vec<(String, Value)> = match instead {
            Some(spec) => spec.set.iter().map(|set| (set.key.clone(), set.value.clone())).collect(),
            None => laws.into_iter().map(|(key, law)| (key, law.into())).collect(),
        };
        let mut changed = self.with_values("without.set", &values)?;
        for expectation in &mut changed.expect {
            // The reason is one for the paper's law.
            expectation.not_reproduced = None;
            if expectation.granted && instead.is_none() {
                (expectation.at_least, expectation.at_most, expectation.between) = (None, None, None);
            }
        }
        Ok(Some(Variation::Runnable(Box::new(changed))))
    }

    /// The file with other values in these places. `key` is the key of the file that asks for them.
    ///
    /// # Errors
    /// If there is no such place, or a value does not fit.
    pub(crate) fn with_values(&self, key: &str, values: &[(String, Value)]) -> Result<Self, ExperimentError> {
        let wrong = |message: String| ExperimentError::at(&self.id, key, message);
        let mut document: toml::Table =
            toml::from_str(&self.text).map_err(|error| wrong(error.message().to_owned()))?;
        for (path, value) in values {
            put(&mut document, path, value).ok_or_else(|| {
                wrong(format!("found key = \"{path}\"; accepted: a key of an experiment, with its path"))
            })?;
        }
        // Sweeps read the text once more.
        let text = toml::to_string(&document).map_err(|error| wrong(error.to_string()))?;
        let mut changed = Self::deserialize(document).map_err(|error| wrong(error.message().to_owned()))?;
        changed.text = text;
        changed.check_names(&self.id)?;
        Ok(changed)
    }

    /// Why the law of promises cannot be told what this experiment asks for; `None` if it can.
    fn beyond_promises(&self) -> Option<String> {
        let several = |ports: NonZeroU32| ports.get() > 1;
        let volume = self.volume.iter().find(|(_, volume)| volume.ports.is_some_and(several));
        volume.map(|(name, _)| {
            format!(
                "{name} comes through several ports, and the law of promises knows none: it would promise each \
                 port all of the target"
            )
        })
    }
}

/// Puts a value at a path of keys. Tables that are missing on the way are made. A number in the path is a
/// place in a list, which must be there.
fn put(document: &mut toml::Table, path: &str, value: &Value) -> Option<()> {
    match path.split_once('.') {
        None => drop(document.insert(path.to_owned(), value.clone())),
        Some((first, rest)) => {
            let below = document.entry(first).or_insert_with(|| Value::Table(toml::Table::new()));
            put_below(below, rest, value)?;
        }
    }
    Some(())
}

fn put_below(here: &mut Value, path: &str, value: &Value) -> Option<()> {
    match here {
        Value::Table(table) => put(table, path, value),
        Value::Array(array) => {
            let (first, rest) =
                path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
            let place = array.get_mut(first.parse::<usize>().ok()?)?;
            match rest {
                Some(rest) => put_below(place, rest, value),
                None => {
                    place.clone_from(value);
                    Some(())
                }
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
