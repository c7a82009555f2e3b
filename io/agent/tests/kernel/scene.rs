//! A target and an initiator, each in a network namespace of its own, with a link between them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command as Program;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use weir_agent::actuator::Actuator;
use weir_clock::Clock;
use weir_model::Span;
use weir_throttle::{Command, Connection, LeafId};

/// The addresses of the target. The initiator's end in 2.
pub(crate) const TARGET_V4: &str = "10.9.0.1";
pub(crate) const TARGET_V6: &str = "fd09::1";
/// The target's interface.
pub(crate) const LINK: &str = "link0";
/// A program that is an agent or a guard.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_hold-delay");
/// The leaf of most tests.
pub(crate) const LEAF: LeafId = LeafId(1);
/// Longer than anything takes that does happen.
const PATIENCE: Span = Span::from_secs(60);
/// A message as short as iSCSI's shortest (RFC 7143, section 11.2.1).
const MESSAGE: [u8; 48] = [7; 48];
/// How many exchanges a measurement of the round trip has.
const EXCHANGES: usize = 7;

/// Two namespaces and the link between them. They go with it.
pub(crate) struct Scene {
    target: String,
    initiator: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        static SCENES: AtomicU32 = AtomicU32::new(0);
        let number = SCENES.fetch_add(1, Ordering::Relaxed);
        let scene = Self { target: format!("target{number}"), initiator: format!("initiator{number}") };
        let Self { target, initiator } = &scene;
        shell(&format!("ip netns add {target}; ip netns add {initiator}"));
        scene.connect();
        scene
    }

    /// Makes the link, with its addresses.
    pub(crate) fn connect(&self) {
        let Self { target, initiator } = self;
        shell(&format!(
            "ip -n {target} -batch - <<END
             link add {LINK} type veth peer name link1 netns {initiator}
             addr add {TARGET_V4}/24 dev {LINK}
             addr add {TARGET_V6}/64 dev {LINK} nodad
             link set {LINK} up\nEND\n\
             ip -n {initiator} -batch - <<END
             addr add 10.9.0.2/24 dev link1
             addr add fd09::2/64 dev link1 nodad
             link set link1 up\nEND\n"
        ));
    }

    /// Has one processor handle all that the initiator receives. The link has a queue for each processor, and
    /// two of them would reorder what the target sends in order; the wire of a real network card does not.
    pub(crate) fn receive_in_order(&self) {
        let Self { initiator, .. } = self;
        let queue = "/sys/class/net/link1/queues/rx-0/rps_cpus";
        shell(&format!("ip netns exec {initiator} sh -c 'echo 1 >{queue}'"));
    }

    /// What a shell says in the target's namespace.
    pub(crate) fn shell(&self, commands: &str) -> String {
        self.in_target(|| shell(commands))
    }

    /// Does something in the target's namespace.
    pub(crate) fn in_target<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        inside(&self.target, act)
    }

    /// Does something in the initiator's namespace.
    pub(crate) fn in_initiator<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        inside(&self.initiator, act)
    }

    /// All queues and nftables of the target, as `tc` and `nft` tell them.
    pub(crate) fn state(&self) -> String {
        self.shell("tc -j qdisc show; tc -j class show dev link0; nft -j list ruleset")
    }

    /// The same without HTB's counter of packets, while its queue is there.
    pub(crate) fn uncounted_state(&self) -> String {
        let state = self.state();
        let mut parts = state.split("direct_packets_stat\":");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.trim_start_matches(|c: char| c.is_ascii_digit()))
    }

    /// An agent in the target's namespace.
    pub(crate) fn actuator(&self) -> Actuator {
        self.in_target(|| Actuator::open().expect("the kernel has netlink"))
    }

    /// An agent that has installed a leaf on the link.
    pub(crate) fn with_leaf(&self, delay: Span) -> Actuator {
        let mut actuator = self.actuator();
        let absent = actuator.install(&link(), Span::from_millis(200)).expect("nobody has set a root");
        assert_eq!(absent, BTreeSet::new());
        apply(&mut actuator, &[add_leaf(LEAF, delay), Command::Classify(true)]);
        actuator
    }

    /// A connection of the initiator to a port of the target that sends back what it receives.
    pub(crate) fn session(&self, address: &str) -> Session {
        let (accepted, stream) = self.pair(address);
        let connection = connection(&accepted);
        thread::spawn(move || {
            let (mut accepted, mut message) = (accepted, MESSAGE);
            while accepted.read_exact(&mut message).and_then(|()| accepted.write_all(&message)).is_ok() {}
        });
        Session { stream, connection }
    }

    /// Both ends of a connection, the target's first.
    pub(crate) fn pair(&self, address: &str) -> (TcpStream, TcpStream) {
        let address: SocketAddr = SocketAddr::new(address.parse().expect("an address of the target"), 0);
        let listener = self.in_target(|| TcpListener::bind(address)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let stream = self.in_initiator(|| TcpStream::connect(address)).expect("it listens");
        let (accepted, _) = listener.accept().expect("one is connected");
        accepted.set_nodelay(true).expect("a socket of TCP");
        stream.set_nodelay(true).expect("a socket of TCP");
        (accepted, stream)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let Self { target, initiator } = self;
        shell(&format!("ip netns del {target}; ip netns del {initiator}"));
    }
}

