//! `weir node agent` from outside, and a coordinator that asks it: what a node's device does beside the
//! transfers, and what becomes of sensors that are away or talk nonsense.

mod odd_sensor;

use std::fs::{File, create_dir, metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Outcome, Program, Running, Scene, get, skipped, wait_until};
use odd_sensor::{Manner, OddSensor};

const MIB: usize = 1 << 20;

/// Whether the directory is on a block device of this machine. If not, the test is skipped.
fn is_on_a_device(directory: &Path) -> bool {
    let device = metadata(directory).expect("the test has made it").dev();
    let folder = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let found = Path::new(&folder).exists();
    if !found {
        skipped("node_agent", "the directory for temporary files is on no block device");
    }
    found
}

/// An agent for the directory of the scene, and the url of its metrics.
fn agent(scene: &Scene, listen: &str) -> (Running, String) {
    let agent =
        Program::weir().args("node agent --listen").arg(listen).arg("--path").arg(scene.path().display());
    let agent = agent.start();
    let said = agent.wait_for("weir: reading the block devices of");
    let (_, url) = said.rsplit_once("state on ").expect("the line tells the address");
    (agent, url.to_owned())
}

/// The value of a metric of an agent with one device.
fn value(url: &str, metric: &str) -> f64 {
    let text = get(url);
    let line = text.lines().find(|line| line.starts_with(&format!("{metric}{{")));
    let (_, value) = line.unwrap_or_else(|| panic!("{metric} in\n{text}")).rsplit_once(' ').expect("a value");
    value.parse().expect("a number")
}

/// A coordinator with one node in a directory, whose sensor is at this url; and the url of its state.
fn coordinate(scene: &Scene, sensor: &str) -> (Running, String) {
    create_dir(scene.file("array")).expect("the directory of a test can be written");
    let (state, array) = (scene.text("state"), scene.text("array"));
    let text = format!(
        "[transfers]\nstate = \"{state}\"\nmetrics = \"127.0.0.1:0\"\n[node.array]\nurl = \"file://{array}\"\n\
         peak_write = \"120MB/s\"\nsensor = \"{sensor}\"\n"
    );
    scene.write("transfers.toml", text);
    let coordinator = Program::weir().args("transfers serve").arg(scene.text("transfers.toml")).start();
    let said = coordinator.wait_for("weir: coordinating");
    let (_, metrics) = said.rsplit_once("state on ").expect("the line tells the address");
    (coordinator, metrics.trim_end_matches("/metrics").to_owned())
}

/// What the coordinator says of its node.
fn node(url: &str) -> Value {
    let status: Value = serde_json::from_str(&get(&format!("{url}/v1/status"))).expect("it is JSON");
    status["nodes"][0].clone()
}

/// Waits until the node's sensor is stale for a reason with this text in it.
fn wait_until_stale(url: &str, why: &str) {
    let is_stale = || node(url)["sensor"]["stale"].as_str().is_some_and(|stale| stale.contains(why));
    wait_until(&format!("the sensor is stale: {why}"), is_stale);
}

fn wait_until_fresh(url: &str) {
    wait_until("the sensor is fresh", || node(url)["sensor"]["stale"].is_null());
}

/// What `weir nodes` prints.
fn nodes(scene: &Scene) -> String {
    Program::weir().args("nodes --server").arg(scene.text("transfers.toml")).run()
}

/// Stores a file of the scene.
fn put(scene: &Scene, name: &str) {
    scene.write(name, vec![7; MIB]);
    Program::weir().args("put --server").arg(scene.text("transfers.toml")).arg(scene.text(name)).run();
}

#[test]
fn an_agent_counts_what_is_written_to_the_device_of_its_directory_and_ends_well() {
    let scene = Scene::new();
    if !is_on_a_device(scene.path()) {
        return;
    }
    let (mut agent, url) = agent(&scene, "127.0.0.1:0");
    assert!((value(&url, "weir_node_device_present") - 1.0).abs() < f64::EPSILON);
    let before = value(&url, "weir_node_device_written_bytes_total");
    let mut file = File::create(scene.file("data")).expect("the scene can be written");
    file.write_all(&vec![3; 8 * MIB]).expect("there is room");
    file.sync_all().expect("the disk takes it");
    wait_until("the device has written the file", || {
        value(&url, "weir_node_device_written_bytes_total") - before >= (8 * MIB) as f64
    });
    for metric in ["read_bytes_total", "reads_total", "writes_total", "busy_seconds_total"] {
        assert!(value(&url, &format!("weir_node_device_{metric}")) >= 0.0);
    }
    agent.signal(Signal::TERM);
    let Outcome { code, out, .. } = agent.wait();
    assert_eq!((code, out.lines().last()), (Some(0), Some("weir: stopped")));
}

