//! What delays packets: fixed delays, or the throttle of a real host with its surveys, counters and plans.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_model::{Instant, Span};
use weir_throttle::{
    Connection, Device, DeviceNumber, Framework, InterfaceLeaves, LeafId, MEMBER_LASTS, Mapper, Present,
    Session, Settings, Survey, Target, Throttle, plan, risen,
};

use super::disk::VolumeCounters;
use super::network::{INTERFACE, Network};

/// LIO counts what an initiator writes in these.
const MEBIBYTE: u64 = 1 << 20;

/// What is known of an initiator and its device.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) group: u32,
    /// The port of its connection; another one with each session.
    pub(super) port: u16,
    pub(super) is_logged_in: bool,
    pub(super) has_device: bool,
    /// Whether its device's counters can be read.
    pub(super) is_readable: bool,
    /// What its session has written, as the target counts it.
    pub(super) written: u64,
}

/// What delays packets.
#[derive(Debug)]
pub(super) struct Agent {
    throttle: Option<Throttle>,
    /// Where fixed delays are going.
    aims: BTreeMap<LeafId, Span>,
    /// What the kernel holds.
    pub(super) kernel: Present,
}

/// What the law of the first volume group sees and decides.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Seen {
    pub(super) ewma: Span,
    pub(super) threshold: Span,
    pub(super) delay: Span,
}

impl Agent {
    /// Nobody is delayed.
    pub(super) fn none() -> Self {
        Self { throttle: None, aims: BTreeMap::new(), kernel: Present::default() }
    }

    /// Each initiator has a leaf of its own, whose delay is zero.
    pub(super) fn fixed(known: &[Known]) -> Self {
        let mut kernel = Present { classifies: true, ..Present::default() };
        let mut leaves = InterfaceLeaves::new();
        for (initiator, known) in known.iter().enumerate() {
            leaves.insert(leaf(initiator), (Span::ZERO, false));
            kernel.members.insert(connection(initiator, known), (leaf(initiator), MEMBER_LASTS));
        }
        kernel.interfaces.insert(INTERFACE.to_owned(), leaves);
        Self { throttle: None, aims: BTreeMap::new(), kernel }
    }

    /// The throttle of a real host.
    pub(super) fn throttle(settings: Settings) -> Self {
        let throttle = Throttle::new(settings).expect("settings that can be");
        Self { throttle: Some(throttle), aims: BTreeMap::new(), kernel: Present::default() }
    }

    /// From now on each interval brings a fixed delay closer to this one, as fast as the throttle would. At
    /// the start nothing was sent before, and it has this length at once.
    pub(super) fn aim(&mut self, now: Instant, initiator: usize, delay: Span) {
        self.aims.insert(leaf(initiator), delay);
        if now == Instant::ORIGIN {
            let leaves = self.kernel.interfaces.entry(INTERFACE.to_owned()).or_default();
            leaves.insert(leaf(initiator), (delay, false));
        }
    }

    /// An interval of the law ends.
    pub(super) fn handle_interval(
        &mut self,
        now: Instant,
        elapsed: Span,
        counters: &[VolumeCounters],
        known: &[Known],
        network: &Network,
    ) {
        for (leaf, (delay, _)) in self.kernel.interfaces.values_mut().flatten() {
            if let Some(&aim) = self.aims.get(leaf) {
                *delay = risen(*delay, aim);
            }
        }
        let Some(throttle) = &mut self.throttle else { return };
        if now.as_nanos().is_multiple_of(1_000_000_000) {
            throttle.handle_survey(now, &survey(known));
        }
        age(&mut self.kernel, elapsed);
        for (&leaf, state) in self.kernel.interfaces.values_mut().flatten() {
            state.1 = network.has_packets(now, leaf);
        }
        let readable = (0..).zip(counters.iter().zip(known));
        let readable = readable.filter(|(_, (_, known))| known.has_device && known.is_readable);
        let counters: BTreeMap<_, _> =
            readable.map(|(initiator, (counters, _))| (device(initiator), counters.shown())).collect();
        throttle.handle_counters(now, &counters);
        throttle.handle_present(&self.kernel);
        for command in plan(&self.kernel, throttle.wanted()) {
            self.kernel.assume(&command);
        }
        while throttle.poll_notice().is_some() {}
    }

