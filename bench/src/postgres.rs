//! One application, whole: PostgreSQL with pgbench on ext4, on the kernel's NBD client, on a volume of weir,
//! beside a hog on another volume of the same simulated array.
//!
//! The kernel's client needs a kernel that has it, and root. So all of it runs in a virtual machine with an
//! emulated processor. What takes time there is the array, which answers after as many milliseconds as its
//! model says.

mod database;
mod readings;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde::Serialize;

use super::bed::TestBed;
use super::effort::Effort;
use super::progress::Progress;
use super::report::{Bar, Figure, Row, Unit};
use super::statistics::median;
use readings::Reading;

/// What runs beside PostgreSQL, and under which control.
#[derive(Debug)]
struct Run {
    name: &'static str,
    control: &'static str,
    /// The hog's reads of 64 KiB outstanding.
    hog_depth: u32,
}

/// In this order; `QUIET` shows what there is to win.
const RUNS: [Run; 4] = [
    Run { name: QUIET, control: "none", hog_depth: 1 },
    Run { name: WITHOUT, control: "none", hog_depth: 64 },
    Run { name: FACADE, control: "facade", hog_depth: 64 },
    Run { name: PROMISE, control: "promise", hog_depth: 64 },
];

const QUIET: &str = "quiet";
const WITHOUT: &str = "without";
const FACADE: &str = "facade";
const PROMISE: &str = "promise";

/// The bars: transactions with the law of promises by those with Façade, and the hog's rate with the law of
/// promises by its rate without control, in percent.
const TRANSACTIONS: Bar = Bar::AtLeast(1.5);
const HOG_SHARE: Bar = Bar::AtLeast(60.0);

/// The readings of each round, in the order of [`RUNS`].
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    rounds: Vec<[Reading; 4]>,
}

/// Measures them, in a guest for each round.
///
/// # Errors
/// If there is no guest or no PostgreSQL, or a program in the guest fails.
pub(super) fn measure(bed: &TestBed, effort: Effort) -> anyhow::Result<Outcome> {
    let image = database::image(bed)?;
    let mut progress = Progress::new(effort.rounds);
    let mut rounds = Vec::new();
    for number in 1..=effort.rounds {
        let out = bed.scratch(&format!("postgres-{number}"));
        guest(bed, &image, &out, effort.seconds)?;
        let round = RUNS
            .iter()
            .map(|run| Reading::read(&out, run.name).with_context(|| run.name))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let said = RUNS.iter().zip(&round).map(|(run, reading)| format!("{}: {reading}", run.name));
        progress.advance(1, &said.collect::<Vec<_>>().join("; "));
        rounds.push(round.try_into().ok().context("a reading for each run")?);
    }
    Ok(Outcome { rounds })
}

fn guest(bed: &TestBed, image: &Path, out: &Path, seconds: u32) -> anyhow::Result<()> {
    let mut command = Command::new(bed.root().join("scripts/run-in-vm"));
    command.args(["--mem", "4096", "--timeout", "3000", "--out"]).arg(out).arg("--");
    command.arg(bed.root().join("bench/src/postgres/guest.sh")).arg(bed.weir()).arg(image);
    command.arg(seconds.to_string());
    command.args(RUNS.iter().map(|Run { name, control, hog_depth }| format!("{name}:{control}:{hog_depth}")));
    let status = command.stdin(Stdio::null()).status().context("scripts/run-in-vm: cannot be run")?;
    ensure!(status.success(), "the guest: {status}");
    Ok(())
}

impl Outcome {
    /// The figures with bars, and those beside them.
    pub(super) fn rows(&self) -> Vec<Row> {
        let over = |value: &dyn Fn(&[Reading; 4]) -> f64| median(self.rounds.iter().map(value));
        let of = |run: usize, value: fn(&Reading) -> f64| over(&move |round| value(&round[run]));
        let tps = |run| Figure { value: of(run, |reading| reading.tps), unit: Unit::Tps };
        let hog = |run| Figure { value: of(run, |reading| reading.hog_iops), unit: Unit::Iops };
        let row = |what: &str, weir, other, compared, bar| Row {
            case: "postgres".to_owned(),
            what: what.to_owned(),
            weir,
            other: Some(other),
            compared: Some(compared),
            bar,
        };
        let [_, without, facade, promise] = [0, 1, 2, 3];
        let ratio = |run: usize, to: usize| Figure {
            value: over(&move |round| round[run].tps / round[to].tps),
            unit: Unit::Ratio,
        };
        let share = |run: usize| Figure {
            value: over(&move |round| round[run].hog_iops * 100.0 / round[without].hog_iops),
            unit: Unit::Percent,
        };
        let beside = |run, to, bar, what| row(what, tps(run), tps(to), ratio(run, to), bar);
        vec![
            Row::alone("postgres".to_owned(), "transactions, hog of depth 1".to_owned(), tps(0), None),
            beside(promise, facade, Some(TRANSACTIONS), "transactions, promise beside Façade"),
            beside(promise, without, None, "transactions, promise beside no control"),
            row("hog's rate, promise", hog(promise), hog(without), share(promise), Some(HOG_SHARE)),
            row("hog's rate, Façade", hog(facade), hog(without), share(facade), None),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_is_compared_with_itself() {
        let reading = |tps, hog_iops| Reading { tps, latency_ms: 1.0, hog_iops };
        let round = |slow: f64| {
            [(44.0, 50.0), (10.0, 600.0), (20.0, 450.0), (36.0, 420.0)]
                .map(|(tps, hog)| reading(tps / slow, hog / slow))
        };
        let rows = Outcome { rounds: vec![round(1.0), round(2.0), round(3.0)] }.rows();
        assert!((rows[1].compared.unwrap().value - 1.8).abs() < 1e-9);
        assert!((rows[3].compared.unwrap().value - 70.0).abs() < 1e-9);
        assert_eq!((rows[1].met(), rows[3].met()), (Some(true), Some(true)));
        assert!((rows[1].weir.value - 18.0).abs() < 1e-9);
    }
}
