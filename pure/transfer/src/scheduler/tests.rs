//! The states of transfers and nodes, one rule of the scheduler at a time.

use super::*;
use crate::request::testing::write;
use crate::{Class, Domain, PROMOTED_AFTER, PolicyName};

const MB: u64 = 1_000_000;

fn rate(megabytes: u64) -> Bandwidth {
    Bandwidth::new(megabytes * MB).expect("above zero")
}

/// Nodes of these peaks in MB/s, each in a domain of its own.
fn scheduler(name: PolicyName, peaks: &[u64]) -> Scheduler {
    let spec = |(domain, peak): (u32, &u64)| NodeSpec {
        peak_read: rate(*peak),
        peak_write: rate(*peak),
        domain: Domain(domain),
    };
    Scheduler::new(Instant::ORIGIN, name.policy(), (0..).zip(peaks).map(spec).collect())
}

fn at(second: u64) -> Instant {
    Instant::ORIGIN + Span::from_secs(second)
}

fn on(nodes: &[usize], mut request: Request) -> Request {
    request.nodes = nodes.iter().copied().map(NodeIndex).collect();
    request
}

/// Everything that starts now, as (transfer, node).
fn starts(scheduler: &mut Scheduler, now: Instant) -> Vec<(u64, usize)> {
    std::iter::from_fn(|| scheduler.poll_start(now)).map(|start| (start.id.0, start.node.0)).collect()
}

#[test]
fn a_transfer_waits_until_a_node_can_serve_it_and_those_after_it_wait_behind_it() {
    let mut scheduler = scheduler(PolicyName::SmR1, &[60]);
    for id in 1..=6 {
        scheduler.submit(at(0), write(id, 10 * MB, 1)).unwrap();
    }
    assert_eq!(starts(&mut scheduler, at(0)), [(1, 0), (2, 0), (3, 0), (4, 0)], "60 - 30 x 1.5 > 10");
    assert_eq!(scheduler.waiting(), 2);
    scheduler.done(TransferId(3));
    assert_eq!(starts(&mut scheduler, at(9)), [(5, 0)]);
    scheduler.done(TransferId(6));
    assert_eq!(scheduler.waiting(), 0, "it is given up while it waits");
}

#[test]
fn the_papers_policies_start_nothing_before_the_first_that_waits() {
    let two_nodes = |name| {
        let mut scheduler = scheduler(name, &[20, 300]);
        for (id, node) in [(1, 0), (2, 0), (3, 1)] {
            scheduler.submit(at(0), on(&[node], write(id, 15 * MB, 1))).unwrap();
        }
        starts(&mut scheduler, at(0))
    };
    assert_eq!(two_nodes(PolicyName::SmR1), [(1, 0)]);
    assert_eq!(two_nodes(PolicyName::Deadline), [(1, 0), (3, 1)], "it takes nothing from the second");
}

#[test]
fn nobody_overtakes_a_transfer_on_a_node_that_it_waits_for() {
    let mut scheduler = scheduler(PolicyName::Deadline, &[300]);
    scheduler.submit(at(0), write(1, 10 * MB, 1)).unwrap();
    assert_eq!(starts(&mut scheduler, at(0)), [(1, 0)]);
    for second in 1..=3 {
        scheduler.moved(TransferId(1), 100 * MB);
        scheduler.sample(at(second));
    }
    // The node is known to do 200 MB/s with two.
    scheduler.submit(at(3), write(2, 250 * MB, 1)).unwrap();
    scheduler.submit(at(3), write(3, 10 * MB, 1)).unwrap();
    assert_eq!(starts(&mut scheduler, at(3)), []);
    scheduler.done(TransferId(2));
    assert_eq!(starts(&mut scheduler, at(3)), [(3, 0)], "it alone would have had room");
}

