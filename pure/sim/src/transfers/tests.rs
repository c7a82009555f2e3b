//! Each term of the model by a run whose end can be worked out by hand, and random runs.

use weir_model::Direction;
use weir_transfer::{Class, NodeSet, PolicyName};

use super::*;

const MB: u64 = 1_000_000;

fn rate(megabytes: u64) -> Bandwidth {
    Bandwidth::new(megabytes * MB).expect("above zero")
}

fn node(peak: u64) -> StorageNode {
    StorageNode { peak: rate(peak), overhead: 0.0, external: None, is_down: false }
}

/// Nodes without any disturbance.
fn plain(nodes: Vec<StorageNode>) -> TransferOptions {
    let (stream, at_most) = (rate(1_000), Span::from_secs(10_000));
    let clients = BTreeMap::new();
    TransferOptions {
        nodes,
        stream,
        spread: 0.0,
        sway: 0.0,
        crowd: 100,
        clients,
        piece: NonZeroU64::MIN,
        ending: Span::ZERO,
        at_most,
    }
}

/// Writes of 1000 MB at 10 MB/s to any node.
fn writes(count: u64, nodes: usize) -> Vec<Request> {
    let write = |id| Request {
        id: TransferId(id),
        direction: Direction::Write,
        bytes: Some(1_000 * MB),
        rate: rate(10),
        class: Class::default(),
        deadline: None,
        nodes: NodeSet::first(nodes),
        object: None,
    };
    (1..=count).map(write).collect()
}

fn run(options: &TransferOptions, name: PolicyName, requests: Vec<Request>) -> Vec<TransferOutcome> {
    run_transfers(options, name.policy(), requests, Span::from_secs(1), Seed(1))
}

fn took(outcome: &TransferOutcome) -> f64 {
    let (started, _) = outcome.started.expect("it started");
    outcome.ended.expect("it ended").saturating_since(started).as_secs_f64()
}

#[test]
fn transfers_share_a_node_and_the_next_is_asked_for_a_second_after_a_start() {
    let outcomes = run(&plain(vec![node(100)]), PolicyName::Rr, writes(2, 1));
    // 1 s alone, then half each until the first has its 1000 MB after 19 s; the second has 900 MB then.
    assert!((took(&outcomes[0]) - 19.0).abs() < 0.001, "{}", took(&outcomes[0]));
    assert!((took(&outcomes[1]) - 19.0).abs() < 0.001, "{}", took(&outcomes[1]));
    assert_eq!(outcomes[1].asked, Instant::ORIGIN + Span::from_secs(1));
    assert!(outcomes.iter().all(|outcome| outcome.moved == 1_000 * MB));
}

#[test]
fn a_stream_a_crowd_many_transfers_and_others_each_cost_what_the_model_says() {
    let alone = |change: &dyn Fn(&mut TransferOptions)| {
        let mut options = plain(vec![node(100)]);
        change(&mut options);
        format!("{:.0}", took(&run(&options, PolicyName::Rr, writes(1, 1))[0]))
    };
    assert_eq!(alone(&|_| {}), "10");
    assert_eq!(alone(&|options| options.stream = rate(25)), "40");
    assert_eq!(alone(&|options| options.clients = [(TransferId(1), rate(50))].into()), "20");
    let others = Some(External { from: Span::from_secs(5), share: 0.5 });
    assert_eq!(alone(&|options| options.nodes[0].external = others), "15");
    // Three at 100 / (1 + 0.5 x 2) = 50 MB/s in sum; and 4 where 2 are no crowd, at 1 / (1 + 1).
    let last = |options: &TransferOptions, count| {
        let outcomes = run_transfers(options, PolicyName::Rr.policy(), writes(count, 1), Span::ZERO, Seed(1));
        format!("{:.0}", outcomes.iter().map(took).fold(0.0, f64::max))
    };
    let mut crowded = plain(vec![node(100)]);
    crowded.nodes[0].overhead = 0.5;
    assert_eq!(last(&crowded, 3), "60");
    assert_eq!(last(&TransferOptions { crowd: 2, ..plain(vec![node(100)]) }, 4), "80");
}

