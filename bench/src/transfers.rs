//! Bulk transfers: the memory of a coordinator whose clients wait, and the time of a `weir put` and a
//! `weir get` beside that of the tool that people use otherwise.
//!
//! | file | what it measures |
//! |---|---|
//! | `place` | a placement decision, as a function |
//! | `waiting` | the coordinator's memory |
//! | `moving` | puts and gets, each in turn with its rivals |
//! | `site` | a coordinator, its node, and the commands of a case |
//! | `s3` | a server of S3, and the rival's command for it |

mod moving;
pub(super) mod place;
mod s3;
mod site;
mod waiting;

use super::bed::TestBed;
use super::effort::Effort;
use super::progress::Progress;
use super::report::Row;
use moving::Moving;
use site::{Direction, Place};

/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;

/// A case with a coordinator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case(Sort);

#[derive(Clone, Copy, Debug)]
enum Sort {
    Waiting,
    Moving(Moving),
}

/// All of them, in the order in which they are measured.
pub(super) const CASES: [Case; 7] = [
    Case(Sort::Waiting),
    moving(Direction::Put, Place::Local, 1024),
    moving(Direction::Get, Place::Local, 1024),
    moving(Direction::Put, Place::Local, 100),
    moving(Direction::Get, Place::Local, 100),
    moving(Direction::Put, Place::S3, 256),
    moving(Direction::Get, Place::S3, 256),
];

const fn moving(direction: Direction, place: Place, mib: u32) -> Case {
    Case(Sort::Moving(Moving { direction, place, mib }))
}

impl Case {
    /// Its name, for `--only`.
    pub(super) fn name(self) -> String {
        match self.0 {
            Sort::Waiting => waiting::NAME.to_owned(),
            Sort::Moving(moving) => moving.name(),
        }
    }

    /// The number of measurements.
    pub(super) const fn measurements(self, effort: Effort) -> u32 {
        match self.0 {
            Sort::Waiting => 1,
            Sort::Moving(_) => effort.rounds,
        }
    }

    /// Measures it. Where a part is missing, there are no figures, and a line says what is missing.
    ///
    /// # Errors
    /// If a program fails.
    pub(super) fn measure(
        self,
        bed: &TestBed,
        effort: Effort,
        progress: &mut Progress,
    ) -> anyhow::Result<Vec<Row>> {
        match self.0 {
            Sort::Waiting => waiting::measure(bed, progress),
            Sort::Moving(moving) => moving.measure(bed, effort, progress),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_case_has_a_name_of_its_own() {
        let names: BTreeSet<String> = CASES.iter().map(|case| case.name()).collect();
        assert_eq!(names.len(), CASES.len());
        assert!(names.contains("transfers-put-local-1024m") && names.contains("transfers-get-s3-256m"));
    }
}
