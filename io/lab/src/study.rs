//! The second stage: computes figures from records. This page defines the words for all claims; each claim
//! names the figures that it needs (`facade/`, `maestro/`, `packet_delay/`, `transfers/`).
//!
//! - A window is **active** if at least [`ACTIVE`] requests came in it, or some wait at its end.
//! - **Attainment** is the share of active windows whose requests took at most their target on average, among
//!   those with a target. A request belongs to the window in which it came. A window has no target after the
//!   clients offered more than the SLO covers; [`View::out_of_contract`] counts these windows.
//! - An **on-window** is a window in which the volume's clients sent anything. A **burst** is a row of
//!   on-windows.
//! - **Work conservation** is the number of answers with control, as a share of the answers without control.
//! - The **isolation** of a window is the number of answers as a share of the requests offered, at most 1.
//!
//! [`application`] defines the words for applications under Maestro's law, above all `y`. [`target`] defines
//! those for initiators before an iSCSI target, and [`bulk`] those for transfers to storage nodes.
//!
//! A figure is a number with a name and a unit. A figure that cannot be computed has no value, and does not
//! hold.

pub mod application;
pub mod bulk;
pub mod target;

use std::collections::BTreeMap;
use std::fmt::Write;

use weir_model::Verdict;

use crate::bulk::BulkRecord;
use crate::curve::Curve;
use crate::delay::Measured;
use crate::experiment::Experiment;
use crate::float::float;
use crate::run::{Record, Store, Window, read_curves};

/// The least number of requests for which a mean says something.
pub const ACTIVE: u64 = 20;

/// The records of one seed's runs of an experiment.
#[derive(Clone, Debug)]
pub struct Records {
    /// The seed.
    pub seed: u64,
    /// The records by the names of their runs; `run@value` for the runs of a sweep.
    pub runs: BTreeMap<String, Record>,
    /// The records of runs before an iSCSI target.
    pub measured: BTreeMap<String, Measured>,
    /// The records of runs with bulk transfers.
    pub bulk: BTreeMap<String, BulkRecord>,
    /// The curves by their names.
    pub curves: BTreeMap<String, Curve>,
    /// The commit that the program was built from.
    pub commit: String,
}

/// A number that says something about a claim.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The name, as in the experiment's file.
    pub name: &'static str,
    /// The value; `None` if it cannot be computed from the records.
    pub value: Option<f64>,
}

/// The figures of one seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// The seed.
    pub seed: u64,
    /// The figures, in the order in which the claim computes them.
    pub figures: Vec<Figure>,
}

/// Computes the figures of a claim.
pub type Claim = fn(&Records) -> Vec<Figure>;

/// A volume in a run, after the warm-up.
#[derive(Clone, Copy, Debug)]
pub struct View<'r> {
    record: &'r Record,
    volume: usize,
}

/// Computes the figures of `claim` for each seed, and writes them to `figures.csv`.
///
/// # Errors
/// If a record is missing.
pub fn study(
    experiment: &Experiment,
    claim: Claim,
    seeds: &[u64],
    store: &Store,
) -> anyhow::Result<Vec<Figures>> {
    let mut all = Vec::new();
    for &seed in seeds {
        let records = Records::read(experiment, seed, store)?;
        all.push(Figures { seed, figures: claim(&records) });
    }
    store.write(&store.of(&experiment.id, "figures.csv"), table(experiment, &all))?;
    Ok(all)
}

fn table(experiment: &Experiment, all: &[Figures]) -> String {
    let mut text = "seed,figure,value,unit\n".to_owned();
    let unit = |name: &str| {
        let expectation = experiment.expect.iter().find(|expectation| expectation.figure == name);
        expectation.map_or("", |expectation| expectation.unit.as_str())
    };
    for Figures { seed, figures } in all {
        for Figure { name, value } in figures {
            let value = value.map_or(String::new(), |value| value.to_string());
            writeln!(text, "{seed},{name},{value},{}", unit(name)).expect("memory takes it");
        }
    }
    text
}

