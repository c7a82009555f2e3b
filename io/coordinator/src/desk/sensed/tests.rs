//! A desk with a sensor, driven by answers and a clock of the test.

use tempfile::TempDir;
use weir_model::{Bandwidth, Span};
use weir_transfer::{DeviceBytes, PolicyName};

use super::super::{DeskConfig, NodeConfig, Peer};
use super::*;
use crate::catalogue::Catalogue;
use crate::proto::from_client::Message as Said;
use crate::proto::{Ask, Kind, Moved};

const UNIX: u64 = 1_000_000;
const MB: u64 = 1_000_000;
const ARRAY: NodeIndex = NodeIndex(0);

struct Scene {
    desk: Desk,
    _directory: TempDir,
}

impl Scene {
    /// A node with a sensor, and one without.
    fn new(policy: PolicyName) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::open(&directory.path().join("catalogue.db")).unwrap();
        let node = |name: &str| NodeConfig {
            name: name.to_owned(),
            url: format!("file:///srv/{name}"),
            peak_read: None,
            peak_write: Bandwidth::new(40 * MB),
            class: 0,
            cost: 0,
            capacity: None,
            domain: name.to_owned(),
        };
        let config = DeskConfig {
            policy: policy.policy(),
            classes: vec!["bronze".to_owned()],
            rate: Bandwidth::new(10 * MB).unwrap(),
            nodes: vec![node("array"), node("disk")],
        };
        let mut desk = Desk::open(at(0), UNIX, config, catalogue).unwrap();
        desk.watch(ARRAY);
        Self { desk, _directory: directory }
    }

    /// The sensor says that the device has written so many megabytes.
    fn answer(&mut self, second: u64, device: &str, written: u64) {
        let bytes = DeviceBytes { read: 0, written: written * MB };
        self.desk.sensed(at(second), ARRAY, Ok(Device { name: device.to_owned(), bytes }));
    }

    fn sample(&mut self, second: u64) {
        self.desk.sample(at(second), UNIX).unwrap();
    }

    /// What is told of the node with the sensor: megabytes a second that others write, and why it is stale.
    fn told(&self, second: u64) -> (Option<u64>, Option<String>) {
        let status = self.desk.status(at(second));
        let array = status.nodes.iter().find(|node| node.name == "array").unwrap();
        let info = self.desk.told_node(ARRAY);
        assert_eq!(info.writes.unwrap().external, array.writes.external_bytes_per_s);
        let stale = array.sensor.clone().unwrap().stale;
        assert_eq!(info.sensor.unwrap().stale, stale.clone().unwrap_or_default());
        (array.writes.external_bytes_per_s.map(|rate| rate / MB), stale)
    }
}

fn at(second: u64) -> Instant {
    Instant::ORIGIN + Span::from_secs(second)
}

#[test]
fn the_load_of_others_is_what_the_device_writes_beside_the_transfers() {
    let mut scene = Scene::new(PolicyName::Static);
    let ask = Ask {
        version: crate::desk::VERSION,
        kind: Kind::Put.into(),
        name: "one".to_owned(),
        bytes: Some(900 * MB),
        nodes: vec!["array".to_owned()],
        replicas: 1,
        run: "one".to_owned(),
        ..Ask::default()
    };
    let (outbox, _inbox) = tokio::sync::mpsc::channel(64);
    let id = scene.desk.ask(at(0), UNIX, 1, Peer::user(0), &ask, outbox).unwrap();
    scene.answer(0, "sda", 5_000);
    for second in 1..=3 {
        scene.desk.said(at(second), UNIX, id, Said::Moved(Moved { bytes: 20 * MB })).unwrap();
        scene.answer(second, "sda", 5_000 + second * 170);
    }
    scene.sample(3);
    assert_eq!(scene.told(3), (Some(150), None));
    let (outbox, _waits) = tokio::sync::mpsc::channel(64);
    let second = scene.desk.ask(
        at(3),
        UNIX,
        2,
        Peer::user(0),
        &Ask { name: "two".to_owned(), run: "two".to_owned(), ..ask },
        outbox,
    );
    let why = scene.desk.why_it_waits(second.unwrap());
    assert!(why.contains("for 1 transfers, and 150.0 MB/s for others"), "{why}");
    let status = scene.desk.status(at(3));
    let disk = status.nodes.iter().find(|node| node.name == "disk").unwrap();
    assert_eq!((&disk.sensor, disk.writes.external_bytes_per_s), (&None, None));
}

