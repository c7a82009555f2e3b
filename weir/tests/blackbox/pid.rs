//! `control = "pid"`: replies to heavy writers are held while reads wait, and none of them is ever lost.

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Flags, Program, RawClient, Running, Scene, Server, block, command, status, wait_until};

/// Reads of the one volume take 300 ms, of which 1 ms is allowed; the other volume writes. A delay may become
/// so long that no machine is too slow to see what is held.
const POOL: &str = "[limits]\nshutdown_timeout = \"500ms\"\n\
    [pool.p]\ncontrol = \"pid\"\nthreshold = \"1ms\"\nwrite_limit = \"4KiB/s\"\nceiling = \"10s\"\n\
    [volume.reader]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n\
    faults = [{ on = \"read\", delay = \"300ms\" }]\n\
    [volume.writer]\npool = \"p\"\nbackend = \"memory\"\nsize = \"256MiB\"\n";

/// A server under load, with a delay of a second and more in force. The loads go on until they are dropped.
fn delayed(scene: &Scene) -> (Server, [Running; 2]) {
    let server = Server::start(&scene.configure_controlled(POOL));
    let load = |volume: &str, reads: u32| {
        let load = Program::weir().arg("load").arg(server.uri(volume));
        load.args(&format!("--reads {reads} --size 4KiB --depth 16 --duration 5m")).start()
    };
    let loads = [load("reader", 100), load("writer", 0)];
    wait_until("a delay is in force", || delay_us(&server) >= 1_000_000 && is_heavy(&server, "writer"));
    (server, loads)
}

fn pool(server: &Server) -> Value {
    status(server)["pools"][0].clone()
}

fn delay_us(server: &Server) -> u64 {
    pool(server)["reply_delay"]["delay_us"].as_u64().expect("the one-sided PID rules")
}

fn is_heavy(server: &Server, name: &str) -> bool {
    let volumes = pool(server)["volumes"].as_array().expect("volumes").clone();
    let volume = volumes.into_iter().find(|volume| volume["name"] == name);
    volume.and_then(|volume| volume["is_heavy_writer"].as_bool()).expect("it is served")
}

#[test]
fn a_write_of_a_heavy_writer_is_answered_after_a_flush_that_came_later() {
    let scene = Scene::new();
    let (server, loads) = delayed(&scene);
    let mut client = RawClient::connect(&server, "writer");
    let write = client.send(command::WRITE, Flags::NONE, 0, 4096, &block(0, 1));
    let flush = client.send(command::FLUSH, Flags::NONE, 0, 0, &[]);
    assert_eq!(client.receive().cookie, flush);
    assert_eq!(client.receive().cookie, write);
    assert!(!is_heavy(&server, "reader"));
    let shown = Program::weir().args("status --server").arg(scene.control()).run();
    assert!(shown.contains("reply delay") && shown.contains("heavy writers"), "{shown}");

    // A threshold that nothing exceeds is in force at once, and the delay ends.
    let set = Program::weir().args("set pool p threshold=10s --server").arg(scene.control());
    set.run();
    wait_until("the delay is over", || delay_us(&server) == 0);
    assert_eq!(pool(&server)["reply_delay"]["threshold_us"], 10_000_000);
    drop(loads);
    server.stop();
}

#[test]
fn the_reply_to_a_long_range_of_zeroes_is_held_once() {
    let scene = Scene::new();
    let (server, loads) = delayed(&scene);
    let mut client = RawClient::connect(&server, "writer");
    // Eight pieces. If each of them were held, both writes would be answered first.
    let zeroes = client.send(command::WRITE_ZEROES, Flags::NONE, 0, 256 << 20, &[]);
    let mut answered = Vec::new();
    for number in 0..2 {
        let write = client.send(command::WRITE, Flags::NONE, 0, 4096, &block(number, 1));
        while answered.last() != Some(&write) {
            answered.push(client.receive().cookie);
        }
    }
    assert!(answered.contains(&zeroes), "{answered:?}");
    drop(loads);
}

#[test]
fn replies_that_are_held_reach_a_client_that_says_goodbye_and_one_whose_server_ends() {
    let scene = Scene::new();
    let (server, loads) = delayed(&scene);
    let with_writes = || {
        let mut client = RawClient::connect(&server, "writer");
        for number in 0..8 {
            client.send(command::WRITE, Flags::NONE, number * 4096, 4096, &block(number, 1));
        }
        client
    };
    let mut leaving = with_writes();
    leaving.send(command::DISCONNECT, Flags::NONE, 0, 0, &[]);
    let replies = leaving.receive_to_end();
    assert_eq!(replies.len(), 8);
    assert!(replies.iter().all(|reply| reply.error == 0), "{replies:?}");

    drop(with_writes()); // gone without a goodbye: nothing of it is left at the end
    let mut staying = with_writes();
    let read = staying.send(command::READ, Flags::NONE, 0, 4096, &[]);
    assert_eq!(staying.receive().cookie, read, "the writes before it are held");
    server.signal(Signal::TERM);
    let replies = staying.receive_to_end();
    assert_eq!(replies.len(), 8);
    assert!(replies.iter().all(|reply| reply.error == 0), "{replies:?}");
    drop(loads);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
}