impl Records {
    /// The records of the runs of an experiment with this seed.
    ///
    /// # Errors
    /// If one of them is missing.
    pub fn read(experiment: &Experiment, seed: u64, store: &Store) -> anyhow::Result<Self> {
        let (mut runs, mut measured, mut bulk) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut commit = String::new();
        for run in experiment.runs()? {
            let record = Record::read(&store.record(&experiment.id, seed, &run.name))?;
            commit.clone_from(&record.header.commit);
            runs.insert(run.name, record);
        }
        for run in experiment.delay.iter().flat_map(|scenario| scenario.run.keys()) {
            let (header, record) = Measured::read(&store.record(&experiment.id, seed, run))?;
            commit = header.commit;
            measured.insert(run.clone(), record);
        }
        for run in experiment.bulk.iter().flat_map(|scenario| scenario.run.keys()) {
            let (header, record) = BulkRecord::read(&store.record(&experiment.id, seed, run))?;
            commit = header.commit;
            bulk.insert(run.clone(), record);
        }
        Ok(Self { seed, runs, measured, bulk, curves: read_curves(experiment, seed, store)?, commit })
    }

    /// A volume in a run; `None` if there is no such run, or no such volume in it.
    pub fn view(&self, run: &str, volume: &str) -> Option<View<'_>> {
        View::of(self.runs.get(run)?, volume)
    }

    /// The records of a sweep with their values, by rising value.
    pub fn sweep(&self, run: &str) -> Vec<(f64, &Record)> {
        let of_sweep = |name: &str| name.split_once('@').is_some_and(|(name, _)| name == run);
        let runs = self.runs.iter().filter(|(name, _)| of_sweep(name));
        let mut values: Vec<_> =
            runs.filter_map(|(_, record)| Some((record.header.value?, record))).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values
    }
}

impl Figure {
    /// A figure.
    pub fn new(name: &'static str, value: Option<f64>) -> Self {
        Self { name, value: value.filter(|value| value.is_finite()) }
    }
}

impl<'r> View<'r> {
    /// A volume of a record.
    pub fn of(record: &'r Record, volume: &str) -> Option<Self> {
        let volume = record.header.volumes.iter().position(|name| name == volume)?;
        Some(Self { record, volume })
    }

    /// All windows, in order of time.
    pub fn windows(self) -> impl Iterator<Item = &'r Window> + Clone {
        let warm_up_us = self.record.header.warm_up_us;
        self.record.windows[self.volume].iter().filter(move |window| window.end_us > warm_up_us)
    }

    /// The end of each window, in microseconds, and how many requests waited then. The windows of the warm-up
    /// are included.
    pub fn backlogs(self) -> impl Iterator<Item = (u64, u64)> {
        self.record.windows[self.volume].iter().scan(0_u64, |backlog, window| {
            *backlog = (*backlog + window.offered).saturating_sub(window.completed);
            Some((window.end_us, *backlog))
        })
    }

    /// The active windows.
    pub fn active(self) -> Vec<&'r Window> {
        let warm_up_us = self.record.header.warm_up_us;
        let windows = self.record.windows[self.volume].iter().zip(self.backlogs());
        windows
            .filter(|(window, (_, backlog))| window.offered >= ACTIVE || *backlog > 0)
            .map(|(window, _)| window)
            .filter(|window| window.end_us > warm_up_us)
            .collect()
    }

    /// The rows of on-windows, each with at least one.
    pub fn bursts(self) -> Vec<Vec<&'r Window>> {
        let mut bursts: Vec<Vec<&Window>> = Vec::new();
        let mut on = false;
        for window in self.windows() {
            match (window.offered > 0, on) {
                (true, true) => bursts.last_mut().expect("one has begun").push(window),
                (true, false) => bursts.push(vec![window]),
                (false, _) => {}
            }
            on = window.offered > 0;
        }
        bursts
    }

    /// Percent of active windows that met their target, among those that had one.
    pub fn attainment(self) -> Option<f64> {
        attainment(self.active())
    }

    /// Percent of on-windows that met their target, among those that had one.
    pub fn attainment_on(self) -> Option<f64> {
        attainment(self.windows().filter(|window| window.offered > 0))
    }

    /// Percent of active windows without a promise, because the clients had offered more than the SLO covers.
    pub fn out_of_contract(self) -> Option<f64> {
        let active = self.active();
        let out = active.iter().filter(|window| window.verdict == Some(Verdict::OutOfContract)).count();
        percent(out, active.len())
    }

    /// Mean number of answers a second.
    pub fn rate(self) -> f64 {
        let answered: u64 = self.windows().map(|window| window.completed).sum();
        float(answered) / self.record.judged().as_secs_f64()
    }

    /// Mean latency of all requests, in milliseconds.
    pub fn mean_ms(self) -> Option<f64> {
        let total = &self.record.totals[self.volume];
        (total.completed > 0).then_some(total.mean_us / 1e3)
    }

    /// Standard deviation of the latency of all requests, in milliseconds.
    pub fn deviation_ms(self) -> Option<f64> {
        let total = &self.record.totals[self.volume];
        (total.completed > 1).then_some(total.deviation_us / 1e3)
    }

    /// Mean isolation of the windows in which the clients offered requests, in percent.
    pub fn isolation(self) -> Option<f64> {
        let on = self.windows().filter(|window| window.offered > 0);
        let shares = on.map(|window| (float(window.completed) / float(window.offered)).min(1.0));
        mean(shares).map(|share| 100.0 * share)
    }
}

