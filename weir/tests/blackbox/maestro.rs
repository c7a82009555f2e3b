//! A pool under Maestro's law, from outside: bounds at the device, changes while serving, and the reports
//! about them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use weir_engine::Outcome as Decided;
use weir_engine::{Answer, Entry, Event, Input};
use weir_model::{IoId, VolumeId};
use weir_recording::Reader;

use crate::harness::{Outcome, Program, Scene, Server, get, status, wait_until};

/// The volumes ask for more than the station can do: 4 servers of 500 us do 8000 requests a second.
const POOL: &str = "[pool.p]\ncontrol = \"maestro\"\ntotal_concurrency = 6\ncontrol_interval = \"50ms\"\n\
    [volume.oltp]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\n\
    target = { latency = \"1ms\" }\npriority = 4\n\
    [volume.bulk]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\ntarget = { iops = 9000 }\n\
    [station.s]\nservers = 4\nservice_time = \"500us\"\n";

fn load(server: &Server, volume: &str, requests: u32) -> Program {
    let program = Program::weir().arg("load").arg(server.uri(volume));
    program.args("--reads 60 --connections 2 --depth 8 --requests").arg(requests)
}

/// Runs `weir set` with these words.
fn set(scene: &Scene, words: &str) -> Outcome {
    Program::weir().arg("set").args(words).arg("--server").arg(scene.control()).outcome()
}

/// Runs `weir set` with these words, which must succeed. Returns its output.
fn set_well(scene: &Scene, words: &str) -> String {
    let Outcome { code, out, log } = set(scene, words);
    assert_eq!((code, log.as_str()), (Some(0), ""), "{words}: {out}");
    out
}

/// The volume's part in the server's status.
fn sharing(server: &Server, volume: &str) -> Value {
    let status = status(server);
    let volumes = status["pools"][0]["volumes"].as_array().expect("volumes").clone();
    volumes.into_iter().find(|found| found["name"] == volume).expect("the volume")["sharing"].clone()
}

/// The last control intervals of a volume, the newest last.
fn intervals(server: &Server, volume: &str) -> Vec<Value> {
    let url = server.metrics.replace("/metrics", &format!("/v1/volumes/{volume}/intervals"));
    let explained: Value = serde_json::from_str(&get(&url)).expect("the answer is JSON");
    explained["intervals"].as_array().expect("intervals").clone()
}

/// Waits until `is_so` holds for the last control interval of a volume.
fn wait_for_an_interval(server: &Server, volume: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
    wait_until(what, || intervals(server, volume).last().is_some_and(&is_so));
}

/// What a recording shows about a volume.
#[derive(Default)]
struct Seen {
    /// Its bound.
    grant: Option<u32>,
    limit: Option<u32>,
    at_device: u32,
    issued: u64,
    bounds: Vec<u32>,
}

/// Reads the recording of a pool. Checks every request that goes to the device against the bounds of its
/// volume at that time. Returns what the recording shows about each volume.
fn check_bounds(path: &Path) -> BTreeMap<VolumeId, Seen> {
    let mut reader = Reader::open(path).unwrap();
    let mut volumes: BTreeMap<VolumeId, Seen> = BTreeMap::new();
    let mut owners: BTreeMap<IoId, VolumeId> = BTreeMap::new();
    while let Some((_, entry)) = reader.next_entry().unwrap() {
        let (input, decided) = match entry {
            Entry::Applied { input, outcome } => (input, outcome),
            Entry::Reported(Event::Granted { volume, grant, .. }) => {
                let seen = volumes.entry(volume).or_default();
                seen.grant = Some(grant.concurrency.get());
                seen.bounds.push(grant.concurrency.get());
                continue;
            }
            _ => continue,
        };
        match (input, decided) {
            (Input::AddVolume(config), Decided::Added(id)) | (Input::SetVolume { id, config }, _) => {
                volumes.entry(id).or_default().limit = config.concurrency.map(u32::from);
            }
            (Input::Submit(request), Decided::Submitted(id)) => drop(owners.insert(id, request.volume)),
            (Input::Dispatch, Decided::Dispatched(Answer::Issue(id))) => {
                let seen = volumes.get_mut(&owners[&id]).unwrap();
                seen.issued += 1;
                seen.at_device += 1;
                let bound = seen.grant.into_iter().chain(seen.limit).min().expect("every volume has a bound");
                assert!(seen.at_device <= bound, "{} at the device where {bound} may be", seen.at_device);
            }
            (Input::Complete { id, .. }, _) => volumes.get_mut(&owners[&id]).unwrap().at_device -= 1,
            _ => {}
        }
    }
    volumes
}