#[test]
fn what_an_idle_node_would_not_take_is_refused_and_does_not_wait_for_ever() {
    let refused = |name, megabytes| {
        let refused = scheduler(name, &[20]).submit(at(0), write(1, megabytes * MB, 1)).err();
        refused.map(|refused| refused.to_string())
    };
    let bounds =
        [(PolicyName::Static, 5), (PolicyName::SmR1, 19), (PolicyName::SmR2, 9), (PolicyName::Deadline, 19)];
    for (name, most) in bounds {
        assert_eq!(refused(name, most), None, "{name}");
        let message = refused(name, most + 1).expect("it is too fast");
        assert!(message.contains("accepted: less"), "{name}: {message}");
    }
    assert_eq!((refused(PolicyName::Rr, 900), refused(PolicyName::SmR3, 900)), (None, None), "they take any");
}

#[test]
fn a_higher_class_is_the_next_and_a_lower_one_does_not_starve() {
    let mut scheduler = scheduler(PolicyName::SmR1, &[20]);
    let of_class = |id, class| Request { class: Class(class), ..write(id, 10 * MB, 1) };
    scheduler.submit(at(0), of_class(1, 0)).unwrap();
    scheduler.submit(at(1), of_class(2, 1)).unwrap();
    scheduler.submit(at(0) + PROMOTED_AFTER, of_class(3, 1)).unwrap();
    scheduler.submit(at(2) + PROMOTED_AFTER, of_class(4, 1)).unwrap();
    let mut order = Vec::new();
    while let Some(start) = scheduler.poll_start(at(700)) {
        order.push(start.id.0);
        scheduler.done(start.id);
    }
    assert_eq!(order, [2, 1, 3, 4]);
}

#[test]
fn replicas_of_an_object_go_to_different_failure_domains() {
    let spec = |domain| NodeSpec { peak_read: rate(300), peak_write: rate(300), domain: Domain(domain) };
    let mut scheduler =
        Scheduler::new(Instant::ORIGIN, PolicyName::SmR1.policy(), vec![spec(7), spec(7), spec(8)]);
    let replica = |id| Request { object: Some(ObjectId(1)), ..write(id, 10 * MB, 3) };
    for id in 1..=3 {
        scheduler.submit(at(0), replica(id)).unwrap();
    }
    assert_eq!(starts(&mut scheduler, at(0)), [(1, 0), (2, 2)], "there is no third domain");
    assert_eq!(scheduler.waits_for(TransferId(3)), Some(&NodeSet::EMPTY));
    assert_eq!(scheduler.waits_for(TransferId(2)), None);
    scheduler.done(TransferId(1));
    assert_eq!(starts(&mut scheduler, at(1)), [], "its replica is there now");
    assert_eq!(scheduler.submit(at(1), replica(9)), Err(Refused::NoDomain(TransferId(9))));
    scheduler.submit(at(1), Request { object: Some(ObjectId(2)), ..write(4, 10 * MB, 3) }).unwrap();
    assert_eq!(starts(&mut scheduler, at(1)), [(4, 0)], "another object; the one that cannot be waits alone");
    scheduler.give_up(TransferId(2));
    assert_eq!(starts(&mut scheduler, at(1)), [(3, 2)], "what failed is no replica");
    scheduler.done(TransferId(3));
    assert_eq!(scheduler.objects.len(), 1, "the first is forgotten");
}

