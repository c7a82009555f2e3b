//! What the agent costs: 1,000 sessions on 50 resources, as CPU time of a second, and its memory.
//!
//! `cargo bench -p weir-agent` makes a tree of files in memory that looks like LIO's configfs and sysfs, and
//! 1,000 connections on the loopback interface, in a network namespace of its own. The CPU time includes the
//! kernel's part. Times on the wall would say how busy the machine is.
//!
//! The agent runs in real time, and is measured as a whole: first while no resource is written, and then
//! while all of them are read and written. In the second case another process changes the counters of all 51
//! devices ten times a second, and those of all 1,000 sessions once a second. The second case is the one to
//! judge. The agent's hand on the kernel is measured by itself: all 1,000 connections are members that are
//! looked at and renewed once a second. Few hosts of a benchmark have netem, so no leaf is behind the
//! members; a leaf costs the agent one message when its delay changes.
//!
//! The last line is for programs, with all resources written.

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::thread;
use std::time::Duration;

use rustix::process::getppid;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use rustix::time::{ClockId, clock_gettime};
use weir_agent::actuator::{Actuator, ActuatorError};
use weir_agent::agent::Agent;
use weir_agent::sensors::{BlockSensor, Roots, Surveyor};
use weir_clock::Clock;
use weir_model::{Instant, Span};
use weir_throttle::{Command, Connection, DeviceNumber, LeafId, Settings};

const TARGETS: u32 = 50;
const SESSIONS_OF_EACH: u32 = 20;
/// How long the agent as a whole is measured.
const SECONDS: u32 = 20;
const TURNS_A_SECOND: u32 = 10;
/// The word that makes of this program the one that changes the counters.
const WRITES: &str = "writes";

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, word, root] = &*arguments
        && word == WRITES
    {
        return write_everywhere(Path::new(root));
    }
    let network = Network::enter();
    shell("ip link set lo up");
    let memory = Path::new("/dev/shm");
    let folder = tempfile::tempdir_in(if memory.is_dir() { memory } else { Path::new("/tmp") });
    let folder = folder.expect("there is a folder for temporary files");
    let root = folder.path();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let portal = listener.local_addr().expect("it listens");
    let ends: Vec<_> = (0..TARGETS * SESSIONS_OF_EACH)
        .map(|_| {
            let client = TcpStream::connect(portal).expect("the listener is there");
            (client, listener.accept().expect("a client has come"))
        })
        .collect();
    (0..TARGETS).for_each(|target| make_target(root, target, &portal.to_string()));
    link(root, "proc/thread-self/net/snmp", "/proc/thread-self/net/snmp".into());
    let at = |name: &str| root.join(name);
    let places = Roots { sys: at("sys"), proc: at("proc"), run: at("run"), tgtadm: at("tgtadm") };

    let connections = sensors(places.clone(), ends.len());
    let quiet = whole_agent(places.clone());
    let this = std::env::current_exe().expect("a program knows where it is");
    let mut writes = Program::new(this).arg(WRITES).arg(root).spawn().expect("it can be started once more");
    let agent = whole_agent(places);
    writes.kill().expect("it runs until now");
    writes.wait().expect("it was killed");
    let hands = hands(&connections);
    roots();
    let status = fs::read_to_string("/proc/self/status").expect("a process can read its status");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default().trim();
    let resident = resident.trim_end_matches(" kB");
    println!("a second of the agent, none of {TARGETS} resources written: {quiet:.2} ms of CPU");
    println!("a second of the agent, all {TARGETS} resources written:     {agent:.2} ms of CPU");
    match hands {
        Ok(hands) => {
            println!("a second of 1,000 members in the kernel:            {hands:.2} ms of CPU");
            println!("cpu_ms_per_s={:.3} resident_kib={resident}", agent + hands);
        }
        Err(error) => println!("the kernel of this machine does not let packets be delayed: {error}"),
    }
    drop(network);
}

/// A network namespace of this program. It goes with it.
struct Network(String);

impl Network {
    /// To be called before there is another thread: each thread has a network of its own.
    fn enter() -> Self {
        let name = format!("weir-bench-{}", std::process::id());
        shell(&format!("ip netns add {name}"));
        let space = fs::File::open(format!("/run/netns/{name}")).expect("it was made");
        move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may");
        Self(name)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        shell(&format!("ip netns del {}", self.0));
    }
}