#[test]
fn bounds_are_obeyed_under_load_and_through_changes_and_decided_again_from_the_recording() {
    let scene = Scene::new();
    let out = scene.file("recorded");
    let server = Server::record(&scene.configure_controlled(POOL), &out);
    let oltp = load(&server, "oltp", 4_000).start();
    let bulk = load(&server, "bulk", 4_000).start();
    wait_for_an_interval(&server, "bulk", "both were measured", |last| last["achieved"].is_object());
    set_well(&scene, "volume bulk max_concurrency=1");
    set_well(&scene, "volume oltp priority=8 target.p95=900us");
    wait_for_an_interval(&server, "bulk", "its limit is its bound", |last| {
        last["grants"][0]["concurrency"] == 1
    });
    set_well(&scene, "volume bulk max_concurrency=none target=none");
    oltp.succeed();
    bulk.succeed();
    server.stop();
    let seen = check_bounds(&out.join("p.decisions"));
    assert!(seen.values().all(|seen| seen.issued >= 4_000), "all requests went to the device");
    assert!(seen.values().all(|seen| seen.bounds.len() > 1), "bounds were moved");
    let Outcome { code, out: said, log } =
        Program::weir().args("grants --total 6").arg(out.display()).outcome();
    assert_eq!(code, Some(0), "the bounds add up to more than the total: {said}{log}");
    let Outcome { code, out, log } = Program::weir().args("replay --decisions").arg(out.display()).outcome();
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.trim_end().ends_with("all decided identically"), "{out}");
}

#[test]
fn where_listeners_are_ports_each_has_a_bound_and_the_volume_is_one() {
    let scene = Scene::new();
    let pool = POOL.replace("[pool.p]\n", "[pool.p]\nports = \"listeners\"\n");
    let out = scene.file("recorded");
    let server = Server::record(&scene.configure_controlled(&pool), &out);
    let oltp = load(&server, "oltp", 3_000).start();
    let by_tcp =
        Program::weir().arg("load").arg(server.tcp_uri("bulk")).args("--depth 16 --requests 3000").start();
    let by_unix = load(&server, "bulk", 1_500).start();
    wait_for_an_interval(&server, "bulk", "it was measured", |last| last["achieved"].is_object());
    let grants = sharing(&server, "bulk")["effective"].as_array().unwrap().clone();
    let ports: Vec<_> = grants.iter().map(|grant| grant["port"].as_str().unwrap()).collect();
    assert_eq!(ports, ["127.0.0.1:0", &*format!("unix:{}", server.socket)]);
    let explained = Program::weir().args("explain volume bulk --server").arg(scene.control()).run();
    assert!(explained.contains("its share is dealt out to its ports"), "{explained}");
    assert!(explained.contains("127.0.0.1:0 ") && explained.contains(" + unix:"), "{explained}");
    [oltp, by_tcp, by_unix].into_iter().for_each(|load| drop(load.succeed()));
    let metrics = get(&server.metrics);
    let answered =
        metrics.lines().filter(|line| line.starts_with("weir_requests_total{pool=\"p\",volume=\"bulk\",op="));
    let answered: f64 = answered.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum();
    assert!((4_500.0..4_600.0).contains(&answered), "{answered} through both ports");
    let other = server.reload(POOL).unwrap_err();
    assert!(other.contains("pool.p.ports: cannot change while the pool is served"), "{other}");
    let rest = pool.replace("[volume.bulk]", "[volume.other]");
    server.reload(&rest).unwrap();
    server.wait_for_log(0, "no longer served");
    load(&server, "other", 100).run();
    server.stop();
    check_bounds(&out.join("p.decisions"));
    let Outcome { code, out: said, log } =
        Program::weir().args("grants --total 6").arg(out.display()).outcome();
    assert_eq!(code, Some(0), "{said}{log}");
    Program::weir().args("replay --decisions").arg(out.display()).run();
}