#[test]
fn a_sensor_without_a_good_answer_for_three_seconds_is_stale_and_says_why_until_it_answers_twice() {
    let mut scene = Scene::new(PolicyName::Deadline);
    scene.sample(0);
    assert_eq!(scene.told(0), (None, Some("it has not answered yet".to_owned())));
    scene.answer(1, "sda", 100);
    scene.sample(1);
    assert_eq!(scene.told(1).1.unwrap(), "it begins to count: two answers make a rate");
    scene.answer(2, "sda", 130);
    scene.sample(2);
    assert_eq!(scene.told(2), (Some(30), None));
    for second in 3..=5 {
        scene.desk.sensed(at(second), ARRAY, Err("no answer within 1 s".to_owned()));
        scene.sample(second);
        assert_eq!(scene.told(second), (Some(30), None), "it is fresh for three seconds");
    }
    scene.sample(6);
    assert_eq!(scene.told(6), (None, Some("no answer within 1 s".to_owned())));
    let age = scene.desk.status(at(6)).nodes[0].sensor.clone().unwrap().age_s;
    assert_eq!(age, Some(4.0));
    scene.answer(7, "sda", 10_000);
    scene.sample(7);
    assert_eq!(scene.told(7).0, None, "the first answer after it was stale is no rate");
    scene.answer(8, "sda", 10_007);
    scene.sample(8);
    assert_eq!(scene.told(8), (Some(7), None));
}

#[test]
fn a_sensor_that_falls_silent_without_a_word_is_stale_too() {
    let mut scene = Scene::new(PolicyName::Deadline);
    scene.answer(1, "sda", 100);
    scene.answer(2, "sda", 130);
    scene.sample(5);
    assert_eq!(scene.told(5).1, None);
    scene.sample(6);
    assert_eq!(scene.told(6), (None, Some("it does not answer".to_owned())));
}

#[test]
fn another_device_and_a_counter_that_goes_backwards_are_no_load() {
    let mut scene = Scene::new(PolicyName::Deadline);
    scene.answer(1, "sda", 100);
    scene.answer(2, "sdb", 1_000_000);
    scene.sample(2);
    assert_eq!(scene.told(2).0, None);
    scene.answer(3, "sdb", 1_000_004);
    scene.sample(3);
    assert_eq!(scene.told(3), (Some(4), None));
    scene.answer(4, "sdb", 1);
    scene.sample(4);
    assert_eq!(scene.told(4).0, None);
}

#[test]
fn an_answer_for_a_node_without_a_sensor_changes_nothing() {
    let mut scene = Scene::new(PolicyName::Deadline);
    scene.desk.sensed(at(1), NodeIndex(1), Err("what".to_owned()));
    scene.sample(1);
    let status = scene.desk.status(at(1));
    assert!(status.nodes.iter().any(|node| node.sensor.is_none()));
}

#[test]
fn an_idle_node_takes_a_transfer_whatever_its_sensor_says() {
    let mut scene = Scene::new(PolicyName::Deadline);
    for second in 0..3 {
        scene.answer(second, "sda", second * 1_000_000_000);
        scene.sample(second);
    }
    assert!(scene.told(2).0.unwrap() > 1_000_000);
    let ask = Ask {
        version: crate::desk::VERSION,
        kind: Kind::Put.into(),
        name: "one".to_owned(),
        nodes: vec!["array".to_owned()],
        replicas: 1,
        run: "one".to_owned(),
        ..Ask::default()
    };
    let (outbox, _inbox) = tokio::sync::mpsc::channel(64);
    scene.desk.ask(at(2), UNIX, 1, Peer::user(0), &ask, outbox).unwrap();
    assert_eq!(scene.desk.status(at(2)).running, 1);
}

#[test]
fn a_sensor_that_never_gives_figures_is_told_once_however_often_it_answers_well_between() {
    let mut scene = Scene::new(PolicyName::Deadline);
    let told = |scene: &Scene| scene.desk.nodes[ARRAY.0].sensor.as_ref().unwrap().is_told;
    scene.sample(0);
    assert!(!told(&scene), "it is new");
    for second in [1, 11, 21] {
        scene.desk.sensed(at(second), ARRAY, Err("no answer within 1 s".to_owned()));
        scene.sample(second);
        assert!(told(&scene));
        scene.answer(second + 1, "sda", 100);
        scene.sample(second + 1);
        assert!(told(&scene), "one answer makes no rate: it is not told anew");
    }
    scene.answer(23, "sda", 130);
    scene.sample(23);
    assert!(!told(&scene), "it is fresh");
}
