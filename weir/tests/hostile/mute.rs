//! A device that never answers: an upstream server that accepts connections and sends nothing. No command of
//! the operator may wait for it.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use rustix::process::Signal;

use super::neighbour::Neighbour;
use crate::harness::{Outcome, Program, RawClient, Running, Scene, Server, status, wait_until};

/// A socket that takes connections into its backlog and never answers; and its URI.
fn mute(scene: &Scene, name: &str) -> (UnixListener, String) {
    let path = scene.file(name);
    let listener = UnixListener::bind(&path).expect("the directory of a test can have a socket");
    (listener, format!("nbd+unix:///?socket={}", path.display()))
}

/// Waits for a connection. It stays open as long as the returned stream.
fn connected(listener: &UnixListener) -> std::os::unix::net::UnixStream {
    listener.accept().expect("a connection comes").0
}

/// Pools and volumes: one in memory, and the ones in `more`.
fn volumes(more: &str) -> String {
    format!(
        "[pool.p]\ncontrol = \"maestro\"\n[volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n{more}"
    )
}

fn upstream(name: &str, address: &str) -> String {
    format!("[volume.{name}]\npool = \"p\"\nbackend = \"{address}\"\n")
}

/// Writes the configuration of a running server with these volumes, and makes the server read it.
fn hang_up(scene: &Scene, server: &Server, volumes: &str) {
    let path: PathBuf = scene.file("weir.toml");
    let before = std::fs::read_to_string(&path).unwrap();
    let listen = before.split("[pool.p]").next().unwrap();
    std::fs::write(&path, format!("{listen}{volumes}")).unwrap();
    server.signal(Signal::HUP);
}

fn set(scene: &Scene, assignment: &str) -> Outcome {
    Program::weir().args("set volume v").arg(assignment).arg("--server").arg(scene.control()).outcome()
}

fn weir_serve(scene: &Scene) -> Running {
    Program::weir().arg("serve").arg(scene.file("weir.toml").display()).start()
}

#[test]
fn while_a_reload_opens_a_mute_server_every_command_is_answered_and_it_can_be_superseded() {
    let scene = Scene::new();
    let (listener, address) = mute(&scene, "mute.sock");
    let server = Server::start(&scene.configure_controlled(&volumes("")));
    let neighbour = Neighbour::start(&server, "v");
    let new = "[volume.new]\npool = \"p\"\nsize = \"1MiB\"\n";
    let new = format!("{new}backend = \"{}\"\n", scene.backend("new.img"));
    hang_up(&scene, &server, &volumes(&format!("{new}{}", upstream("u", &address))));
    let held = connected(&listener);
    let Outcome { code, out, log } = set(&scene, "priority=3");
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(
        out.contains("takes over when its volumes are open"),
        "it was answered in the midst of it: {out}"
    );
    assert_eq!(
        status(&server)["pools"][0]["volumes"].as_array().unwrap().len(),
        1,
        "nothing has changed yet"
    );
    neighbour.works_for(100);
    // A second reload, with the file that is open already and without the mute server. The file need not be
    // opened twice.
    hang_up(&scene, &server, &volumes(&new));
    wait_until("the newer reload is in force", || {
        status(&server)["pools"][0]["volumes"].as_array().unwrap().len() == 2
    });
    RawClient::connect(&server, "new").write(0, &[1; 4096]);
    neighbour.finish();
    server.stop();
    drop(held);
}

#[test]
fn a_command_while_a_reload_that_failed_is_undone_does_not_make_it_succeed() {
    let (behind, scene) = (Scene::new(), Scene::new());
    let slow = behind.serve_memory("1MiB");
    let server = Server::start(&scene.configure_controlled(&volumes("")));
    let neighbour = Neighbour::start(&server, "v");
    slow.signal(Signal::STOP);
    let missing = format!("[volume.a]\npool = \"p\"\nbackend = \"{}\"\n", scene.backend("missing.img"));
    hang_up(&scene, &server, &volumes(&format!("{missing}{}", upstream("u", &slow.uri("v")))));
    // Volume `a` fails at once. The report of that waits a while for `u`.
    for priority in ["priority=3", "priority=4"] {
        let Outcome { code, out, log } = set(&scene, priority);
        assert_eq!(code, Some(0), "{out}{log}");
    }
    slow.signal(Signal::CONT);
    server.wait_for_log(0, "volume.a.backend");
    assert!(server.logged_since(0).contains("not reloaded"));
    assert_eq!(status(&server)["pools"][0]["volumes"].as_array().unwrap().len(), 1, "nothing has changed");
    neighbour.works_for(100);
    hang_up(&scene, &server, &volumes(&upstream("u", &slow.uri("v"))));
    wait_until("the next reload is in force", || {
        status(&server)["pools"][0]["volumes"].as_array().unwrap().len() == 2
    });
    neighbour.finish();
    server.stop();
}

#[test]
fn the_end_does_not_wait_for_a_reload_that_opens_a_mute_server() {
    let scene = Scene::new();
    let (listener, address) = mute(&scene, "mute.sock");
    let server = Server::start(&scene.configure_controlled(&volumes("")));
    let neighbour = Neighbour::start(&server, "v");
    neighbour.works_for(10);
    neighbour.finish();
    hang_up(&scene, &server, &volumes(&upstream("u", &address)));
    let held = connected(&listener);
    server.signal(Signal::TERM);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("not reloaded"), "it was not waited for: {log}");
    drop(held);
}

#[test]
fn the_end_does_not_wait_for_a_served_server_that_has_gone_mute_with_nothing_to_do() {
    let (behind, before) = (Scene::new(), Scene::new());
    let upstream_server = behind.serve_memory("1MiB");
    let limits = "[limits]\nshutdown_timeout = \"1h\"\n";
    let server = before.serve(&format!("{limits}{}", volumes(&upstream("u", &upstream_server.uri("v")))));
    let mut client = RawClient::connect(&server, "u");
    client.write(0, &[7; 4096]);
    client.flush();
    let neighbour = Neighbour::start(&server, "v");
    neighbour.works_for(10);
    upstream_server.signal(Signal::STOP);
    neighbour.works_for(200); // until each of its threads has stopped
    neighbour.finish();
    server.signal(Signal::TERM);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("did not finish in time"), "{log}");
}

#[test]
fn a_start_that_opens_a_mute_server_can_be_ended() {
    let scene = Scene::new();
    let (listener, address) = mute(&scene, "mute.sock");
    scene.configure(&volumes(&upstream("u", &address)));
    let mut weir = weir_serve(&scene);
    let held = connected(&listener);
    weir.signal(Signal::TERM);
    let Outcome { code, out, log } = weir.wait();
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.contains("stopped before anything was served"), "{out}");
    assert_eq!(scene.listing(), ["mute.sock", "weir.toml"], "nothing is left behind");
    drop(held);
}