#[test]
fn what_is_set_is_desired_at_once_decided_upon_in_the_next_interval_and_gone_with_a_reload() {
    let scene = Scene::new();
    let server = Server::start(&scene.configure_controlled(POOL));
    wait_for_an_interval(&server, "oltp", "the law has seen it", |last| last["priority"] == 4.0);
    let before = sharing(&server, "oltp")["desired"].clone();
    let said = set_well(&scene, "volume oltp priority=8 target.iops=100 max_iops=200iops");
    assert!(said.contains("priority=8 target.iops=100 max_iops=200iops is in force within 50ms"), "{said}");
    assert!(said.contains("until ") && said.contains("weir.toml is read again"), "{said}");
    let now = sharing(&server, "oltp");
    assert_eq!((&now["desired"]["priority"], &now["desired"]["max_iops"]), (&8.0.into(), &200.0.into()));
    assert_eq!(now["desired"]["target"]["metric"], "iops");
    let seen = intervals(&server, "oltp").len();
    wait_for_an_interval(&server, "oltp", "the law has decided", |last| {
        last["priority"] == 8.0 && last["target"]["value"] == 100.0 && last["grants"][0]["max_iops"] == 200.0
    });
    assert!(seen > 0 && intervals(&server, "oltp").len() <= 30, "only the last are kept");
    set_well(&scene, "pool p total_concurrency=4");
    assert_eq!(status(&server)["pools"][0]["sharing"]["total_concurrency"], 4);
    server.reload(POOL).unwrap();
    assert_eq!(sharing(&server, "oltp")["desired"], before);
    assert_eq!(status(&server)["pools"][0]["sharing"]["total_concurrency"], 6);
}

#[test]
fn what_cannot_be_set_is_refused_in_one_line_and_changes_nothing() {
    let scene = Scene::new();
    let config = scene.configure_controlled(POOL);
    let server = Server::start(&config);
    let desired = |server: &Server| ["oltp", "bulk"].map(|volume| sharing(server, volume)["desired"].clone());
    let before = desired(&server);
    for (words, expected) in [
        ("volume oltp priority=0", "volume.oltp.priority: found 0; accepted: a number above zero"),
        ("volume oltp target.latency=0s", "volume.oltp.target.latency: found \"0s\"; accepted: a duration"),
        (
            "volume oltp target.latency=5ms target.iops=9 priority=2",
            "volume.oltp.target: found iops and latency; accepted: exactly one metric",
        ),
        ("volume nobody priority=2", "volume.nobody: found no such volume; accepted: \"bulk\", \"oltp\""),
        (
            "volume oltp backend=memory",
            "volume.oltp.backend: found a key that cannot be changed while serving",
        ),
        ("pool p total_concurrency=1", "pool.p.total_concurrency: found 1 requests for 2 volumes"),
    ] {
        let Outcome { code, out, log } = set(&scene, words);
        assert_eq!((code, out.as_str()), (Some(64), ""), "{words}: {log}");
        assert!(log.starts_with(expected) && log.lines().count() == 1, "{words}: {log}");
        assert_eq!(desired(&server), before, "{words}");
    }
    let metrics = server.metrics.replace("/metrics", "");
    for (at, found) in
        [(&*metrics, "found an address where nothing can be changed"), ("unix:/nowhere", "no answer")]
    {
        let Outcome { code, log, .. } =
            Program::weir().args("set volume oltp priority=2 --server").arg(at).outcome();
        assert_ne!(code, Some(0));
        assert!(log.contains(found) && log.lines().count() == 1, "{log}");
    }
    assert_eq!(desired(&server), before);
    let posted = ureq::post(format!("{metrics}/v1/changes")).send("{}");
    assert!(
        matches!(posted, Err(ureq::Error::StatusCode(404))),
        "nothing can be changed at the metrics address"
    );
    let file = Program::weir().args("set volume oltp priority=2 --server").arg(config.display()).run();
    assert!(file.starts_with("volume oltp: priority=2 is in force"), "{file}");
}