#[test]
fn what_can_never_start_is_refused() {
    let mut scheduler = scheduler(PolicyName::SmR3, &[20, 300]);
    let read =
        |id, nodes: &[usize]| Request { direction: Direction::Read, ..on(nodes, write(id, 10 * MB, 1)) };
    scheduler.set_down(NodeIndex(0), true);
    assert_eq!(scheduler.submit(at(0), read(1, &[0])), Err(Refused::NoReplica(TransferId(1))));
    assert_eq!(scheduler.submit(at(0), read(1, &[])), Err(Refused::NoNode(TransferId(1))));
    let unknown = Refused::UnknownNode { id: TransferId(1), node: NodeIndex(2) };
    assert_eq!(scheduler.submit(at(0), read(1, &[1, 2])), Err(unknown));
    assert_eq!(scheduler.submit(at(0), read(1, &[0, 1])), Ok(()));
    assert_eq!(scheduler.submit(at(0), read(1, &[1])), Err(Refused::SameNumber(TransferId(1))));
    assert_eq!(starts(&mut scheduler, at(0)), [(1, 1)], "the replica that can be reached");
    assert_eq!(scheduler.submit(at(0), read(1, &[1])), Err(Refused::SameNumber(TransferId(1))));
}

#[test]
fn a_write_waits_for_a_node_that_is_down_and_holds_up_nobody() {
    for name in PolicyName::ALL {
        let mut scheduler = scheduler(name, &[20, 300]);
        scheduler.set_down(NodeIndex(0), true);
        scheduler.submit(at(0), on(&[0], write(1, MB, 1))).unwrap();
        scheduler.submit(at(0), on(&[1], write(2, MB, 1))).unwrap();
        assert_eq!(starts(&mut scheduler, at(0)), [(2, 1)], "{name}");
        scheduler.set_down(NodeIndex(0), false);
        assert_eq!(starts(&mut scheduler, at(1)), [(1, 0)], "{name}");
    }
}

#[test]
fn a_late_sample_is_the_rate_of_the_time_that_has_passed() {
    let mut scheduler = scheduler(PolicyName::SmR3, &[300]);
    scheduler.submit(at(0), write(1, 10 * MB, 1)).unwrap();
    starts(&mut scheduler, at(0));
    scheduler.moved(TransferId(1), 80 * MB);
    scheduler.sample(at(4));
    scheduler.sample(at(4));
    let view = scheduler.nodes[0].view(NodeIndex(0), Direction::Write);
    assert_eq!(view.average, 2 * MB, "20 MB/s, and nine zeros");
    assert_eq!(view.needed / MB, 9, "920 MB in 96 s");
}

/// A node of 300 MB/s with two transfers of 10 MB/s, after five seconds with these rates in MB/s.
fn two_transfers(name: PolicyName, rates: [u64; 2]) -> (Scheduler, u64) {
    let mut scheduler = scheduler(name, &[300]);
    let mut second = 0;
    let mut pass = |scheduler: &mut Scheduler, rates: [u64; 2]| {
        for (id, rate) in (1..).zip(rates) {
            scheduler.moved(TransferId(id), rate * MB);
        }
        second += 1;
        scheduler.sample(at(second));
        second
    };
    scheduler.submit(at(0), write(1, 10 * MB, 1)).unwrap();
    assert_eq!(starts(&mut scheduler, at(0)), [(1, 0)]);
    let mut now = pass(&mut scheduler, [30, 0]);
    now = pass(&mut scheduler, [30, 0]).max(now);
    scheduler.submit(at(now), write(2, 10 * MB, 1)).unwrap();
    while starts(&mut scheduler, at(now)).is_empty() {
        now = pass(&mut scheduler, [30, 0]);
    }
    for _ in 0..5 {
        now = pass(&mut scheduler, rates);
    }
    (scheduler, now)
}

#[test]
fn while_one_is_behind_the_others_on_its_node_leave_it_room_under_deadline_only() {
    let held = |name| {
        let (scheduler, _) = two_transfers(name, [35, 5]);
        [1, 2].map(|id| scheduler.held_to(TransferId(id)).map(|rate| rate.get() / MB))
    };
    // 35 + 5 MB/s less 1.25 x 5.
    assert_eq!(held(PolicyName::Deadline), [Some(33), None]);
    assert_eq!(held(PolicyName::SmR3), [None, None]);
}

