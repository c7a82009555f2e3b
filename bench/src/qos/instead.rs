//! What a user would use instead of a law, beside the law of promises, in one run: the best static depth and
//! the best static cap of the hog, QEMU's throttle groups, and BFQ.
//!
//! A static setting is only as good as the one who chose it. So a sweep looks for the best one of each kind
//! first, with the loads that it is then judged with. No user has that chance, and no setting of a user stays
//! the best when the loads change: the comparison favours the static settings.

mod bfq;
mod change;
mod choice;
mod qemu;
mod sweep;
mod verdicts;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::super::bed::TestBed;
use super::super::effort::Effort;
use super::super::progress::Progress;
use super::configuration::{Control, Device, Limit, Setting};
use super::loads::{BURSTS, COPY, Hog, LARGE_WRITES, MIXED, RANDOM_READS, READS, SYNCS, Victim};
use super::phase::{self, Phase};
use super::{ALONE, PROMISE, SLO_FACTOR, WITHOUT, whole_micros};
use bfq::Bfq;
use sweep::Best;

/// Shorter than the default of weir, so that a full run has enough windows in a bearable time.
const WINDOW: Duration = Duration::from_millis(200);

/// How long phases take that no bar judges.
const SHORT_SECONDS: u32 = 4;

const DEPTH: &str = "best depth";
const CAP: &str = "best cap";
const QEMU: &str = "QEMU throttle group";
const BFQ: &str = "BFQ 1000:10";

/// The phases of a round, in their order.
const PHASES: [&str; 7] = [ALONE, WITHOUT, PROMISE, DEPTH, CAP, QEMU, BFQ];

/// A victim and its neighbour.
#[derive(Debug)]
pub(in super::super) struct Case {
    pub(in super::super) name: &'static str,
    victim: &'static Victim,
    hog: &'static Hog,
}

const fn case(name: &'static str, victim: &'static Victim, hog: &'static Hog) -> Case {
    Case { name, victim, hog }
}

/// All of them.
pub(in super::super) const CASES: &[Case] = &[
    case("reads-beside-random-reads", &READS, &RANDOM_READS),
    case("reads-beside-large-writes", &READS, &LARGE_WRITES),
    case("reads-beside-copy", &READS, &COPY),
    case("mixed-beside-random-reads", &MIXED, &RANDOM_READS),
    case("mixed-beside-large-writes", &MIXED, &LARGE_WRITES),
    case("mixed-beside-copy", &MIXED, &COPY),
    case("syncs-beside-random-reads", &SYNCS, &RANDOM_READS),
    case("syncs-beside-large-writes", &SYNCS, &LARGE_WRITES),
    case("syncs-beside-copy", &SYNCS, &COPY),
    case("bursts-beside-random-reads", &BURSTS, &RANDOM_READS),
    case("bursts-beside-large-writes", &BURSTS, &LARGE_WRITES),
    case("bursts-beside-copy", &BURSTS, &COPY),
];

/// The results of all cases.
#[derive(Debug, Serialize)]
pub(in super::super) struct Outcome {
    cases: Vec<Measured>,
    /// Why there is nothing of BFQ, if so.
    without_bfq: Option<String>,
}

/// The result of a case.
#[derive(Debug, Serialize)]
struct Measured {
    name: &'static str,
    best: Best,
    rounds: Vec<Round>,
}

/// One round.
#[derive(Debug, Serialize)]
struct Round {
    slo_us: u64,
    phases: BTreeMap<&'static str, Phase>,
    /// The milliseconds until a change was in force, by what was changed; `None`: not while it was watched.
    change_ms: BTreeMap<&'static str, Option<f64>>,
}

/// Measures them in turn.
///
/// # Errors
/// If a server or a client fails.
pub(in super::super) fn measure(bed: &TestBed, cases: &[&Case], effort: Effort) -> anyhow::Result<Outcome> {
    phase::write_images(bed, Device::File)?;
    let (bfq, without_bfq) = match Bfq::prepare(bed) {
        Ok(bfq) => (Some(bfq), None),
        Err(error) => (None, Some(format!("{error:#}"))),
    };
    let mut progress = Progress::new(u32::try_from(cases.len())? * (effort.rounds + 1));
    let mut measured = Vec::new();
    for case in cases {
        let best = sweep::best(bed, case)?;
        progress.advance(1, &format!("{}: {best}", case.name));
        measured.push(Measured { name: case.name, best, rounds: Vec::new() });
    }
    for number in 1..=effort.rounds {
        for (case, measured) in cases.iter().zip(&mut measured) {
            let round = round(bed, case, &measured.best, bfq.as_ref(), effort.seconds)?;
            progress.advance(1, &format!("{}, round {number}: {round}", case.name));
            measured.rounds.push(round);
        }
    }
    Ok(Outcome { cases: measured, without_bfq })
}

impl Case {
    /// A phase of it, at a gateway.
    const fn setting(&self, control: Control, slo_us: Option<u64>, seconds: u32) -> Setting {
        Setting {
            device: Device::File,
            control,
            slo_us,
            victim: self.victim,
            hog: Some(self.hog),
            seconds,
            window: WINDOW,
        }
    }

    /// The victim alone, and what it is promised then.
    fn alone(&self, bed: &TestBed) -> anyhow::Result<(Phase, u64)> {
        let setting = Setting { hog: None, ..self.setting(Control::None, None, SHORT_SECONDS) };
        let alone = phase::run(bed, setting)?;
        let slo_us = whole_micros(SLO_FACTOR * alone.gateway.mean_us);
        Ok((alone, slo_us))
    }
}

fn round(bed: &TestBed, case: &Case, best: &Best, bfq: Option<&Bfq>, seconds: u32) -> anyhow::Result<Round> {
    let (alone, slo_us) = case.alone(bed)?;
    let (depth, cap) = (Limit::Depth(best.depth), Limit::Iops(best.cap_iops));
    let run = |control, seconds| phase::run(bed, case.setting(control, Some(slo_us), seconds));
    let mut phases = BTreeMap::from([
        (ALONE, alone),
        (WITHOUT, run(Control::None, SHORT_SECONDS)?),
        (PROMISE, run(Control::Promise, seconds)?),
        (DEPTH, run(Control::Static(depth), seconds)?),
        (CAP, run(Control::Static(cap), seconds)?),
        (QEMU, qemu::phase(bed, case, best.qemu_iops, SHORT_SECONDS)?),
    ]);
    if let Some(bfq) = bfq {
        phases.insert(BFQ, bfq.phase(bed, case, SHORT_SECONDS)?);
    }
    let changed = |control| change::milliseconds(bed, case, control, slo_us);
    let change_ms =
        BTreeMap::from([(PROMISE, changed(Control::Promise)?), (DEPTH, changed(Control::Static(depth))?)]);
    Ok(Round { slo_us, phases, change_ms })
}

#[cfg(test)]
mod tests;