#[test]
fn the_control_socket_is_its_owners_alone_and_goes_with_the_server() {
    let scene = Scene::new();
    let config = scene.configure_controlled(POOL);
    let server = Server::start(&config);
    let socket = scene.file("control.sock");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    server.kill();
    assert!(socket.exists(), "as a killed server leaves it");
    let server = Server::start(&config);
    set_well(&scene, "volume oltp priority=2");
    server.stop();
    assert!(!socket.exists());
    scene.write("control.sock", "precious");
    let Outcome { code, log, .. } = Program::weir().arg("serve").arg(config.display()).outcome();
    assert_eq!(code, Some(64));
    assert!(
        log.contains("listen.control: ") && log.contains("not a socket") && log.lines().count() == 1,
        "{log}"
    );
}

#[test]
fn status_and_explain_say_what_is_desired_in_force_and_achieved_and_why() {
    let scene = Scene::new();
    let more = format!(
        "{POOL}[pool.f]\ncontrol = \"facade\"\n[volume.other]\npool = \"f\"\nbackend = \"memory\"\nsize = \"1MiB\"\n"
    );
    let server = Server::start(&scene.configure_controlled(&more));
    let _loads = ["oltp", "bulk"].map(|volume| {
        Program::weir().arg("load").arg(server.uri(volume)).args("--depth 8 --duration 90s").start()
    });
    wait_for_an_interval(&server, "oltp", "it was measured", |last| last["achieved"].is_object());
    for source in [server.metrics.replace("/metrics", ""), scene.control()] {
        let status = Program::weir().args("status --server").arg(&source).run();
        for part in [
            "pool p: at most 6 at the device",
            "desired",
            "effective",
            "achieved",
            "of target",
            "latency 1.00 ms",
            "iops 9000 IO/s",
        ] {
            assert!(status.contains(part), "{part} in\n{status}");
        }
        assert!(status.lines().any(|line| line.trim_start().starts_with("other ")), "{status}");
        let explained = Program::weir().args("explain volume oltp --server").arg(&source).run();
        for part in [
            "volume oltp in pool p",
            "measured",
            "slope",
            "fit",
            "asked",
            "case",
            "bound by",
            "load",
            "s ago",
        ] {
            assert!(explained.contains(part), "{part} in\n{explained}");
        }
        let other = Program::weir().args("explain volume other --server").arg(&source).run();
        assert!(other.contains("control = \"facade\"") && other.lines().count() == 1, "{other}");
        let Outcome { code, log, .. } =
            Program::weir().args("explain volume none --server").arg(&source).outcome();
        assert_eq!((code, log.as_str()), (Some(64), "volume none: not served; accepted: bulk, oltp, other"));
    }
    let metrics = get(&server.metrics);
    for series in [
        "weir_pool_total_concurrency{pool=\"p\"} 6",
        "weir_pool_overload{pool=\"p\"} ",
        "weir_priority{pool=\"p\",volume=\"oltp\"} 4",
        "weir_target_latency_seconds{pool=\"p\",volume=\"oltp\",metric=\"latency\"} 0.001",
        "weir_target_requests_per_second{pool=\"p\",volume=\"bulk\",metric=\"iops\"} 9000",
        "weir_target_performance_ratio{pool=\"p\",volume=\"oltp\"} ",
        "weir_granted_concurrency{pool=\"p\",volume=\"bulk\",port=\"\"} ",
    ] {
        assert!(metrics.lines().any(|line| line.starts_with(series)), "{series} in\n{metrics}");
    }
}
