//! Pacing: transfers that are ahead are held back while others fall behind.
//!
//! A node shares what it does among its transfers as it likes. If one of them is behind the average that it
//! asked for, each of the others that is ahead gets no more than it still needs, and [`SLACK`]. As soon as
//! nobody is behind, nobody is held back.

use weir_model::{Bandwidth, Instant, Span};

use crate::Request;
use crate::request::bytes_f64;

/// For so long after its start, a transfer is not behind: it has hardly begun.
const BEGINS: Span = Span::from_secs(3);
/// A transfer that is held back gets so many times what it needs, so that it does not itself fall behind.
const SLACK: f64 = 1.05;
/// How much more than it asked for a transfer is to get: what is not in time at a sample is made good only
/// after it.
const AIM: f64 = 1.05;
/// A transfer that is behind does not count as needing more than so many times what it asked for. A hopeless
/// one would else hold up all others.
const MOST: f64 = 2.0;

/// How a transfer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    pub(crate) started: Instant,
    pub(crate) moved: u64,
}

impl Progress {
    /// Whether it got less than it asked for, on average since its start.
    pub(crate) fn is_behind(self, now: Instant, request: &Request) -> bool {
        let passed = now.saturating_since(self.started);
        passed >= BEGINS && bytes_f64(self.moved) < AIM * request.wanted(self.started) * passed.as_secs_f64()
    }

    /// The rate that it needs from now on, in bytes a second.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rate above zero; `as` saturates
    pub(crate) fn needs(self, now: Instant, request: &Request) -> u64 {
        let Some(bytes) = request.bytes else { return request.rate.get() };
        let wanted = AIM * request.wanted(self.started);
        let takes = Span::from_secs_f64(bytes_f64(bytes) / wanted);
        let left = (self.started + takes).saturating_since(now).as_secs_f64();
        let remains = bytes_f64(bytes.saturating_sub(self.moved));
        // Late already: it has its rate until its end.
        let needs = if left > 0.0 { remains / left } else { wanted };
        needs.min(MOST * wanted).round() as u64
    }

    /// The most that it gets while another is behind; `None` if it is behind itself.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rate above zero; `as` saturates
    pub(crate) fn held_to(self, now: Instant, request: &Request) -> Option<Bandwidth> {
        if self.is_behind(now, request) {
            return None;
        }
        let rate = (SLACK * bytes_f64(self.needs(now, request))) as u64;
        Bandwidth::new(rate.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::testing::write;

    const MB: u64 = 1_000_000;

    fn at(second: u64) -> Instant {
        Instant::ORIGIN + Span::from_secs(second)
    }

    #[test]
    fn a_transfer_needs_what_is_left_in_the_time_that_is_left() {
        // 1000 MB at 10 MB/s: 100 s, of which 95 s are to do. In tenths of MB/s:
        let request = write(1, 10 * MB, 3);
        let needs = |moved: u64, second: u64| {
            Progress { started: at(0), moved: moved * MB }.needs(at(second), &request) * 10 / MB
        };
        assert_eq!(needs(0, 0), 105, "5 % more than it asked for");
        assert_eq!(needs(750, 50), 55, "it was ahead");
        assert_eq!(needs(250, 50), 165, "it was behind");
        assert_eq!(needs(0, 90), 210, "not 1909: at most twice what it asked for");
        assert_eq!(needs(900, 101), 105, "it is late");
        let of_unknown_size = Request { bytes: None, ..request };
        assert_eq!(Progress { started: at(0), moved: 0 }.needs(at(50), &of_unknown_size), 10 * MB);
    }

    #[test]
    fn a_deadline_asks_for_more_than_the_rate_if_the_rate_comes_too_late() {
        let until = |deadline: u64| Request { deadline: Some(at(deadline)), ..write(1, 10 * MB, 3) };
        let progress = Progress { started: at(0), moved: 0 };
        assert_eq!(progress.needs(at(0), &until(50)), 21 * MB);
        assert_eq!(progress.needs(at(0), &until(200)), 10_500_000);
        assert_eq!(until(50).wanted(at(60)) as u64, 10 * MB, "it has passed: the rate is what is left");
    }

    #[test]
    fn who_is_behind_is_not_held_and_who_is_ahead_gets_what_it_needs() {
        let request = write(1, 10 * MB, 3);
        let held = |moved: u64, second: u64| {
            let progress = Progress { started: at(0), moved: moved * MB };
            progress.held_to(at(second), &request).map(Bandwidth::get)
        };
        assert_eq!(held(499, 50), None);
        assert_eq!(held(750, 50), Some(5_802_631));
        assert!(held(0, 2).is_some(), "it has hardly begun");
    }
}
