//! `weir why`: causes that are planted in a running server are named by the command and by the API.

use serde_json::Value;

use crate::harness::{Outcome, Program, Running, Scene, Server, get, wait_until};

/// A hog and a database before a station whose four servers take 1 ms each.
const STATION: &str = "[volume.db]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\nDB\
    [volume.hog]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\n\
    [station.s]\nservers = 4\nservice_time = \"1ms\"\n";

fn pool(control: &str, db: &str) -> String {
    format!("[pool.p]\ncontrol = \"{control}\"\n{}", STATION.replace("DB", db))
}

/// Reads of a volume, until the load is dropped.
fn load(server: &Server, volume: &str, depth: u32) -> Running {
    let load = Program::weir().arg("load").arg(server.uri(volume));
    load.args(&format!("--reads 100 --depth {depth} --duration 5m")).start()
}

fn why(scene: &Scene, words: &str) -> Value {
    let said =
        Program::weir().args(&format!("why {words} --last 10s --json --server")).arg(scene.control()).run();
    serde_json::from_str(&said).expect("it is JSON")
}

/// The mean of a part, in microseconds.
fn mean(why: &Value, part: &str) -> f64 {
    why["latencies"][0][part].as_f64().unwrap_or_default()
}

fn refused(scene: &Scene, words: &str) -> String {
    let Outcome { code, log, .. } =
        Program::weir().args(words).arg("--server").arg(scene.control()).outcome();
    assert_ne!(code, Some(0), "{words}");
    log
}

#[test]
fn a_hog_that_is_held_back_for_a_promise_is_told_whose_promise_it_is() {
    let scene = Scene::new();
    let promised = pool("promise", "target = { latency = \"3ms\" }\n");
    let server = Server::start(&scene.configure_controlled(&promised));
    let loads = [load(&server, "db", 2), load(&server, "hog", 32)];
    wait_until("most of the hog's time is its turn", || {
        let why = why(&scene, "hog");
        mean(&why, "turn_us") > mean(&why, "device_us") && why["waited_for"][0]["volume"] == "db"
    });
    let hog = why(&scene, "hog");
    assert_eq!(hog["held_back"][0]["by"], "background_bound", "{hog}");
    let said = Program::weir().args("why hog --last 10s --server").arg(scene.control()).run();
    for words in
        ["volume hog in pool p", "waiting for their turn at the bound of background", "on behalf of db"]
    {
        assert!(said.contains(words), "{words} in\n{said}");
    }
    let db = why(&scene, "db");
    // A gate holds no promised request back: it waits only until weir comes to it.
    let held_back = db["held_back"].as_array().expect("a list");
    assert!(held_back.iter().all(|held| held["by"] == "driver"), "{db}");
    assert_eq!(db["latencies"][0]["own_limit_us"], 0.0, "{db}");
    drop(loads);
    server.stop();
}

#[test]
fn an_own_cap_a_hog_at_the_device_and_parts_that_add_up_are_told_over_http() {
    let scene = Scene::new();
    let capped = pool("facade", "max_iops = \"100iops\"\n");
    let server = Server::start(&scene.configure_controlled(&capped));
    let loads = [load(&server, "db", 4), load(&server, "hog", 64)];
    wait_until("the database waits for its own cap", || {
        let why = why(&scene, "db");
        mean(&why, "own_limit_us") > mean(&why, "total_us") / 2.0 && why["held_back"][0]["by"] == "rate"
    });
    let said = Program::weir().args("why db --server").arg(scene.control()).run();
    assert!(said.contains("held back by its own max_iops"), "{said}");
    let url = server.metrics.replace("/metrics", "/v1/volumes/hog/why?last_s=10");
    let ask = || serde_json::from_str::<Value>(&get(&url)).expect("the answer is JSON");
    wait_until("the hog is at the device beside itself", || ask()["beside"][0]["whose"] == "itself");
    let hog = ask();
    for latency in hog["latencies"].as_array().expect("some were answered") {
        let parts = ["own_limit_us", "turn_us", "device_us", "held_us", "reply_us"];
        let sum: f64 = parts.iter().map(|part| latency[part].as_f64().unwrap()).sum();
        let total = latency["total_us"].as_f64().unwrap();
        assert!((sum - total).abs() < 1e-6 * total, "{latency}");
    }
    drop(loads);
    server.stop();
}

#[test]
fn a_question_that_cannot_be_answered_is_refused_with_what_would_be() {
    let scene = Scene::new();
    let server = Server::start(&scene.configure_controlled(&pool("none", "")));
    assert!(refused(&scene, "why hugo").contains("volume hugo: not served; accepted: db, hog"));
    assert!(refused(&scene, "why db --last 4m").contains("from 1s to 3m"));
    let silent = why(&scene, "db");
    assert_eq!((&silent["requests"], &silent["control"]), (&0.into(), &"none".into()));
    let said = Program::weir().args("why db --server").arg(scene.control()).run();
    assert!(said.contains("No request came"), "{said}");
    server.stop();
}
