//! A whole host: targets, disks under load, and a kernel that does what the plans say.

use std::net::SocketAddr;

use weir_model::Bandwidth;

use super::*;
use crate::limits::{MOST_CONNECTIONS, MOST_SESSIONS};
use crate::plan::plan;
use crate::pretend_kernel::apply;
use crate::settings::ResourceSettings;
use crate::survey::{Connection, Device, Framework, Mapper, Session, Target};
use crate::tuning::{CannotTune, Tuning, TuningProgress};

const PORTAL: &str = "10.0.0.1:3260";
const MIB: u64 = 1 << 20;
const TICK: Span = Span::from_millis(100);

/// What happens to a device in an interval.
#[derive(Clone, Copy, Default)]
struct Load {
    reads: u64,
    /// How long each read takes, in milliseconds.
    wait: u32,
    /// Bytes a second.
    written: u64,
}

struct Host {
    throttle: Throttle,
    ticks: u64,
    survey: Survey,
    counters: BTreeMap<DeviceNumber, BlockCounters>,
    loads: BTreeMap<DeviceNumber, Load>,
    kernel: Present,
    /// How many commands were applied.
    commands: usize,
    notices: Vec<String>,
}

fn number(minor: u32) -> DeviceNumber {
    DeviceNumber { major: 253, minor }
}

fn connection(portal: &str, peer: &str) -> Connection {
    Connection { local: portal.parse().unwrap(), peer: peer.parse().unwrap() }
}

/// A logical volume of the group of that letter.
fn volume(group: char, minor: u32) -> Device {
    let uuid = format!("LVM-{}{minor:0>32}", group.to_string().repeat(32));
    let mapper = Some(Mapper { name: format!("vg{group}-lv{minor}"), uuid });
    Device { name: format!("dm-{minor}"), mapper, ..Device::default() }
}

impl Host {
    fn new(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::new(Span::from_millis(15));
        change(&mut settings);
        Self {
            throttle: Throttle::new(settings).unwrap(),
            ticks: 0,
            survey: Survey::default(),
            counters: BTreeMap::new(),
            loads: BTreeMap::new(),
            kernel: Present::default(),
            commands: 0,
            notices: Vec::new(),
        }
    }

    /// A target with one LUN on volume `minor` of a group, and one initiator with that address.
    fn serve(&mut self, name: &str, group: char, minor: u32, address: &str) -> &mut Target {
        self.survey.devices.insert(number(minor), volume(group, minor));
        self.counters.insert(number(minor), BlockCounters::default());
        self.connect(connection(PORTAL, &format!("{address}:4{minor:0>4}")), "eth0");
        let session = Session {
            initiator: name.to_string(),
            addresses: [address.parse().unwrap()].into(),
            written: BTreeMap::new(),
        };
        self.survey.targets.push(Target {
            framework: Framework::Lio,
            name: format!("target-{name}"),
            portals: [PORTAL.parse().unwrap()].into(),
            luns: [(0, number(minor))].into(),
            sessions: vec![session],
            out_of_reach: None,
        });
        self.survey.targets.last_mut().unwrap()
    }

    /// The usual host: `reader` and `writer` at one group, and the disk is slow.
    fn busy(change: impl FnOnce(&mut Settings)) -> Self {
        let mut host = Self::new(change);
        host.serve("reader", 'a', 1, "10.0.0.11");
        host.serve("writer", 'a', 2, "10.0.0.12");
        host.load(1, 10, 40, 0);
        host.load(2, 0, 0, 8 * MIB);
        host
    }

    fn connect(&mut self, connection: Connection, interface: &str) {
        self.survey.connections.insert(connection);
        self.survey.interfaces.insert(connection, interface.to_string());
    }

    fn load(&mut self, minor: u32, reads: u64, wait: u32, written: u64) {
        self.loads.insert(number(minor), Load { reads, wait, written });
    }

    fn session(&mut self, target: usize) -> &mut Session {
        &mut self.survey.targets[target].sessions[0]
    }

