//! Random targets on which anything happens: sessions come and go, counters wrap, vanish and begin anew, and
//! devices vanish and come back. At the end, everybody pauses.
//!
//! # What must hold
//!
//! 1. **Nobody is delayed who must not be**: no exempt initiator, and none that only reads and is not forced.
//! 2. **No delay is above the ceiling.**
//! 3. **A delay ends with its reason**: within 1 s after the last request, the delay is zero, however long
//!    reads waited before.

use std::collections::BTreeSet;

use rand::RngExt;
use weir_model::{Bandwidth, Instant, Span};
use weir_throttle::{Settings, Who};

use super::options::{Delays, Initiator, Misfortune, Mishap, TargetOptions};
use super::world::{TargetSample, TargetWorld};
use crate::check::{Breach, Violation};
use crate::random::{Prng, Seed};
use crate::world::Outcome;

/// How long everybody pauses at the end.
const PAUSE: Span = Span::from_secs(5);
/// How soon a delay must end.
const SOON: Span = Span::from_secs(1);

/// A random target with its settings. A seed always gives the same.
pub fn options(seed: u64) -> (TargetOptions, Settings) {
    let stream = |name: &str| Seed(seed).stream(&format!("iscsi/swarm/{name}"));
    let mut random = stream("options");
    let busy = Span::from_millis(random.random_range(3_000..=12_000));
    let count = random.random_range(1..=6);
    let mut loads = stream("loads");
    let initiators: Vec<_> = (0..count).map(|_| initiator(&mut loads, busy)).collect();
    let settings = settings(&mut stream("settings"), count);
    let options = TargetOptions {
        seed,
        duration: busy + PAUSE,
        service_time: Span::from_micros(random.random_range(50..=6_000)),
        spread: random.random_range(0.0..=1.0),
        round_trip: Span::from_micros(random.random_range(20..=2_000)),
        bandwidth: Bandwidth::new(random.random_range(12_500_000..=1_250_000_000)).expect("above zero"),
        initiators,
        delays: Delays::Throttle(Box::new(settings.clone())),
        misfortunes: misfortunes(&mut stream("misfortunes"), busy, count),
    };
    (options, settings)
}

/// Runs the target of a seed.
///
/// # Errors
/// If a rule is broken that must hold in every run.
pub fn run(seed: u64) -> Result<Outcome, Violation> {
    let (options, settings) = options(seed);
    let mut watch = Watch::new(&options, settings);
    let mut broken = None;
    let mut outcome = Outcome::default();
    TargetWorld::new(options).run(|now, sample| {
        outcome.answered += sample.answered;
        outcome.submitted += sample.begun;
        if broken.is_none() {
            broken = watch.check(now, sample).map(|what| Violation { seed, at: now, what: Box::new(what) });
        }
    });
    // At the end everything has been answered, but for what was lost with its session.
    outcome.aborted = outcome.submitted - outcome.answered;
    broken.map_or(Ok(outcome), Err)
}

/// What the rules need to know.
struct Watch {
    settings: Settings,
    /// The initiators that may be delayed.
    may_be: BTreeSet<usize>,
    /// The end of the last sample in which anything happened.
    busy: Instant,
}

impl Watch {
    fn new(options: &TargetOptions, settings: Settings) -> Self {
        let may_be = |(number, initiator): &(usize, &Initiator)| {
            let who = name(*number);
            !settings.exempt.contains(&who) && (initiator.writes || settings.forced.contains(&who))
        };
        let initiators = options.initiators.iter().enumerate();
        let may_be = initiators.filter(may_be).map(|(number, _)| number).collect();
        Self { settings, may_be, busy: Instant::ORIGIN }
    }

