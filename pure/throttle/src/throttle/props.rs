//! Hosts on which anything happens: sessions and connections come and go, addresses change, devices vanish
//! and come back under other numbers, counters wrap and go back, and somebody tampers with the kernel.
//!
//! At each interval, the kernel delays nobody whom it must not, and has what is wanted.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proptest::prelude::*;

use super::*;
use crate::plan::plan;
use crate::pretend_kernel::apply;
use crate::survey::{Connection, Device, Framework, Mapper, Session, Target};

const TICK: Span = Span::from_millis(100);
const TARGETS: u8 = 3;
const INITIATORS: u8 = 4;

/// Something that happens between two intervals.
#[derive(Clone, Debug)]
enum Event {
    /// An initiator logs in to a target, with a known address or without.
    Login { target: u8, initiator: u8, address: u8, is_known: bool },
    /// The last session of a target ends.
    Logout { target: u8 },
    /// A connection comes or goes, at a portal or at another port.
    Connection { address: u8, port: u8, at_portal: bool, interface: u8 },
    /// The LUN of a target is a volume of that group, under that number.
    Lun { target: u8, minor: u8, group: u8 },
    /// A device does that in each interval from now on.
    Load { minor: u8, reads: u8, wait: u8, written: u32 },
    /// The counters of a device are others.
    Counters { minor: u8, reads: u64, read_millis: u32 },
    /// A device cannot be read any more.
    Unreadable { minor: u8 },
    /// No delay can reach a target's initiators any more, or one can again.
    Reach { target: u8 },
    /// Somebody removes everything from the kernel.
    Flush,
    /// Packets are in all leaves, or in none.
    Packets(bool),
    /// Time goes on.
    Intervals(u8),
}

fn events() -> impl Strategy<Value = Event> {
    let target = 0..TARGETS;
    prop_oneof![
        3 => (target.clone(), 0..INITIATORS, 0u8..6, any::<bool>()).prop_map(
            |(target, initiator, address, is_known)| Event::Login { target, initiator, address, is_known }),
        1 => target.clone().prop_map(|target| Event::Logout { target }),
        3 => (0u8..6, 0u8..3, prop::bool::weighted(0.8), 0u8..2).prop_map(
            |(address, port, at_portal, interface)| Event::Connection { address, port, at_portal, interface }),
        3 => (target.clone(), 0u8..4, 0u8..2).prop_map(|(target, minor, group)| Event::Lun { target, minor, group }),
        4 => (0u8..4, 0u8..40, 0u8..60, 0u32..1 << 21).prop_map(
            |(minor, reads, wait, written)| Event::Load { minor, reads, wait, written }),
        1 => (0u8..4, any::<u64>(), any::<u32>()).prop_map(
            |(minor, reads, read_millis)| Event::Counters { minor, reads, read_millis }),
        1 => (0u8..4).prop_map(|minor| Event::Unreadable { minor }),
        1 => target.prop_map(|target| Event::Reach { target }),
        1 => Just(Event::Flush),
        1 => any::<bool>().prop_map(Event::Packets),
        8 => (1u8..25).prop_map(Event::Intervals),
    ]
}

struct Host {
    throttle: Throttle,
    now: Instant,
    survey: Survey,
    counters: BTreeMap<DeviceNumber, BlockCounters>,
    loads: BTreeMap<DeviceNumber, (u8, u8, u32)>,
    kernel: Present,
    /// The last survey.
    surveyed: Survey,
}

fn number(minor: u8) -> DeviceNumber {
    DeviceNumber { major: 253, minor: minor.into() }
}

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 10 + last))
}

fn portal() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 3260))
}

/// Initiator 3 and address 5 are exempt.
fn settings() -> Settings {
    let mut settings = Settings::new(Span::from_millis(15));
    settings.exempt = ["iqn.3", "10.0.0.15"].map(|who| who.parse().unwrap()).into();
    settings.forced = ["iqn.2".parse().unwrap()].into();
    settings
}

impl Host {
    fn new() -> Self {
        let target = |k: u8| Target {
            framework: Framework::Lio,
            name: format!("t{k}"),
            portals: [portal()].into(),
            luns: BTreeMap::new(),
            sessions: Vec::new(),
            out_of_reach: None,
        };
        Self {
            throttle: Throttle::new(settings()).unwrap(),
            now: Instant::ORIGIN,
            survey: Survey { targets: (0..TARGETS).map(target).collect(), ..Survey::default() },
            counters: BTreeMap::new(),
            loads: BTreeMap::new(),
            kernel: Present::default(),
            surveyed: Survey::default(),
        }
    }