#[test]
fn a_read_whose_replicas_cannot_be_reached_is_refused_and_the_others_go_on() {
    let down = StorageNode { is_down: true, ..node(100) };
    let options = plain(vec![down, node(100)]);
    let read = |request: Request, nodes: &[usize]| Request {
        direction: Direction::Read,
        nodes: nodes.iter().copied().map(NodeIndex).collect(),
        ..request
    };
    let [first, second, third] = writes(3, 2).try_into().expect("three");
    let requests = vec![read(first, &[0, 1]), read(second, &[0]), read(third, &[1])];
    for name in PolicyName::ALL.into_iter().filter(|name| *name != PolicyName::SmR2) {
        let outcomes = run(&options, name, requests.clone());
        assert_eq!(outcomes[1].refused, Some(Refused::NoReplica(TransferId(2))), "{name}");
        let nodes: Vec<_> =
            outcomes.iter().filter_map(|outcome| outcome.started).map(|start| start.1).collect();
        assert_eq!(nodes, [NodeIndex(1), NodeIndex(1)], "{name}");
    }
}

#[test]
fn the_seed_gives_the_run() {
    let options = TransferOptions { spread: 0.2, sway: 0.2, ..plain(vec![node(60), node(100)]) };
    let run = |seed| {
        run_transfers(&options, PolicyName::SmR3.policy(), writes(20, 2), Span::from_secs(1), Seed(seed))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_run_ends_although_a_transfer_can_never_start() {
    let down = StorageNode { is_down: true, ..node(20) };
    let options = TransferOptions { at_most: Span::from_secs(50), ..plain(vec![down]) };
    let outcomes = run(&options, PolicyName::SmR3, writes(3, 1));
    assert_eq!(outcomes.len(), 1, "the others are not asked for while it waits");
    assert_eq!((outcomes[0].started, outcomes[0].ended), (None, None));
}

/// The paper's three nodes, with the numbers of `experiments/transfers/`.
fn paper() -> TransferOptions {
    let nodes = [20, 300, 60].map(|peak| StorageNode { overhead: 0.0244, ..node(peak) });
    TransferOptions { stream: rate(26), spread: 0.15, sway: 0.1, crowd: 30, ..plain(nodes.to_vec()) }
}

fn seconds(instant: Instant) -> f64 {
    instant.saturating_since(Instant::ORIGIN).as_secs_f64()
}

fn last_end(outcomes: &[TransferOutcome]) -> f64 {
    outcomes.iter().map(|outcome| seconds(outcome.ended.expect("it ended"))).fold(0.0, f64::max)
}

#[test]
fn clients_a_little_too_slow_do_not_make_deadline_hold_all_others_back() {
    for slow in [9, 10, 14, 18] {
        let clients = (1..=10).map(|tenth| (TransferId(10 * tenth - 5), rate(slow))).collect();
        let options = TransferOptions { clients, ..paper() };
        let end = |name| last_end(&run(&options, name, writes(100, 3)));
        let (deadline, sm_r3) = (end(PolicyName::Deadline), end(PolicyName::SmR3));
        assert!(deadline < 1.1 * sm_r3, "{slow} MB/s: {deadline:.0} s, and {sm_r3:.0} s under SM-R3");
    }
}

#[test]
fn a_single_slow_client_does_not_spoil_a_node_for_all_after_it() {
    let clients = [(TransferId(1), rate(1))].into();
    let options = TransferOptions { clients, ..plain(vec![node(300)]) };
    let small = |request| Request { bytes: Some(30 * MB), ..request };
    let outcomes = run(&options, PolicyName::Deadline, writes(100, 1).into_iter().map(small).collect());
    let waits =
        |outcome: &TransferOutcome| seconds(outcome.started.expect("it started").0) - seconds(outcome.asked);
    let waited: f64 = outcomes.iter().map(waits).sum();
    assert!(waited < 60.0, "{waited:.0} s in all, of which the first had to be found out");
}

#[test]
fn short_transfers_are_not_let_in_one_at_a_time() {
    let options =
        TransferOptions { stream: rate(50), ..plain(vec![StorageNode { overhead: 0.01, ..node(300) }]) };
    let small = |request| Request { bytes: Some(30 * MB), rate: rate(5), ..request };
    let requests: Vec<_> = writes(500, 1).into_iter().map(small).collect();
    let end = |name: PolicyName| {
        last_end(&run_transfers(&options, name.policy(), requests.clone(), Span::from_millis(200), Seed(1)))
    };
    let (deadline, sm_r3) = (end(PolicyName::Deadline), end(PolicyName::SmR3));
    assert!(deadline < 1.2 * sm_r3, "{deadline:.0} s, and {sm_r3:.0} s under SM-R3");
}

/// The end of a run of `deadline` with each of ten seeds, and how many of its transfers were below.
fn ends(options: &TransferOptions, nodes: usize) -> Vec<(f64, usize)> {
    let run = |seed| {
        let policy = PolicyName::Deadline.policy();
        let outcomes = run_transfers(options, policy, writes(100, nodes), Span::from_secs(1), Seed(seed));
        (last_end(&outcomes), outcomes.iter().filter(|outcome| took(outcome) > 100.0).count())
    };
    (1..=10).map(run).collect()
}

#[test]
fn clients_that_count_in_large_pieces_do_not_make_a_node_look_full_for_deadline() {
    let fine = ends(&paper(), 3);
    for piece in [8, 24] {
        let coarse = TransferOptions { piece: NonZeroU64::new(piece * MB).expect("above zero"), ..paper() };
        for ((fine, _), (coarse, below)) in fine.iter().zip(ends(&coarse, 3)) {
            assert!(coarse < 1.1 * fine, "pieces of {piece} MB: {coarse:.0} s instead of {fine:.0}");
            assert_eq!(below, 0, "pieces of {piece} MB");
        }
    }
}

#[test]
fn clients_that_count_in_large_pieces_do_not_make_a_full_node_look_free_for_deadline() {
    let mut options = TransferOptions { piece: NonZeroU64::new(24 * MB).expect("above zero"), ..paper() };
    options.nodes.iter_mut().for_each(|node| node.overhead = 0.1);
    let below: usize = ends(&options, 3).iter().map(|(_, below)| below).sum();
    assert!(below <= 5, "{below} of 1000 transfers");
}

#[test]
fn transfers_that_take_long_to_end_do_not_make_a_node_look_full_for_deadline() {
    let slow = TransferOptions { ending: Span::from_secs(5), ..paper() };
    for ((fine, _), (slow, below)) in ends(&paper(), 3).iter().zip(ends(&slow, 3)) {
        // A transfer takes some 45 s, and 5 s more.
        assert!(slow < 1.2 * fine, "{slow:.0} s instead of {fine:.0}");
        assert_eq!(below, 0);
    }
}

#[test]
fn a_node_that_sways_by_half_is_not_overfilled() {
    let node = StorageNode { overhead: 0.1, ..node(100) };
    let options = TransferOptions { stream: rate(50), sway: 0.5, ..plain(vec![node]) };
    let outcomes = run(&options, PolicyName::Deadline, writes(100, 1));
    let below = outcomes.iter().filter(|outcome| took(outcome) > 100.0).count();
    assert_eq!(below, 0);
}

#[test]
fn in_random_runs_no_transfer_waits_for_ever_or_starts_where_it_may_not() {
    for seed in 0..400 {
        assert_eq!(
            swarm::run(seed).map(drop).map_err(|violation| violation.to_string()),
            Ok(()),
            "seed {seed}"
        );
    }
}