    fn now(&self) -> Instant {
        Instant::ORIGIN + TICK.saturating_mul(self.ticks)
    }

    /// Lets time go on.
    fn run(&mut self, seconds: u64) -> &mut Self {
        for _ in 0..10 * seconds {
            self.tick();
        }
        self
    }

    fn tick(&mut self) {
        if self.ticks.is_multiple_of(10) {
            self.throttle.handle_survey(self.now(), &self.survey);
        }
        for (device, counters) in &mut self.counters {
            let load = self.loads.get(device).copied().unwrap_or_default();
            counters.reads += load.reads;
            counters.read_millis =
                counters.read_millis.wrapping_add(u32::try_from(load.reads).unwrap() * load.wait);
            counters.sectors_written += load.written / 512 / 10;
        }
        self.throttle.handle_counters(self.now(), &self.counters);
        self.throttle.handle_present(&self.kernel);
        for command in plan(&self.kernel, self.throttle.wanted()) {
            apply(&mut self.kernel, &command);
            self.commands += 1;
        }
        for (_, left) in self.kernel.members.values_mut() {
            assert!(*left > TICK, "an element would expire");
            *left = Span::from_nanos(left.as_nanos() - TICK.as_nanos());
        }
        let notices = std::iter::from_fn(|| self.throttle.poll_notice());
        self.notices.extend(notices.map(|notice| notice.to_string()));
        self.ticks += 1;
    }

    /// The last part of the address of each connection whose packets are delayed.
    fn delayed(&self) -> Vec<u8> {
        let delay =
            |leaf: &LeafId| self.kernel.interfaces.values().find_map(|leaves| leaves.get(leaf)).unwrap().0;
        let delayed = self.kernel.members.iter().filter(|(_, (leaf, _))| !delay(leaf).is_zero());
        delayed
            .map(|(member, _)| match member.peer {
                SocketAddr::V4(peer) => peer.ip().octets()[3],
                SocketAddr::V6(_) => unreachable!("no IPv6 here"),
            })
            .collect()
    }

    fn fetch_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn resource(&self, name: &str) -> ResourceReport {
        self.throttle.report().resources.into_iter().find(|resource| resource.name == name).unwrap()
    }

    fn standing(&self, resource: &str, initiator: &str) -> Standing {
        let resource = self.resource(resource);
        resource.initiators.iter().find(|found| found.name == initiator).unwrap().standing
    }
}

#[test]
fn who_writes_above_the_limit_is_delayed_while_reads_wait_for_too_long_and_not_after() {
    let mut host = Host::busy(|_| {});
    host.run(5);
    assert_eq!(host.delayed(), [12]);
    assert_eq!(host.resource("vga").delay, Span::from_millis(20), "the ceiling: nothing helps here");
    assert!(host.kernel.classifies);
    host.load(1, 10, 2, 0);
    host.run(1);
    assert_eq!(host.delayed(), [0; 0], "the delay is zero within a second");
    host.run(2);
    assert_eq!(host.kernel.members, BTreeMap::new());
    assert!(!host.kernel.classifies, "no packet is touched");
    assert_eq!(host.standing("vga", "writer"), Standing::Above);
}

/// The first delays of a writer, in microseconds. From the third on, the law wants less than it may have.
const FIRST_DELAYS: [u64; 6] = [2_000, 5_000, 8_500, 12_000, 15_000, 18_500];

/// The delays of the writer's packets in the next two seconds, from the first one on.
fn first_delays(host: &mut Host) -> Vec<u64> {
    let delay = |_| {
        host.tick();
        if host.delayed().is_empty() { 0 } else { host.resource("vga").delay.as_micros() }
    };
    (0..20).map(delay).filter(|delay| *delay > 0).take(FIRST_DELAYS.len()).collect()
}

#[test]
fn the_first_members_of_a_resource_are_delayed_step_by_step() {
    let mut host = Host::busy(|_| {});
    host.load(2, 0, 0, 0);
    host.run(5);
    assert_eq!(host.delayed(), [0; 0], "reads wait, but nobody writes");
    host.load(2, 0, 0, 8 * MIB);
    assert_eq!(first_delays(&mut host), FIRST_DELAYS);
}

