//! The agent's queues on an interface, as messages of rtnetlink: an HTB as the root, and below it for each
//! leaf a class with a netem queue (rtnetlink(7), tc-htb(8), tc-netem(8), linux/pkt_sched.h).
//!
//! A packet whose priority is the number of a class enters that class (HTB's own rule, net/sched/sch_htb.c).
//! All others go past the classes, because the default class is 0. A netem queue with a rate never lets a
//! packet overtake an earlier one: it takes the sending time of the last packet in it as the earliest one
//! for the next (net/sched/sch_netem.c). So a delay may shrink while packets wait.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE};
use weir_model::Span;
use weir_throttle::LeafId;

use super::attributes::{Attributes, attribute, attributes, host32, host64, text};
use super::wire::Message;

/// The number of the agent's root queue: `7e17:`.
pub(super) const ROOT: u16 = 0x7e17;
/// By this the agent knows its root queue again, as somebody else may have taken that number too. It is the
/// divisor that makes a quantum of a rate, `r2q` in tc-htb(8). HTB keeps any, and uses it only for a class
/// without a quantum of its own. In ASCII it is "weir".
const MARK: u32 = 0x7765_6972;

/// linux/rtnetlink.h: the types of messages.
const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTCLASS: u16 = 40;
const RTM_DELTCLASS: u16 = 41;

/// linux/rtnetlink.h: the attributes of a queue or a class.
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
/// linux/gen_stats.h.
const TCA_STATS_QUEUE: u16 = 3;

/// linux/pkt_sched.h: the parent of a root queue, and of the queues for packets that come in.
const TC_H_ROOT: u32 = u32::MAX;
const TC_H_INGRESS: u32 = 0xffff_fff1;

/// linux/pkt_sched.h: the options of HTB, of a class of HTB and of netem.
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TC_HTB_PROTOVER: u32 = 3;
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// The number of the loopback interface.
const LOOPBACK: u32 = 1;

/// The length of `struct tcmsg`, where the mark stands in `struct tc_htb_glob`, and the length of `struct
/// tc_netem_qopt`.
const TCMSG: usize = 20;
const HTB_MARK: usize = 4;
const NETEM_QOPT: usize = 24;

/// No link is as fast, 1 Tbit/s in bytes per second, so that no class and no leaf ever holds a packet back.
const RATE: u64 = 125_000_000_000;
/// A tick of the packet scheduler, in which netem's older field has its delay.
const TICK_NANOS: u64 = 64;
/// How long a class may send faster than `RATE`, in ticks: 1 ms.
const BURST_TICKS: u32 = 15_625;
/// How many bytes a class sends before it is another one's turn, as many as HTB takes without a warning.
const QUANTUM: u32 = 200_000;

/// The packets that a leaf can hold, whatever its delay.
const FEWEST_PACKETS: u64 = 1_000;
/// The bytes of a packet, for the size of a leaf. Most are larger, since several travel as one.
const PACKET_BYTES: u64 = 1_500;

/// A queue of any interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Queue {
    /// The number of its interface.
    pub(super) interface: u32,
    /// Its number; 0 if the kernel has made it by itself.
    pub(super) handle: u16,
    /// What it hangs on.
    pub(super) place: Place,
    /// What it is, such as `fq_codel`.
    pub(super) kind: String,
    /// Whether it has the mark of the agent's root queue.
    pub(super) is_marked: bool,
    /// Its delay, if it is a netem queue.
    pub(super) delay: Span,
    /// Whether packets are in it.
    pub(super) is_waiting: bool,
}

/// What a queue hangs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The interface, for packets that it sends.
    Root,
    /// A leaf's class of the agent.
    Leaf(LeafId),
    /// The interface, for packets that it receives.
    Ingress,
    /// A class of another queue.
    Elsewhere,
}

impl Queue {
    /// Whether it is the agent's root queue.
    pub(super) fn is_our_root(&self) -> bool {
        self.place == Place::Root && self.handle == ROOT && self.is_marked
    }

    /// Whether somebody else has set it, for packets that the interface sends.
    pub(super) fn is_foreign(&self) -> bool {
        let is_ours = self.is_our_root() || matches!(self.place, Place::Leaf(_));
        self.handle != 0 && self.place != Place::Ingress && !is_ours
    }

