//! Pacing: transfers that are ahead are held back while others fall behind.
//!
//! A node shares what it does among its transfers as it likes. If one of them is behind the average that it
//! asked for, the others leave it room: a quarter more than it had in the last second ([`ROOM`]), each
//! second. What is left of the node's rate is divided among those that are ahead, as they had it before; but
//! each gets what it still needs. As soon as nobody is behind, nobody is held back.
//!
//! Why not hold all of them to what they need at once: a transfer may be behind because its client is slow.
//! Then all that the others give up is lost. Example: a node does 300 MB/s, and a client sends 9 MB/s of the
//! 10 that it asked for. The others are held to 289 MB/s together, and not to their needs, which may be 20.

use weir_model::{Instant, Span};

use crate::Request;
use crate::request::bytes_f64;

/// For so long after its start, a transfer is not behind: it has hardly begun.
const BEGINS: Span = Span::from_secs(3);
/// How much more than in the last second a transfer that is behind may take in the next.
const ROOM: f64 = 1.25;
/// How much more than it asked for a transfer is to get: what is not in time at a sample is made good only
/// after it.
const AIM: f64 = 1.05;
/// A transfer that is behind does not count as needing more than so many times what it asked for. A hopeless
/// one would else keep all others out.
const MOST: f64 = 2.0;

/// How a transfer goes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Progress {
    pub(crate) started: Instant,
    /// The rate that it is to have on average, in bytes a second.
    pub(crate) wanted: f64,
    pub(crate) moved: u64,
}

/// A transfer of a node, at a sample. Rates are in bytes a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Paced {
    /// What it had since the last sample.
    pub(crate) had: f64,
    pub(crate) needs: f64,
    pub(crate) is_behind: bool,
}

impl Progress {
    /// Whether it got less than [`AIM`] times what it is to have, on average since its start.
    pub(crate) fn is_behind(self, now: Instant) -> bool {
        let passed = now.saturating_since(self.started);
        passed >= BEGINS && bytes_f64(self.moved) < AIM * self.wanted * passed.as_secs_f64()
    }

    /// The rate that it needs from now on, in bytes a second.
    pub(crate) fn needs(self, now: Instant, request: &Request) -> f64 {
        let wanted = AIM * self.wanted;
        let Some(bytes) = request.bytes else { return wanted };
        let takes = Span::from_secs_f64(bytes_f64(bytes) / wanted);
        let left = (self.started + takes).saturating_since(now).as_secs_f64();
        let remains = bytes_f64(bytes.saturating_sub(self.moved));
        // Late already: it has its rate until its end.
        let needs = if left > 0.0 { remains / left } else { wanted };
        needs.min(MOST * wanted)
    }
}

/// The most that each transfer of a node gets in the next second; `None` if it is not held back. `sum` is
/// what the node did when nobody was held.
pub(crate) fn paced(sum: f64, transfers: &[Paced]) -> Vec<Option<f64>> {
    let (behind, ahead): (Vec<&Paced>, Vec<&Paced>) = transfers.iter().partition(|one| one.is_behind);
    if behind.is_empty() {
        return vec![None; transfers.len()];
    }
    let total = |some: &[&Paced]| some.iter().map(|one| one.had).sum::<f64>();
    // Somebody who had nothing has to begin with something.
    let room: f64 = behind.iter().map(|one| (ROOM * one.had).max((ROOM - 1.0) * one.needs)).sum();
    let left = (sum - room).max(0.0) / total(&ahead).max(1.0);
    let held = |one: &Paced| (!one.is_behind).then(|| (one.had * left).max(one.needs));
    transfers.iter().map(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::testing::write;

    const MB: u64 = 1_000_000;

    fn at(second: u64) -> Instant {
        Instant::ORIGIN + Span::from_secs(second)
    }

    /// A transfer of 10 MB/s.
    fn progress(moved: u64) -> Progress {
        Progress { started: at(0), wanted: 10e6, moved: moved * MB }
    }

    #[test]
    fn a_transfer_needs_what_is_left_in_the_time_that_is_left() {
        // 1000 MB at 10 MB/s: 100 s, of which 95 s are to do.
        let request = write(1, 10 * MB, 3);
        let needs =
            |moved: u64, second: u64| format!("{:.1}", progress(moved).needs(at(second), &request) / 1e6);
        assert_eq!(needs(0, 0), "10.5", "5 % more than it asked for");
        assert_eq!(needs(750, 50), "5.5", "it was ahead");
        assert_eq!(needs(250, 50), "16.6", "it was behind");
        assert_eq!(needs(0, 90), "21.0", "not 190: at most twice what it asked for");
        assert_eq!(needs(900, 101), "10.5", "it is late");
        let of_unknown_size = Request { bytes: None, ..request };
        assert!((progress(0).needs(at(50), &of_unknown_size) - 10.5e6).abs() < 1.0);
    }

    #[test]
    fn a_transfer_is_behind_if_its_average_is_too_low_and_it_has_begun() {
        assert!(progress(524).is_behind(at(50)));
        assert!(!progress(525).is_behind(at(50)));
        assert!(!progress(0).is_behind(at(2)));
    }

    #[test]
    fn who_is_behind_gets_a_quarter_more_each_second_and_the_others_share_what_is_left() {
        let one = |had: f64, needs, is_behind| Paced { had, needs, is_behind };
        assert_eq!(paced(90.0, &[one(60.0, 5.0, false), one(30.0, 5.0, false)]), [None, None]);
        // 100 - 1.25 x 10 = 87.5, for 60 and 30.
        let held = paced(100.0, &[one(60.0, 5.0, false), one(10.0, 12.0, true), one(30.0, 5.0, false)]);
        let held: Vec<_> = held.into_iter().map(|held| held.map(f64::round)).collect();
        assert_eq!(held, [Some(58.0), None, Some(29.0)]);
        assert_eq!(paced(20.0, &[one(10.0, 9.0, false), one(10.0, 12.0, true)]), [Some(9.0), None]);
        assert_eq!(paced(10.0, &[one(10.0, 5.0, false), one(0.0, 12.0, true)]), [Some(7.0), None]);
    }
}
