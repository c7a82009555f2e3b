//! The windows over which an SLO is judged (Façade §3).
//!
//! "The average latency over any time window should not exceed `f_r tr_i + (1 - f_r) tw_i` if the offered
//! request rate over the previous window is less than `r_i`." The rate is the rate of the previous window, so
//! that the promise is known before the window begins. The mix is the mix of the answered requests, because
//! the mean latency is theirs. Requests that are neither reads nor writes have no target, but they count
//! towards the offered rate: they take the device like any other, and with the volume's deadlines.

use weir_control::Latency;
use weir_model::{Arrivals, Direction, Instant, Offered, Slo, Span, Verdict};

use crate::event::WindowReport;
use crate::sensors::{LatencySensor, RateSensor};

/// The window of one volume that is open now.
#[derive(Clone, Debug)]
pub(crate) struct SloWindow {
    since: Instant,
    /// What arrived in the window before.
    previous: Arrivals,
    arrived: RateSensor,
    /// How many requests of other kinds arrived.
    others: u64,
    answered: RateSensor,
    latency: LatencySensor,
}

impl SloWindow {
    /// The first window of a volume.
    pub(crate) fn new(now: Instant) -> Self {
        Self::after(Arrivals::default(), now)
    }

    fn after(previous: Arrivals, now: Instant) -> Self {
        Self {
            since: now,
            previous,
            arrived: RateSensor::default(),
            others: 0,
            answered: RateSensor::default(),
            latency: LatencySensor::default(),
        }
    }

    /// A request has arrived; `None`: it is neither a read nor a write.
    pub(crate) fn on_arrival(&mut self, direction: Option<Direction>) {
        match direction {
            Some(direction) => self.arrived.record(direction),
            None => self.others += 1,
        }
    }

    pub(crate) fn on_answer(&mut self, direction: Direction, latency: Latency) {
        self.answered.record(direction);
        self.latency.record(latency);
    }

    /// What arrived in the window before: the rate that this window will be judged by.
    pub(crate) const fn offered_before(&self) -> Arrivals {
        self.previous
    }

    /// The share of reads in what arrived in this window and the one before. A window that has just begun has
    /// too few requests for a mix of its own.
    pub(crate) fn recent_mix(&self) -> Option<f64> {
        let now = self.arrived.over(Span::ZERO);
        let before = self.previous.transfers;
        let (reads, writes) = (before.reads + now.reads, before.writes + now.writes);
        Offered { reads, writes, over: Span::ZERO }.read_fraction()
    }

    /// What the window will be judged by, if its mix stays as it is.
    pub(crate) fn target(&self, slo: &Slo) -> Option<Span> {
        let mix = self.answered.over(Span::ZERO).read_fraction();
        match mix.or_else(|| self.arrived.over(Span::ZERO).read_fraction()) {
            Some(reads) => slo.target(&self.previous, reads),
            None => slo.target(&self.previous, 1.0).min(slo.target(&self.previous, 0.0)),
        }
    }

    /// Ends the window and begins the next. `oldest` is when the volume's oldest read or write without an
    /// answer arrived.
    pub(crate) fn close(&mut self, now: Instant, slo: Option<&Slo>, oldest: Option<Instant>) -> WindowReport {
        let offered = self.arrived.over(now.since(self.since));
        let mean_latency = self.latency.mean().map(|mean| mean.total);
        let target = slo.and_then(|slo| self.target(slo));
        let age = oldest.map(|arrived| now.since(arrived));
        let verdict = match (slo, target) {
            (None, _) => Verdict::NoSlo,
            (Some(_), None) if mean_latency.is_none() && age.is_none() && self.others == 0 => Verdict::Idle,
            (Some(_), None) => Verdict::OutOfContract,
            (Some(_), Some(target)) => judge(mean_latency, age, target),
        };
        let report = WindowReport { offered, completed: self.latency.count(), mean_latency, target, verdict };
        *self = Self::after(Arrivals { transfers: offered, others: self.others }, now);
        report
    }
}

/// Holds the mean latency against the target. If nothing was answered, the age of the oldest request counts.
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
        let mut window = SloWindow::after(offered.into(), start);
        for (direction, latency) in answers {
            window.on_arrival(Some(*direction));
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
    fn flushes_and_trims_beyond_the_rate_end_the_promise_as_reads_do() {
        let second = |n| Instant::ORIGIN + Span::from_secs(n);
        let mut window = SloWindow::new(Instant::ORIGIN);
        (0..200).for_each(|_| window.on_arrival(None));
        let first = window.close(second(1), Some(&slo()), None);
        assert_eq!((first.verdict, first.offered.total()), (Verdict::Idle, 0));
        assert_eq!(window.target(&slo()), None);
        window.on_arrival(None);
        assert_eq!(window.close(second(2), Some(&slo()), None).verdict, Verdict::OutOfContract);
        assert_eq!(window.close(second(3), Some(&slo()), None).verdict, Verdict::Idle, "and is over");
    }

    #[test]
    fn what_is_offered_in_one_window_decides_what_the_next_is_promised() {
        let mut window = SloWindow::new(Instant::ORIGIN);
        (0..200).for_each(|_| window.on_arrival(Some(Direction::Read)));
        let first = window.close(Instant::ORIGIN + Span::from_secs(1), Some(&slo()), None);
        assert_eq!((first.offered.total(), first.target), (200, Some(ms(10))));
        assert_eq!(window.target(&slo()), None);
    }
}