#[test]
fn arguments_of_an_agent_that_make_no_sense_are_refused_in_one_line() {
    let scene = Scene::new();
    scene.write("file", "");
    let (file, none, own) = (scene.text("file"), scene.text("none"), scene.path().display().to_string());
    let mut cases = vec![
        (String::new(), "found neither a directory nor a device; accepted: --path DIR"),
        (format!("--path {none}"), "found nothing that can be used (No such file or directory"),
        (format!("--path {file}"), "found no directory; accepted: a directory on a block device"),
        ("--path /proc".to_owned(), "found a directory on proc, which is on no block device of this host"),
        (
            "--device nosuch0".to_owned(),
            "found no block device of this name; accepted: a name in /sys/class/block",
        ),
        ("--device /dev/sda".to_owned(), "found \"/dev/sda\"; accepted: a name in /sys/class/block"),
    ];
    if is_on_a_device(scene.path()) {
        cases.push((format!("--path {own} --path {own}/"), "found it twice; accepted: each directory"));
        cases.push((
            format!("--path {own} --listen nowhere"),
            "--listen: found \"nowhere\"; accepted: an address",
        ));
    }
    for (arguments, expected) in cases {
        let Outcome { code, out, log } = Program::weir().args("node agent").args(&arguments).outcome();
        assert_eq!((code, out.as_str(), log.lines().count()), (Some(64), "", 1), "{arguments}\n{log}");
        assert!(log.starts_with("node agent: ") && log.contains(expected), "{arguments}\n{log}");
    }
}

#[test]
fn the_sensor_of_a_node_is_stale_while_its_agent_is_away_and_counts_again_when_it_is_back() {
    let scene = Scene::new();
    if !is_on_a_device(scene.path()) {
        return;
    }
    let (first, sensor) = agent(&scene, "127.0.0.1:0");
    let (mut coordinator, url) = coordinate(&scene, &sensor);
    wait_until_fresh(&url);
    assert!(node(&url)["writes"]["external_bytes_per_s"].is_u64(), "{}", node(&url));
    let metrics = get(&format!("{url}/metrics"));
    for line in
        ["weir_node_sensor_fresh{node=\"array\"} 1", "weir_node_external_bytes_per_second{node=\"array\""]
    {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    first.kill();
    wait_until_stale(&url, "no connection");
    assert!(node(&url)["writes"]["external_bytes_per_s"].is_null(), "{}", node(&url));
    let metrics = get(&format!("{url}/metrics"));
    assert!(metrics.contains("weir_node_sensor_fresh{node=\"array\"} 0"), "{metrics}");
    assert!(!metrics.contains("weir_node_external_bytes_per_second{"), "{metrics}");
    let top = Program::weir().args("top --times 1 --server").arg(&url).run();
    for shown in [nodes(&scene), Program::weir().args("status --server").arg(&url).run(), top] {
        assert!(shown.contains("array: its sensor is stale: no connection"), "{shown}");
    }
    put(&scene, "while-it-is-away");
    let (_, address) = sensor.split_once("//").expect("a url");
    let (_second, _) = agent(&scene, address.trim_end_matches("/metrics"));
    wait_until_fresh(&url);
    assert!(!nodes(&scene).contains("stale"), "{}", nodes(&scene));
    coordinator.signal(Signal::TERM);
    assert_eq!(coordinator.wait().code, Some(0));
}

#[test]
fn a_sensor_that_talks_nonsense_or_for_ever_or_not_at_all_disturbs_nobody_and_is_believed_when_it_mends() {
    let scene = Scene::new();
    let sensor = OddSensor::new();
    let (mut coordinator, url) = coordinate(&scene, &sensor.url());
    wait_until_fresh(&url);
    wait_until("the load of others is seen", || {
        node(&url)["writes"]["external_bytes_per_s"].as_u64().is_some_and(|rate| rate > 0)
    });
    for (place, manner, why) in [
        (1, Manner::Garbage, "accepted: the metrics of weir node agent"),
        (2, Manner::Odd, "accepted: each counter of a device once, as a whole number"),
        (3, Manner::Endless, "it is longer than 64 KiB"),
        (4, Manner::Mute, "no answer within 1 s"),
        (5, Manner::Cut, "found a page that is cut short"),
    ] {
        sensor.set(manner);
        wait_until_stale(&url, why);
        put(&scene, &format!("object-{place}"));
    }
    sensor.set(Manner::Good);
    wait_until_fresh(&url);
    assert_eq!(node(&url)["objects"], 5);
    assert!(!nodes(&scene).contains("stale"));
    coordinator.signal(Signal::TERM);
    assert_eq!(coordinator.wait().code, Some(0));
}

#[test]
fn a_node_without_a_sensor_shows_a_dash_and_has_no_metric_of_one() {
    let scene = Scene::new();
    create_dir(scene.file("array")).expect("the directory of a test can be written");
    let (state, array) = (scene.text("state"), scene.text("array"));
    let text = format!(
        "[transfers]\nstate = \"{state}\"\nmetrics = \"127.0.0.1:0\"\n[node.array]\nurl = \"file://{array}\"\n"
    );
    scene.write("transfers.toml", text);
    let coordinator = Program::weir().args("transfers serve").arg(scene.text("transfers.toml")).start();
    let said = coordinator.wait_for("weir: coordinating");
    let (_, metrics) = said.rsplit_once("state on ").expect("the line tells the address");
    let text = get(metrics);
    assert!(
        !text.contains("weir_node_sensor_fresh{") && !text.contains("external_bytes_per_second{"),
        "{text}"
    );
    let shown = nodes(&scene);
    assert!(shown.contains("external") && !shown.contains("stale"), "{shown}");
}