/// The parts of the sensors; the connections that they found.
fn sensors(roots: Roots, sessions: usize) -> BTreeSet<Connection> {
    let sys = roots.sys.clone();
    let mut surveyor = Surveyor::new(roots).expect("the kernel has netlink");
    let now = Instant::ORIGIN + Span::from_secs(1);
    let everything = cpu_of(20, || {
        surveyor.read_again();
        surveyor.look(now);
    });
    let look = cpu_of(200, || {
        // The clock stands still, so that nothing is late.
        surveyor.look(now);
    });
    assert!(surveyor.remarks().is_empty(), "{:?}", surveyor.remarks());
    let survey = surveyor.survey();
    let written: usize =
        survey.targets.iter().flat_map(|target| &target.sessions).map(|s| s.written.len()).sum();
    assert_eq!((survey.connections.len(), written), (sessions, sessions));

    let devices: BTreeSet<DeviceNumber> = survey.devices.keys().copied().collect();
    let mut block = BlockSensor::new(sys);
    let reading = cpu_of(2000, || assert_eq!(block.read(&devices).counters.len(), devices.len()));
    println!("a look while nobody comes or goes: {look:.0} us");
    println!("a look that reads everything:      {everything:.0} us");
    println!("a reading of {} block devices:     {reading:.0} us", devices.len());
    survey.connections.clone()
}

/// The milliseconds of CPU that a second of the whole agent takes, without its hand on the kernel.
fn whole_agent(roots: Roots) -> f64 {
    let clock = Clock::new();
    let settings = Settings::new(Span::from_millis(15));
    let period = settings.law.period;
    let mut agent = Agent::start(clock.now(), settings, roots, None).expect("the kernel has netlink");
    let mut next = clock.now();
    let mut turns = |count: u32| {
        for _ in 0..count {
            agent.turn(clock.now()).expect("nothing guards it");
            next = next + period;
            thread::sleep(Duration::from(next.saturating_since(clock.now())));
        }
    };
    turns(2 * TURNS_A_SECOND);
    let before = cpu_seconds();
    turns(SECONDS * TURNS_A_SECOND);
    (cpu_seconds() - before) * 1e3 / f64::from(SECONDS)
}

/// Makes all counters grow, until the program that started this one has ended. A counter is written in its
/// place and has the same length each time, so that the agent never reads a part of it.
fn write_everywhere(root: &Path) {
    let sys = root.join("sys");
    let open =
        |path: String| fs::OpenOptions::new().write(true).open(sys.join(path)).expect("the tree is there");
    let devices = (0..TARGETS).map(|number| format!("dm-{number}")).chain(["sda".to_owned()]);
    let devices: Vec<_> = devices.map(|name| open(format!("devices/block/{name}/stat"))).collect();
    let counters = (0..TARGETS).flat_map(|target| (0..SESSIONS_OF_EACH).map(move |of| (target, of)));
    let counters: Vec<_> = counters.map(|(target, initiator)| open(counter(target, initiator))).collect();
    let started_by = getppid();
    for turn in 1_u64.. {
        // 10 reads of 2 ms, and 20 MiB for each session in a second.
        let (reads, sectors) = (turn * 10, turn * 20 * 2048 * u64::from(SESSIONS_OF_EACH) / 10);
        let stat = format!("{reads:12} 0 0 {:12} 0 0 {sectors:12} 0 3 0 0\n", reads * 2);
        devices.iter().for_each(|file| write_in_place(file, &stat));
        if turn % u64::from(TURNS_A_SECOND) == 0 {
            let written = format!("{:12}\n", turn * 2);
            counters.iter().for_each(|file| write_in_place(file, &written));
        }
        thread::sleep(Duration::from_millis(100));
        if getppid() != started_by {
            return;
        }
    }
}

fn write_in_place(file: &fs::File, text: &str) {
    file.write_all_at(text.as_bytes(), 0).expect("the tree can be written");
}

/// The counter of what a session has written.
fn counter(target: u32, initiator: u32) -> String {
    format!(
        "kernel/config/target/iscsi/iqn.2026-01.example:target{target}/tpgt_1/acls/\
         iqn.2026-01.example:initiator{initiator}/lun_0/statistics/scsi_auth_intr/write_mbytes"
    )
}

/// The milliseconds of CPU for one look at all connections as members, and one renewal.
fn hands(connections: &BTreeSet<Connection>) -> Result<f64, ActuatorError> {
    shell("ip link add link0 type veth peer name link1");
    let mut actuator = Actuator::open()?;
    actuator.install(&["link0".to_owned()].into(), Span::from_millis(20))?;
    let enter = Command::Enter { leaf: LeafId(1), connections: connections.clone() };
    actuator.apply(&[Command::Classify(true), enter.clone()])?;
    // Right after members were added, a list may lack a sixth of them: the kernel makes its map larger in the
    // background. In 300 trials, no third list did. The agent adds them once more, which changes nothing.
    while actuator.look()?.members.len() < connections.len() {
        thread::yield_now();
    }
    let cost = cpu_of(50, || {
        let present = actuator.look().expect("it did before");
        assert_eq!(present.members.len(), connections.len());
        actuator.apply(std::slice::from_ref(&enter)).expect("it did before");
    });
    actuator.remove()?;
    Ok(cost / 1e3)
}