    /// A queue in an answer to [`look`].
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let number = |at: usize| body.get(at..).and_then(host32);
        let (interface, handle, parent) = (number(4)?, number(8)?, number(12)?);
        let mut queue = Self {
            interface,
            handle: u16::try_from(handle >> 16).ok()?,
            place: place(parent),
            kind: String::new(),
            is_marked: false,
            delay: Span::ZERO,
            is_waiting: false,
        };
        for (kind, value) in attributes(body.get(TCMSG..)?) {
            match kind {
                TCA_KIND => queue.kind = text(value),
                TCA_OPTIONS if queue.kind == "netem" => queue.delay = delay(value)?,
                TCA_OPTIONS if queue.kind == "htb" => queue.is_marked = mark(value) == Some(MARK),
                TCA_STATS2 => {
                    let length = attribute(value, TCA_STATS_QUEUE).and_then(host32);
                    queue.is_waiting = length.is_some_and(|length| length > 0);
                }
                _ => {}
            }
        }
        Some(queue)
    }
}

fn place(parent: u32) -> Place {
    let [.., high, low] = parent.to_be_bytes();
    match parent {
        TC_H_ROOT => Place::Root,
        TC_H_INGRESS => Place::Ingress,
        _ if parent >> 16 == u32::from(ROOT) => Place::Leaf(LeafId(u16::from_be_bytes([high, low]))),
        _ => Place::Elsewhere,
    }
}

/// HTB's divisor.
fn mark(options: &[u8]) -> Option<u32> {
    attribute(options, TCA_HTB_INIT)?.get(HTB_MARK..).and_then(host32)
}

/// netem's delay: in nanoseconds where the kernel tells, else in ticks.
fn delay(options: &[u8]) -> Option<Span> {
    let nanos = options.get(NETEM_QOPT..).and_then(|more| attribute(more, TCA_NETEM_LATENCY64));
    let nanos = nanos.and_then(host64).or_else(|| Some(u64::from(host32(options)?) * TICK_NANOS));
    nanos.map(Span::from_nanos)
}

/// Asks for all queues of all interfaces.
pub(super) fn look() -> Message {
    let what = "look at the queues of all interfaces".to_owned();
    message(what, RTM_GETQDISC, NLM_F_DUMP, [0, 0, 0], &Attributes::new())
}

/// Asks for a queue of this kind without options, which no kernel makes: one that knows the kind refuses it
/// as invalid, after it has loaded the module. The loopback interface has the same number in each namespace.
pub(super) fn try_kind(kind: &str, module: &'static str) -> Message {
    let what = format!("make a queue of the kind {kind}");
    // With all three flags the kernel looks at the kind even where somebody has set the root.
    let flags = NLM_F_CREATE | NLM_F_EXCL | NLM_F_REPLACE;
    let attributes = Attributes::new().text(TCA_KIND, kind);
    Message {
        needs: Some(module),
        ..message(what, RTM_NEWQDISC, flags, [LOOPBACK, 0, TC_H_ROOT], &attributes)
    }
}

/// Adds the agent's root queue, unless somebody has set the root.
pub(super) fn add_root(name: &str, interface: u32) -> Message {
    let globals = [TC_HTB_PROTOVER, MARK, 0, 0, 0].map(u32::to_ne_bytes).concat(); // default class 0
    let options = Attributes::new().bytes(TCA_HTB_INIT, &globals);
    let attributes = Attributes::new().text(TCA_KIND, "htb").bytes(TCA_OPTIONS, options.as_bytes());
    let (what, place) = (format!("{name}: add the root queue"), [interface, number(LeafId(0)), TC_H_ROOT]);
    let needs = Some("sch_htb");
    Message { needs, ..message(what, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, place, &attributes) }
}

/// Removes the agent's root queue with all leaves. The kernel makes its own root queue again.
pub(super) fn remove_root(name: &str, interface: u32) -> Message {
    let (what, place) = (format!("{name}: remove the root queue"), [interface, number(LeafId(0)), TC_H_ROOT]);
    message(what, RTM_DELQDISC, 0, place, &Attributes::new())
}