#[test]
fn while_no_survey_comes_nobody_is_delayed_and_after_it_step_by_step() {
    let mut host = Host::busy(|_| {});
    host.run(5);
    assert_eq!(host.delayed(), [12]);
    for _ in 0..50 {
        let now = host.now();
        host.throttle.delay_nobody(now);
        host.throttle.handle_counters(now, &host.counters);
        host.throttle.handle_present(&host.kernel);
        plan(&host.kernel, host.throttle.wanted())
            .iter()
            .for_each(|command| apply(&mut host.kernel, command));
        host.ticks += 1;
    }
    assert_eq!((host.delayed(), host.resource("vga").delay), (vec![], Span::ZERO));
    assert!(!host.kernel.interfaces.is_empty(), "the root queue stays");
    host.fetch_notices();
    assert_eq!(first_delays(&mut host), FIRST_DELAYS);
    assert_eq!(host.fetch_notices(), ["vga: the delay is below its ceiling again"], "it stays a member");
}

#[test]
fn while_nothing_is_delayed_the_kernel_gets_a_root_queue_and_no_further_command() {
    let mut host = Host::busy(|_| {});
    host.load(1, 10, 2, 0);
    host.run(60);
    assert_eq!((host.standing("vga", "writer"), host.commands), (Standing::Above, 1));
    let interfaces = [("eth0".into(), BTreeMap::new())].into();
    assert_eq!(host.kernel, Present { interfaces, ..Present::default() });
}

#[test]
fn each_thing_that_happens_is_one_line() {
    let mut host = Host::busy(|_| {});
    host.run(6);
    let wait = "40ms, where 15ms is the threshold; a higher ceiling may help";
    let lines = host.fetch_notices();
    assert_eq!(lines[0], "vga: found behind a LUN; its reads are to wait 15ms at most");
    assert!(lines[1].starts_with("vga: writer writes ") && lines[1].contains(" KiB/s, and is delayed while"));
    assert!(
        lines[2].starts_with("vga: the delay is at its ceiling of 20ms, and reads wait "),
        "{}",
        lines[2]
    );
    assert!(lines[2].ends_with(&wait[4..]), "{}", lines[2]);
    assert_eq!(lines.len(), 3, "{lines:?}");
    host.load(1, 10, 2, 0);
    host.load(2, 0, 0, 0);
    host.run(10);
    assert_eq!(
        host.fetch_notices(),
        ["vga: the delay is below its ceiling again", "vga: writer is no longer delayed"]
    );
    host.survey = Survey::default();
    host.run(2);
    assert_eq!(host.fetch_notices(), ["vga: behind no LUN any more; nobody is delayed for it"]);
}

#[test]
fn settings_can_be_changed_while_it_runs() {
    let mut host = Host::busy(|_| {});
    host.run(5);
    let before = host.resource("vga").delay;
    let mut settings = Settings::new(Span::from_millis(10));
    settings.law.ceiling = Span::from_millis(40);
    host.throttle.set_settings(settings.clone()).unwrap();
    host.tick();
    assert!(host.resource("vga").delay >= before, "the delay goes on from where it was");
    let own = ResourceSettings { threshold: Some(Span::from_millis(100)), write_limit: None };
    settings.resources.insert("vga".into(), own);
    host.throttle.set_settings(settings.clone()).unwrap();
    host.run(2);
    assert_eq!((host.delayed(), host.resource("vga").threshold), (vec![], Span::from_millis(100)));
    settings.resources.clear();
    host.throttle.set_settings(settings.clone()).unwrap();
    host.run(2);
    assert_eq!(host.delayed(), [12]);
    settings.exempt = ["10.0.0.12".parse().unwrap()].into();
    host.throttle.set_settings(settings.clone()).unwrap();
    host.run(2);
    assert_eq!(host.delayed(), [0; 0], "though nobody came or went");
    settings.threshold = Span::ZERO;
    assert!(host.throttle.set_settings(settings).is_err());
    assert_eq!(host.resource("vga").threshold, Span::from_millis(10), "nothing has changed");
}