/// A connection of the initiator, whose target echoes.
pub(crate) struct Session {
    stream: TcpStream,
    /// As the target sees it.
    pub(crate) connection: Connection,
}

impl Session {
    /// The shortest of some round trips.
    pub(crate) fn round_trip(&mut self) -> Span {
        self.exchange(&[&MESSAGE])
    }

    /// The same, but the last byte waits until the target has acknowledged the others (RFC 896).
    pub(crate) fn acknowledged_round_trip(&mut self) -> Span {
        self.stream.set_nodelay(false).expect("a socket of TCP");
        let (last, others) = MESSAGE.split_last().expect("it is not empty");
        self.exchange(&[others, &[*last]])
    }

    fn exchange(&mut self, parts: &[&[u8]]) -> Span {
        let clock = Clock::new();
        let exchange = |_| {
            let before = clock.now();
            for part in parts {
                self.stream.write_all(part).expect("the session is alive");
            }
            self.stream.read_exact(&mut MESSAGE.clone()).expect("the session is alive");
            clock.now().since(before)
        };
        (0..EXCHANGES).map(exchange).min().expect("there are some")
    }
}

/// A connection as the target's end sees it.
pub(crate) fn connection(accepted: &TcpStream) -> Connection {
    let local = accepted.local_addr().expect("it is connected");
    Connection { local, peer: accepted.peer_addr().expect("it is connected") }
}

/// The interface of the target.
pub(crate) fn link() -> BTreeSet<String> {
    BTreeSet::from([LINK.to_owned()])
}

pub(crate) fn add_leaf(leaf: LeafId, delay: Span) -> Command {
    Command::AddLeaf { interface: LINK.to_owned(), leaf, delay }
}

pub(crate) fn set_delay(delay: Span) -> Command {
    Command::SetDelay { interface: LINK.to_owned(), leaf: LEAF, delay }
}

pub(crate) fn enter(leaf: LeafId, connection: Connection) -> Command {
    Command::Enter { leaf, connections: BTreeSet::from([connection]) }
}

/// Does commands of which all find their interface.
pub(crate) fn apply(actuator: &mut Actuator, commands: &[Command]) {
    assert_eq!(actuator.apply(commands), Ok(BTreeSet::new()));
}

/// What a shell says that must succeed.
pub(crate) fn shell(commands: &str) -> String {
    let ran = Program::new("sh").args(["-ec", commands]).output().expect("there is a shell");
    let log = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{commands}: {}: {log}", ran.status);
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Waits until something is true.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let clock = Clock::new();
    let deadline = clock.now() + PATIENCE;
    while !is_true() {
        assert!(clock.now() < deadline, "waited in vain until {what}");
        thread::yield_now();
    }
}

/// Does something in a thread of a namespace. What it starts and opens stays in that namespace.
fn inside<T: Send>(namespace: &str, act: impl FnOnce() -> T + Send) -> T {
    let namespace = File::open(format!("/run/netns/{namespace}")).expect("the scene has made it");
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("the guest's tests are root");
            act()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
