//! Agents as processes: killed, stopped, started twice, without the right to do anything.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command as Program, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use weir_agent::actuator::{ActuatorError, LASTS};
use weir_clock::Clock;
use weir_model::Span;
use weir_throttle::Present;

use super::in_guest;
use super::scene::{LINK, PROGRAM, Scene, Session, TARGET_V4, link, wait_until};

const DELAY: Span = Span::from_millis(80);
const UNDELAYED: Span = Span::from_millis(40);

/// An agent that holds a delay.
struct Holder {
    process: Child,
    input: Option<ChildStdin>,
}

impl Holder {
    fn start(scene: &Scene, session: &Session) -> Self {
        let mut process = scene.in_target(|| {
            program(session)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::inherit())
                .spawn()
                .expect("cargo has built it")
        });
        let mut said = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
        output.read_line(&mut said).expect("it says something");
        assert_eq!(said, "ready\n");
        let input = process.stdin.take();
        Self { process, input }
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id()).expect("a process has a small number");
        kill_process(Pid::from_raw(id).expect("it is running"), signal).expect("it is ours");
    }
}

fn program(session: &Session) -> Program {
    let mut program = Program::new(PROGRAM);
    let millis = (DELAY.as_micros() / 1_000).to_string();
    program.args([
        LINK,
        &millis,
        &session.connection.local.to_string(),
        &session.connection.peer.to_string(),
    ]);
    program
}

/// What must hold of an agent that ends in this way: its delays end in time, and all becomes as before. The
/// kernel's own count says how long the delays can last. How long the guard takes for the queues, which delay
/// nobody then, depends on the machine, and is only said.
fn is_cleaned_up_after(signal: Signal) {
    let scene = Scene::new();
    let (before, mut observer) = (scene.state(), scene.actuator());
    let mut session = scene.session(TARGET_V4);
    let mut holder = Holder::start(&scene, &session);
    assert!(session.round_trip() >= DELAY);
    let clock = Clock::new();
    let signalled = clock.now();
    holder.signal(signal);
    let left = observer.look().expect("the kernel answers").members.values().map(|(_, left)| *left).max();
    assert!(left.is_none_or(|left| left <= LASTS), "{signal:?}: {left:?}");
    wait_until("nothing is left", || observer.look() == Ok(Present::default()));
    eprintln!("{signal:?}: nothing left after {:?}", clock.now().since(signalled));
    wait_until("all is as before", || scene.state() == before); // the table may take a moment more
    assert!(session.round_trip() < UNDELAYED, "the session goes on");
    let status = holder.process.wait().expect("it is a child");
    assert!(!status.success(), "the guard has killed it if nobody else did");
}

#[test]
fn an_agent_that_is_killed_leaves_nothing() {
    in_guest("an_agent_that_is_killed_leaves_nothing", || is_cleaned_up_after(Signal::KILL));
}

#[test]
fn an_agent_that_is_stopped_is_killed_and_its_delays_end_within_three_seconds() {
    in_guest("an_agent_that_is_stopped_is_killed_and_its_delays_end_within_three_seconds", || {
        is_cleaned_up_after(Signal::STOP);
    });
}

#[test]
fn an_agent_that_ends_by_itself_leaves_nothing_and_its_guard_ends_with_it() {
    in_guest("an_agent_that_ends_by_itself_leaves_nothing_and_its_guard_ends_with_it", || {
        let scene = Scene::new();
        let before = scene.state();
        let session = scene.session(TARGET_V4);
        let mut holder = Holder::start(&scene, &session);
        drop(holder.input.take());
        let status = holder.process.wait().expect("it is a child");
        assert!(status.success(), "{status}");
        assert_eq!(scene.state(), before);
    });
}

#[test]
fn an_agent_whose_guard_is_stopped_ends_all_the_same_and_leaves_neither_queues_nor_guard() {
    let name = "an_agent_whose_guard_is_stopped_ends_all_the_same_and_leaves_neither_queues_nor_guard";
    in_guest(name, || {
        let scene = Scene::new();
        let before = scene.state();
        let session = scene.session(TARGET_V4);
        let mut holder = Holder::start(&scene, &session);
        let agent = holder.process.id();
        let guard = scene.shell(&format!("cat /proc/{agent}/task/{agent}/children"));
        let guard = guard.trim();
        scene.shell(&format!("kill -STOP {guard}"));
        drop(holder.input.take());
        let mut ended = None;
        wait_until("it has ended", || {
            ended = holder.process.try_wait().expect("it is a child");
            ended.is_some()
        });
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
        assert_eq!(scene.state(), before);
        assert!(!Path::new("/proc").join(guard).exists());
    });
}

/// The queues, the members and the rules, without what comes and goes by itself: the counters of packets and
/// the agent's signs of life, which it renews.
fn without_signs_of_life(scene: &Scene) -> String {
    let table = "inet weir_throttle";
    scene.shell(&format!(
        "tc -j qdisc show | tr -d '0-9'; tc -j class show dev {LINK} | tr -d '0-9'
         nft list map {table} members4; nft list map {table} members6
         nft list chain {table} members; nft list chain {table} output"
    ))
}