#[test]
fn an_interface_gets_its_root_queue_when_an_initiator_logs_in_and_not_when_it_is_delayed() {
    let mut host = Host::new(|_| {});
    host.serve("idle", 'a', 1, "10.0.0.11");
    host.run(1);
    assert!(host.kernel.interfaces.contains_key("eth0") && host.kernel.members.is_empty());
}

#[test]
fn an_exempt_initiator_is_never_delayed_and_a_forced_one_always_while_reads_wait() {
    let mut host = Host::busy(|settings| {
        settings.exempt = ["10.0.0.12".parse().unwrap()].into();
        settings.forced = ["reader".replace("reader", "iqn.reader").parse().unwrap()].into();
    });
    host.session(0).initiator = "iqn.reader".into();
    host.run(5);
    assert_eq!(host.delayed(), [11]);
    assert_eq!(host.standing("vga", "writer"), Standing::Exempt);
    assert_eq!(host.standing("vga", "iqn.reader"), Standing::Forced);
}

#[test]
fn one_exempt_address_exempts_all_paths_of_an_initiator() {
    let mut host = Host::busy(|settings| settings.exempt = ["10.0.1.0/24".parse().unwrap()].into());
    host.session(1).addresses.insert("10.0.1.12".parse().unwrap());
    host.run(5);
    assert_eq!(host.delayed(), [0; 0]);
}

#[test]
fn a_connection_that_may_be_an_exempt_initiators_is_not_delayed() {
    let mut host = Host::busy(|settings| settings.exempt = ["iqn.reader".parse().unwrap()].into());
    host.session(0).initiator = "iqn.reader".into();
    host.session(0).addresses.clear();
    host.session(1).addresses.clear();
    host.run(5);
    assert_eq!(host.delayed(), [0; 0], "which of the two connections is the writer's is not known");
    let notices = host.fetch_notices();
    assert!(notices.iter().any(|line| line.contains("writer is to be delayed, but none")), "{notices:?}");
}

#[test]
fn only_connections_at_a_portal_are_ever_delayed() {
    let mut host = Host::busy(|_| {});
    host.connect(connection("10.0.0.1:22", "10.0.0.12:50000"), "eth0");
    host.connect(connection("10.0.0.9:3260", "10.0.0.12:50001"), "eth0");
    host.run(5);
    let members: Vec<_> = host.kernel.members.keys().copied().collect();
    assert_eq!(members, [connection(PORTAL, "10.0.0.12:40002")]);
}

#[test]
fn two_targets_on_one_portal_share_no_delay_unless_the_address_does() {
    let mut host = Host::busy(|_| {});
    host.serve("other", 'b', 3, "10.0.0.13");
    host.serve("writer", 'b', 4, "10.0.0.12");
    host.load(3, 10, 100, 9 * MIB);
    host.run(5);
    assert_eq!(host.delayed(), [12, 12, 13], "both connections of the writer: its ports are not known");
    assert_eq!(host.standing("vgb", "writer"), Standing::Below);
    let leaf = |group| host.throttle.guards.iter().find(|(_, guard)| guard.name == group).unwrap().0;
    let is_in = |leaf: LeafId| host.throttle.wanted().leaves[&leaf].members.len();
    assert_eq!((is_in(leaf("vga")), is_in(leaf("vgb"))), (2, 1));
}

