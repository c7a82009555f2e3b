//! Latency against rate: what an array gives a load that has it to itself, and the promise that is derived
//! from it.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weir_engine::Event;
use weir_model::{Direction, Instant, Iops, Slo, SloPoint, Span};
use weir_sim::{Observer, World};

use super::build::{commit, fingerprint, fnv1a};
use super::store::Store;
use crate::experiment::{Experiment, resolve_curve};
use crate::study::float;

/// A rate is reached if the array answers at least this share of the requests. Some requests still wait at
/// the end.
const REACHED: f64 = 0.95;

/// Latency against rate, as measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Curve {
    /// The seed.
    pub seed: u64,
    /// The commit that the program was built from.
    pub commit: String,
    /// The hash of the program.
    pub program: String,
    /// The hash of the configuration.
    pub hash: String,
    /// The points, by rising rate.
    pub points: Vec<CurvePoint>,
}

/// A point of a curve. Latencies in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The requests a second that were asked for.
    pub offered_iops: f64,
    /// The requests a second that arrived: chance makes them a little more or fewer.
    pub arrived_iops: f64,
    /// The requests a second that were answered.
    pub answered_iops: f64,
    /// The mean latency of reads.
    pub read_us: f64,
    /// The mean latency of writes.
    pub write_us: f64,
    /// The mean latency of both.
    pub mean_us: f64,
}

impl CurvePoint {
    /// Whether the array keeps up with this rate.
    pub fn reached(&self) -> bool {
        self.answered_iops >= REACHED * self.arrived_iops
    }
}

impl Curve {
    /// The curve at `path`.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The points up to the first rate that the array does not keep up with.
    pub fn reached(&self) -> impl Iterator<Item = &CurvePoint> {
        self.points.iter().take_while(|point| point.reached())
    }

    /// The promise of these latencies up to each rate. Where chance made a latency fall, the promise keeps
    /// the higher one of the rate before. `None` if no rate is reached.
    pub fn slo(&self) -> Option<Slo> {
        let (mut read_us, mut write_us) = (0.0_f64, 0.0_f64);
        let mut points = Vec::new();
        for point in self.reached() {
            (read_us, write_us) = (read_us.max(point.read_us), write_us.max(point.write_us));
            // If only reads or only writes were measured, both get the same promise.
            let span = |us: f64| Span::from_secs_f64(if us > 0.0 { us } else { read_us.max(write_us) } / 1e6);
            points.push(SloPoint {
                up_to: Iops::new(point.offered_iops)?,
                read: span(read_us),
                write: span(write_us),
            });
        }
        Slo::new(points).ok()
    }
}

/// Measures a curve with this seed, unless its file is there already.
pub(crate) fn measure(experiment: &Experiment, name: &str, seed: u64, store: &Store) -> anyhow::Result<()> {
    let spec = &experiment.curve[name];
    let rates = spec.rates.iter().map(|rate| rate.0);
    let scenarios: Vec<_> = rates
        .map(|rate| Ok((rate, resolve_curve(experiment, spec, rate, seed)?)))
        .collect::<anyhow::Result<_>>()?;
    let hash = format!("{:016x}", fnv1a(format!("{scenarios:?}").as_bytes()));
    let path = store.curve(&experiment.id, seed, name);
    let same = |there: &Curve| there.hash == hash && there.program == fingerprint();
    if Curve::read(&path).is_ok_and(|there| same(&there)) {
        return Ok(());
    }
    let mut points = Vec::new();
    for (rate, scenario) in scenarios {
        let mut meter = Meter { warm_up: spec.warm_up.0, ..Meter::default() };
        scenario.check()?;
        World::new(scenario).run(&mut meter)?;
        points.push(meter.point(rate, spec.each.0));
    }
    let (commit, program) = (commit().to_owned(), fingerprint().to_owned());
    let curve = Curve { seed, commit, program, hash, points };
    store.write(&path, serde_json::to_string_pretty(&curve)?)
}

/// Counts the answers after the warm-up.
#[derive(Default)]
struct Meter {
    warm_up: Span,
    arrived: u64,
    reads: u32,
    writes: u32,
    reads_us: f64,
    writes_us: f64,
}

impl Observer for Meter {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if now.since(Instant::ORIGIN) <= self.warm_up {
            return;
        }
        if let Event::WindowClosed { window, .. } = event {
            self.arrived += window.offered.total();
        }
        let Event::Finished { kind, ok: true, total, .. } = event else { return };
        let us = total.as_secs_f64() * 1e6;
        match kind.direction() {
            Some(Direction::Read) => {
                self.reads += 1;
                self.reads_us += us;
            }
            Some(Direction::Write) => {
                self.writes += 1;
                self.writes_us += us;
            }
            None => {}
        }
    }
}

impl Meter {
    fn point(&self, rate: Iops, over: Span) -> CurvePoint {
        let mean = |sum: f64, count: u32| sum / f64::from(count.max(1));
        let all = self.reads + self.writes;
        CurvePoint {
            offered_iops: rate.get(),
            arrived_iops: float(self.arrived) / over.as_secs_f64(),
            answered_iops: f64::from(all) / over.as_secs_f64(),
            read_us: mean(self.reads_us, self.reads),
            write_us: mean(self.writes_us, self.writes),
            mean_us: mean(self.reads_us + self.writes_us, all),
        }
    }
}
