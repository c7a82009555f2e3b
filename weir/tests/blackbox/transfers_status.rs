//! What a coordinator of bulk transfers tells of itself: `weir status`, `weir top`, `/metrics`.

use std::fs::create_dir;
use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Outcome, Program, Running, Scene, get};

/// Two nodes in directories of the scene.
fn configure(scene: &Scene, metrics: &str) -> String {
    let node = |name: &str| {
        create_dir(scene.file(name)).expect("the directory of a test can be written");
        format!("[node.{name}]\nurl = \"file://{}\"\npeak_write = \"120MB/s\"\n", scene.text(name))
    };
    let (state, nodes) = (scene.text("state"), ["array", "disk"].map(node).concat());
    let text = format!("[transfers]\nstate = \"{state}\"\nmetrics = \"{metrics}\"\n{nodes}");
    scene.write("transfers.toml", text);
    scene.text("transfers.toml")
}

/// A coordinator that serves, and the URL of its state.
fn coordinate(file: &str) -> (Running, String) {
    let coordinator = Program::weir().args("transfers serve").arg(file).start();
    let said = coordinator.wait_for("weir: coordinating");
    let (_, metrics) = said.rsplit_once("state on ").expect("the line tells the address");
    (coordinator, metrics.trim_end_matches("/metrics").to_owned())
}

#[test]
fn a_coordinator_tells_its_nodes_and_what_was_put_in_its_status_and_its_metrics() {
    let scene = Scene::new();
    let file = configure(&scene, "127.0.0.1:0");
    let (mut coordinator, url) = coordinate(&file);
    scene.write("db.dump", vec![7; 3_000_000]);
    Program::weir().args("put --server").arg(&file).arg(scene.text("db.dump")).run();
    let status: Value = serde_json::from_str(&get(&format!("{url}/v1/status"))).expect("it is JSON");
    assert_eq!((&status["policy"], &status["ended"]["done"]), (&"deadline".into(), &1.into()), "{status}");
    let nodes = status["nodes"].as_array().expect("a list");
    assert_eq!(nodes.iter().map(|node| &node["name"]).collect::<Vec<_>>(), ["array", "disk"], "{status}");
    let holder = nodes.iter().find(|node| node["objects"] == 1).expect("a node has it");
    assert_eq!((&holder["stored_bytes"], &holder["down"]), (&3_000_000.into(), &Value::Null), "{status}");
    let metrics = get(&format!("{url}/metrics"));
    let name = holder["name"].as_str().expect("a text");
    for line in [
        "weir_transfers_ended_total{outcome=\"done\"} 1".to_owned(),
        "weir_transfers_waiting 0".to_owned(),
        format!("weir_node_up{{node=\"{name}\"}} 1"),
        format!("weir_node_stored_bytes{{node=\"{name}\"}} 3000000"),
        format!("weir_node_moved_bytes_total{{node=\"{name}\",direction=\"write\"}} 3000000"),
        format!("weir_node_peak_bytes_per_second{{node=\"{name}\",direction=\"write\"}} 120000000"),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line:?} in\n{metrics}");
    }
    for shown in [
        Program::weir().args("status --server").arg(&url).run(),
        Program::weir().args("top --times 1 --server").arg(&url).run(),
    ] {
        for part in ["since the start 1 done", "array", "disk", "up", "3.00 MB", "120 MB/s"] {
            assert!(shown.contains(part), "{part:?} in\n{shown}");
        }
    }
    coordinator.signal(Signal::TERM);
    assert_eq!(coordinator.wait().code, Some(0));
}

#[test]
fn what_a_coordinator_knows_is_told_as_json_with_units_in_its_names() {
    let scene = Scene::new();
    let file = configure(&scene, "127.0.0.1:0");
    let (mut coordinator, _) = coordinate(&file);
    scene.write("db.dump", vec![7; 3_000_000]);
    let asked = |words: &str| {
        let said = Program::weir().args(words).arg("--json").arg("--server").arg(&file).run();
        serde_json::from_str::<Value>(&said).unwrap_or_else(|error| panic!("{words}: {error}: {said}"))
    };
    let put = asked(&format!("put {}", scene.text("db.dump")));
    assert_eq!((&put["object"], &put["bytes"]), (&"db.dump".into(), &3_000_000.into()), "{put}");
    assert!(put["took_ms"].is_u64() && put["bytes_per_s"].is_u64(), "{put}");
    let (objects, object) = (asked("ls"), asked("stat db.dump"));
    assert_eq!(objects["objects"][0], object);
    let hash = |of: &Value| of["blake3"].as_str().map(str::len);
    assert_eq!((object["bytes"].as_u64(), hash(&object)), (Some(3_000_000), Some(64)), "{object}");
    let good = asked("verify db.dump");
    assert_eq!((&good["node"], &good["verdict"]), (&put["node"], &"good".into()), "{good}");
    let all = asked("transfers list --all");
    let done = &all["transfers"][0];
    assert_eq!((&done["state"], &done["moved_bytes"]), (&"done".into(), &3_000_000.into()), "{all}");
    assert_eq!(&asked(&format!("transfers show {}", done["transfer"])), done);
    let nodes = asked("nodes");
    let peak = &nodes["nodes"][0]["writes"]["peak_bytes_per_s"];
    assert_eq!((&nodes["policy"], peak), (&"deadline".into(), &120_000_000.into()), "{nodes}");
    coordinator.signal(Signal::TERM);
    assert_eq!(coordinator.wait().code, Some(0));
}

#[test]
fn the_address_of_a_coordinators_state_is_that_of_its_file_and_must_be_free() {
    let scene = Scene::new();
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = other.local_addr().expect("it is bound");
    let file = configure(&scene, &address.to_string());
    let Outcome { code, out, log } = Program::weir().args("transfers serve").arg(&file).outcome();
    assert_eq!((code, out.as_str()), (Some(64), ""), "{log}");
    assert!(log.contains(&format!("transfers.metrics: {address}: cannot listen")), "{log}");
    drop(other);
    let Outcome { code, log, .. } = Program::weir().args("status --server").arg(&file).outcome();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains(&address.to_string()), "{log}");
}
