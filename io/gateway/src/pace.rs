//! How fast a client has to send or take the bytes of a request: fast enough on average, without a fixed time
//! for each request.
//!
//! A fixed time for a request would be too short for a slow client's largest write, or too long for a client
//! that holds memory for nothing. A client that moves no bytes is closed after `limits.reply_timeout`. Each
//! byte that it moves adds the time that the byte takes at [`LEAST_RATE`], up to the whole time-out again. So
//! a client at the least rate or above is never closed, however large its request is. A client at half that
//! rate is closed after twice the time-out.

use weir_model::{Instant, Span};

/// Bytes that a client has to move in a second: half a megabit. A link that is still of use for a disk
/// carries more. At this rate 64 connections can hold 2 GiB only while together they send 4 MiB each second.
pub(crate) const LEAST_RATE: u64 = 64 * 1024;

/// How far a client is behind the least rate in sending or taking bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    /// The client is as far behind as if it had moved nothing since this instant.
    since: Instant,
    moved: u64,
}

impl Pace {
    /// A pace that begins now, after `moved` bytes.
    pub(crate) fn new(now: Instant, moved: u64) -> Self {
        Self { since: now, moved }
    }

    /// Notes that the client has moved `moved` bytes by now. Returns how far behind it is.
    pub(crate) fn behind(&mut self, now: Instant, moved: u64) -> Span {
        let earned = moved.saturating_sub(self.moved).saturating_mul(1_000_000_000) / LEAST_RATE;
        self.moved = moved;
        self.since = Instant::from_nanos(self.since.as_nanos().saturating_add(earned)).min(now);
        now.saturating_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Span = Span::from_secs(60);

    /// The second after which a client is closed, if it is before `length` bytes are through.
    fn closed_after(length: u64, rate: impl Fn(u64) -> u64) -> Option<u64> {
        let (mut pace, mut moved) = (Pace::new(Instant::from_nanos(0), 0), 0);
        for second in 1.. {
            moved += rate(second);
            if moved >= length {
                return None;
            }
            if pace.behind(Instant::from_nanos(second * 1_000_000_000), moved) > TIMEOUT {
                return Some(second);
            }
        }
        None
    }

    #[test]
    fn a_slow_and_honest_client_may_take_as_long_as_it_needs() {
        assert_eq!(closed_after(32 << 20, |_| 500_000), None, "67 s, which is longer than the time-out");
        assert_eq!(closed_after(32 << 20, |_| LEAST_RATE), None, "512 s");
    }

    #[test]
    fn a_network_that_is_down_for_less_than_the_time_out_cuts_nobody_off() {
        assert_eq!(closed_after(32 << 20, |second| if second % 60 < 50 { 0 } else { 500_000 }), None);
    }

    #[test]
    fn a_client_that_stops_is_closed_after_the_time_out_however_much_it_has_sent() {
        assert_eq!(closed_after(32 << 20, |_| 0), Some(61));
        assert_eq!(closed_after(32 << 20, |second| if second == 1 { 30 << 20 } else { 0 }), Some(62));
    }

    #[test]
    fn a_client_that_trickles_is_closed() {
        assert_eq!(closed_after(32 << 20, |_| 1), Some(61));
        assert_eq!(closed_after(32 << 20, |_| LEAST_RATE / 2), Some(121));
    }
}