/// Percent of windows that met their target, among those that had one.
pub fn attainment<'r>(windows: impl IntoIterator<Item = &'r Window>) -> Option<f64> {
    let (mut met, mut missed) = (0, 0);
    for window in windows {
        match window.verdict {
            Some(Verdict::Met) => met += 1,
            Some(Verdict::Missed) => missed += 1,
            Some(Verdict::OutOfContract | Verdict::Idle | Verdict::NoSlo) | None => {}
        }
    }
    percent(met, met + missed)
}

/// Mean latency of all requests of some windows, in milliseconds.
pub fn mean_latency_ms<'r>(windows: impl IntoIterator<Item = &'r Window>) -> Option<f64> {
    weighted(windows.into_iter().map(|window| (window.mean_us, window.completed)))
}

/// Mean target of some windows, in milliseconds. Each window counts by its number of answers.
pub fn mean_target_ms<'r>(windows: impl IntoIterator<Item = &'r Window>) -> Option<f64> {
    weighted(windows.into_iter().map(|window| (window.target_us, window.completed)))
}

/// The number of answers with control, in percent of the number without.
pub fn work_conservation(with: &Record, without: &Record) -> Option<f64> {
    let all = |record: &Record| -> f64 {
        record.header.volumes.iter().filter_map(|name| View::of(record, name)).map(View::rate).sum()
    };
    let baseline = all(without);
    (baseline > 0.0).then(|| 100.0 * all(with) / baseline)
}

/// Mean of some numbers.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.into_iter().fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The greatest of some numbers.
pub fn greatest(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().max_by(f64::total_cmp)
}

/// The least of some numbers.
pub fn least(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().min_by(f64::total_cmp)
}

/// By how much `now` is above `before`, in percent of `before`.
pub fn change_percent(now: Option<f64>, before: Option<f64>) -> Option<f64> {
    Some(100.0 * (now? / before? - 1.0))
}

/// `some` in percent of `all`.
#[allow(clippy::cast_precision_loss)] // counts of windows
pub fn percent(some: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| 100.0 * some as f64 / all as f64)
}

fn weighted(values: impl Iterator<Item = (Option<u64>, u64)>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for (us, weight) in values.filter_map(|(us, weight)| Some((us?, weight))) {
        sum += float(us) * float(weight);
        count += float(weight);
    }
    (count > 0.0).then(|| sum / count / 1e3)
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
