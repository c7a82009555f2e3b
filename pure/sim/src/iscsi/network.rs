//! The way of packets: the leaf that a packet enters, and the link of its initiator.

use std::collections::BTreeMap;

use weir_model::{Bandwidth, Instant, Span};
use weir_throttle::{Connection, LeafId, Present};

use super::tcp::{Sender, TcpCounts};

/// The interface to all initiators.
pub(super) const INTERFACE: &str = "eth0";

/// All packets between the target and its initiators.
#[derive(Debug)]
pub(super) struct Network {
    half_way: Span,
    bandwidth: Bandwidth,
    /// When the last packet of a leaf is out.
    drained: BTreeMap<LeafId, Instant>,
    links: Vec<Link>,
    pub(super) counts: TcpCounts,
}

/// The link of an initiator.
#[derive(Clone, Debug)]
struct Link {
    /// Until when each direction is busy.
    to_target: Instant,
    to_initiator: Instant,
    target: Sender,
    initiator: Sender,
}

impl Network {
    pub(super) fn new(round_trip: Span, bandwidth: Bandwidth, initiators: usize) -> Self {
        let idle = Instant::ORIGIN;
        let senders = || (Sender::default(), Sender::default());
        let link = |_| {
            let (target, initiator) = senders();
            Link { to_target: idle, to_initiator: idle, target, initiator }
        };
        Self {
            half_way: Span::from_nanos(round_trip.as_nanos() / 2),
            bandwidth,
            drained: BTreeMap::new(),
            links: (0..initiators).map(link).collect(),
            counts: TcpCounts::default(),
        }
    }

    /// An initiator sends so many bytes; when all of them are at the target.
    pub(super) fn send_to_target(&mut self, now: Instant, initiator: usize, bytes: u32) -> Instant {
        let takes = self.takes(bytes);
        let link = &mut self.links[initiator];
        link.to_target = link.to_target.max(now) + takes;
        link.to_target + self.half_way
    }

    /// So many bytes that an initiator sent at `sent` are at the target, and are acknowledged. The
    /// acknowledgement enters the leaf as every other packet does.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        sent: Instant,
        initiator: usize,
        bytes: u32,
        connection: Connection,
        kernel: &Present,
    ) {
        let back = self.enter(now, connection, kernel) + self.half_way;
        let sender = &mut self.links[initiator].initiator;
        sender.handle_round_trip(sent, back, bytes.into(), &mut self.counts);
    }

    /// The target sends so many bytes; when all of them are at the initiator.
    pub(super) fn send_to_initiator(
        &mut self,
        now: Instant,
        initiator: usize,
        bytes: u32,
        connection: Connection,
        kernel: &Present,
    ) -> Instant {
        let out = self.enter(now, connection, kernel);
        let takes = self.takes(bytes);
        let link = &mut self.links[initiator];
        link.target.handle_packet(now, out, bytes.into(), &mut self.counts);
        link.to_initiator = link.to_initiator.max(out) + takes;
        let arrives = link.to_initiator + self.half_way;
        let acknowledged = arrives + self.half_way;
        link.target.handle_round_trip(now, acknowledged, bytes.into(), &mut self.counts);
        arrives
    }

    /// Whether packets are in a leaf.
    pub(super) fn has_packets(&self, now: Instant, leaf: LeafId) -> bool {
        self.drained.get(&leaf).is_some_and(|drained| *drained > now)
    }

    /// A packet enters its leaf; when it is out. At once without one.
    fn enter(&mut self, now: Instant, connection: Connection, kernel: &Present) -> Instant {
        let member = kernel.members.get(&connection);
        let leaf = member.filter(|(_, left)| kernel.classifies && !left.is_zero()).map(|(leaf, _)| *leaf);
        let delayed = leaf.and_then(|leaf| Some((leaf, kernel.interfaces.get(INTERFACE)?.get(&leaf)?.0)));
        let Some((leaf, delay)) = delayed else { return now };
        let drained = self.drained.entry(leaf).or_insert(now);
        *drained = (*drained).max(now + delay);
        *drained
    }

    fn takes(&self, bytes: u32) -> Span {
        Span::from_nanos(u64::from(bytes) * 1_000_000_000 / self.bandwidth.get())
    }
}
