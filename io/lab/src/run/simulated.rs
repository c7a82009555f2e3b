//! A bench before an iSCSI target in simulated time: the model of `weir_sim::iscsi`.

use std::collections::BTreeSet;

use anyhow::Context;
use weir_model::{Instant, Span};
use weir_sim::iscsi::{Delays, FixedDelay, Initiator, TargetOptions, TargetSample, TargetWorld};
use weir_throttle::{Settings, Who};

use crate::delay::{
    Bench, Burst, CurveSpec, DelayChange, Direction, InitiatorSpec, Job, Measured, Members, PidSpec, RunSpec,
    Sample, Scenario, Tcp, ThrottleSpec,
};

/// Longer than any job takes.
const JOB_AT_MOST: Span = Span::from_secs(3_600);

/// The model.
#[derive(Clone, Copy, Debug)]
pub struct Simulated;

impl Bench for Simulated {
    fn name(&self) -> String {
        "simulated".to_owned()
    }

    fn is_real(&self) -> bool {
        false
    }

    fn measure(&self, scenario: &Scenario, run: &str, seed: u64) -> anyhow::Result<Measured> {
        let spec = scenario.run.get(run).with_context(|| format!("there is no run {run}"))?;
        match (&spec.throttle, spec.duration) {
            (ThrottleSpec::Curve(curve), _) => Ok(jobs(scenario, run, curve, seed)),
            (_, Some(duration)) => timed(scenario, run, spec, duration.0, seed),
            (_, None) => anyhow::bail!("found no duration; accepted: one"),
        }
    }
}

/// A run for a set time, with samples.
fn timed(
    scenario: &Scenario,
    run: &str,
    spec: &RunSpec,
    duration: Span,
    seed: u64,
) -> anyhow::Result<Measured> {
    let taking_part = scenario.initiators(run);
    let place = |name: &String| taking_part.iter().position(|(known, _)| known == name);
    let mut measured = Measured {
        initiators: taking_part.iter().map(|(name, _)| (*name).to_owned()).collect(),
        ..Measured::default()
    };
    let mut initiators = Vec::new();
    for (initiator, (_, spec)) in taking_part.iter().enumerate() {
        let bursts = spec.bursts(duration);
        measured.worked.extend(bursts.iter().map(|(from, to)| Burst {
            initiator,
            from_us: from.as_micros(),
            to_us: to.as_micros(),
        }));
        initiators.push(modelled(scenario, spec, bursts, None));
    }
    let delays = match &spec.throttle {
        ThrottleSpec::None | ThrottleSpec::Curve(_) => Delays::None,
        ThrottleSpec::Pid(pid) => {
            let settings = settings(pid, &initiators);
            settings.check().with_context(|| format!("delay.run.{run}.throttle.pid"))?;
            Delays::Throttle(Box::new(settings))
        }
        ThrottleSpec::Fixed(changes) => {
            let each = |change: &crate::delay::FixedDelay| {
                let (at, delay) = (change.at.0, change.delay.0);
                let places: Vec<_> = change.initiators.iter().filter_map(place).collect();
                places.into_iter().map(move |initiator| FixedDelay { at, initiator, delay })
            };
            Delays::Fixed(changes.iter().flat_map(each).collect())
        }
    };
    if let Delays::Fixed(changes) = &delays {
        measured.changes.extend(changes.iter().map(|change| DelayChange {
            initiator: change.initiator,
            at_us: change.at.as_micros(),
            delay_us: change.delay.as_micros(),
        }));
    }
    let options = options(scenario, seed, duration, initiators, delays);
    let (_, tcp) = TargetWorld::new(options).run(|now, sample| measured.samples.push(shown(now, sample)));
    measured.tcp = Tcp { timeouts: tcp.timeouts, retransmitted: tcp.retransmitted };
    Ok(measured)
}

