//! The cells of a seed.
//!
//! Cells are drawn, and not enumerated: all arrays with all pairs of loads, weights and promises would be far
//! more than anybody can run, and a choice of them would be somebody's choice.

use std::fmt;

use rand::RngExt;
use weir_sim::{Prng, Seed};

use super::load::Loads;
use super::matrix::Matrix;
use super::promise::Metric;

/// How many times the latency alone is promised.
const FACTORS: [f64; 3] = [1.5, 3.0, 10.0];
/// Which part of the array's time the promised volume takes alone. In steps, so that cells share the search
/// for the rate that does it.
const PROMISED: [f64; 5] = [0.1, 0.2, 0.3, 0.4, 0.5];
/// Which part of it the other volume takes alone, if its load is open.
const OTHER: [f64; 4] = [0.3, 0.5, 0.7, 0.9];

/// Where a recording begins, as a part of its requests.
const STARTS: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.8];

/// A cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// Its number among those of its seed.
    pub number: u32,
    /// The array.
    pub array: String,
    /// The load of the volume with a promise.
    pub promised: String,
    /// Which part of the array's time that takes alone, 0 to 1.
    pub promised_share: f64,
    /// The load of the other volume.
    pub other: String,
    /// Which part of the array's time that takes alone, 0 to 1; a closed load takes what it gets.
    pub other_share: f64,
    /// How many times the latency alone is promised.
    pub factor: f64,
    /// What the promise speaks of.
    pub metric: Metric,
    /// What the cell is scored with.
    pub scored: Draw,
    /// What the oracle chooses its setting with.
    pub chosen: [Draw; 3],
}

/// For people, such as `web at 30 % of nvram beside scan, mean within 3 times that alone`.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { promised, promised_share, array, other, other_share, metric, factor, .. } = self;
        let percent = |share: &f64| share * 100.0;
        write!(f, "{promised} at {:.0} % of {array} beside {other} at ", percent(promised_share))?;
        let how = if *metric == Metric::Rate { "one part in" } else { "within" };
        let of = if *metric == Metric::Rate { "of" } else { "times" };
        write!(f, "{:.0} %, {} {how} {factor} {of} that alone", percent(other_share), metric.name())
    }
}

/// What differs between two runs of a cell that are the same for an operator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Draw {
    /// The seed.
    pub seed: u64,
    /// Where a recording of the promised volume begins, as a part of its length.
    pub promised_from: f64,
    /// Where a recording of the other volume begins.
    pub other_from: f64,
}

/// A cell of a seed.
///
/// # Panics
/// If the matrix has no array, or there are fewer than two loads.
pub fn draw(matrix: &Matrix, loads: &Loads, seed: u64, number: u32) -> Cell {
    let lot = Lot { seed: Seed(seed), number };
    let promised = lot.name("promised", loads.all());
    let latency = lot.one_of("metric", &[Metric::Mean, Metric::P99]);
    let others = loads.all().filter(|name| *name != promised);
    Cell {
        number,
        array: lot.name("array", matrix.array.keys().map(String::as_str)),
        promised_share: lot.one_of("promised share", &PROMISED),
        other: lot.name("other", others),
        other_share: lot.one_of("other share", &OTHER),
        factor: lot.one_of("factor", &FACTORS),
        metric: if loads.is_open(&promised) { latency } else { Metric::Rate },
        scored: lot.draw("scored"),
        chosen: ["chosen", "chosen second", "chosen third"].map(|which| lot.draw(which)),
        promised,
    }
}

/// What is drawn for a cell. Each of its parts has a random stream of its own.
struct Lot {
    seed: Seed,
    number: u32,
}

impl Lot {
    fn stream(&self, what: &str) -> Prng {
        self.seed.stream(&format!("cell {}: {what}", self.number))
    }

    /// The name with the highest number of its own. So one name more changes only the cells that it gets.
    fn name<'n>(&self, what: &str, names: impl Iterator<Item = &'n str>) -> String {
        let number = |name: &&str| self.stream(&format!("{what} {name}")).random::<u64>();
        names.max_by_key(number).expect("there is something to draw from").to_owned()
    }

    fn one_of<T: Clone>(&self, what: &str, all: &[T]) -> T {
        all[self.stream(what).random_range(0..all.len())].clone()
    }

    fn draw(&self, what: &str) -> Draw {
        Draw {
            seed: self.stream(&format!("{what} seed")).random(),
            promised_from: self.one_of(&format!("{what} beginning of promised"), &STARTS),
            other_from: self.one_of(&format!("{what} beginning of other"), &STARTS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The made-up loads, and these recordings.
    fn loads(recordings: &[&str]) -> Loads {
        Loads::made_up_and(recordings)
    }

    fn cells(loads: &Loads, seed: u64) -> Vec<Cell> {
        let matrix = Matrix::embedded();
        (0..500).map(|number| draw(&matrix, loads, seed, number)).collect()
    }

    #[test]
    fn a_seed_gives_its_cells() {
        let loads = loads(&["web"]);
        assert_eq!(cells(&loads, 1), cells(&loads, 1));
        assert_ne!(cells(&loads, 1), cells(&loads, 2));
    }

    #[test]
    fn a_closed_load_is_promised_a_rate_and_no_volume_stands_beside_itself() {
        let loads = loads(&["web", "database"]);
        for cell in cells(&loads, 7) {
            assert_eq!(loads.is_open(&cell.promised), cell.metric != Metric::Rate, "{cell:?}");
            assert_ne!(cell.promised, cell.other);
        }
    }

    #[test]
    fn one_recording_more_changes_only_the_cells_that_it_is_in() {
        let (less, more) = (loads(&["web"]), loads(&["web", "database"]));
        let (less, more) = (cells(&less, 7), cells(&more, 7));
        let has = |cell: &Cell| cell.promised == "database" || cell.other == "database";
        assert!(more.iter().any(has));
        for (less, more) in less.iter().zip(&more) {
            assert!(has(more) || less == more, "{less} became {more}");
        }
    }
}
