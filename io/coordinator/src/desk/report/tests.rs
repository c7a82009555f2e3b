//! Tests of the report: a desk over a catalogue in a directory, driven by messages and a clock of the test.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use weir_model::Span;
use weir_transfer::{NodeSet, PolicyName};

use super::super::Peer;
use super::*;
use crate::catalogue::{Catalogue, Progress};
use crate::desk::{DeskConfig, NodeConfig};
use crate::proto::from_client::Message as Said;
use crate::proto::{Ask, Failed, Fault, Finished, Moved, ToClient};

const NOW: Instant = Instant::ORIGIN;
const UNIX: u64 = 1_000_000;
const MEGABYTE: u64 = 1_000_000;

struct Scene {
    desk: Desk,
    clients: Vec<mpsc::Receiver<Box<ToClient>>>,
    _directory: tempfile::TempDir,
}

impl Scene {
    /// Two nodes; the policy lets one transfer of 10 MB/s write to each.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::open(&directory.path().join("catalogue.db")).unwrap();
        let node = |name: &str, peak_write| NodeConfig {
            name: name.to_owned(),
            url: format!("file:///srv/{name}"),
            peak_read: None,
            peak_write: Bandwidth::new(peak_write),
            class: 0,
            cost: 2,
            capacity: Some(5_000 * MEGABYTE),
            domain: name.to_owned(),
        };
        let config = DeskConfig {
            policy: PolicyName::Static.policy(),
            classes: vec!["bronze".to_owned()],
            rate: Bandwidth::new(10 * MEGABYTE).unwrap(),
            nodes: vec![node("b", 50 * MEGABYTE), node("a", 50 * MEGABYTE)],
        };
        let desk = Desk::open(NOW, UNIX, config, catalogue).unwrap();
        Self { desk, clients: Vec::new(), _directory: directory }
    }

    fn put(&mut self, at: Instant, name: &str) -> u64 {
        let (outbox, inbox) = mpsc::channel(64);
        self.clients.push(inbox);
        let ask = Ask {
            version: crate::desk::VERSION,
            kind: Kind::Put.into(),
            name: name.to_owned(),
            bytes: Some(100 * MEGABYTE),
            nodes: vec!["a".to_owned(), "b".to_owned()],
            replicas: 1,
            run: name.to_owned(),
            ..Ask::default()
        };
        self.desk.ask(at, UNIX, 1, Peer::user(0), &ask, outbox).unwrap()
    }

    fn say(&mut self, at: Instant, id: u64, said: Said) {
        self.desk.said(at, UNIX, id, said).unwrap();
    }

    fn moved(&mut self, at: Instant, id: u64, bytes: u64) {
        self.say(at, id, Said::Moved(Moved { bytes }));
    }

    fn finish(&mut self, at: Instant, id: u64) {
        self.say(at, id, Said::Finished(Finished { bytes: 100 * MEGABYTE, checksum: vec![0; 32] }));
    }
}

const fn after(seconds: u64) -> Instant {
    Instant::from_nanos(Span::from_secs(seconds).as_nanos())
}

#[test]
fn a_transfer_that_runs_tells_its_rate_and_one_that_waits_tells_why_and_for_how_long() {
    let mut scene = Scene::new();
    let ids: Vec<_> = ["one", "two", "three"].map(|name| scene.put(NOW, name)).into();
    scene.moved(after(4), ids[0], 20 * MEGABYTE);
    scene.moved(after(4), ids[1], 80 * MEGABYTE);
    let status = scene.desk.status(after(4));
    assert_eq!((status.running, status.waiting, status.running_below, status.left_out), (2, 1, 1, 0));
    let [first, second, third] = &status.transfers[..] else { panic!("{status:?}") };
    assert_eq!([first, second, third].map(|found| found.transfer), [ids[0], ids[1], ids[2]]);
    assert_eq!((first.state, &first.why, first.kind), (TransferState::Running, &None, TransferKind::Put));
    assert_eq!((first.had_bytes_per_s, first.asked_bytes_per_s), (Some(5 * MEGABYTE), 10 * MEGABYTE));
    assert_eq!((first.is_below, first.left_s, first.waited_s), (true, Some(16.0), 0.0));
    assert_eq!((second.is_below, second.had_bytes_per_s), (false, Some(20 * MEGABYTE)));
    assert_eq!((third.state, &third.node, third.waited_s), (TransferState::Waiting, &None, 4.0));
    assert_eq!((third.had_bytes_per_s, third.left_s), (None, None));
    assert!(third.why.as_ref().unwrap().contains("no node can give it 10.0 MB/s now"), "{third:?}");
    scene.finish(after(6), ids[1]);
    let status = scene.desk.status(after(10));
    let third = status.transfers.iter().find(|found| found.transfer == ids[2]).unwrap();
    assert_eq!((third.state, third.waited_s), (TransferState::Running, 6.0));
}

