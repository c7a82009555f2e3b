//! How long the requests that came in a window have taken, in sums.
//!
//! A list of the requests would grow with the load. Sums do not: the ages of the requests without an answer
//! are their number times now, less the sum of the instants at which they came.

use weir_model::{Instant, Span};

/// The requests that came in a window.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Tally {
    /// How many there are.
    pub(crate) count: u64,
    /// How many of them have not ended.
    pub(crate) outstanding: u64,
    /// How long those took that have ended, in sum.
    ended: Span,
    /// The instants at which those came that have not ended, in sum, in nanoseconds.
    came: u128,
}

impl Tally {
    pub(crate) fn on_arrival(&mut self, now: Instant) {
        self.count += 1;
        self.outstanding += 1;
        self.came += u128::from(now.as_nanos());
    }

    /// One that came then has ended.
    pub(crate) fn on_end(&mut self, now: Instant, came: Instant) {
        self.outstanding -= 1;
        self.ended += now.since(came);
        self.came = self.came.saturating_sub(u128::from(came.as_nanos()));
    }

    /// One that came then counts no longer.
    pub(crate) fn on_withdrawal(&mut self, came: Instant) {
        self.count -= 1;
        self.outstanding -= 1;
        self.came = self.came.saturating_sub(u128::from(came.as_nanos()));
    }

    /// Adds the requests of another window.
    pub(crate) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.outstanding += other.outstanding;
        self.ended += other.ended;
        self.came += other.came;
    }

    /// How long they have taken until now, in sum. One without an answer counts with its age.
    pub(crate) fn spent(&self, now: Instant) -> Span {
        let ages = u128::from(now.as_nanos()) * u128::from(self.outstanding);
        self.ended + Span::from_nanos(u64::try_from(ages.saturating_sub(self.came)).unwrap_or(u64::MAX))
    }

    /// The mean of that; `None` if there are no requests.
    pub(crate) fn mean(&self, now: Instant) -> Option<Span> {
        self.spent(now).as_nanos().checked_div(self.count).map(Span::from_nanos)
    }

    /// Whether the mean is above a limit, now and for ever, as no request can take less than it has taken.
    pub(crate) fn is_beyond(&self, now: Instant, limit: Span) -> bool {
        u128::from(self.spent(now).as_nanos()) > u128::from(limit.as_nanos()) * u128::from(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::ORIGIN + ms(millis)
    }

    #[test]
    fn a_request_counts_with_its_age_until_it_ends_and_with_its_latency_from_then_on() {
        let mut tally = Tally::default();
        tally.on_arrival(at(10));
        tally.on_arrival(at(20));
        assert_eq!(tally.spent(at(30)), ms(20 + 10));
        tally.on_end(at(30), at(10));
        assert_eq!((tally.spent(at(50)), tally.mean(at(50))), (ms(20 + 30), Some(ms(25))));
        assert!(tally.is_beyond(at(50), ms(24)) && !tally.is_beyond(at(50), ms(25)));
        tally.on_withdrawal(at(20));
        assert_eq!((tally.count, tally.outstanding, tally.mean(at(90))), (1, 0, Some(ms(20))));
    }

    #[test]
    fn two_windows_add_up() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        one.on_arrival(at(0));
        other.on_arrival(at(10));
        other.on_end(at(15), at(10));
        one.add(&other);
        assert_eq!((one.count, one.outstanding, one.spent(at(20))), (2, 1, ms(20 + 5)));
        assert_eq!(Tally::default().mean(at(20)), None);
    }
}
