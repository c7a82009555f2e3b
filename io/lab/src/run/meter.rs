//! Measures a curve: runs the load at each of its rates, and counts the answers; or replays a recorded load.

use weir_engine::Event;
use weir_model::{Direction, Instant, Iops, Span};
use weir_sim::{Observer, World};

use super::build::{commit, fingerprint, fnv1a};
use super::paced;
use super::store::Store;
use super::trace_curve::WindowMeter;
use crate::curve::{Curve, CurvePoint};
use crate::experiment::{Experiment, resolve_curve};
use crate::float::float;

/// Measures a curve with this seed, unless its file is there already.
pub(super) fn measure(experiment: &Experiment, name: &str, seed: u64, store: &Store) -> anyhow::Result<()> {
    let spec = &experiment.curve[name];
    let rates = spec.rates.iter().map(|rate| rate.0);
    let of_rate = |rate| anyhow::Ok((rate, resolve_curve(experiment, spec, Some(rate), seed)?));
    let (traced, at_rates) = match &spec.trace {
        Some(trace) => (Some((trace, resolve_curve(experiment, spec, None, seed)?)), Vec::new()),
        None => (None, rates.clone().map(of_rate).collect::<Result<_, _>>()?),
    };
    let hash = format!("{:016x}", fnv1a(format!("{:?} {traced:?} {at_rates:?}", spec.rates).as_bytes()));
    let path = store.curve(&experiment.id, seed, name);
    let same = |there: &Curve| there.hash == hash && there.program == fingerprint();
    if Curve::read(&path).is_ok_and(|there| same(&there)) {
        return Ok(());
    }
    let points = match traced {
        Some((trace, scenario)) => {
            scenario.check()?;
            let lasting = scenario.duration;
            let mut world = World::new(scenario);
            world.replay(0, paced::open(trace, lasting)?);
            let mut meter = WindowMeter::default();
            world.run(&mut meter)?;
            meter.points(rates)
        }
        None => at_rates
            .into_iter()
            .map(|(rate, scenario)| {
                scenario.check()?;
                let mut meter = Meter { warm_up: spec.warm_up.0, ..Meter::default() };
                World::new(scenario).run(&mut meter)?;
                Ok(meter.point(rate, spec.each.0))
            })
            .collect::<anyhow::Result<_>>()?,
    };
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
        if let Event::WindowEnded { traffic, .. } = event {
            self.arrived += traffic.offered.total();
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
