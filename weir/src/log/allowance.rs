//! How many lines of each kind may be written: a burst, and after it one line at each interval. Pure: time is
//! an argument.
//!
//! A kind is a place in the code that writes lines. The program has a fixed number of them, so the table
//! cannot grow. One allowance for all kinds would let a flood of one kind hide the others. One allowance for
//! each peer would need a table that peers can make grow.

use std::collections::HashMap;
use std::hash::Hash;

use weir_model::{Instant, Span};

/// The lines that each kind may write.
#[derive(Debug)]
pub(crate) struct Allowance<K> {
    burst: u32,
    /// The interval after which a kind may write one more line.
    every: Span,
    kinds: HashMap<K, Kind>,
}

/// The state of one kind of line.
#[derive(Debug)]
struct Kind {
    /// Lines that may still be written.
    left: u32,
    /// The instant up to which `left` was computed.
    since: Instant,
    /// Lines that were left out and not reported yet.
    left_out: Option<LeftOut>,
}

/// Lines of one kind that were not written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeftOut {
    /// How many.
    pub(crate) lines: u64,
    /// The text of the first of them.
    pub(crate) like: String,
}

impl<K: Eq + Hash> Allowance<K> {
    /// An allowance of `burst` lines of each kind at once, and one more after each `every`.
    pub(crate) fn new(burst: u32, every: Span) -> Self {
        Self { burst, every, kinds: HashMap::new() }
    }

    /// Whether a line of this kind may be written now. If not, it is counted, and `like` gives its text.
    pub(crate) fn admit(&mut self, now: Instant, kind: K, like: impl FnOnce() -> String) -> bool {
        let (burst, every) = (self.burst, self.every);
        let kind = self.kinds.entry(kind).or_insert(Kind { left: burst, since: now, left_out: None });
        let earned = now.saturating_since(kind.since).as_nanos() / every.as_nanos();
        if earned >= u64::from(burst - kind.left) {
            (kind.left, kind.since) = (burst, now);
        } else {
            kind.left += u32::try_from(earned).unwrap_or(u32::MAX);
            kind.since = kind.since + every.saturating_mul(earned);
        }
        match kind.left.checked_sub(1) {
            Some(left) => kind.left = left,
            None => {
                kind.left_out.get_or_insert_with(|| LeftOut { lines: 0, like: like() }).lines += 1;
                return false;
            }
        }
        true
    }

    /// Whether there are lines to report.
    pub(crate) fn has_left_out(&self) -> bool {
        self.kinds.values().any(|kind| kind.left_out.is_some())
    }

    /// The lines that were left out since the last call.
    pub(crate) fn take_left_out(&mut self) -> Vec<LeftOut> {
        self.kinds.values_mut().filter_map(|kind| kind.left_out.take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Span = Span::from_secs(5);

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn admitted(
        allowance: &mut Allowance<&'static str>,
        now: Instant,
        kind: &'static str,
        lines: u32,
    ) -> u32 {
        (0..lines).map(|_| u32::from(allowance.admit(now, kind, || kind.to_owned()))).sum()
    }

    #[test]
    fn a_flood_of_one_kind_leaves_a_burst_and_one_line_now_and_then_and_is_counted() {
        let mut allowance = Allowance::new(20, EVERY);
        assert_eq!(admitted(&mut allowance, at(0), "refused", 200_000), 20);
        let lines: u32 = (1..=100).map(|second| admitted(&mut allowance, at(second), "refused", 1000)).sum();
        assert_eq!(lines, 20);
        let left_out = allowance.take_left_out();
        assert_eq!(left_out, [LeftOut { lines: 200_000 - 20 + 100_000 - 20, like: "refused".to_owned() }]);
        assert_eq!(allowance.take_left_out(), [], "it is told once");
    }

    #[test]
    fn a_flood_of_one_kind_takes_nothing_from_others() {
        let mut allowance = Allowance::new(20, EVERY);
        admitted(&mut allowance, at(0), "refused", 1000);
        assert_eq!(admitted(&mut allowance, at(0), "lost", 20), 20);
    }

    #[test]
    fn a_pause_gives_back_the_burst_and_no_more() {
        let mut allowance = Allowance::new(20, EVERY);
        admitted(&mut allowance, at(0), "refused", 100);
        assert_eq!(admitted(&mut allowance, at(10_000), "refused", 100), 20);
    }

    #[test]
    fn time_that_goes_back_admits_nothing_and_breaks_nothing() {
        let mut allowance = Allowance::new(1, EVERY);
        assert_eq!(admitted(&mut allowance, at(10), "refused", 2), 1);
        assert_eq!(admitted(&mut allowance, at(0), "refused", 2), 0);
        assert_eq!(admitted(&mut allowance, at(15), "refused", 2), 1);
    }
}