/// What the agent's root costs in the place of mq, which has a queue for each core: packets of all cores go
/// through one queue then. In turn, and the median of the rounds.
fn roots() {
    const ROUNDS: usize = 7;
    shell(
        "ip link add many0 numtxqueues 2 type veth peer name many1; ip addr add 10.9.9.1/24 dev many0
         ip link set many0 up; ip link set many1 up; ip neigh add 10.9.9.2 lladdr 02:00:00:00:00:01 dev many0",
    );
    for threads in [1, 2] {
        let mut costs = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (root, costs) in ["mq", "htb"].into_iter().zip(&mut costs) {
                shell(&format!("tc qdisc replace dev many0 root handle 7e17: {root}"));
                costs.push(packet_cost(threads));
                shell("tc qdisc del dev many0 root");
            }
        }
        let [mq, ours] = costs.map(|mut costs| {
            costs.sort_by(f64::total_cmp);
            costs[ROUNDS / 2]
        });
        println!(
            "a packet of {threads} threads: {mq:.0} ns of CPU through mq, {ours:.0} ns through the agent's root"
        );
    }
}

/// The nanoseconds of CPU for each packet, while some threads send as fast as they can.
fn packet_cost(threads: usize) -> f64 {
    const EACH: u32 = 200_000;
    let before = cpu_seconds();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let socket = UdpSocket::bind("10.9.9.1:0").expect("the address is there");
                socket.connect("10.9.9.2:9").expect("it leads through many0");
                for _ in 0..EACH {
                    let _ = socket.send(&[0; 64]); // a queue may be full
                }
            });
        }
    });
    let packets = f64::from(EACH) * threads as f64;
    (cpu_seconds() - before) * 1e9 / packets
}

fn shell(command: &str) {
    let status = Program::new("sh").args(["-c", command]).status().expect("there is a shell");
    assert!(status.success(), "{command}: {status}");
}

/// The microseconds of CPU that one of `times` calls takes.
fn cpu_of(times: u32, mut call: impl FnMut()) -> f64 {
    call();
    let before = cpu_seconds();
    (0..times).for_each(|_| call());
    (cpu_seconds() - before) * 1e6 / f64::from(times)
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let span = Span::from_secs(time.tv_sec.cast_unsigned()) + Span::from_nanos(time.tv_nsec.cast_unsigned());
    span.as_secs_f64()
}

/// A target with one LUN on a logical volume, which stands on a disk that all share.
fn make_target(root: &Path, number: u32, portal: &str) {
    let sys = root.join("sys");
    for (name, minor, below) in [(format!("dm-{number}"), number, Some("sda")), ("sda".to_owned(), 999, None)]
    {
        let folder = format!("devices/block/{name}");
        let stat = format!("{0:12} 0 0 {0:12} 0 0 {0:12} 0 3 0 0\n", 0);
        write(&sys, &format!("{folder}/dev"), &format!("253:{minor}\n"));
        write(&sys, &format!("{folder}/stat"), &stat);
        write(&sys, &format!("{folder}/inflight"), "       2        1\n");
        link(&sys, &format!("dev/block/253:{minor}"), format!("../../devices/block/{name}").into());
        if let Some(below) = below {
            write(&sys, &format!("{folder}/dm/name"), &format!("group-{number}\n"));
            write(&sys, &format!("{folder}/dm/uuid"), "LVM-0123456789\n");
            link(&sys, &format!("{folder}/slaves/{below}"), sys.join("devices/block").join(below));
        }
    }
    let target = sys.join("kernel/config/target");
    let info = format!("iBlock device: dm-{number}\n        Major: 253 Minor: {number}  CLAIMED: IBLOCK\n");
    write(&target, &format!("core/iblock_0/v{number}/info"), &info);
    let iqn = format!("iscsi/iqn.2026-01.example:target{number}");
    let sessions = format!("{iqn}/fabric_statistics/iscsi_instance/sessions");
    write(&target, &sessions, &format!("{SESSIONS_OF_EACH}\n"));
    let group = format!("{iqn}/tpgt_1");
    write(&target, &format!("{group}/enable"), "1\n");
    write(&target, &format!("{group}/dynamic_sessions"), "");
    write(&target, &format!("{group}/np/{portal}/iser"), "0\n");
    link(&target, &format!("{group}/lun/lun_0/v"), format!("../../target/core/iblock_0/v{number}").into());
    for initiator in 0..SESSIONS_OF_EACH {
        let entry = format!("{group}/acls/iqn.2026-01.example:initiator{initiator}");
        let info = "InitiatorName: iqn\nInitiatorAlias: \nLIO Session ID: 3   ISID: 0x80\n--[iSCSI Connections]--\n\
                    CID: 0  Connection State: TARG_CONN_STATE_LOGGED_IN\n   Address 127.0.0.1 TCP  StatSN: 0x1\n";
        write(&target, &format!("{entry}/info"), info);
        write(&sys, &counter(number, initiator), &format!("{:12}\n", 0));
        link(&target, &format!("{entry}/lun_0/default"), "../../../lun/lun_0".into());
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("it is below the root")).expect("the tree can be written");
    fs::write(path, text).expect("the tree can be written");
}

fn link(root: &Path, path: &str, to: PathBuf) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("it is below the root")).expect("the tree can be written");
    let _ = symlink(to, path); // the disk that all share is there already
}
