//! `weir replay`: traces of every format, on a simulated array, in simulated and in real time.

use std::path::Path;

use serde_json::Value;

use crate::harness::{Outcome, Program, Scene, skipped};

/// A pool on a station with eight servers that take 1 ms, with one volume `v` of 64 MiB and an SLO of 20 ms.
pub(crate) fn pool(scene: &Scene) -> String {
    let image = scene.text("v.img");
    format!(
        "[pool.p]\n[array.a]\ndisks = 1\nraid = \"single\"\nsize = \"1GiB\"\n\
         station = {{ servers = 8, service_time = \"1ms\", exponential = false }}\n\
         [volume.v]\npool = \"p\"\nbackend = \"array:a:{image}\"\nsize = \"64MiB\"\n\
         slo = [{{ up_to = \"2000iops\", read = \"20ms\", write = \"20ms\" }}]\n"
    )
}

/// A trace of `count` requests, 2 ms apart, every fourth a write, on a device that is larger than the volume.
pub(crate) fn trace(scene: &Scene, count: u64) -> String {
    let line = |n: u64| {
        let operation = if n % 4 == 3 { "W" } else { "R" };
        format!("{},{operation},{},4096\n", n * 2_000, n * 7_919 * 4_096 % (1 << 40))
    };
    let lines: String = (0..count).map(line).collect();
    scene.write("trace.csv", format!("t_us,op,offset,length\n{lines}"));
    scene.text("trace.csv")
}

fn replay(scene: &Scene, trace: &str, more: &str) -> Outcome {
    let config = scene.configure(&pool(scene));
    Program::weir().arg("replay").arg(trace).arg("--pool").arg(config.display()).args(more).outcome()
}

fn report(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, Some(0), "{}\n{}", outcome.out, outcome.log);
    serde_json::from_str(&outcome.out).expect("JSON")
}

#[test]
fn a_replay_in_simulated_time_shows_what_the_array_takes_and_is_the_same_every_time() {
    let scene = Scene::new();
    let trace = trace(&scene, 2_000);
    let first = replay(&scene, &trace, "--json");
    let found = report(&first);
    assert_eq!((found["offered"].as_u64(), found["completed"].as_u64()), (Some(2_000), Some(2_000)));
    assert_eq!(
        (found["read"]["completed"].as_u64(), found["write"]["completed"].as_u64()),
        (Some(1_500), Some(500))
    );
    assert_eq!((found["format"].as_str(), found["against"].as_str()), (Some("csv"), Some("sim")));
    let mean_us = found["both"]["mean_us"].as_f64().unwrap();
    assert!((mean_us - 1_000.0).abs() < 5.0, "{mean_us} us where the station takes 1 ms");
    assert_eq!(found["slo_attainment"].as_f64(), Some(1.0));
    assert_eq!(replay(&scene, &trace, "--json").out, first.out);
    assert!(!scene.file("v.img").exists(), "simulated time needs no file");
}

#[test]
fn a_replay_in_real_time_sends_the_same_requests_and_leaves_nothing_behind() {
    let scene = Scene::new();
    let trace = trace(&scene, 400);
    let found = report(&replay(&scene, &trace, "--json --against real --speed 2x"));
    assert_eq!((found["offered"].as_u64(), found["completed"].as_u64()), (Some(400), Some(400)));
    assert_eq!(
        (found["read"]["completed"].as_u64(), found["write"]["completed"].as_u64()),
        (Some(300), Some(100))
    );
    assert_eq!((found["errors"].as_u64(), found["unanswered"].as_u64()), (Some(0), Some(0)));
    assert!(found["both"]["p50_us"].as_f64().unwrap() >= 1_000.0, "the array takes 1 ms: {found}");
    assert_eq!(scene.listing(), ["trace.csv", "weir.toml"]);
}

#[test]
fn a_replay_against_a_server_that_runs_tells_its_latencies_and_its_windows() {
    let scene = Scene::new();
    let trace = trace(&scene, 600);
    let server = scene.serve(&pool(&scene));
    // The configuration names port 0, but the replay that asks for the status must know the real port.
    let metrics = server.metrics.trim_start_matches("http://").trim_end_matches("/metrics");
    let listen = format!("[listen]\nnbd = [\"127.0.0.1:0\"]\nmetrics = \"{metrics}\"\n");
    let config = scene.write("known.toml", format!("{listen}{}", pool(&scene)));
    let outcome = Program::weir()
        .arg("replay")
        .arg(&trace)
        .arg("--pool")
        .arg(config.display())
        .arg("--server")
        .arg(server.uri("v"))
        .arg("--json")
        .outcome();
    let found = report(&outcome);
    assert_eq!((found["completed"].as_u64(), found["against"].as_str()), (Some(600), Some("server")));
    assert!(
        found["windows_met"].as_u64().unwrap() + found["windows_missed"].as_u64().unwrap() >= 1,
        "{found}"
    );
    server.stop();
}

