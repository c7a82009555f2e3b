//! When TCP would send again: a timer that runs out, or a packet that is overtaken.
//!
//! Nothing is lost in the model, so each timer that runs out and each segment that is sent again is the
//! delay's doing.

use std::collections::VecDeque;

use weir_model::{Instant, Span};

/// Linux adds at least this to the mean round trip (`TCP_RTO_MIN`).
const LEAST_MARGIN: Span = Span::from_millis(200);
/// The timer before the first round trip was measured (RFC 6298).
const FIRST_TIMER: Span = Span::from_secs(1);
/// Bytes of a full segment on Ethernet.
const SEGMENT: u64 = 1448;
/// So many later segments before an earlier one look like a loss (RFC 5681).
const DUPLICATES: u64 = 3;

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TcpCounts {
    /// Timers that ran out.
    pub timeouts: u64,
    /// Packets that enough segments overtook for TCP to take them for lost.
    pub retransmitted: u64,
}

/// One end of a connection, as a sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    /// The smoothed round trip and its variation; none before the first was measured.
    measured: Option<(Span, Span)>,
    /// Packets on their way: when each is out of the queue, and how many segments have overtaken it.
    on_their_way: VecDeque<(Instant, u64)>,
}

impl Sender {
    /// A packet goes out at `out` that came into the queue `now`. Counts what it overtakes.
    pub(super) fn handle_packet(&mut self, now: Instant, out: Instant, bytes: u64, counts: &mut TcpCounts) {
        while self.on_their_way.front().is_some_and(|(earlier, _)| *earlier <= now) {
            self.on_their_way.pop_front();
        }
        for (earlier, overtaken) in &mut self.on_their_way {
            if *earlier > out {
                let before = *overtaken;
                *overtaken += bytes.div_ceil(SEGMENT).max(1);
                counts.retransmitted += u64::from(before < DUPLICATES && *overtaken >= DUPLICATES);
            }
        }
        if out > now {
            self.on_their_way.push_back((out, 0));
        }
    }

    /// An acknowledgement came so long after its packet.
    pub(super) fn handle_round_trip(&mut self, took: Span, counts: &mut TcpCounts) {
        let nanos = took.as_nanos();
        let Some((mean, variation)) = self.measured else {
            counts.timeouts += u64::from(took > FIRST_TIMER);
            self.measured = Some((took, Span::from_nanos(nanos / 2)));
            return;
        };
        let timer = mean + LEAST_MARGIN.max(variation.saturating_mul(4));
        counts.timeouts += u64::from(took > timer);
        let apart = mean.as_nanos().abs_diff(nanos);
        let variation = (3 * variation.as_nanos() + apart) / 4;
        let mean = (7 * mean.as_nanos() + nanos) / 8;
        self.measured = Some((Span::from_nanos(mean), Span::from_nanos(variation)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_counts_once_when_three_segments_have_overtaken_it() {
        let (mut sender, mut counts) = (Sender::default(), TcpCounts::default());
        let at = |millis| Instant::ORIGIN + Span::from_millis(millis);
        sender.handle_packet(at(0), at(40), 100, &mut counts);
        sender.handle_packet(at(1), at(41), 100, &mut counts);
        for millis in 2..10 {
            sender.handle_packet(at(millis), at(millis), 100, &mut counts);
            assert_eq!(counts.retransmitted, if millis < 4 { 0 } else { 2 });
        }
        sender.handle_packet(at(50), at(50), 100_000, &mut counts);
        assert_eq!(counts, TcpCounts { timeouts: 0, retransmitted: 2 });
    }

    #[test]
    fn a_timer_runs_out_200_ms_above_the_mean_and_not_before() {
        let (mut sender, mut counts) = (Sender::default(), TcpCounts::default());
        let mut took = |millis| {
            sender.handle_round_trip(Span::from_millis(millis), &mut counts);
            counts.timeouts
        };
        assert_eq!([1, 1, 1, 150, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1].map(&mut took), [0; 16]);
        assert_eq!(took(500), 1);
    }
}
