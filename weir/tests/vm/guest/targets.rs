//! What the packet-delay agent's sensors see on a real kernel: LIO with and without access entries, tgtd,
//! LVM, two hosts as initiators, over IPv4 and IPv6.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;

use weir_agent::sensors::{BlockSensor, Roots, Surveyor};
use weir_clock::Clock;
use weir_throttle::{Connection, DeviceNumber, Framework, Session, Target};

use crate::harness::{skipped, wait_until};

use super::super::in_guest;
use super::super::initiator::Initiator;
use super::super::kernel_client::{attempt, shell};

/// Two hosts, `i1` and `i2`, each at a link of its own. The target's host has the addresses ending in 1.
const HOSTS: &str = "for n in 1 2; do
  ip netns add i$n; ip link add veth$n type veth peer name eth0 netns i$n
  ip addr add 10.9.$n.1/24 dev veth$n; ip addr add fd00:9:$n::1/64 dev veth$n nodad; ip link set veth$n up
  ip -n i$n addr add 10.9.$n.2/24 dev eth0; ip -n i$n addr add fd00:9:$n::2/64 dev eth0 nodad
  ip -n i$n link set eth0 up
done";

/// Takes the hosts away, links first. The kernel takes a namespace apart in the background, so a link that
/// goes with its namespace may still be there when the next test makes one of the same name.
const NO_HOSTS: &str = "for n in 1 2; do ip link del veth$n; ip netns del i$n; done";