/// Jobs under each delay, one after the other, each on a target that is idle before.
fn jobs(scenario: &Scenario, run: &str, curve: &CurveSpec, seed: u64) -> Measured {
    let taking_part = scenario.initiators(run);
    let mut measured = Measured::default();
    let mut number = 0;
    for (name, spec) in taking_part {
        measured.initiators.push(name.to_owned());
        let requests = curve.job.0.0.div_ceil(spec.request.0.0.into());
        for delay in &curve.delays {
            for _ in 0..curve.repeats {
                number += 1;
                let initiator = modelled(scenario, spec, vec![(Span::ZERO, JOB_AT_MOST)], Some(requests));
                let fixed = FixedDelay { at: Span::ZERO, initiator: 0, delay: delay.0 };
                let seed = seed.wrapping_mul(100_000).wrapping_add(number);
                let options =
                    options(scenario, seed, JOB_AT_MOST, vec![initiator], Delays::Fixed(vec![fixed]));
                let (end, tcp) = TargetWorld::new(options).run(|_, _| ());
                measured.jobs.push(Job {
                    delay_us: delay.0.as_micros(),
                    bytes: requests * u64::from(spec.request.0.0),
                    took_us: end.since(Instant::ORIGIN).as_micros(),
                });
                measured.tcp.timeouts += tcp.timeouts;
                measured.tcp.retransmitted += tcp.retransmitted;
            }
        }
    }
    measured
}

fn options(
    scenario: &Scenario,
    seed: u64,
    duration: Span,
    initiators: Vec<Initiator>,
    delays: Delays,
) -> TargetOptions {
    TargetOptions {
        seed,
        duration,
        service_time: scenario.disk.service_time.0,
        spread: scenario.disk.spread,
        round_trip: scenario.link.round_trip.0,
        bandwidth: scenario.link.bandwidth.0.0,
        initiators,
        delays,
        misfortunes: Vec::new(),
    }
}

fn modelled(
    scenario: &Scenario,
    spec: &InitiatorSpec,
    bursts: Vec<(Span, Span)>,
    limit: Option<u64>,
) -> Initiator {
    let groups: BTreeSet<_> = scenario.initiator.values().map(|spec| &spec.group).collect();
    let group = (0..).zip(groups).find(|(_, group)| **group == spec.group).map_or(0, |(number, _)| number);
    Initiator {
        group,
        writes: spec.direction == Direction::Write,
        r2t: spec.r2t,
        request: spec.request.0.0,
        threads: spec.threads.get(),
        pace: spec.pace.map(|pace| Span::from_secs_f64(1.0 / pace.0.get())),
        bursts,
        limit,
    }
}

/// The settings of the throttle: the defaults, but for what the file says.
fn settings(pid: &PidSpec, initiators: &[Initiator]) -> Settings {
    let mut settings = Settings::new(pid.threshold.0);
    settings.law.ceiling = pid.ceiling.0;
    settings.law.setpoint_share = pid.setpoint;
    let who = |number: usize| Who::Initiator(format!("iqn.{number}"));
    for (number, initiator) in initiators.iter().enumerate() {
        match pid.members {
            Members::Named if initiator.writes => drop(settings.forced.insert(who(number))),
            Members::Named | Members::Nobody => drop(settings.exempt.insert(who(number))),
            Members::Found => {}
        }
    }
    settings
}

fn shown(now: Instant, sample: &TargetSample) -> Sample {
    Sample {
        at_us: now.since(Instant::ORIGIN).as_micros(),
        reads: sample.reads,
        read_us: sample.read_time.as_micros(),
        ewma_us: sample.ewma.as_micros(),
        threshold_us: sample.threshold.as_micros(),
        delay_us: sample.delay.as_micros(),
        members: sample.members.clone(),
        read: sample.read.clone(),
        written: sample.written.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Library;

    #[test]
    fn a_throttle_that_cannot_be_is_refused_and_ends_no_process() {
        let library = Library::embedded().unwrap();
        let scenario = library.matching("delay-pid")[0].delay.clone().unwrap();
        let mut run = scenario.run["20"].clone();
        let ThrottleSpec::Pid(pid) = &mut run.throttle else { panic!("{run:?}") };
        pid.setpoint = 1.1;
        let scenario = Scenario { run: [("wrong".to_owned(), run)].into(), ..scenario };
        let error = format!("{:#}", Simulated.measure(&scenario, "wrong", 1).unwrap_err());
        assert!(error.starts_with("delay.run.wrong.throttle.pid: ") && error.contains("1.1"), "{error}");
    }
}
