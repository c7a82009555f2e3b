//! How fast a delay rises.
//!
//! A packet that suddenly takes much longer makes TCP send again, although nothing is lost. TCP sends its
//! last segment once more if nothing is sent or acknowledged for a while: twice the smoothed round trip (the
//! loss probe, RFC 8985 §7.2) and 2 ms (`TCP_TIMEOUT_MIN_US` of Linux). So in each interval of the law, a
//! delay rises by half of itself and 2 ms at most. That is less, if TCP has seen some packets in between.
//!
//! Of an acknowledgement that is delayed for longer than an interval of 100 ms, TCP knows nothing in the next
//! one. So a long delay rises by 52 ms at most.
//!
//! Example: a law that wants 20 ms at once gets 2, 5, 9.5, 16 and 20 ms. One that wants 2.5 s gets 2, 5, 9.5,
//! 16, 26, 41, 63.5, 97, 147.5, 199.5, 251.5 ms, and so on, and has it after 5.5 s.
//!
//! A fall has no such bound: packets that come earlier than expected make nobody send again.

use weir_control::ThrottleDelay;
use weir_model::Span;

/// How much every delay may rise.
const LEAST: Span = Span::from_millis(2);

/// From this delay on, it rises by no more than here.
const LONG: Span = Span::from_millis(100);

/// The delay of the next interval, in whole steps of the law's, on the way from `present` to `wanted`.
pub fn risen(present: Span, wanted: Span) -> Span {
    let step = ThrottleDelay::STEP.as_nanos();
    let rise = LEAST.as_nanos() + present.min(LONG).as_nanos() / 2;
    let highest = present.as_nanos().saturating_add(rise);
    wanted.min(Span::from_nanos(highest / step * step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_rises_by_half_of_itself_and_2_ms_and_a_long_one_by_52_ms() {
        let wanted = Span::from_millis(20);
        let delays = std::iter::successors(Some(Span::ZERO), |&delay| Some(risen(delay, wanted)));
        let expected = [0, 2_000, 5_000, 9_500, 16_000, 20_000, 20_000].map(Span::from_micros);
        assert_eq!(delays.take(7).collect::<Vec<_>>(), expected);
        assert_eq!(risen(wanted, Span::from_millis(1)), Span::from_millis(1));
        assert_eq!(risen(wanted, Span::ZERO), Span::ZERO);
        assert_eq!(risen(Span::from_nanos(u64::MAX), wanted), wanted);
        let longest = Span::from_millis(2500);
        let delays = std::iter::successors(Some(Span::ZERO), |&delay| Some(risen(delay, longest)));
        let delays: Vec<_> = delays.take_while(|&delay| delay < longest).collect();
        assert_eq!(delays[8..12], [97_000, 147_500, 199_500, 251_500].map(Span::from_micros));
        assert_eq!(delays.len(), 55);
    }
}
