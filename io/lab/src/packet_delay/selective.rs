//! §3.2, figures 6 and 7: three of four equal initiators are delayed at set times, and released later. Each
//! slows down at once and recovers at once, and the others gain what it loses.
//!
//! In the control, nobody is delayed at these times.

use crate::delay::{DelayChange, Measured};
use crate::float::float;
use crate::study::target::Time;
use crate::study::{Figure, Records, greatest, least, mean};

/// How long an initiator may take to slow down or to recover, in microseconds.
const AT_ONCE_US: u64 = 1_000_000;
/// The second after that, in which it is judged.
const JUDGED_US: u64 = 1_000_000;
/// The time before a change, and the time after it, over which gains and losses are taken.
const LONG_US: u64 = 4_000_000;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let run = |name: &str| records.measured.get(name);
    let worst_slowed = |name: &str, without: &str| {
        greatest(each(delays(run(name)?).map(|change| slowed(run(without)?, change)))?)
    };
    let recovered = |name: &str| {
        let run = run(name)?;
        least(each(releases(run).map(|change| recovered(run, change)))?)
    };
    let gained = |name: &str| least(each(delays(run(name)?).map(|change| gained(run(name)?, change)))?);
    let more = |of: fn(&Measured) -> u64| {
        let pair =
            |with: &str, without: &str| Some(Counted { with: of(run(with)?), without: of(run(without)?) });
        let [reading, writing] = [pair("read", "read-undelayed")?, pair("write", "write-undelayed")?];
        Some(if reading.more() > writing.more() { reading } else { writing })
    };
    let retransmitted = more(|run| run.tcp.retransmitted);
    vec![
        Figure::new("slowed-reading", worst_slowed("read", "read")),
        Figure::new("recovered-reading", recovered("read")),
        Figure::new("gained-reading", gained("read")),
        Figure::new("slowed-writing", worst_slowed("write", "write")),
        Figure::new("recovered-writing", recovered("write")),
        Figure::new("gained-writing", gained("write")),
        Figure::new("slowed-reading-without", worst_slowed("read", "read-undelayed")),
        Figure::new("slowed-writing-without", worst_slowed("write", "write-undelayed")),
        Figure::new("timeouts", more(|run| run.tcp.timeouts).map(Counted::more)),
        Figure::new("retransmitted", retransmitted.map(Counted::more)),
        Figure::new("retransmitted-noise", retransmitted.map(Counted::noise)),
    ]
}

/// All values; nothing if one is missing.
fn each(values: impl Iterator<Item = Option<f64>>) -> Option<Vec<f64>> {
    values.collect()
}

/// The changes from no delay to one.
fn delays(measured: &Measured) -> impl Iterator<Item = &DelayChange> {
    measured.changes.iter().filter(|change| change.delay_us > 0)
}

/// The changes back to no delay.
fn releases(measured: &Measured) -> impl Iterator<Item = &DelayChange> {
    measured.changes.iter().filter(|change| change.delay_us == 0)
}

fn judged(change: &DelayChange) -> Time {
    let from = change.at_us + AT_ONCE_US;
    from..from + JUDGED_US
}

/// The rate of an initiator soon after its delay was set, in percent of its rate before.
fn slowed(measured: &Measured, change: &DelayChange) -> Option<f64> {
    let before = measured.rate(change.initiator, change.at_us.checked_sub(LONG_US)?..change.at_us);
    (before > 0.0).then(|| 100.0 * measured.rate(change.initiator, judged(change)) / before)
}

/// The rate of an initiator soon after its release, in percent of the mean rate of those without a delay.
fn recovered(measured: &Measured, change: &DelayChange) -> Option<f64> {
    let time = judged(change);
    let is_delayed = |initiator: usize| {
        let mut before = measured.changes.iter().filter(|other| other.at_us <= change.at_us);
        before.rfind(|other| other.initiator == initiator).is_some_and(|other| other.delay_us > 0)
    };
    let others = (0..measured.initiators.len()).filter(|other| *other != change.initiator);
    let free = others.filter(|other| !is_delayed(*other)).map(|other| measured.rate(other, time.clone()));
    Some(100.0 * measured.rate(change.initiator, time.clone()) / mean(free)?)
}

/// What all others gain after a delay was set, in percent of what the delayed initiator loses.
fn gained(measured: &Measured, change: &DelayChange) -> Option<f64> {
    let before = change.at_us.checked_sub(LONG_US)?..change.at_us;
    let after = change.at_us + AT_ONCE_US..change.at_us + AT_ONCE_US + LONG_US;
    let gain =
        |initiator: usize| measured.rate(initiator, after.clone()) - measured.rate(initiator, before.clone());
    let others = (0..measured.initiators.len()).filter(|other| *other != change.initiator);
    let gained: f64 = others.map(gain).sum();
    let lost = -gain(change.initiator);
    (lost > 0.0).then(|| 100.0 * gained / lost)
}

/// How often something was counted with delays, and how often without.
#[derive(Clone, Copy)]
struct Counted {
    with: u64,
    without: u64,
}

impl Counted {
    /// How much more often it was with delays; negative if it was less often.
    fn more(self) -> f64 {
        float(self.with) - float(self.without)
    }

    /// Twice the standard error of that, if each count is one of independent events.
    fn noise(self) -> f64 {
        2.0 * float(self.with + self.without).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_more_segments_lie_within_the_noise_and_many_more_do_not() {
        let is_within_noise = |with, without| {
            let counted = Counted { with, without };
            counted.more() <= counted.noise()
        };
        assert!(is_within_noise(5, 3));
        assert!(!is_within_noise(11, 2));
        assert!(Counted { with: 0, without: 0 }.noise() <= 0.0, "a model without any has no noise");
    }
}