    /// What the law of a volume group sees and decides.
    pub(super) fn seen(&self, group: u32) -> Seen {
        let name = format!("vg{group}");
        let report = self.throttle.as_ref().map(Throttle::report).unwrap_or_default();
        let resource = report.resources.into_iter().find(|resource| resource.name == name);
        resource.map_or_else(Seen::default, |resource| Seen {
            ewma: resource.wait,
            threshold: resource.threshold,
            delay: resource.delay,
        })
    }

    /// The initiators whose packets enter a leaf, whatever its delay; none without a throttle.
    pub(super) fn members(&self, known: &[Known]) -> Vec<usize> {
        let is_member = |(initiator, known): &(usize, &Known)| {
            self.delay_of(*initiator, known).is_some() && self.throttle.is_some()
        };
        known.iter().enumerate().filter(is_member).map(|(initiator, _)| initiator).collect()
    }

    /// The delay of packets to an initiator, if they enter a leaf.
    pub(super) fn delay_of(&self, initiator: usize, known: &Known) -> Option<Span> {
        let (leaf, _) = self.kernel.members.get(&connection(initiator, known))?;
        let delay = self.kernel.interfaces.get(INTERFACE)?.get(leaf)?.0;
        self.kernel.classifies.then_some(delay)
    }
}

/// The elements of the kernel's map expire unless they are renewed.
fn age(kernel: &mut Present, elapsed: Span) {
    for (_, left) in kernel.members.values_mut() {
        *left = Span::from_nanos(left.as_nanos().saturating_sub(elapsed.as_nanos()));
    }
    kernel.members.retain(|_, (_, left)| !left.is_zero());
}

/// The connection of an initiator.
pub(super) fn connection(initiator: usize, known: &Known) -> Connection {
    Connection { local: portal(), peer: SocketAddr::new(address(initiator), known.port) }
}

fn portal() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 3260))
}

fn address(initiator: usize) -> IpAddr {
    let last = u8::try_from(10 + initiator).expect("few initiators");
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

fn leaf(initiator: usize) -> LeafId {
    LeafId(u16::try_from(1 + initiator).expect("few initiators"))
}

fn device(initiator: usize) -> DeviceNumber {
    DeviceNumber { major: 253, minor: u32::try_from(initiator).expect("few initiators") }
}

/// What the sensors of a host would find.
fn survey(known: &[Known]) -> Survey {
    let mut survey = Survey::default();
    for (initiator, known) in known.iter().enumerate() {
        let session = Session {
            initiator: format!("iqn.{initiator}"),
            addresses: [address(initiator)].into(),
            written: [(0, known.written / MEBIBYTE * MEBIBYTE)].into(),
        };
        if known.is_logged_in {
            survey.connections.insert(connection(initiator, known));
            survey.interfaces.insert(connection(initiator, known), INTERFACE.into());
        }
        if known.has_device {
            let group = known.group;
            let mapper = Mapper {
                name: format!("vg{group}-lv{initiator}"),
                uuid: format!("LVM-{group:0>32}{initiator:0>32}"),
            };
            let name = format!("dm-{initiator}");
            let found = Device { name, mapper: Some(mapper), ..Device::default() };
            survey.devices.insert(device(initiator), found);
        }
        survey.targets.push(Target {
            framework: Framework::Lio,
            name: format!("target-{initiator}"),
            portals: [portal()].into(),
            luns: known.has_device.then(|| (0, device(initiator))).into_iter().collect(),
            sessions: if known.is_logged_in { vec![session] } else { Vec::new() },
            out_of_reach: None,
        });
    }
    survey
}