#[test]
fn a_targets_own_counters_tell_writers_of_one_device_apart() {
    let mut host = Host::busy(|_| {});
    let mut quiet = host.session(1).clone();
    quiet.initiator = "quiet".into();
    quiet.addresses = ["10.0.0.13".parse().unwrap()].into();
    host.connect(connection(PORTAL, "10.0.0.13:1"), "eth0");
    host.survey.targets[1].sessions.push(quiet);
    host.run(5);
    assert_eq!(host.delayed(), [12, 13], "nobody knows which of them writes");
    for second in 1..10 {
        // LIO counts in MiB; what the device has written more was written by it, or by nobody.
        for (session, bytes) in host.survey.targets[1].sessions.iter_mut().zip([8 * MIB * second, 0]) {
            session.written = [(0, bytes)].into();
        }
        host.run(1);
    }
    assert_eq!(host.delayed(), [12]);
    host.survey.targets[1].sessions[1].written.clear();
    for second in 10..20 {
        host.session(1).written = [(0, 8 * MIB * second)].into();
        host.run(1);
    }
    assert_eq!(host.delayed(), [12], "the counter of one explains all that the device has written");
}

#[test]
fn an_initiator_that_changes_its_address_is_delayed_there_within_2_s() {
    let mut host = Host::busy(|_| {});
    host.run(5);
    host.survey.connections.remove(&connection(PORTAL, "10.0.0.12:40002"));
    host.session(1).addresses = ["10.0.0.77".parse().unwrap()].into();
    host.connect(connection(PORTAL, "10.0.0.77:1"), "eth1");
    host.run(2);
    assert_eq!(host.delayed(), [77]);
    assert!(host.kernel.interfaces.contains_key("eth1"));
}

#[test]
fn all_connections_of_an_initiator_with_several_paths_are_delayed() {
    let mut host = Host::busy(|_| {});
    host.survey.targets[1].portals.insert("10.0.1.1:3260".parse().unwrap());
    host.session(1).addresses.insert("10.0.1.13".parse().unwrap());
    host.connect(connection("10.0.1.1:3260", "10.0.1.13:1"), "eth1");
    host.run(5);
    assert_eq!(host.delayed(), [12, 13]);
    let interfaces: Vec<_> = host.kernel.interfaces.keys().map(String::as_str).collect();
    assert_eq!(interfaces, ["eth0", "eth1"]);
}

#[test]
fn sessions_that_come_and_go_are_followed_within_2_s() {
    let mut host = Host::busy(|_| {});
    host.run(5);
    let target = host.survey.targets.pop().unwrap();
    host.survey.connections.remove(&connection(PORTAL, "10.0.0.12:40002"));
    host.run(2);
    assert_eq!(host.kernel.members, BTreeMap::new());
    host.survey.targets.push(target);
    host.connect(connection(PORTAL, "10.0.0.12:50000"), "eth0");
    host.run(4);
    assert_eq!(host.delayed(), [12], "a new session is measured for a second first");
}

#[test]
fn a_volume_that_comes_back_with_another_number_belongs_to_the_same_resource() {
    let mut host = Host::busy(|_| {});
    host.run(5);
    host.fetch_notices();
    let id = host.resource("vga").id;
    host.survey.devices.remove(&number(2));
    host.survey.devices.insert(number(9), volume('a', 2));
    host.survey.targets[1].luns = [(0, number(9))].into();
    host.counters.remove(&number(2));
    // Its counters begin anew, and so do those of another device that gets the old number.
    host.counters.insert(number(9), BlockCounters::default());
    host.load(9, 0, 0, 8 * MIB);
    host.run(5);
    assert_eq!((host.resource("vga").id, host.delayed()), (id, vec![12]));
    assert!(host.fetch_notices().iter().all(|line| !line.contains("found")));
}

#[test]
fn a_number_that_belongs_to_another_device_is_measured_anew() {
    let mut host = Host::busy(|settings| settings.write_limit = Bandwidth::new(100 * MIB).unwrap());
    host.run(3);
    host.survey.devices.insert(number(2), volume('b', 2));
    host.counters.get_mut(&number(2)).unwrap().sectors_written += 1 << 40;
    host.run(3);
    assert_eq!(host.standing("vgb", "writer"), Standing::Below, "what the other device wrote does not count");
}

#[test]
fn a_member_stays_until_it_writes_less_than_half_of_the_limit() {
    let mut host = Host::busy(|_| {});
    let is_member = |host: &mut Host, written| {
        host.load(2, 0, 0, written);
        host.run(10);
        host.standing("vga", "writer").is_member()
    };
    assert!(!is_member(&mut host, MIB * 9 / 10));
    assert!(is_member(&mut host, MIB * 11 / 10));
    assert!(is_member(&mut host, MIB * 6 / 10));
    assert!(!is_member(&mut host, MIB * 4 / 10));
}