#[test]
fn a_second_agent_and_a_removal_are_refused_while_one_is_at_work() {
    in_guest("a_second_agent_and_a_removal_are_refused_while_one_is_at_work", || {
        let scene = Scene::new();
        let mut session = scene.session(TARGET_V4);
        let holder = Holder::start(&scene, &session);
        let mut second = scene.actuator();
        let expected = Err(ActuatorError::OtherAgent { port: holder.process.id() });
        let state = without_signs_of_life(&scene);
        assert_eq!(second.install(&link(), DELAY).map(|_| ()), expected);
        assert_eq!(second.remove(), expected);
        assert_eq!(without_signs_of_life(&scene), state);
        assert!(session.round_trip() >= DELAY);
        drop(holder.input);

        let mut process = holder.process;
        assert!(process.wait().expect("it is a child").success());
        second.install(&link(), DELAY).expect("the first one has gone");
    });
}

#[test]
fn what_an_agent_left_that_was_killed_with_its_guard_is_taken_over() {
    in_guest("what_an_agent_left_that_was_killed_with_its_guard_is_taken_over", || {
        let scene = Scene::new();
        let before = scene.state();
        scene.with_leaf(DELAY); // and its socket closes
        assert_ne!(scene.state(), before, "without a guard, the queues stay");
        assert!(!scene.state().contains("members4"), "and the table does not");
        let mut next = scene.actuator();
        next.install(&link(), DELAY).expect("no agent is at work");
        assert_eq!(next.look().expect("the kernel answers").interfaces[LINK].len(), 0, "no leaf is left");
        next.remove().expect("it is ours");
        assert_eq!(scene.state(), before);
    });
}

#[test]
fn an_agent_without_the_capability_says_so_and_changes_nothing() {
    in_guest("an_agent_without_the_capability_says_so_and_changes_nothing", || {
        let scene = Scene::new();
        let before = scene.state();
        let session = scene.session(TARGET_V4);
        let agent = program(&session);
        let mut process = scene.in_target(|| {
            Program::new("setpriv")
                .args(["--bounding-set=-net_admin", "--inh-caps=-net_admin"])
                .arg(agent.get_program())
                .args(agent.get_args())
                .stderr(Stdio::piped())
                .spawn()
                .expect("util-linux is there")
        });
        let mut said = String::new();
        process.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it says text");
        assert!(!process.wait().expect("it is a child").success());
        assert!(said.contains("CAP_NET_ADMIN"), "{said}");
        assert_eq!(scene.state(), before);
    });
}

#[test]
fn a_guard_whose_agent_has_ended_kills_nobody_and_cleans_up() {
    in_guest("a_guard_whose_agent_has_ended_kills_nobody_and_cleans_up", || {
        let scene = Scene::new();
        let before = scene.state();
        scene.with_leaf(DELAY); // and its socket closes
        let mut bystander = Program::new("sleep").arg("600").spawn().expect("every system has it");
        let guard = scene.in_target(|| {
            Program::new(PROGRAM)
                .args(["guard", &bystander.id().to_string()])
                .stdin(Stdio::null())
                .status()
                .expect("cargo has built it")
        });
        assert!(guard.success(), "{guard}");
        assert_eq!(scene.state(), before);
        assert_eq!(bystander.try_wait().expect("it is a child"), None, "it runs");
        bystander.kill().expect("it is a child");
        bystander.wait().expect("it is a child");
    });
}

#[test]
fn an_agent_whose_start_fails_says_why_and_is_not_killed_by_its_guard() {
    in_guest("an_agent_whose_start_fails_says_why_and_is_not_killed_by_its_guard", || {
        let scene = Scene::new();
        scene.shell("nft add table inet weir_throttle");
        let before = scene.state();
        let start = || scene.in_target(|| Program::new(PROGRAM).arg("start").output());
        let refused = start().expect("cargo has built it");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains("ForeignTable"), "{}: {said}", refused.status);
        assert_eq!(refused.status.code(), Some(1), "{}: {said}", refused.status);
        assert_eq!(scene.state(), before);

        scene.shell("nft delete table inet weir_throttle");
        let started = start().expect("cargo has built it");
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    });
}

#[test]
fn a_guard_removes_what_it_is_handed_over_and_spares_the_agent() {
    in_guest("a_guard_removes_what_it_is_handed_over_and_spares_the_agent", || {
        let scene = Scene::new();
        let before = scene.state();
        let agent = scene.in_target(|| Program::new(PROGRAM).args(["hand-over", LINK]).output());
        let agent = agent.expect("cargo has built it");
        let said = String::from_utf8_lossy(&agent.stderr);
        assert_eq!(agent.status.code(), Some(0), "{}: {said}", agent.status);
        assert!(said.contains("HandedOver"), "{said}");
        assert_eq!(scene.state(), before);
    });
}
