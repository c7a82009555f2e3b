//! Pacing: transfers that are ahead are held back while others fall behind.
//!
//! A node shares what it does among its transfers as it likes. If one of them is behind the average that it
//! asked for, the others leave it room: a quarter more than it had in the last second ([`ROOM`]), each
//! second. What is left of the node's rate is divided among those that are ahead, as they had it before; but
//! each gets what it still needs. As soon as nobody is behind, nobody is held back.
//!
//! **It may not help.** A transfer may be behind because its client is slow. So pacing goes by spells of
//! [`SPELL`]. After each of them nobody is held for a sample, which tells anew what the node can do. If those
//! that were behind did not gain a fifth ([`HELPS`]), the node is left alone for [`REST`]. Example: a node
//! does 300 MB/s, and a client sends 9 MB/s of the 10 that it asked for. For four seconds in a minute, the
//! others are held to some 290 MB/s together.

use weir_model::{Instant, Span};

use crate::Request;
use crate::request::bytes_f64;

/// For so long after its start, a transfer is not behind: it has hardly begun.
const BEGINS: Span = Span::from_secs(3);
/// How much more than in the last second a transfer that is behind may take in the next.
const ROOM: f64 = 1.25;
/// For how long others are held, at a time.
const SPELL: Span = Span::from_secs(4);
/// By how much those that are behind must have gained after a spell.
const HELPS: f64 = 1.2;
/// For how long nobody is held after a spell that did not help.
const REST: Span = Span::from_secs(60);
/// How much more than it needs a transfer gets that is held back, so that it does not itself fall behind.
const SLACK: f64 = 1.05;
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
    /// Whether it got less than it is to have, on average since its start.
    pub(crate) fn is_behind(self, now: Instant) -> bool {
        let passed = now.saturating_since(self.started);
        passed >= BEGINS && bytes_f64(self.moved) < self.wanted * passed.as_secs_f64()
    }

    /// The rate that it needs from now on, in bytes a second.
    pub(crate) fn needs(self, now: Instant, request: &Request) -> f64 {
        let Some(bytes) = request.bytes else { return self.wanted };
        let takes = Span::from_secs_f64(bytes_f64(bytes) / self.wanted);
        let left = (self.started + takes).saturating_since(now).as_secs_f64();
        let remains = bytes_f64(bytes.saturating_sub(self.moved));
        // Late already: it has its rate until its end.
        let needs = if left > 0.0 { remains / left } else { self.wanted };
        needs.min(MOST * self.wanted)
    }
}

/// Who is held back on a node, and how long.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Pacing {
    /// Nobody is.
    Free {
        /// Nor will be before.
        until: Instant,
    },
    /// Those that are ahead are.
    Holds {
        until: Instant,
        /// What the node did when nobody was held.
        sum: f64,
        /// What those that are behind had in sum then.
        behind: f64,
    },
}

impl Default for Pacing {
    fn default() -> Self {
        Self::Free { until: Instant::ORIGIN }
    }
}

impl Pacing {
    /// The most that each transfer of a node gets in the next second; `None` if it is not held back. `sum` is
    /// what the node did since the last sample.
    pub(crate) fn sample(&mut self, now: Instant, sum: f64, transfers: &[Paced]) -> Vec<Option<f64>> {
        let behind = transfers.iter().filter(|one| one.is_behind).map(|one| one.had).sum();
        let is_behind = transfers.iter().any(|one| one.is_behind);
        *self = match *self {
            Self::Free { until } if is_behind && now >= until => {
                Self::Holds { until: now + SPELL, sum, behind }
            }
            Self::Holds { until, behind: before, .. } if is_behind && now >= until => {
                let rest = if behind > HELPS * before { Span::ZERO } else { REST };
                Self::Free { until: now + rest }
            }
            Self::Holds { .. } if !is_behind => Self::default(),
            same => same,
        };
        match self {
            Self::Holds { sum, .. } => held(*sum, transfers),
            Self::Free { .. } => vec![None; transfers.len()],
        }
    }

    /// Whether the rate of the node is less than it could be, because some are held.
    pub(crate) const fn holds(self) -> bool {
        matches!(self, Self::Holds { .. })
    }
}