#[test]
fn the_table_has_units_and_says_in_which_time_it_was() {
    let scene = Scene::new();
    let outcome = replay(&scene, &trace(&scene, 100), "--speed 2x");
    assert_eq!(outcome.code, Some(0), "{}", outcome.log);
    for part in ["at 2x on volume v, in simulated time", "IO/s", "p99.9", "1.00 ms", "SLO", "0 sent late"] {
        assert!(outcome.out.contains(part), "{part:?} in\n{}", outcome.out);
    }
}

#[test]
fn the_formats_of_others_are_found_out_or_told() {
    let scene = Scene::new();
    for (format, text) in [
        (
            "msr",
            "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,0,Write,0,512,9\n",
        ),
        ("spc", "0,303567,3584,w,0.000000\n1,55590,3072,r,0.026214\n"),
        (
            "blkparse",
            "  8,0    3  1  0.000000000   697  Q   W 223490 + 8 [a]\n  8,0    3  2  0.1   697  Q   R 8 + 8 [a]\n",
        ),
        (
            "iolog",
            "fio version 2 iolog\n/d add\n/d open\n/d write 0 4096\n/d wait 10 0\n/d read 4096 4096\n/d close\n",
        ),
        (
            "iolog",
            "fio version 3 iolog\n0 /d add\n1 /d open\n5 /d write 0 4096\n1000 /d read 4096 4096\n2000 /d close\n",
        ),
    ] {
        scene.write("t", text);
        for more in ["--json".to_owned(), format!("--json --format {format}")] {
            let found = report(&replay(&scene, &scene.text("t"), &more));
            assert_eq!((found["format"].as_str(), found["completed"].as_u64()), (Some(format), Some(2)));
        }
    }
}

#[test]
fn a_broken_line_is_refused_with_its_place_unless_it_is_to_be_skipped() {
    let scene = Scene::new();
    let trace = trace(&scene, 10);
    let text = std::fs::read_to_string(&trace).unwrap();
    scene.write("trace.csv", text + "what is this\n30000,R,0,512\n");
    let refused = replay(&scene, &trace, "--json");
    assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""));
    let expected = format!("{trace}:12: found \"what is this\"; accepted: 4 fields: t_us,op,offset,length");
    assert_eq!(refused.log.trim(), expected);
    let skipped = replay(&scene, &trace, "--json --skip-broken");
    assert_eq!(report(&skipped)["completed"].as_u64(), Some(11));
    assert!(skipped.log.contains("1 lines are broken") && skipped.log.contains(&expected), "{}", skipped.log);
}

#[test]
fn what_cannot_be_replayed_is_refused_with_what_can() {
    let scene = Scene::new();
    let trace = trace(&scene, 10);
    scene.write("empty.csv", "t_us,op,offset,length\n");
    scene.write("text", "hello\n");
    for (file, more, part) in [
        ("absent", "", "cannot open the trace"),
        ("text", "", "accepted: iolog (\"fio version 2 iolog\""),
        ("empty.csv", "", "found no read and no write"),
        ("trace.csv", "--volume w", "found no volume \"w\"; accepted: one of v"),
        ("trace.csv", "--speed 20", "a factor such as 20x"),
        ("trace.csv", "--format spc", "accepted: spc (ASU,LBA,Size,Opcode,Timestamp)"),
        ("trace.csv", "--format foo", "accepted: iolog, csv, msr, spc, blkparse"),
    ] {
        let outcome = replay(&scene, &scene.text(file), more);
        assert_eq!(outcome.code, Some(64), "{file} {more}: {}", outcome.log);
        assert!(outcome.log.contains(part), "{part:?} in {}", outcome.log);
    }
    let memory = "[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";
    let config = scene.configure(memory);
    let outcome = Program::weir().arg("replay").arg(&trace).arg("--pool").arg(config.display()).outcome();
    assert_eq!(outcome.code, Some(64));
    assert!(
        outcome.log.contains("volume.v.backend: found a backend that is no simulated array"),
        "{}",
        outcome.log
    );
}

#[test]
fn a_recording_of_the_project_is_replayed_to_its_end() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces");
    is_replayed_to_its_end(&format!("{folder}/windows11-boot/windows11-boot.csv.gz"), 172_287);
}

#[test]
fn recordings_that_the_project_cannot_carry_are_replayed_to_their_end() {
    for (name, requests) in [("msn-fs-30s", 149_999), ("dtrs-5min", 127_043)] {
        let folder = std::env::var("WEIR_TRACES").unwrap_or_default();
        let path = format!("{folder}/{name}/{name}.csv.gz");
        if Path::new(&path).exists() {
            is_replayed_to_its_end(&path, requests);
        } else {
            skipped(&format!("replay of {name}"), "no folder that WEIR_TRACES names has it: docs/traces.md");
        }
    }
}

fn is_replayed_to_its_end(trace: &str, requests: u64) {
    let found = report(&replay(&Scene::new(), trace, "--json"));
    assert_eq!((found["offered"].as_u64(), found["completed"].as_u64()), (Some(requests), Some(requests)));
}
