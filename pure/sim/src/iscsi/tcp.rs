//! When TCP would send again: a timer that runs out, a packet that is overtaken, or a loss probe.
//!
//! Nothing is lost in the model, so each timer that runs out and each segment that is sent again is the
//! delay's doing.

use std::collections::VecDeque;

use weir_model::{Instant, Span};

/// Linux adds at least this to the mean round trip (`TCP_RTO_MIN`).
const LEAST_MARGIN: Span = Span::from_millis(200);
/// The timer before the first round trip was measured (RFC 6298).
const FIRST_TIMER: Span = Span::from_secs(1);
/// What a loss probe waits for beyond two round trips if several segments are outstanding
/// (`TCP_TIMEOUT_MIN_US` of Linux).
const PROBE_MARGIN: Span = Span::from_millis(2);
/// Bytes of a full segment on Ethernet.
const SEGMENT: u64 = 1448;
/// So many later segments before an earlier one look like a loss (RFC 5681).
const DUPLICATES: u64 = 3;

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TcpCounts {
    /// Timers that ran out.
    pub timeouts: u64,
    /// Packets that enough segments overtook for TCP to take them for lost, and loss probes.
    pub retransmitted: u64,
}

/// One end of a connection, as a sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    /// The smoothed round trip and its variation; none before the first was measured.
    measured: Option<(Span, Span)>,
    /// Packets in the queue: when each is out of it, and how many segments have overtaken it.
    queued: VecDeque<(Instant, u64)>,
    /// Packets that are not acknowledged.
    outstanding: VecDeque<Outstanding>,
    /// When the last packet was sent or acknowledged.
    since: Instant,
    /// Whether a loss probe was sent since the last acknowledgement. There is one only.
    has_probed: bool,
}

/// A packet that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    sent: Instant,
    acknowledged: Instant,
    segments: u64,
}

impl Sender {
    /// A packet goes out at `out` that came into the queue `now`. Counts what it overtakes.
    pub(super) fn handle_packet(&mut self, now: Instant, out: Instant, bytes: u64, counts: &mut TcpCounts) {
        while self.queued.front().is_some_and(|(earlier, _)| *earlier <= now) {
            self.queued.pop_front();
        }
        for (earlier, overtaken) in &mut self.queued {
            if *earlier > out {
                let before = *overtaken;
                *overtaken += segments(bytes);
                counts.retransmitted += u64::from(before < DUPLICATES && *overtaken >= DUPLICATES);
            }
        }
        if out > now {
            self.queued.push_back((out, 0));
        }
    }

    /// A packet is sent at `sent`, and will be acknowledged at `acknowledged`. To be told in the order of
    /// sending.
    pub(super) fn handle_round_trip(
        &mut self,
        sent: Instant,
        acknowledged: Instant,
        bytes: u64,
        counts: &mut TcpCounts,
    ) {
        while let Some(&packet) = self.outstanding.front().filter(|packet| packet.acknowledged <= sent) {
            self.pass_until(packet.acknowledged, counts);
            self.outstanding.pop_front();
            self.has_probed = false;
            self.measure(packet.acknowledged.since(packet.sent), counts);
        }
        self.pass_until(sent, counts);
        self.outstanding.push_back(Outstanding { sent, acknowledged, segments: segments(bytes) });
    }

    /// Nothing is sent or acknowledged until `at`: for that long, TCP sends a loss probe (RFC 8985 §7;
    /// `tcp_schedule_loss_probe` of Linux).
    fn pass_until(&mut self, at: Instant, counts: &mut TcpCounts) {
        let segments: u64 = self.outstanding.iter().map(|packet| packet.segments).sum();
        let margin = if segments == 1 { LEAST_MARGIN } else { PROBE_MARGIN };
        let timer = self.measured.map_or(FIRST_TIMER, |(mean, _)| mean.saturating_mul(2) + margin);
        if segments > 0 && !self.has_probed && at.saturating_since(self.since) > timer {
            self.has_probed = true;
            counts.retransmitted += 1;
        }
        self.since = self.since.max(at);
    }

    /// An acknowledgement came so long after its packet (RFC 6298).
    fn measure(&mut self, took: Span, counts: &mut TcpCounts) {
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

fn segments(bytes: u64) -> u64 {
    bytes.div_ceil(SEGMENT).max(1)
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

    /// What is counted of packets of so many segments, sent so far apart, with these round trips.
    fn counted(apart_millis: u64, segments: u64, round_trips_millis: &[u64]) -> TcpCounts {
        let (mut sender, mut counts) = (Sender::default(), TcpCounts::default());
        let mut sent = Instant::ORIGIN;
        for &millis in round_trips_millis.iter().chain(&[1]) {
            let acknowledged = sent + Span::from_millis(millis);
            sender.handle_round_trip(sent, acknowledged, segments * SEGMENT, &mut counts);
            sent = sent + Span::from_millis(apart_millis);
        }
        counts
    }

    #[test]
    fn a_timer_runs_out_200_ms_above_the_mean_and_not_before() {
        assert_eq!(counted(1000, 1, &[&[1, 1, 1, 150][..], &[1; 12]].concat()), TcpCounts::default());
        assert_eq!(counted(1000, 1, &[&[1, 1, 1, 150][..], &[1; 12], &[500]].concat()).timeouts, 1);
    }

    #[test]
    fn a_round_trip_that_is_suddenly_longer_makes_tcp_probe_unless_it_sends_on() {
        let probes =
            |apart, segments, round_trips: &[u64]| counted(apart, segments, round_trips).retransmitted;
        assert_eq!(probes(1000, 2, &[1, 1, 40]), 1);
        assert_eq!(probes(1000, 2, &[1, 1, 5]), 1);
        assert_eq!(probes(1000, 2, &[1, 1, 4]), 0, "twice 1 ms, and 2 ms");
        assert_eq!(probes(1000, 1, &[1, 1, 40]), 0, "a single segment may wait for 200 ms");
        assert_eq!(probes(3, 2, &[[1; 20], [40; 20]].concat()), 0, "packets every 3 ms");
    }

    #[test]
    fn a_round_trip_that_grows_by_half_of_itself_makes_tcp_probe_only_if_it_grows_with_each_packet() {
        let grows =
            |packets| [1, 3, 6, 10, 16, 20].iter().flat_map(|&millis| vec![millis; packets]).collect();
        let grows: [Vec<u64>; 2] = [1, 10].map(grows);
        assert!(counted(1000, 2, &grows[0]).retransmitted > 0);
        assert_eq!(counted(1000, 2, &grows[1]).retransmitted, 0);
    }
}