    /// The rule that is broken, if one is.
    fn check(&mut self, now: Instant, sample: &TargetSample) -> Option<Breach> {
        let ceiling = self.settings.law.ceiling;
        let delays = sample.delays.iter().enumerate();
        let delays = delays.filter_map(|(initiator, delay)| Some((initiator, (*delay)?)));
        for (initiator, delay) in delays.filter(|(_, delay)| !delay.is_zero()) {
            let wrong = |why| Some(Breach::WronglyDelayed { initiator, delay, why });
            if !self.may_be.contains(&initiator) {
                return wrong("and nobody may delay it");
            }
            if delay > ceiling {
                return wrong("which is above the ceiling");
            }
        }
        if sample.reads + sample.answered + sample.begun > 0 {
            self.busy = now;
        }
        let initiator = sample.members.first().copied().unwrap_or_default();
        (!sample.delay.is_zero() && now.since(self.busy) > SOON).then_some(Breach::WronglyDelayed {
            initiator,
            delay: sample.delay,
            why: "and there was no request for long",
        })
    }
}

fn initiator(random: &mut Prng, busy: Span) -> Initiator {
    let mut bursts = Vec::new();
    let mut at = Span::from_millis(random.random_range(0..2_000));
    while at < busy {
        let to = (at + Span::from_millis(random.random_range(100..=8_000))).min(busy);
        bursts.push((at, to));
        at = to + Span::from_millis(random.random_range(1..=4_000));
    }
    Initiator {
        group: random.random_range(0..2),
        writes: random.random_bool(0.5),
        r2t: random.random_bool(0.5),
        request: 512 << random.random_range(0..=9),
        threads: random.random_range(1..=16),
        pace: random.random_bool(0.5).then(|| Span::from_micros(random.random_range(500..=100_000))),
        bursts,
        limit: None,
    }
}

fn settings(random: &mut Prng, initiators: usize) -> Settings {
    let mut settings = Settings::new(Span::from_millis(random.random_range(1..=20)));
    settings.law.ceiling = Span::from_micros(500 * random.random_range(1..=100));
    settings.write_limit = Bandwidth::new(random.random_range(1_000..=2_000_000)).expect("above zero");
    for number in 0..initiators {
        match random.random_range(0..5) {
            0 => drop(settings.exempt.insert(name(number))),
            1 => drop(settings.forced.insert(name(number))),
            _ => {}
        }
    }
    settings
}

fn misfortunes(random: &mut Prng, busy: Span, initiators: usize) -> Vec<Misfortune> {
    let number = random.random_range(0..=12);
    let draw = |_| Misfortune {
        at: Span::from_nanos(random.random_range(0..busy.as_nanos())),
        initiator: random.random_range(0..initiators),
        what: match random.random_range(0..7) {
            0 => Mishap::LogsOut,
            1 => Mishap::LogsIn,
            2 => Mishap::CountersVanish,
            3 => Mishap::CountersReturn,
            4 => Mishap::CountersNearWrap,
            5 => Mishap::DeviceVanishes,
            _ => Mishap::DeviceReturns,
        },
    };
    (0..number).map(draw).collect()
}

fn name(number: usize) -> Who {
    Who::Initiator(format!("iqn.{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_happens_delays_anybody_wrongly() {
        for seed in 0..300 {
            run(seed).unwrap_or_else(|violation| panic!("{violation}"));
        }
    }

    #[test]
    fn the_rules_have_something_to_watch() {
        let (mut delayed, mut lost) = (0, 0);
        for seed in 0..100 {
            let (options, settings) = options(seed);
            let mut longest = Span::ZERO;
            lost += options.misfortunes.len();
            TargetWorld::new(options).run(|_, sample| {
                longest = sample.delays.iter().flatten().fold(longest, |longest, delay| longest.max(*delay));
            });
            delayed += u32::from(longest >= settings.law.ceiling);
        }
        assert!(delayed > 10 && lost > 300, "{delayed} seeds reach the ceiling, {lost} misfortunes");
    }

    #[test]
    fn an_exempt_initiator_that_is_delayed_is_found() {
        let (options, mut settings) = options(1);
        settings.exempt.insert(name(0));
        let mut watch = Watch::new(&options, settings);
        let delays = vec![Some(Span::from_micros(500))];
        let sample = TargetSample { delays, ..TargetSample::default() };
        let found = watch.check(Instant::ORIGIN, &sample);
        assert!(matches!(found, Some(Breach::WronglyDelayed { initiator: 0, .. })), "{found:?}");
    }
}
