//! Standard output and standard error that cannot be written, or that nobody reads.

use std::fs::File;
use std::io::{ErrorKind, PipeWriter, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Outcome, Program, Scene, wait_until};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A file whose writes all fail, as on a disk without room.
fn full() -> File {
    File::options().write(true).open("/dev/full").expect("every Linux has it")
}

fn throttle(scene: &Scene) -> String {
    scene.write("throttle.toml", "[throttle]\nthreshold = \"15ms\"\n");
    scene.text("throttle.toml")
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure_that_is_told() {
    let scene = Scene::new();
    let file = throttle(&scene);
    for arguments in [&["check", &file][..], &["lab", "list"], &["--help"], &["throttle", "--help"]] {
        let ended = Command::new(WEIR).args(arguments).stdout(full()).output().expect("it is built");
        let log = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {log}");
        assert!(log.starts_with("weir: standard output cannot be written: No space left"), "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    }
}

#[test]
fn an_answer_that_nobody_reads_is_a_failure_without_a_word() {
    let scene = Scene::new();
    let file = throttle(&scene);
    for arguments in [&["check", &file][..], &["lab", "list"], &["--help"]] {
        let (reader, writer) = std::io::pipe().expect("every system has pipes");
        drop(reader);
        let ended = Command::new(WEIR).args(arguments).stdout(writer).output().expect("it is built");
        let log = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*log), (Some(1), ""), "{arguments:?}");
    }
}

#[test]
fn a_message_that_cannot_be_written_changes_no_exit_code() {
    for arguments in
        [&["check", "missing.toml"][..], &["serve", "missing.toml"], &["throttle", "missing.toml"], &["what"]]
    {
        let (reader, writer) = std::io::pipe().expect("every system has pipes");
        drop(reader);
        for log in [Stdio::from(full()), writer.into()] {
            let ended = Command::new(WEIR).args(arguments).stderr(log).status().expect("it is built");
            assert_eq!(ended.code(), Some(64), "{arguments:?}");
        }
    }
}

#[test]
fn a_server_whose_messages_cannot_be_written_serves_on_and_stops() {
    let scene = Scene::new();
    let volume = "[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";
    let config = scene.configure(volume);
    let serve = format!("exec {WEIR} serve {} >/dev/full 2>/dev/full", config.display());
    let mut server = Program::new("sh").arg("-c").arg(serve).start();
    let is_served = |socket: &Path| UnixStream::connect(socket).is_ok();
    wait_until("it serves", || is_served(&scene.file("nbd.sock")));
    // It has something to say about that.
    std::fs::write(&config, "wrong").expect("it is the test's own");
    server.signal(Signal::HUP);
    assert!(is_served(&scene.file("nbd.sock")) && server.is_running());
    server.signal(Signal::TERM);
    let Outcome { code, out, log } = server.wait();
    assert_eq!((code, out.as_str(), log.as_str()), (Some(0), "", ""));
}

/// Fills a pipe.
fn fill(mut pipe: &PipeWriter) {
    let flags = fcntl_getfl(pipe).expect("it is open");
    fcntl_setfl(pipe, flags | OFlags::NONBLOCK).expect("it is open");
    let full = std::iter::repeat_with(|| pipe.write_all(&[b'x'; 4096])).find_map(Result::err);
    assert_eq!(full.map(|error| error.kind()), Some(ErrorKind::WouldBlock));
    fcntl_setfl(pipe, flags).expect("it is open");
}

#[test]
fn a_log_that_nobody_reads_ends_no_server_and_holds_up_neither_a_reload_nor_the_end() {
    let scene = Scene::new();
    let volume = "[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";
    let config = scene.configure(volume);
    let (_reader, writer) = std::io::pipe().expect("every system has pipes");
    fill(&writer);
    let log = writer.try_clone().expect("a descriptor is left");
    let mut server = Command::new(WEIR);
    let server = server.arg("serve").arg(&config).stdout(writer).stderr(log).stdin(Stdio::null());
    let mut server = server.spawn().expect("it is built");
    let signal = |signal| kill_process(Pid::from_child(&server), signal).expect("it is a child");
    wait_until("it serves", || UnixStream::connect(scene.file("nbd.sock")).is_ok());
    std::fs::write(&config, "wrong").expect("it is the test's own");
    signal(Signal::HUP);
    signal(Signal::TERM);
    let mut ended = None;
    wait_until("it has ended", || {
        ended = server.try_wait().expect("it is a child");
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
}