#[test]
fn drift_is_repaired() {
    let mut host = Host::busy(|_| {});
    host.run(5);
    let before = host.kernel.clone();
    host.kernel = Present::default();
    host.run(1);
    let plain = |kernel: &Present| (kernel.interfaces.clone(), kernel.classifies, kernel.members.len());
    assert_eq!(plain(&host.kernel), plain(&before));
}

#[test]
fn targets_out_of_reach_are_said_and_never_delayed() {
    let mut host = Host::busy(|_| {});
    host.survey.targets[1].out_of_reach = Some("iSER: its packets pass no queue of this host".into());
    host.run(5);
    assert_eq!(host.delayed(), [0; 0]);
    let [out_of_reach] = &host.throttle.report().out_of_reach[..] else { panic!("one target") };
    assert_eq!(out_of_reach.target, "target-writer");
    let line =
        "target-writer: its initiators cannot be delayed: iSER: its packets pass no queue of this host";
    assert_eq!(host.fetch_notices().iter().filter(|notice| *notice == line).count(), 1);
    host.survey.targets[1].out_of_reach = None;
    host.run(2);
    assert_eq!(host.delayed(), [12]);
}

#[test]
fn settings_of_a_resource_that_is_not_there_are_said_once() {
    let mut host = Host::busy(|settings| {
        let own = ResourceSettings { threshold: Some(Span::from_millis(5)), write_limit: None };
        settings.resources = [("vga".into(), own), ("vgx".into(), own)].into();
    });
    host.run(5);
    let line = "there is no resource \"vgx\" behind a LUN of this host: its settings mean nothing";
    assert_eq!(
        host.fetch_notices().iter().filter(|notice| notice.contains("vgx")).collect::<Vec<_>>(),
        [line]
    );
    assert_eq!(host.resource("vga").threshold, Span::from_millis(5));
    let mut settings = Settings::new(Span::from_millis(15));
    settings.resources = [("vgy".into(), ResourceSettings::default())].into();
    settings.exempt = ["iqn.nobody".parse().unwrap()].into();
    host.throttle.set_settings(settings).unwrap();
    host.run(2);
    let unknown = host.fetch_notices();
    assert!(unknown[0].contains("\"vgy\"") && unknown[1].contains("iqn.nobody"), "{unknown:?}");
    assert_eq!(unknown.len(), 2);
    host.survey = Survey::default();
    host.run(2);
    assert!(host.throttle.report().resources.is_empty());
}

#[test]
fn what_is_beyond_the_bounds_is_left_out_and_said() {
    let mut host = Host::busy(|_| {});
    let session = host.session(1).clone();
    for extra in 0..u32::try_from(MOST_SESSIONS).unwrap() {
        let initiator = format!("extra-{extra}");
        host.survey.targets[1].sessions.push(Session { initiator, ..session.clone() });
    }
    let connections = u16::try_from(MOST_CONNECTIONS).unwrap() + 3;
    for port in 0..connections - 2 {
        host.connect(connection(PORTAL, &format!("10.0.2.1:{}", 20_000 + port)), "eth0");
    }
    host.throttle.handle_survey(host.now(), &host.survey);
    let left_out = host.throttle.report().left_out;
    assert_eq!((left_out.sessions, left_out.connections, left_out.devices), (2, 3, 0));
    let notices: Vec<_> = std::iter::from_fn(|| host.throttle.poll_notice()).collect();
    assert!(notices.contains(&Notice::LeftOut(left_out)), "{notices:?}");
}

#[test]
fn a_device_that_hangs_is_seen_though_it_finishes_no_read() {
    let mut host = Host::busy(|_| {});
    host.load(1, 10, 2, 0);
    host.run(5);
    assert_eq!(host.delayed(), [0; 0]);
    host.load(1, 0, 0, 0);
    host.counters.get_mut(&number(1)).unwrap().reads_in_flight = 4;
    host.run(1);
    assert_eq!(host.delayed(), [12]);
}

