//! `weir record` and `weir replay --decisions`: a replay makes a loaded server's decisions again, and finds a
//! change in a recording.

use std::fs;
use std::path::Path;

use weir_engine::{Entry, Recorder};
use weir_recording::{Ending, Reader, create};

use crate::harness::{Outcome, Program, Scene, Server, expect_refusal};

const POOL: &str = "[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\n\
    slo = [{ up_to = \"100000iops\", read = \"5ms\", write = \"5ms\" }]\n\
    [station.s]\nservers = 4\nservice_time = \"200us\"\n";

/// Everything that a reload can do to an engine: another law, one more volume, and one more pool.
const OTHER: &str = "[pool.p]\ncontrol = \"none\"\n[volume.v]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\n\
    [volume.w]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n\
    [pool.q]\n[volume.x]\npool = \"q\"\nbackend = \"memory\"\nsize = \"1MiB\"\n\
    [station.s]\nservers = 4\nservice_time = \"200us\"\n";

fn load(server: &Server, volume: &str, requests: u32) {
    Program::weir()
        .arg("load")
        .arg(server.uri(volume))
        .args("--reads 60 --connections 2 --depth 8 --flush-every 50 --requests")
        .arg(requests)
        .run();
}

/// Runs a server that is loaded, changed, loaded again and stopped. Its recordings are in `recorded`.
fn recorded(scene: &Scene) {
    let server = Server::record(&scene.configure(POOL), &scene.file("recorded"));
    load(&server, "v", 2_000);
    server.reload(OTHER).unwrap();
    load(&server, "v", 500);
    load(&server, "w", 200);
    load(&server, "x", 200);
    server.reload(POOL).unwrap();
    load(&server, "v", 500);
    server.stop();
}

fn replay(path: &Path) -> Outcome {
    Program::weir().args("replay --decisions").arg(path.display()).outcome()
}

#[test]
fn what_was_recorded_under_load_and_through_reloads_is_decided_again() {
    let scene = Scene::new();
    recorded(&scene);
    let Outcome { code, out, log } = replay(&scene.file("recorded"));
    assert_eq!(code, Some(0), "{out}{log}");
    assert_eq!(out.lines().count(), 2, "{out}");
    for (line, pool) in out.lines().zip(["p", "q"]) {
        assert!(line.contains(&format!("{pool}.decisions: pool {pool}: ")), "{line}");
        assert!(line.ends_with("all decided identically"), "{line}");
    }
}

#[test]
fn a_recording_that_was_changed_is_told_from_the_first_difference_on() {
    let scene = Scene::new();
    recorded(&scene);
    let (path, changed) = (scene.file("recorded").join("p.decisions"), scene.file("changed.decisions"));
    let at = rewrite(&path, &changed, 1_000);
    let Outcome { code, out, log } = replay(&changed);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("changed.decisions: pool p, recorded by weir "), "{log}");
    assert!(log.contains(&format!("the first difference is entry {at}, ")), "{log}");
    assert!(log.contains("ok: true") && log.contains("decided now") && log.contains("ok: false"), "{log}");
}

/// Copies a recording, but makes the device fail the first request that is answered after `after` entries.
/// Returns the number of the entry that can no longer be right: the report of that request.
fn rewrite(from: &Path, to: &Path, after: usize) -> usize {
    let mut reader = Reader::open(from).unwrap();
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        entries.push(entry);
    }
    assert_eq!(reader.ending(), Some(Ending::Complete));
    let replied = |(_, entry): &(_, Entry)| matches!(entry, Entry::Replied { .. });
    let reply = after + entries[after..].iter().position(replied).expect("a request is answered");
    let Entry::Replied { id: answered } = entries[reply].1 else { unreachable!() };
    let completed = entries[..reply]
        .iter_mut()
        .rfind(|(_, entry)| matches!(entry, Entry::Completed { id, .. } if *id == answered))
        .expect("what is answered was completed");
    completed.1 = Entry::Completed { id: answered, ok: false };
    let (mut recorder, writing) = create(to, reader.pool()).unwrap();
    entries.iter().for_each(|(now, entry)| recorder.record(*now, entry));
    drop(recorder);
    writing.finish().unwrap();
    reply + 2 // counted from one, and the report follows the reply
}

#[test]
fn a_recording_that_was_damaged_is_no_proof() {
    let scene = Scene::new();
    recorded(&scene);
    let path = scene.file("recorded").join("p.decisions");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(&path, bytes).unwrap();
    let Outcome { code, out, log } = replay(&path);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("p.decisions: the file is damaged: "), "{log}");
}

#[test]
fn a_server_that_was_killed_leaves_a_recording_that_is_good_up_to_there() {
    let scene = Scene::new();
    let out = scene.file("recorded");
    let server = Server::record(&scene.configure(POOL), &out);
    load(&server, "v", 20_000);
    server.kill();
    let Outcome { code, out, log } = replay(&out.join("p.decisions"));
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.contains("all decided identically; the recording is cut off there"), "{out}");
}

#[test]
fn a_recording_is_never_written_over() {
    let scene = Scene::new();
    let config = scene.configure(POOL);
    for (out, found) in
        [("weir.toml", "Not a directory"), (".", "files in it"), ("none/recorded", "No such file")]
    {
        let out = scene.file(out);
        let Outcome { code, out, log } =
            Program::weir().arg("record").arg(config.display()).arg("--out").arg(out.display()).outcome();
        assert_eq!((code, out.as_str()), (Some(64), ""), "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.starts_with("--out ") && log.contains(found), "{log}");
        assert!(log.contains("accepted: a directory that is empty, or does not exist"), "{log}");
    }
    assert_eq!(scene.listing(), ["weir.toml"]);
}

#[test]
fn a_server_that_cannot_start_leaves_no_directory_behind() {
    let scene = Scene::new();
    let config = scene.configure("[pool.p]\n");
    assert!(!expect_refusal(&config).is_empty());
    let Outcome { code, .. } = Program::weir()
        .arg("record")
        .arg(config.display())
        .arg("--out")
        .arg(scene.file("recorded").display())
        .outcome();
    assert_eq!(code, Some(64));
    assert_eq!(scene.listing(), ["weir.toml"]);
}

#[test]
fn what_is_no_recording_is_refused() {
    let scene = Scene::new();
    let config = scene.configure(POOL);
    let Outcome { code, log, .. } = replay(&config);
    assert_eq!(code, Some(1));
    assert!(log.contains("weir.toml: found \"[listen]"), "{log}");
    let Outcome { code, log, .. } = replay(scene.path());
    assert_eq!(code, Some(64));
    assert!(log.contains("found no file *.decisions in it"), "{log}");
}