fn held(sum: f64, transfers: &[Paced]) -> Vec<Option<f64>> {
    let (behind, ahead): (Vec<&Paced>, Vec<&Paced>) = transfers.iter().partition(|one| one.is_behind);
    // Somebody who had nothing has to begin with something.
    let room: f64 = behind.iter().map(|one| (ROOM * one.had).max((ROOM - 1.0) * one.needs)).sum();
    let had = ahead.iter().map(|one| one.had).sum::<f64>();
    let left = (sum - room).max(0.0) / had.max(1.0);
    let held = |one: &Paced| (!one.is_behind).then(|| (one.had * left).max(SLACK * one.needs));
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
        // 1000 MB at 10 MB/s: 100 s.
        let request = write(1, 10 * MB, 3);
        let needs =
            |moved: u64, second: u64| format!("{:.1}", progress(moved).needs(at(second), &request) / 1e6);
        assert_eq!(needs(0, 0), "10.0");
        assert_eq!(needs(750, 50), "5.0", "it was ahead");
        assert_eq!(needs(250, 50), "15.0", "it was behind");
        assert_eq!(needs(0, 90), "20.0", "not 100: at most twice what it asked for");
        assert_eq!(needs(900, 101), "10.0", "it is late");
        let of_unknown_size = Request { bytes: None, ..request };
        assert!((progress(0).needs(at(50), &of_unknown_size) - 10e6).abs() < 1.0);
    }

    #[test]
    fn a_transfer_is_behind_if_its_average_is_too_low_and_it_has_begun() {
        assert!(progress(499).is_behind(at(50)));
        assert!(!progress(500).is_behind(at(50)));
        assert!(!progress(0).is_behind(at(2)));
    }

    fn one(had: f64, needs: f64, is_behind: bool) -> Paced {
        Paced { had, needs, is_behind }
    }

    #[test]
    fn who_is_behind_gets_a_quarter_more_each_second_and_the_others_share_what_is_left() {
        let held = |sum, transfers: &[Paced]| -> Vec<Option<String>> {
            let held = Pacing::default().sample(at(1), sum, transfers);
            held.into_iter().map(|held| held.map(|held| format!("{held:.1}"))).collect()
        };
        assert_eq!(held(90.0, &[one(60.0, 5.0, false), one(30.0, 5.0, false)]), [None, None]);
        let some = |held: &str| Some(held.to_owned());
        // 100 - 1.25 x 10 = 87.5, for 60 and 30.
        let three = [one(60.0, 5.0, false), one(10.0, 12.0, true), one(30.0, 5.0, false)];
        assert_eq!(held(100.0, &three), [some("58.3"), None, some("29.2")]);
        assert_eq!(held(20.0, &[one(10.0, 9.0, false), one(10.0, 12.0, true)]), [some("9.5"), None]);
        assert_eq!(held(10.0, &[one(10.0, 5.0, false), one(0.0, 12.0, true)]), [some("7.0"), None]);
    }

    /// In which of the seconds from 1 on somebody is held, if the one behind has these rates.
    fn holds(rates: impl IntoIterator<Item = f64>) -> Vec<u64> {
        let mut pacing = Pacing::default();
        let mut holds = Vec::new();
        for (second, rate) in (1..).zip(rates) {
            pacing.sample(at(second), 100.0, &[one(90.0, 5.0, false), one(rate, 12.0, true)]);
            if pacing.holds() {
                holds.push(second);
            }
        }
        holds
    }

    #[test]
    fn holding_others_ends_for_a_minute_if_it_does_not_help() {
        assert_eq!(holds(std::iter::repeat_n(9.0, 72)), [1, 2, 3, 4, 65, 66, 67, 68]);
    }

    #[test]
    fn holding_others_goes_on_while_it_helps_with_a_free_second_after_each_spell() {
        let gains = |second: i32| 2.0 * 1.1_f64.powi(second);
        assert_eq!(holds((0..12).map(gains)), [1, 2, 3, 4, 6, 7, 8, 9, 11, 12]);
    }
}