#[test]
fn a_client_that_stalls_closes_its_node_for_a_minute_and_not_for_ever() {
    let mut scheduler = scheduler(PolicyName::Deadline, &[300]);
    scheduler.submit(at(0), write(1, 10 * MB, 1)).unwrap();
    assert_eq!(starts(&mut scheduler, at(0)), [(1, 0)]);
    // 10 s at its rate.
    let short = |id| Request { bytes: Some(100 * MB), ..write(id, 10 * MB, 1) };
    (2..=4).for_each(|id| scheduler.submit(at(0), short(id)).unwrap());
    let mut started = Vec::new();
    for second in 1..=80 {
        scheduler.sample(at(second));
        started.extend(starts(&mut scheduler, at(second)).iter().map(|(id, _)| (*id, second)));
    }
    assert_eq!(started, [(2, 10), (3, 70)], "none of them moves a byte");
}

#[test]
fn a_node_that_comes_up_again_is_learned_anew() {
    let mut scheduler = scheduler(PolicyName::Deadline, &[300]);
    scheduler.submit(at(0), write(1, 10 * MB, 1)).unwrap();
    starts(&mut scheduler, at(0));
    (1..=5).for_each(|second| scheduler.sample(at(second)));
    scheduler.set_down(NodeIndex(0), true);
    scheduler.give_up(TransferId(1));
    scheduler.set_down(NodeIndex(0), false);
    scheduler.submit(at(6), write(2, 10 * MB, 1)).unwrap();
    assert_eq!(starts(&mut scheduler, at(6)), [(2, 0)]);
}

#[test]
fn short_transfers_do_not_hide_what_a_node_does() {
    let mut scheduler = scheduler(PolicyName::Deadline, &[300]);
    let mut running = Vec::new();
    let mut most = 0;
    for second in 0..20 {
        // Each takes less than a second.
        for id in std::mem::take(&mut running) {
            scheduler.moved(TransferId(id), 10 * MB);
            scheduler.done(TransferId(id));
        }
        scheduler.submit(at(second), Request { bytes: Some(10 * MB), ..write(second, 5 * MB, 1) }).unwrap();
        scheduler
            .submit(at(second), Request { bytes: Some(10 * MB), ..write(99 + second, 5 * MB, 1) })
            .unwrap();
        running.extend(starts(&mut scheduler, at(second)).iter().map(|(id, _)| *id));
        most = most.max(running.len());
        scheduler.sample(at(second) + Span::from_millis(900));
    }
    assert!(most >= 2, "at most {most} at a time");
}

#[test]
fn a_write_that_waits_holds_up_no_read_of_a_node_without_reads() {
    let mut scheduler = scheduler(PolicyName::Deadline, &[300]);
    scheduler.submit(at(0), write(1, 10 * MB, 1)).unwrap();
    scheduler.submit(at(0), write(2, 10 * MB, 1)).unwrap();
    scheduler.submit(at(0), Request { direction: Direction::Read, ..write(3, 10 * MB, 1) }).unwrap();
    assert_eq!(starts(&mut scheduler, at(0)), [(1, 0), (3, 0)]);
}

#[test]
fn a_sample_that_comes_right_after_another_is_ignored() {
    let (mut scheduler, second) = two_transfers(PolicyName::SmR3, [30, 30]);
    let average = |scheduler: &Scheduler| scheduler.nodes[0].view(NodeIndex(0), Direction::Write).average;
    let before = average(&scheduler);
    scheduler.sample(at(second) + Span::from_micros(1));
    assert_eq!(average(&scheduler), before);
}

#[test]
fn a_read_whose_only_fast_enough_replica_is_down_is_refused() {
    let mut scheduler = scheduler(PolicyName::Deadline, &[20, 300]);
    scheduler.set_down(NodeIndex(1), true);
    let read = Request { direction: Direction::Read, ..write(1, 30 * MB, 2) };
    assert_eq!(scheduler.submit(at(0), read), Err(Refused::NoReplica(TransferId(1))));
}
