//! A delay that shrinks under load must not reorder packets: TCP would take that for a loss, and send again.
//! The actuator's way, which changes the delay of one leaf, is compared with moving the connection between
//! two leaves.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use weir_agent::actuator::Actuator;
use weir_model::Span;
use weir_throttle::{Connection, LeafId};

use super::in_guest;
use super::scene::{LEAF, LINK, Scene, TARGET_V4, add_leaf, apply, connection, enter, set_delay, shell};

/// The larger delay. The smaller one is zero.
const DELAY: Span = Span::from_millis(20);
/// How often the delay shrinks.
const STEPS: u32 = 50;
/// What is received between two changes.
const PIECE: usize = 256 << 10;

/// What TCP counted during a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Counted {
    /// The segments that the target sent again.
    sent_again: u64,
    /// The packets that reached the initiator before an earlier one.
    out_of_order: u64,
    /// How often packets waited in the leaf when its delay shrank.
    waited: u32,
}

/// A flow from the target to the initiator, and the ends of its pieces.
struct Flow {
    connection: Connection,
    pieces: Receiver<()>,
}

impl Flow {
    fn start(scene: &Scene) -> Self {
        let (target, initiator) = scene.pair(TARGET_V4);
        let connection = connection(&target);
        thread::spawn(move || send(target));
        let (ended, pieces) = channel();
        thread::spawn(move || {
            let (mut initiator, mut piece) = (initiator, vec![0; PIECE]);
            // Until nobody counts any more.
            while initiator.read_exact(&mut piece).is_ok() && ended.send(()).is_ok() {}
        });
        Self { connection, pieces }
    }

    /// Waits until the flow has gone on by two pieces, one of them from its begin.
    fn go_on(&self) {
        while self.pieces.try_recv().is_ok() {}
        for _ in 0..2 {
            self.pieces.recv().expect("the flow goes on");
        }
    }
}

fn send(mut target: TcpStream) {
    let data = vec![0; PIECE];
    while target.write_all(&data).is_ok() {}
}

/// What TCP counts while a flow has its delay grow and shrink.
fn count(
    scene: &Scene,
    mut grow: impl FnMut(Connection),
    mut shrink: impl FnMut(Connection) -> bool,
) -> Counted {
    let counter = |name: &str| {
        let said = shell(&format!("nstat -asz {name} | awk '/^{name}/ {{ print $2 }}'"));
        said.trim().parse::<u64>().expect("nstat says a number")
    };
    let read = || {
        let sent_again = scene.in_target(|| counter("TcpRetransSegs"));
        (sent_again, scene.in_initiator(|| counter("TcpExtTCPOFOQueue")))
    };
    let before = read();
    let (flow, mut waited) = (Flow::start(scene), 0);
    for _ in 0..STEPS {
        grow(flow.connection);
        flow.go_on();
        waited += u32::from(shrink(flow.connection));
        flow.go_on();
    }
    let after = read();
    Counted { sent_again: after.0 - before.0, out_of_order: after.1 - before.1, waited }
}

/// Whether packets are in the leaf.
fn is_waiting(actuator: &mut Actuator) -> bool {
    actuator.look().expect("the kernel answers").interfaces[LINK][&LEAF].1
}

#[test]
fn a_delay_that_shrinks_under_load_reorders_nothing() {
    in_guest("a_delay_that_shrinks_under_load_reorders_nothing", || {
        let scene = Scene::new();
        scene.receive_in_order();
        let undelayed = count(&scene, |_| {}, |_| false);
        let shared = RefCell::new(scene.with_leaf(DELAY));
        let set = |delay, connection| {
            let mut actuator = shared.borrow_mut();
            let is_waiting = is_waiting(&mut actuator);
            apply(&mut actuator, &[set_delay(delay), enter(LEAF, connection)]);
            is_waiting
        };
        let grow = |connection| {
            set(DELAY, connection);
        };
        let in_place = count(&scene, grow, |connection| set(Span::ZERO, connection));

        let at_once = LeafId(2);
        let leaves = [add_leaf(LEAF, DELAY), add_leaf(at_once, Span::ZERO)];
        apply(&mut shared.borrow_mut(), &leaves);
        let grow = |connection| apply(&mut shared.borrow_mut(), &[enter(LEAF, connection)]);
        let shrink = |connection| {
            let mut actuator = shared.borrow_mut();
            let is_waiting = is_waiting(&mut actuator);
            apply(&mut actuator, &[enter(at_once, connection)]);
            is_waiting
        };
        let moved = count(&scene, grow, shrink);
        eprintln!(
            "{STEPS} times 20 ms -> 0 under load: undelayed {undelayed:?}; in place {in_place:?}; \
             between leaves {moved:?}"
        );
        assert!(in_place.waited > STEPS / 2, "{in_place:?}");
        assert_eq!(in_place.out_of_order, 0, "{in_place:?}");
        assert!(in_place.sent_again < STEPS.into(), "a stall may send a probe, and no more: {in_place:?}");
        assert!(moved.out_of_order > u64::from(STEPS / 5), "the counters see what is reordered: {moved:?}");
    });
}