#[test]
fn each_node_counts_what_is_written_to_it_and_tells_its_load_in_order_of_name() {
    let mut scene = Scene::new();
    let id = scene.put(NOW, "one");
    scene.moved(after(1), id, 8 * MEGABYTE);
    scene.desk.sample(after(1), UNIX).unwrap();
    let status = scene.desk.status(after(1));
    assert_eq!(status.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let node = status.transfers[0].node.clone().unwrap();
    let [(mine, other), (theirs, _)] = [true, false].map(|is_mine| {
        let found = status.nodes.iter().find(|found| (found.name == node) == is_mine).unwrap();
        (&found.writes, &found.reads)
    });
    assert_eq!((mine.moved_bytes, mine.active, mine.rate_bytes_per_s), (8 * MEGABYTE, 1, 8 * MEGABYTE));
    assert_eq!((mine.average_bytes_per_s, mine.reserved_bytes_per_s), (8 * MEGABYTE / 10, 10 * MEGABYTE));
    assert_eq!((theirs.moved_bytes, other.moved_bytes, theirs.active), (0, 0, 0));
    scene.finish(after(2), id);
    let status = scene.desk.status(after(2));
    let node = status.nodes.iter().find(|found| found.name == node).unwrap();
    assert_eq!((node.stored_bytes, node.objects, node.writes.active), (100 * MEGABYTE, 1, 0));
    assert_eq!((node.class.as_str(), node.cost, node.domain.as_str()), ("bronze", 2, &*node.name));
    assert_eq!(node.capacity_bytes, Some(5_000 * MEGABYTE));
}

#[test]
fn a_peak_is_measured_only_where_the_operator_gave_none() {
    let mut scene = Scene::new();
    let peaks = |scene: &Scene| {
        let status = scene.desk.status(NOW);
        (status.nodes[1].reads.peak, status.nodes[1].writes.peak)
    };
    let given = PeakStatus { bytes_per_s: 50 * MEGABYTE, is_measured: false };
    assert_eq!(peaks(&scene), (None, Some(given)));
    let measured = Bandwidth::new(7).unwrap();
    scene.desk.set_peak(NOW, UNIX, NodeIndex(0), (measured, measured)).unwrap();
    assert_eq!(peaks(&scene), (Some(PeakStatus { bytes_per_s: 7, is_measured: true }), Some(given)));
}

#[test]
fn only_a_probe_tells_that_a_node_is_down_and_how_old_that_is() {
    let mut scene = Scene::new();
    let seen = |scene: &Scene, at| {
        let status = scene.desk.status(at);
        (status.nodes[1].probed_age_s, status.nodes[1].down.clone())
    };
    assert_eq!(seen(&scene, NOW), (None, None));
    scene.desk.probed(after(1), UNIX, NodeIndex(0), Ok(())).unwrap();
    assert_eq!(seen(&scene, after(3)), (Some(2.0), None));
    let id = scene.put(after(3), "one");
    assert_eq!(scene.desk.status(after(3)).transfers[0].node.as_deref(), Some("b"));
    let failed = Failed { fault: Fault::Unreachable.into(), why: "no route".to_owned() };
    scene.say(after(4), id, Said::Failed(failed));
    assert_eq!(seen(&scene, after(5)), (Some(4.0), None), "others may reach it");
    scene.desk.probed(after(6), UNIX, NodeIndex(0), Err("no answer".to_owned())).unwrap();
    assert_eq!(seen(&scene, after(6)), (Some(0.0), Some("no answer".to_owned())));
}

#[test]
fn transfers_are_counted_by_their_outcome_and_those_below_their_rate_once_more() {
    let mut scene = Scene::new();
    let (slow, quick) = (scene.put(NOW, "slow"), scene.put(NOW, "quick"));
    scene.moved(after(20), slow, 100 * MEGABYTE);
    scene.moved(after(5), quick, 100 * MEGABYTE);
    scene.finish(after(5), quick);
    scene.finish(after(20), slow);
    let failing = scene.put(after(20), "failing");
    let failed = Failed { fault: Fault::Client.into(), why: "its disk".to_owned() };
    scene.say(after(20), failing, Said::Failed(failed));
    let cancelled = scene.put(after(20), "cancelled");
    assert_eq!(scene.desk.cancel(after(20), UNIX, cancelled).unwrap(), Some(true));
    let gone = scene.put(after(20), "gone");
    scene.desk.gone(after(20), UNIX, gone).unwrap();
    let ended = EndedTransfers { done: 2, failed: 1, cancelled: 1, interrupted: 1, below: 1 };
    assert_eq!(scene.desk.status(after(20)).ended, ended);
    // Nobody came back for it.
    scene.desk.errands(UNIX + 86_400_001).unwrap();
    assert_eq!(scene.desk.status(after(20)).ended, EndedTransfers { failed: 2, ..ended });
}

#[test]
fn a_transfer_that_took_a_moment_is_not_below_its_rate() {
    let mut scene = Scene::new();
    let id = scene.put(NOW, "one");
    scene.moved(after(2), id, 1);
    scene.finish(after(2), id);
    let ended = EndedTransfers { done: 1, ..EndedTransfers::default() };
    assert_eq!(scene.desk.status(after(2)).ended, ended);
}

#[test]
fn no_more_transfers_are_told_than_the_bound_and_the_others_are_counted() {
    let mut scene = Scene::new();
    (0..4).for_each(|place| {
        scene.put(NOW, &format!("object-{place}"));
    });
    let waiting = scene.desk.live.values().find(|live| live.node.is_none()).unwrap();
    let (new, outbox) = (waiting.new.clone(), waiting.outbox.clone());
    // The catalogue would take seconds for as many.
    for id in 1_000..MOST_TOLD as u64 + 998 {
        let live = Live {
            kind: Kind::Put,
            new: new.clone(),
            outbox: outbox.clone(),
            stream: 1,
            peer: Peer::user(0),
            allowed: NodeSet::first(2),
            failed: BTreeMap::new(),
            unreachable: 0,
            gone: 0,
            doubted: None,
            is_parked: false,
            awaits: None,
            object: None,
            notes_left: 0,
            node: None,
            partial: None,
            progress: Progress::default(),
            since: NOW,
            waited: 0,
            pace: None,
            waits: String::new(),
            wanted: 1,
        };
        scene.desk.live.insert(id, live);
    }
    let status = scene.desk.status(NOW);
    assert_eq!((status.transfers.len(), status.left_out), (MOST_TOLD, 2));
    assert_eq!((status.running, status.waiting), (2, MOST_TOLD as u64));
    assert!(status.transfers[..2].iter().all(|found| found.state == TransferState::Running));
}