    fn handle(&mut self, event: &Event) {
        match *event {
            Event::Login { target, initiator, address: last, is_known } => {
                let addresses = is_known.then(|| address(last)).into_iter().collect();
                let initiator = format!("iqn.{initiator}");
                let session = Session { initiator, addresses, written: BTreeMap::new() };
                self.survey.targets[usize::from(target)].sessions.push(session);
            }
            Event::Logout { target } => drop(self.survey.targets[usize::from(target)].sessions.pop()),
            Event::Connection { address: last, port, at_portal, interface } => {
                let local = if at_portal { portal() } else { SocketAddr::from(([10, 0, 0, 1], 22)) };
                let peer = SocketAddr::new(address(last), 40_000 + u16::from(port));
                let connection = Connection { local, peer };
                if !self.survey.connections.remove(&connection) {
                    self.survey.connections.insert(connection);
                    self.survey.interfaces.insert(connection, format!("eth{interface}"));
                }
            }
            Event::Lun { target, minor, group } => {
                let uuid = format!("LVM-{group:0>32}{target:0>32}");
                let mapper = Some(Mapper { name: format!("vg{group}-lv{target}"), uuid });
                let device = Device { name: format!("dm-{minor}"), mapper, ..Device::default() };
                self.survey.devices.insert(number(minor), device);
                self.survey.targets[usize::from(target)].luns = [(0, number(minor))].into();
                self.counters.entry(number(minor)).or_default();
            }
            Event::Load { minor, reads, wait, written } => {
                self.loads.insert(number(minor), (reads, wait, written));
            }
            Event::Counters { minor, reads, read_millis } => {
                let counters = BlockCounters { reads, read_millis, ..BlockCounters::default() };
                self.counters.insert(number(minor), counters);
            }
            Event::Unreadable { minor } => drop(self.counters.remove(&number(minor))),
            Event::Reach { target } => {
                let target = &mut self.survey.targets[usize::from(target)];
                let why = target.out_of_reach.is_none().then(|| "it is on the moon".to_string());
                target.out_of_reach = why;
            }
            Event::Flush => self.kernel = Present::default(),
            Event::Packets(are_there) => {
                let leaves = self.kernel.interfaces.values_mut().flat_map(BTreeMap::values_mut);
                leaves.for_each(|leaf| leaf.1 = are_there);
            }
            Event::Intervals(count) => (0..count).for_each(|_| self.interval()),
        }
    }

    fn interval(&mut self) {
        self.now = self.now + TICK;
        if self.now.as_nanos().is_multiple_of(1_000_000_000) {
            self.throttle.handle_survey(self.now, &self.survey);
            self.surveyed = self.survey.clone();
        }
        for (device, counters) in &mut self.counters {
            let (reads, wait, written) = self.loads.get(device).copied().unwrap_or_default();
            counters.reads = counters.reads.wrapping_add(reads.into());
            counters.read_millis = counters.read_millis.wrapping_add(u32::from(reads) * u32::from(wait));
            counters.sectors_written += u64::from(written) / 512;
        }
        self.throttle.handle_counters(self.now, &self.counters);
        self.throttle.handle_present(&self.kernel);
        let kernel = &mut self.kernel;
        plan(kernel, self.throttle.wanted()).iter().for_each(|command| apply(kernel, command));
        let rest = plan(kernel, self.throttle.wanted());
        rest.iter().for_each(|command| apply(kernel, command));
        assert_eq!(plan(kernel, self.throttle.wanted()), [], "what is wanted is there");
        self.check();
        for (_, left) in self.kernel.members.values_mut() {
            *left = Span::from_nanos(left.as_nanos() - TICK.as_nanos());
        }
        while self.throttle.poll_notice().is_some() {}
    }

    fn check(&self) {
        let ceiling = self.throttle.settings.law.ceiling;
        let sessions = self.surveyed.targets.iter().flat_map(|target| &target.sessions);
        let is_exempt = |session: &&Session| session.initiator == "iqn.3";
        let mut exempt: BTreeSet<_> =
            sessions.filter(is_exempt).flat_map(|session| &session.addresses).collect();
        let by_address = address(5);
        exempt.insert(&by_address);
        for (connection, (leaf, _)) in &self.kernel.members {
            assert_eq!(connection.local, portal(), "only what is at a portal");
            assert!(self.surveyed.connections.contains(connection), "only what the last survey showed");
            assert!(!exempt.contains(&connection.peer.ip()), "never an exempt initiator's");
            assert!(self.throttle.guards.get(*leaf).is_some(), "only for a resource that is there");
        }
        assert_eq!(self.kernel.classifies, !self.kernel.members.is_empty());
        let leaves = self.kernel.interfaces.values().flatten();
        assert!(leaves.into_iter().all(|(_, leaf)| leaf.0 <= ceiling));
        for resource in self.throttle.report().resources {
            let mut initiators = resource.initiators.iter();
            assert!(initiators.all(|seen| seen.name != "iqn.3" || seen.standing == Standing::Exempt));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_happens_nobody_is_delayed_who_must_not_be(
        events in prop::collection::vec(events(), 1..80),
    ) {
        let mut host = Host::new();
        events.iter().for_each(|event| host.handle(event));
        host.handle(&Event::Intervals(30));
    }
}
