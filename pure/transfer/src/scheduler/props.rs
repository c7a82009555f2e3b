//! Whatever is submitted, moved, ended, sampled and taken down, in whatever order.

use proptest::prelude::*;

use super::*;
use crate::request::testing::write;
use crate::{Class, Domain, PolicyName};

const NODES: usize = 5;

#[derive(Clone, Debug)]
enum Step {
    Submit { id: u64, rate: u64, class: u8, nodes: Vec<usize>, is_read: bool, object: Option<u64> },
    Moved { id: u64, bytes: u64 },
    Done { id: u64 },
    GiveUp { id: u64 },
    Sample { after_ms: u64 },
    Down { node: usize, is_down: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0_u64..20;
    let submit = (
        id.clone(),
        prop_oneof![1..100_000_000_u64, Just(u64::MAX)],
        any::<u8>(),
        prop::collection::vec(0_usize..NODES + 1, 0..4),
        any::<bool>(),
        prop::option::of(0_u64..3),
    );
    prop_oneof![
        4 => submit.prop_map(|(id, rate, class, nodes, is_read, object)| {
            Step::Submit { id, rate, class, nodes, is_read, object }
        }),
        3 => (id.clone(), prop_oneof![0..100_000_000_u64, Just(u64::MAX)])
            .prop_map(|(id, bytes)| Step::Moved { id, bytes }),
        2 => id.clone().prop_map(|id| Step::Done { id }),
        1 => id.prop_map(|id| Step::GiveUp { id }),
        4 => (0_u64..5_000).prop_map(|after_ms| Step::Sample { after_ms }),
        1 => (0_usize..NODES, any::<bool>()).prop_map(|(node, is_down)| Step::Down { node, is_down }),
    ]
}

proptest! {
    #[test]
    fn transfers_start_once_where_they_may_and_the_books_of_each_node_add_up(
        name in prop::sample::select(PolicyName::ALL.to_vec()),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let spec = |domain: u32| NodeSpec {
            peak_read: Bandwidth::new(300_000_000).expect("above zero"),
            peak_write: Bandwidth::new(200_000_000).expect("above zero"),
            domain: Domain(domain / 2),
        };
        let mut scheduler = Scheduler::new(Instant::ORIGIN, name.policy(), (0_u32..).take(NODES).map(spec).collect());
        let (mut now, mut known, mut running) = (Instant::ORIGIN, BTreeMap::new(), BTreeMap::new());
        let mut down = [false; NODES];
        for step in steps {
            match step {
                Step::Submit { id, rate, class, nodes, is_read, object } => {
                    let request = Request {
                        class: Class(class),
                        nodes: nodes.into_iter().map(NodeIndex).collect(),
                        direction: if is_read { Direction::Read } else { Direction::Write },
                        object: object.filter(|_| !is_read).map(ObjectId),
                        ..write(id, rate, 1)
                    };
                    if scheduler.submit(now, request.clone()).is_ok() {
                        prop_assert!(known.insert(id, request).is_none());
                    }
                }
                Step::Moved { id, bytes } => scheduler.moved(TransferId(id), bytes),
                Step::Done { id } | Step::GiveUp { id } => {
                    match step {
                        Step::Done { .. } => scheduler.done(TransferId(id)),
                        _ => scheduler.give_up(TransferId(id)),
                    }
                    known.remove(&id);
                    running.remove(&id);
                }
                Step::Sample { after_ms } => {
                    now = now + Span::from_millis(after_ms);
                    scheduler.sample(now);
                }
                Step::Down { node, is_down } => {
                    scheduler.set_down(NodeIndex(node), is_down);
                    down[node] = is_down;
                }
            }
            while let Some(Start { id, node }) = scheduler.poll_start(now) {
                prop_assert!(known[&id.0].nodes.contains(node) && !down[node.0]);
                prop_assert!(running.insert(id.0, node).is_none());
            }
            prop_assert_eq!(scheduler.waiting(), known.len() - running.len());
            for place in 0..NODES {
                for direction in [Direction::Read, Direction::Write] {
                    let view = scheduler.nodes[place].view(NodeIndex(place), direction);
                    let here = || running.iter().filter(|(id, node)| {
                        node.0 == place && known[*id].direction == direction
                    });
                    let reserved = here().fold(0_u64, |sum, (id, _)| sum.saturating_add(known[id].rate.get()));
                    prop_assert_eq!((view.active as usize, view.reserved), (here().count(), reserved));
                }
            }
        }
    }
}