/// A volume group on a loop device, with volumes `a` and `b`. Without udev, LVM makes the device nodes
/// itself.
const VOLUMES: &str = "truncate -s 128M /run/pv; loop=$(losetup -f --show /run/pv)
lvm() { command lvm \"$@\" --config 'activation{udev_sync=0 udev_rules=0} devices{use_devicesfile=0}' >&2; }
lvm pvcreate $loop; lvm vgcreate group $loop
for v in a b; do lvm lvcreate -y -Wn -Zn -n $v -L 32M group; done; echo $loop";

/// LIO. `entries` lets in `iqn.i:1` and, by a number of its own, shows it volume b; `demo` lets in everybody.
const LIO: &str = "modprobe iscsi_target_mod; modprobe target_core_iblock
cd /sys/kernel/config/target; mkdir -p core/iblock_0/a core/iblock_0/b iscsi
for v in a b; do
  echo udev_path=/dev/group/$v >core/iblock_0/$v/control; echo 1 >core/iblock_0/$v/enable
done
for t in entries demo; do
  group=iscsi/iqn.2026-01.example:$t/tpgt_1
  mkdir -p $group/lun/lun_0; echo 0 >$group/attrib/authentication
done
cd iscsi/iqn.2026-01.example:entries/tpgt_1
mkdir lun/lun_5 np/10.9.1.1:3260 acls/iqn.i:1 acls/iqn.i:9
ln -s /sys/kernel/config/target/core/iblock_0/a lun/lun_0/x
ln -s /sys/kernel/config/target/core/iblock_0/b lun/lun_5/y
mkdir acls/iqn.i:1/lun_0 acls/iqn.i:1/lun_1
ln -s $PWD/lun/lun_5 acls/iqn.i:1/lun_0/z; ln -s $PWD/lun/lun_0 acls/iqn.i:1/lun_1/z
echo 1 >enable
cd ../../iqn.2026-01.example:demo/tpgt_1
mkdir \"np/[::0]:3261\"; echo 1 >attrib/generate_node_acls; echo 0 >attrib/demo_mode_write_protect
ln -s /sys/kernel/config/target/core/iblock_0/b lun/lun_0/x; echo 1 >enable";

const ENTRIES: &str = "iqn.2026-01.example:entries";
const DEMO: &str = "iqn.2026-01.example:demo";

fn number(path: &str) -> DeviceNumber {
    let device = std::fs::metadata(path).expect("the device is there").rdev();
    DeviceNumber { major: rustix::fs::major(device), minor: rustix::fs::minor(device) }
}

fn at(portal: &str) -> SocketAddr {
    portal.parse().expect("a test's own address")
}

fn session(initiator: &str, addresses: &[&str], written: &[(u64, u64)]) -> Session {
    let addresses = addresses.iter().map(|text| text.parse::<IpAddr>().expect("a test's own address"));
    Session {
        initiator: initiator.to_owned(),
        addresses: addresses.collect(),
        written: written.iter().copied().collect(),
    }
}

fn connection(initiator: &Initiator) -> Connection {
    let (local, peer) = initiator.ends();
    Connection { local, peer }
}

/// A surveyor that has looked once.
fn surveyor() -> Surveyor {
    let mut surveyor = Surveyor::new(Roots::default()).expect("the kernel has netlink");
    surveyor.look(Clock::new().now());
    assert_eq!(surveyor.remarks(), [], "nothing is odd");
    surveyor
}

/// Looks until the sessions are those that are expected.
fn until_sessions(surveyor: &mut Surveyor, expected: &[usize]) {
    wait_until("the sessions are as expected", || {
        surveyor.look(Clock::new().now());
        let sessions: Vec<_> = surveyor.survey().targets.iter().map(|target| target.sessions.len()).collect();
        sessions == expected
    });
    assert_eq!(surveyor.remarks(), [], "nothing is odd");
}

#[test]
fn a_survey_of_a_real_lio_equals_what_was_set_up_and_follows_what_changes() {
    in_guest("a_survey_of_a_real_lio_equals_what_was_set_up_and_follows_what_changes", || {
        shell(HOSTS);
        let disk = shell(VOLUMES);
        shell(LIO);
        let (a, b, disk) = (number("/dev/group/a"), number("/dev/group/b"), number(disk.trim()));
        let mut one = Initiator::log_in("i1", at("10.9.1.1:3260"), "iqn.i:1", ENTRIES);
        let two = Initiator::log_in("i2", at("[fd00:9:2::1]:3261"), "iqn.i:2", DEMO);
        let three = Initiator::log_in("i2", at("10.9.2.1:3261"), "iqn.i:3", DEMO);
        one.write(0, 400);

        let mut surveyor = surveyor();
        let target = |name: &str, portal, luns: &[_], sessions| Target {
            framework: Framework::Lio,
            name: name.to_owned(),
            portals: [at(portal)].into(),
            luns: luns.iter().copied().collect(),
            sessions,
            out_of_reach: None,
        };
        let demo = vec![session("iqn.i:3", &[], &[]), session("iqn.i:2", &[], &[])];
        let mut seen = surveyor.survey().clone();
        seen.targets
            .iter_mut()
            .for_each(|target| target.sessions.sort_by(|x, y| y.initiator.cmp(&x.initiator)));
        let expected = [
            target(DEMO, "[::]:3261", &[(0, b)], demo),
            target(
                ENTRIES,
                "10.9.1.1:3260",
                &[(0, a), (5, b)],
                vec![session("iqn.i:1", &["10.9.1.2"], &[(5, 3 << 20), (0, 0)])],
            ),
        ];
        assert_eq!(seen.targets, expected);
        let connections = [&one, &two, &three].map(connection);
        assert_eq!(seen.connections, connections.into());
        let leave = [(connections[0], "veth1"), (connections[1], "veth2"), (connections[2], "veth2")];
        assert_eq!(surveyor.survey().interfaces, leave.map(|(at, name)| (at, name.to_owned())).into());

        assert_eq!(seen.devices.keys().copied().collect::<BTreeSet<_>>(), [a, b, disk].into());
        let group = |number: &DeviceNumber| seen.devices[number].mapper.clone().expect("it is a volume");
        assert_eq!((group(&a).name, group(&b).name), ("group-a".to_owned(), "group-b".to_owned()));
        assert_eq!(group(&a).uuid[..36], group(&b).uuid[..36], "LVM- and the group's UUID");
        assert!(group(&a).uuid.starts_with("LVM-"));
        assert_eq!(seen.devices[&a].below, [disk].into());

        // Counters: of the session, and of the devices.
        let mut block = BlockSensor::new("/sys");
        let both = [a, b].into();
        let before = block.read(&both);
        assert_eq!((before.remarks, before.vanished), (vec![], BTreeSet::new()));
        one.write(0, 256);
        wait_until("the kernel has counted the writes", || {
            surveyor.look(Clock::new().now());
            surveyor.survey().targets[1].sessions[0].written[&5] == 5 << 20
        });
        let after = block.read(&both).counters;
        assert_eq!(after[&b].sectors_written - before.counters[&b].sectors_written, 256 * 16);
        assert_eq!(after[&a], before.counters[&a]);

        // A second path of an initiator, of which the kernel only counts.
        let path = Initiator::log_in("i1", at("10.9.1.1:3260"), "iqn.i:1", ENTRIES);
        until_sessions(&mut surveyor, &[2, 2]);
        assert!(surveyor.survey().connections.contains(&connection(&path)));
        let names: Vec<_> = surveyor.survey().targets[1].sessions.iter().map(|s| &*s.initiator).collect();
        assert_eq!(names, ["iqn.i:1"; 2]);
        drop((path, two));
        until_sessions(&mut surveyor, &[1, 1]);
        assert_eq!(surveyor.survey().connections, [&one, &three].map(connection).into());

        follows_a_link(&mut surveyor, connection(&three));
        take_down();
        surveyor.look(Clock::new().now());
        assert_eq!((&*surveyor.survey().targets, surveyor.remarks()), (&[][..], &[][..]));
        let gone = block.read(&both);
        assert_eq!((gone.vanished, gone.remarks), (both, vec![]));
    });
}

/// A link goes down, and comes back.
fn follows_a_link(surveyor: &mut Surveyor, through: Connection) {
    shell("ip link set veth2 down");
    surveyor.look(Clock::new().now());
    assert!(!surveyor.survey().interfaces.contains_key(&through));
    shell("ip link set veth2 up; ip addr add fd00:9:2::1/64 dev veth2 nodad || true");
    surveyor.look(Clock::new().now());
    assert_eq!(surveyor.survey().interfaces[&through], "veth2");
}

/// Takes LIO, the volumes and the hosts away.
fn take_down() {
    shell(
        "cd /sys/kernel/config/target; for t in entries demo; do
           group=iscsi/iqn.2026-01.example:$t/tpgt_1; echo 0 >$group/enable
           find $group/acls $group/lun -mindepth 2 -type l -exec rm {} +
           for e in $group/acls/*/lun_* $group/acls/* $group/np/* $group/lun/lun_*; do
             [ ! -d \"$e\" ] || rmdir \"$e\"
           done
           rmdir $group iscsi/iqn.2026-01.example:$t
         done
         rmdir core/iblock_0/a core/iblock_0/b
         lvm vgremove -f group --config 'activation{udev_sync=0 udev_rules=0} devices{use_devicesfile=0}' >&2
         losetup -D; rm /run/pv",
    );
    shell(NO_HOSTS);
}

#[test]
fn a_survey_of_a_real_tgtd_equals_what_was_set_up() {
    const NAME: &str = "a_survey_of_a_real_tgtd_equals_what_was_set_up";
    const TARGET: &str = "iqn.2026-01.example:tgt";
    if !std::path::Path::new("/usr/sbin/tgtd").exists() {
        return skipped(&format!("vm: {NAME}"), "there is no tgtd (Debian's package tgt)");
    }
    in_guest(NAME, || {
        shell(HOSTS);
        let disk = shell("truncate -s 64M /run/tgt; losetup -f --show /run/tgt");
        shell("tgtd --iscsi portal=10.9.1.1:3262");
        wait_until("tgtd answers", || attempt("tgtadm --lld iscsi --op show --mode sys").status.success());
        shell(&format!(
            "t='tgtadm --lld iscsi --op'; $t new --mode target --tid 1 -T {TARGET}
             $t new --mode portal --param 'portal=[fd00:9:2::1]:3262'
             $t new --mode logicalunit --tid 1 --lun 1 -b {}; $t bind --mode target --tid 1 -I ALL",
            disk.trim()
        ));
        let one = Initiator::log_in("i1", at("10.9.1.1:3262"), "iqn.i:1", TARGET);
        let two = Initiator::log_in("i2", at("[fd00:9:2::1]:3262"), "iqn.i:2", TARGET);
        let mut surveyor = surveyor();
        until_sessions(&mut surveyor, &[2]);
        let mut target = surveyor.survey().targets[0].clone();
        target.sessions.sort_by(|x, y| x.initiator.cmp(&y.initiator));
        let expected = Target {
            framework: Framework::Tgt,
            name: TARGET.to_owned(),
            portals: ["10.9.1.1:3262", "[fd00:9:2::1]:3262"].map(at).into(),
            luns: [(1, number(disk.trim()))].into(),
            sessions: vec![session("iqn.i:1", &["10.9.1.2"], &[]), session("iqn.i:2", &["fd00:9:2::2"], &[])],
            out_of_reach: None,
        };
        assert_eq!(target, expected);
        assert_eq!(surveyor.survey().connections, [&one, &two].map(connection).into());
        drop(two);
        until_sessions(&mut surveyor, &[1]);
        shell("kill -9 $(pidof tgtd)");
        wait_until("the dead daemon's target is gone", || {
            surveyor.look(Clock::new().now());
            surveyor.survey().targets.is_empty()
        });
        assert_eq!(surveyor.remarks(), []);
        shell("losetup -D; rm /run/tgt");
        shell(NO_HOSTS);
    });
}
