//! `control = "promise"`: a volume without a promise is held back as far as a promise needs it, and the
//! reports say how far.

use serde_json::Value;

use crate::harness::{Outcome, Program, Running, Scene, Server, get, status, wait_until};

/// The hog's requests take the station whole: 4 servers of 1 ms have 32 of them waiting, and a request of the
/// database behind these takes 9 ms.
const POOL: &str = "[pool.p]\ncontrol = \"promise\"\n\
    [volume.db]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\n\
    target = { latency = \"3ms\" }\npriority = 4\n\
    [volume.hog]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\n\
    [station.s]\nservers = 4\nservice_time = \"1ms\"\n";

/// Reads of a volume, until the load is dropped.
fn load(server: &Server, volume: &str, depth: u32) -> Running {
    let load = Program::weir().arg("load").arg(server.uri(volume));
    load.args(&format!("--reads 100 --depth {depth} --duration 5m")).start()
}

fn pool(server: &Server) -> Value {
    status(server)["pools"][0].clone()
}

fn volume(server: &Server, name: &str) -> Value {
    let volumes = pool(server)["volumes"].as_array().expect("volumes").clone();
    volumes.into_iter().find(|volume| volume["name"] == name).expect("it is served")
}

/// How many requests of background volumes may be at the device.
fn most(server: &Server) -> Option<u64> {
    pool(server)["background"]["most"].as_u64()
}

fn set(scene: &Scene, words: &str) -> Outcome {
    Program::weir().arg("set").args(words).arg("--server").arg(scene.control()).outcome()
}

fn set_well(scene: &Scene, words: &str) {
    let Outcome { code, out, log } = set(scene, words);
    assert_eq!((code, log.as_str()), (Some(0), ""), "{words}: {out}");
}

#[test]
fn a_hog_beside_a_promised_volume_gets_a_bound_that_every_report_shows_and_a_recording_repeats() {
    let scene = Scene::new();
    let out = scene.file("recorded");
    let server = Server::record(&scene.configure_controlled(POOL), &out);
    assert_eq!(pool(&server)["control"], "promise");
    assert!(most(&server).is_none_or(|most| most >= 64), "nobody needs it yet");
    let loads = [load(&server, "db", 2), load(&server, "hog", 32)];
    wait_until("the hog has a bound", || most(&server).is_some_and(|most| most < 32));
    let shown = Program::weir().args("status --server").arg(scene.control()).run();
    for words in ["background volumes", "worst off", "latency 3.00 ms"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    for name in ["db", "hog"] {
        let explained =
            Program::weir().args(&format!("explain volume {name} --server")).arg(scene.control()).run();
        let which = format!("volume {name} in pool p: background volumes: ");
        assert!(explained.starts_with(&which), "{explained}");
    }
    let metrics = get(&server.metrics);
    assert!(metrics.contains("weir_pool_background_share{pool=\"p\"}"), "{metrics}");
    drop(loads);
    server.stop();
    let Outcome { code, out, log } = Program::weir().args("replay --decisions").arg(out.display()).outcome();
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.trim_end().ends_with("all decided identically"), "{out}");
}

#[test]
fn a_promise_that_the_device_cannot_keep_is_named_in_every_report_until_it_is_lowered() {
    let scene = Scene::new();
    let too_much = POOL.replace("latency = \"3ms\"", "latency = \"400us\"");
    let server = Server::start(&scene.configure_controlled(&too_much));
    let loads = [load(&server, "db", 2), load(&server, "hog", 32)];
    let missed = |server: &Server| pool(server)["background"]["cannot_be_met"].clone();
    wait_until("it is said that the promise cannot be met", || !missed(&server).is_null());
    let said = missed(&server);
    assert_eq!((&said["volume"], &said["cause"]), (&"db".into(), &"device".into()), "{said}");
    assert!(
        said["times"].as_f64().is_some_and(|times| (2.0..10.0).contains(&times)),
        "a read takes 1 ms: {said}"
    );
    let metrics = get(&server.metrics);
    assert!(metrics.contains("weir_pool_cannot_be_met{pool=\"p\",volume=\"db\"}"), "{metrics}");
    for words in [
        format!("status --server {}", scene.control()),
        format!("explain volume db --server {}", scene.control()),
    ] {
        let shown = Program::weir().args(&words).run();
        assert!(shown.contains("because of the device"), "{words}: {shown}");
    }
    set_well(&scene, "volume db target.latency=50ms");
    wait_until("the promise is within reach again", || missed(&server).is_null());
    for words in ["what is promised cannot be met: missed", "what is promised is within reach again"] {
        server.wait_for_log(0, words);
    }
    drop(loads);
    server.stop();
}

#[test]
fn promises_priorities_and_caps_are_set_while_serving_and_one_volume_has_one_promise() {
    let scene = Scene::new();
    let server = Server::start(&scene.configure_controlled(POOL));
    set_well(&scene, "volume db target.p99=8ms priority=8 max_concurrency=16");
    assert_eq!(volume(&server, "db")["target"]["metric"], "p99");
    set_well(&scene, "volume hog target.iops=100 max_iops=500iops");
    assert_eq!(volume(&server, "hog")["target"]["value"], 100.0);
    set_well(&scene, "volume hog target=none");
    assert_eq!(volume(&server, "hog")["target"], Value::Null);
    let refused = set(&scene, "pool p threshold=5ms");
    assert_ne!(refused.code, Some(0));
    assert!(refused.log.contains("a setting of control = \"pid\""), "{}", refused.log);
    server.stop();
}

#[test]
fn a_reload_changes_the_law_from_and_to_promises_under_load() {
    let scene = Scene::new();
    let server = scene.serve(POOL);
    let loads = [load(&server, "db", 2), load(&server, "hog", 32)];
    wait_until("the hog has a bound", || most(&server).is_some_and(|most| most < 32));
    let answered = |server: &Server| volume(server, "db")["requests"][0]["count"].as_u64().unwrap();
    let facade = POOL.replace("\"promise\"", "\"facade\"").replace("target = { latency = \"3ms\" }", "");
    server.reload(&facade.replace("priority = 4\n", "")).unwrap();
    assert_eq!((&pool(&server)["control"], &pool(&server)["background"]), (&"facade".into(), &Value::Null));
    let before = answered(&server);
    wait_until("the database is served", || answered(&server) > before + 10);
    server.reload(POOL).unwrap();
    assert_eq!(pool(&server)["control"], "promise");
    wait_until("the hog has a bound again", || most(&server).is_some_and(|most| most < 32));
    drop(loads);
    server.stop();
}
