//! The arrays and the loads of which cells are made: `matrix.toml`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;
use weir_model::Span;

use crate::ArraySpec;
use crate::quantities::{Bytes, Text};

/// The arrays and the loads, by name.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// The arrays.
    pub array: BTreeMap<String, ArrayCase>,
    /// The made-up loads.
    pub load: BTreeMap<String, MadeUpSpec>,
}

/// An array, and what happens to it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayCase {
    /// The array.
    pub spec: ArraySpec,
    /// When its first disk fails; absent: never.
    pub fails_at: Option<Text<Span>>,
    /// When that disk is replaced, and rebuilt from then on; absent: never.
    pub rebuilt_from: Option<Text<Span>>,
    /// Whether its flash was written full before.
    #[serde(default)]
    pub full: bool,
}

/// A made-up load. It is open, at a rate that the cell gives, or closed.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeUpSpec {
    /// The share of reads.
    pub reads: f64,
    /// Bytes of a request.
    pub request: Text<Bytes>,
    /// So many threads, each with one request at a time; absent: the load is open.
    pub threads: Option<NonZeroU32>,
    /// Requests in a row, one behind the other; absent: each at a random place.
    pub run: Option<NonZeroU32>,
    /// After so many writes comes a flush; absent: never.
    pub flush_every: Option<NonZeroU32>,
    /// The load comes and goes; absent: it is always there.
    pub bursts: Option<BurstSpec>,
    /// The rate rises to its full height in so many steps until the middle of the run; absent: at once.
    pub steps: Option<NonZeroU32>,
}

/// A load that comes and goes.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstSpec {
    /// For how long it is there.
    pub on: Text<Span>,
    /// For how long it is not.
    pub off: Text<Span>,
}

impl Matrix {
    /// The matrix that is part of the program.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn embedded() -> Self {
        toml::from_str(include_str!("matrix.toml")).expect("the matrix is good")
    }
}

impl MadeUpSpec {
    /// Whether its requests come whether those before them were answered or not.
    pub const fn is_open(&self) -> bool {
        self.threads.is_none()
    }

    /// Its mean rate, as a part of its highest.
    pub(super) fn mean(&self) -> f64 {
        match (self.bursts, self.steps) {
            (Some(BurstSpec { on, off }), _) => on.0.as_secs_f64() / (on.0 + off.0).as_secs_f64(),
            // It rises in the first half: from one step to all of them, (all + 1) / 2 on average.
            (None, Some(steps)) => 0.5 + 0.25 * (1.0 + 1.0 / f64::from(steps.get())),
            (None, None) => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_array_of_the_matrix_can_be_made_and_it_has_open_and_closed_loads() {
        let matrix = Matrix::embedded();
        for (name, case) in &matrix.array {
            assert!(case.spec.options().is_ok(), "{name}");
        }
        assert!(matrix.load.values().any(MadeUpSpec::is_open));
        assert!(matrix.load.values().any(|load| !load.is_open()));
    }
}
