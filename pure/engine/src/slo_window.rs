//! The windows over which an SLO is judged (Façade §3).
//!
//! "The average latency over any time window should not exceed `f_r tr_i + (1 - f_r) tw_i` if the offered
//! request rate over the previous window is less than `r_i`." The rate is that of the previous window so that
//! the promise is known before the window begins. The mix is taken from what was answered, which is what the
//! mean is of.

use weir_control::Latency;
use weir_model::{Direction, Instant, Offered, Slo, Span, Verdict};

use crate::event::WindowReport;
use crate::sensors::{LatencySensor, RateSensor};

/// The window of one volume that is open now.
#[derive(Clone, Debug)]
pub(crate) struct SloWindow {
    since: Instant,
    /// What arrived in the window before.
    previous: Offered,
    arrived: RateSensor,
    answered: RateSensor,
    latency: LatencySensor,
}

impl SloWindow {
    /// The first window of a volume, after nothing.
    pub(crate) fn new(now: Instant) -> Self {
        Self::after(Offered::default(), now)
    }

    fn after(previous: Offered, now: Instant) -> Self {
        Self {
            since: now,
            previous,
            arrived: RateSensor::default(),
            answered: RateSensor::default(),
            latency: LatencySensor::default(),
        }
    }

    pub(crate) fn on_arrival(&mut self, direction: Direction) {
        self.arrived.record(direction);
    }

    pub(crate) fn on_answer(&mut self, direction: Direction, latency: Latency) {
        self.answered.record(direction);
        self.latency.record(latency);
    }

    /// What arrived in the window before: the rate that this window will be judged by.
    pub(crate) const fn offered_before(&self) -> Offered {
        self.previous
    }

    /// The share of reads in what arrived in this window and the one before: one that has just begun has no
    /// mix yet that could be relied on.
    pub(crate) fn recent_mix(&self) -> Option<f64> {
        let now = self.arrived.over(Span::ZERO);
        let reads = self.previous.reads + now.reads;
        Offered { reads, writes: self.previous.writes + now.writes, over: Span::ZERO }.read_fraction()
    }

    /// What the window will be judged by, if its mix stays as it is.
    pub(crate) fn target(&self, slo: &Slo) -> Option<Span> {
        let mix = self.answered.over(Span::ZERO).read_fraction();
        match mix.or_else(|| self.arrived.over(Span::ZERO).read_fraction()) {
            Some(reads) => slo.target(&self.previous, reads),
            None => slo.target(&self.previous, 1.0).min(slo.target(&self.previous, 0.0)),
        }
    }

    /// Ends the window and begins the next. `oldest` is the arrival of the volume's oldest read or write that
    /// is not answered.
    pub(crate) fn close(&mut self, now: Instant, slo: Option<&Slo>, oldest: Option<Instant>) -> WindowReport {
        let offered = self.arrived.over(now.since(self.since));
        let mean_latency = self.latency.mean().map(|mean| mean.total);
        let target = slo.and_then(|slo| self.target(slo));
        let age = oldest.map(|arrived| now.since(arrived));
        let verdict = match (slo, target) {
            (None, _) => Verdict::NoSlo,
            (Some(_), None) if mean_latency.is_none() && age.is_none() => Verdict::Idle,
            (Some(_), None) => Verdict::OutOfContract,
            (Some(_), Some(target)) => judge(mean_latency, age, target),
        };
        let report = WindowReport { offered, completed: self.latency.count(), mean_latency, target, verdict };
        *self = Self::after(offered, now);
        report
    }
}

/// A mean latency against a target; without one, the age of what is still waiting.
fn judge(mean_latency: Option<Span>, oldest_age: Option<Span>, target: Span) -> Verdict {
    match (mean_latency, oldest_age) {
        (Some(mean), _) if mean <= target => Verdict::Met,
        (Some(_), _) => Verdict::Missed,
        (None, Some(age)) if age > target => Verdict::Missed,
        (None, _) => Verdict::Idle,
    }
}

#[cfg(test)]
mod tests {
    use weir_model::{Iops, SloPoint};

    use super::*;

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    fn slo() -> Slo {
        let up_to = Iops::new(100.0).unwrap();
        Slo::new(vec![SloPoint { up_to, read: ms(10), write: ms(20) }]).unwrap()
    }

    /// Closes a window of a second in which these latencies were answered, after one with `previous` reads.
    fn closed(previous: u64, answers: &[(Direction, u64)], oldest: Option<Instant>) -> WindowReport {
        let start = Instant::ORIGIN + Span::from_secs(1);
        let offered = Offered { reads: previous, writes: 0, over: Span::from_secs(1) };
        let mut window = SloWindow::after(offered, start);
        for (direction, latency) in answers {
            window.on_arrival(*direction);
            window.on_answer(*direction, Latency { total: ms(*latency), at_device: Span::ZERO });
        }
        window.close(start + Span::from_secs(1), Some(&slo()), oldest)
    }

    #[test]
    fn the_mean_is_compared_with_the_target_of_the_mix() {
        use Direction::{Read, Write};
        assert_eq!(closed(50, &[(Read, 9), (Read, 11)], None).verdict, Verdict::Met);
        assert_eq!(closed(50, &[(Read, 9), (Read, 12)], None).verdict, Verdict::Missed);
        let mixed = closed(50, &[(Read, 14), (Write, 16)], None);
        assert_eq!((mixed.target, mixed.verdict), (Some(ms(15)), Verdict::Met));
    }

    #[test]
    fn more_than_agreed_in_the_window_before_ends_the_promise() {
        let report = closed(200, &[(Direction::Read, 500)], None);
        assert_eq!((report.target, report.verdict), (None, Verdict::OutOfContract));
    }

    #[test]
    fn a_window_in_which_nothing_was_answered_is_idle_unless_something_waits_too_long() {
        let end = Instant::ORIGIN + Span::from_secs(2);
        assert_eq!(closed(50, &[], None).verdict, Verdict::Idle);
        assert_eq!(closed(200, &[], None).verdict, Verdict::Idle);
        assert_eq!(closed(50, &[], Some(end - ms(5))).verdict, Verdict::Idle);
        assert_eq!(closed(50, &[], Some(end - ms(15))).verdict, Verdict::Missed);
    }

    #[test]
    fn what_is_offered_in_one_window_decides_what_the_next_is_promised() {
        let mut window = SloWindow::new(Instant::ORIGIN);
        (0..200).for_each(|_| window.on_arrival(Direction::Read));
        let first = window.close(Instant::ORIGIN + Span::from_secs(1), Some(&slo()), None);
        assert_eq!((first.offered.total(), first.target), (200, Some(ms(10))));
        assert_eq!(window.target(&slo()), None);
    }
}