/// Adds the class of a leaf, which is not there yet.
pub(super) fn add_class(name: &str, interface: u32, leaf: LeafId) -> Message {
    let rate = [&[0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0], &u32::MAX.to_ne_bytes()[..]].concat();
    let rest = [BURST_TICKS, BURST_TICKS, QUANTUM, 0, 0].map(u32::to_ne_bytes).concat();
    let options = Attributes::new()
        .host64(TCA_HTB_RATE64, RATE)
        .host64(TCA_HTB_CEIL64, RATE)
        .bytes(TCA_HTB_PARMS, &[rate.as_slice(), &rate, &rest].concat());
    let attributes = Attributes::new().text(TCA_KIND, "htb").bytes(TCA_OPTIONS, options.as_bytes());
    let what = format!("{name}: add the class of leaf {}", leaf.0);
    let place = [interface, number(leaf), number(LeafId(0))];
    message(what, RTM_NEWTCLASS, NLM_F_CREATE | NLM_F_EXCL, place, &attributes)
}

/// Removes the class of a leaf, with its queue and what is in it.
pub(super) fn remove_class(name: &str, interface: u32, leaf: LeafId) -> Message {
    let (what, place) = (format!("{name}: remove leaf {}", leaf.0), [interface, number(leaf), 0]);
    message(what, RTM_DELTCLASS, 0, place, &Attributes::new())
}

/// Gives the class of a leaf its queue.
pub(super) fn add_queue(name: &str, interface: u32, leaf: LeafId, delay: Span, limit: u32) -> Message {
    let what = format!("{name}: add the queue of leaf {}", leaf.0);
    let place = [interface, 0, number(leaf)];
    let attributes = netem(delay, limit);
    let flags = NLM_F_CREATE | NLM_F_REPLACE;
    Message { needs: Some("sch_netem"), ..message(what, RTM_NEWQDISC, flags, place, &attributes) }
}

/// Changes the delay of a leaf, for packets that enter it from now on.
pub(super) fn set_delay(name: &str, interface: u32, leaf: LeafId, delay: Span, limit: u32) -> Message {
    let what = format!("{name}: set the delay of leaf {}", leaf.0);
    message(what, RTM_NEWQDISC, 0, [interface, 0, number(leaf)], &netem(delay, limit))
}

/// The packets that a leaf must be able to hold, if it delays by up to `ceiling` what an interface sends at
/// `rate` bytes a second.
pub(super) fn limit(rate: u64, ceiling: Span) -> u32 {
    let bytes = u128::from(rate) * u128::from(ceiling.as_nanos()) / 1_000_000_000;
    let packets = bytes / u128::from(PACKET_BYTES) + u128::from(FEWEST_PACKETS);
    u32::try_from(packets).unwrap_or(u32::MAX)
}

fn netem(delay: Span, limit: u32) -> Attributes {
    let ticks = u32::try_from(delay.as_nanos() / TICK_NANOS).unwrap_or(u32::MAX);
    let qopt = [ticks, limit, 0, 0, 0, 0].map(u32::to_ne_bytes).concat();
    let more = Attributes::new()
        .host64(TCA_NETEM_RATE64, RATE)
        .bytes(TCA_NETEM_RATE, &[u32::MAX, 0, 0, 0].map(u32::to_ne_bytes).concat())
        .host64(TCA_NETEM_LATENCY64, delay.as_nanos());
    let options = [qopt.as_slice(), more.as_bytes()].concat();
    Attributes::new().text(TCA_KIND, "netem").bytes(TCA_OPTIONS, &options)
}

/// The number of a leaf's class; of the root queue, with leaf 0.
pub(super) fn number(leaf: LeafId) -> u32 {
    u32::from(ROOT) << 16 | u32::from(leaf.0)
}

/// A message with `struct tcmsg`, of which `place` has the interface, the number and the parent.
fn message(what: String, kind: u16, flags: u16, place: [u32; 3], attributes: &Attributes) -> Message {
    let [interface, handle, parent] = place;
    let tcmsg = [0, interface, handle, parent, 0].map(u32::to_ne_bytes).concat();
    let body = [tcmsg.as_slice(), attributes.as_bytes()].concat();
    Message { what, kind, flags, body, needs: None }
}

#[cfg(test)]
mod tests;