#[test]
fn a_recorded_step_shows_how_the_reads_answer_a_delay_and_no_law_interferes() {
    let mut host = Host::busy(|_| {});
    host.tick();
    let step = Span::from_millis(4);
    let mut tuning = Tuning::new("vga".to_owned(), step, TICK);
    let mut waited = 0;
    let recorded = loop {
        // Of 40 ms that reads wait, a delay takes away twice its length, at once.
        let delay = host.resource("vga").delay.as_micros() / 1_000;
        host.load(1, 10, 40 - 2 * u32::try_from(delay).unwrap(), 0);
        host.tick();
        match tuning.handle_interval(host.now(), &mut host.throttle).unwrap() {
            TuningProgress::Waiting => waited += 1,
            TuningProgress::Recording { done, of } => {
                assert!(done < of && host.resource("vga").delay <= step)
            }
            TuningProgress::Done(recorded) => break recorded,
        }
    };
    assert!(waited > 0, "the writer is no member before the second survey");
    let plant = weir_control::Plant::fit(&recorded).unwrap();
    assert!((plant.gain - 2.0).abs() < 0.05 && plant.explained > 0.99, "{plant:?}");
    assert!(plant.lag < TICK && plant.dead_time <= TICK + TICK, "{plant:?}");
}

#[test]
fn a_step_is_not_recorded_where_nobody_can_be_delayed() {
    let tune = |host: &mut Host, resource: &str| {
        let mut tuning = Tuning::new(resource.to_owned(), TICK, TICK);
        (0..=200).find_map(|_| {
            host.tick();
            tuning.handle_interval(host.now(), &mut host.throttle).err()
        })
    };
    let mut host = Host::busy(|_| {});
    assert_eq!(tune(&mut host, "vgb"), Some(CannotTune::NoResource("vgb".into(), "vga".into())));
    host.load(2, 0, 0, 0);
    host.run(10);
    assert_eq!(tune(&mut host, "vga"), Some(CannotTune::NobodyWrites("vga".into())));
    assert!(host.delayed().is_empty());
}

#[test]
fn who_is_behind_an_interface_without_our_root_queue_is_out_of_reach_and_nothing_claims_a_delay() {
    let mut host = Host::busy(|_| {});
    host.run(5);
    let report = |host: &Host| host.throttle.report().resources.remove(0);
    let delayed = report(&host);
    assert!(delayed.ceiling_reached && delayed.delay == Settings::new(Span::ZERO).law.ceiling, "{delayed:?}");

    host.throttle.set_lacking(["eth0".to_owned()].into());
    host.run(3);
    let found = report(&host);
    assert_eq!((found.delay, found.ceiling_reached), (Span::ZERO, false));
    assert_eq!(found.members().map(|member| member.connections).collect::<Vec<_>>(), [0]);
    assert_eq!(host.kernel.members.len(), 0, "a class of somebody's may have the number of the leaf");
    assert!(host.throttle.wanted().interfaces.contains("eth0"), "it is still to have the queue");
    assert!(host.notices.iter().any(|notice| notice.contains("on its interface")), "{:?}", host.notices);

    host.throttle.set_lacking(BTreeSet::new());
    host.run(3);
    let again = report(&host);
    assert_eq!((again.delay, host.kernel.members.len()), (delayed.delay, 1));
}

#[test]
fn an_initiator_without_a_name_is_called_so() {
    let mut host = Host::busy(|_| {});
    host.session(1).initiator = String::new();
    host.run(3);
    let report = host.throttle.report();
    let names: Vec<_> = report.resources[0].members().map(|member| &*member.name).collect();
    assert_eq!(names, ["an initiator without a usable name"]);
    let said = "vga: an initiator without a usable name writes";
    assert!(host.notices.iter().any(|notice| notice.starts_with(said)), "{:?}", host.notices);
}
