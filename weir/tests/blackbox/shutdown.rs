//! SIGTERM: the server accepts nothing more, finishes accepted requests within its time, and ends with exit
//! code 0.

use std::fs;

use rustix::process::Signal;

use crate::harness::{
    Flags, RawClient, Scene, Server, block, command, connect_silently, ends, status, wait_until,
};

const ESHUTDOWN: u32 = 108;

/// A server with the volume `v`, and a client that has sent `writes` writes. All of them are known to have
/// arrived.
fn with_writes_under_way(scene: &Scene, writes: u64, more: &str) -> (Server, RawClient) {
    let backend = scene.backend("v.img");
    let server = scene.serve(&format!(
        "[limits]\nshutdown_timeout = \"500ms\"
        [pool.p]
        [volume.v]\npool = \"p\"\nbackend = \"{backend}\"\nsize = \"4MiB\"\n{more}\n"
    ));
    let mut client = RawClient::connect(&server, "v");
    for number in 0..writes {
        client.send(command::WRITE, Flags::NONE, number * 4096, 4096, &block(number, 1));
    }
    wait_until("all requests have arrived", || {
        let pool = &status(&server)["pools"][0];
        pool["in_flight"].as_u64().unwrap() + pool["queued"].as_u64().unwrap() == writes
    });
    (server, client)
}

#[test]
fn requests_under_way_are_done_and_answered_before_the_server_ends() {
    let scene = Scene::new();
    let late = "faults = [{ on = \"write\", delay = \"200ms\" }]";
    let (server, mut client) = with_writes_under_way(&scene, 32, late);
    server.signal(Signal::TERM);
    let replies = client.receive_to_end();
    assert_eq!(replies.len(), 32);
    assert!(replies.iter().all(|reply| reply.error == 0));
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    let file = fs::read(scene.file("v.img")).unwrap();
    for number in 0..32 {
        let at = usize::try_from(number).unwrap() * 4096;
        assert_eq!(file[at..at + 4096], block(number, 1), "write {number} was answered and is not there");
    }
    assert_eq!(scene.listing(), ["v.img", "weir.toml"], "the socket is gone");
}

#[test]
fn a_device_that_is_stuck_ends_the_wait_and_what_is_queued_is_told_so() {
    let scene = Scene::new();
    let stuck = "max_concurrency = 4\nfaults = [{ on = \"write\", stall = true }]";
    let (server, mut client) = with_writes_under_way(&scene, 20, stuck);
    server.signal(Signal::TERM);
    let replies = client.receive_to_end();
    assert_eq!(replies.len(), 16, "four are at the device, and nobody knows what becomes of them");
    assert!(replies.iter().all(|reply| reply.error == ESHUTDOWN), "{replies:?}");
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("did not finish in time volume=\"v\""), "{log}");
    assert_eq!(scene.listing(), ["v.img", "weir.toml"], "the socket is gone");
}

#[test]
fn a_volume_that_a_reload_has_just_removed_is_finished_too() {
    let scene = Scene::new();
    // This is longer than an idle server gives its clients to leave.
    let late = "faults = [{ on = \"write\", delay = \"1500ms\" }]";
    let (server, mut client) = with_writes_under_way(&scene, 32, late);
    server.reload("[pool.p]\n[volume.w]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n").unwrap();
    server.signal(Signal::TERM);
    let replies = client.receive_to_end();
    assert_eq!(replies.len(), 32);
    assert!(replies.iter().all(|reply| reply.error == 0));
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(fs::read(scene.file("v.img")).unwrap()[31 * 4096..32 * 4096], block(31, 1));
}

#[test]
fn idle_clients_do_not_hold_up_the_end() {
    let scene = Scene::new();
    let server = scene.serve_memory("1MiB");
    let mut idle = RawClient::connect(&server, "v");
    let mut silent = connect_silently(&server);
    server.signal(Signal::TERM);
    assert!(idle.receive_or_end().is_none());
    ends(&mut silent);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn a_client_that_never_stops_asking_does_not_hold_up_the_end() {
    let scene = Scene::new();
    let (server, mut client) = with_writes_under_way(&scene, 0, "");
    client.write(0, &block(0, 1));
    let flood = std::thread::spawn(move || {
        let mut first_refused = u64::MAX;
        for stamp in 2.. {
            if !client.try_send(command::WRITE, 0, 4096, &block(0, stamp)) {
                break;
            }
            if client.outstanding() >= 64 {
                let Some(reply) = client.receive_or_end() else { break };
                match reply.error {
                    0 => {
                        assert!(reply.cookie < first_refused, "what comes after the end has begun is refused")
                    }
                    error => {
                        assert_eq!(error, ESHUTDOWN);
                        first_refused = first_refused.min(reply.cookie);
                    }
                }
            }
        }
    });
    wait_until("it is at it", || {
        status(&server)["pools"][0]["volumes"][0]["requests"][1]["count"].as_u64() > Some(200)
    });
    server.stop();
    flood.join().expect("every answer was in order");
}

#[test]
fn sigint_ends_it_as_sigterm_does_and_a_second_server_finds_everything() {
    let scene = Scene::new();
    let (server, mut client) = with_writes_under_way(&scene, 0, "");
    client.write(4096, &block(1, 9));
    server.signal(Signal::INT);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    let server = Server::start(&scene.file("weir.toml"));
    assert_eq!(RawClient::connect(&server, "v").read(4096, 4096), block(1, 9));
    server.stop();
}
