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

    /// What an initiator sent at `sent` is at the target, and is acknowledged. The acknowledgement enters the
    /// leaf as every other packet does.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        sent: Instant,
        initiator: usize,
        connection: Connection,
        kernel: &Present,
    ) {
        let back = self.out_at(now, connection, kernel).0 + self.half_way;
        self.links[initiator].initiator.handle_round_trip(back.since(sent), &mut self.counts);
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
        let (out, leaf) = self.out_at(now, connection, kernel);
        if let Some(leaf) = leaf {
            self.drained.insert(leaf, out);
        }
        let takes = self.takes(bytes);
        let link = &mut self.links[initiator];
        link.target.handle_packet(now, out, bytes.into(), &mut self.counts);
        link.to_initiator = link.to_initiator.max(out) + takes;
        let arrives = link.to_initiator + self.half_way;
        link.target.handle_round_trip((arrives + self.half_way).since(now), &mut self.counts);
        arrives
    }

    /// Whether packets are in a leaf.
    pub(super) fn has_packets(&self, now: Instant, leaf: LeafId) -> bool {
        self.drained.get(&leaf).is_some_and(|drained| *drained > now)
    }

    /// When a packet is out of its leaf, and which leaf that is; at once without one.
    fn out_at(&self, now: Instant, connection: Connection, kernel: &Present) -> (Instant, Option<LeafId>) {
        let member = kernel.members.get(&connection);
        let leaf = member.filter(|(_, left)| kernel.classifies && !left.is_zero()).map(|(leaf, _)| *leaf);
        let delayed = leaf.and_then(|leaf| {
            let (delay, _) = kernel.interfaces.get(INTERFACE)?.get(&leaf)?;
            let drained = self.drained.get(&leaf).copied().unwrap_or(now);
            Some(((now + *delay).max(drained), Some(leaf)))
        });
        delayed.unwrap_or((now, None))
    }

    fn takes(&self, bytes: u32) -> Span {
        Span::from_nanos(u64::from(bytes) * 1_000_000_000 / self.bandwidth.get())
    }
}
