//! Little memory for many clients. The memory is bounded, and the server takes it back from clients that hold
//! it idly. If it is short, all clients get slower and none is stopped.

use std::thread;

use crate::harness::{RawClient, Scene, Server, bytes, command, status, wait_until};
use crate::push_back::others_are_undisturbed;

const MIB: u32 = 1 << 20;

/// A server with little more memory than its largest request. One client may have all of it.
fn serve(scene: &Scene, limits: &str, size: &str) -> Server {
    scene.serve(&format!(
        "[limits]\nbytes_in_flight = \"33MiB\"\nbytes_per_connection = \"33MiB\"\n{limits}
        [pool.p]
        [volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"{size}\"\n"
    ))
}

#[test]
fn a_write_that_is_announced_and_not_sent_holds_memory_for_the_time_for_replies_only() {
    let scene = Scene::new();
    let server = serve(&scene, "reply_timeout = \"1s\"", "64MiB");
    let mut other = RawClient::connect(&server, "v");
    let data = bytes(1, MIB as usize);
    other.write(0, &data);
    let mut stuck = RawClient::connect(&server, "v");
    // Both are sent in one piece, so that the write has its memory when the flush is answered.
    let cookies = stuck.send_together(&[(command::FLUSH, 0, 0), (command::WRITE, 0, 32 * MIB)]);
    assert_eq!(stuck.receive().cookie, cookies[0]);
    assert!(other.read(0, 4096) == data[..4096], "small requests need none of it");
    for _ in 0..4 {
        assert!(other.read(0, MIB) == data);
    }
    assert!(stuck.receive_or_end().is_none(), "it is closed, without an answer to what it did not ask");
    assert_eq!(status(&server)["connections"], 1);
    server.stop();
}

#[test]
fn clients_that_pipeline_large_writes_all_finish_with_little_memory() {
    let scene = Scene::new();
    let server = serve(&scene, "", "96MiB");
    thread::scope(|scope| {
        for number in 0..8_u64 {
            let server = &server;
            scope.spawn(move || {
                let connect = if number % 2 == 0 { RawClient::connect } else { RawClient::connect_tcp };
                let mut client = connect(server, "v");
                let mut at = number * 12 * u64::from(MIB);
                let mut sent = Vec::new();
                for turn in 0..16 {
                    let length = (1 + turn % 4) << 18;
                    let data = bytes(number * 100 + turn, usize::try_from(length).unwrap());
                    // Small requests between. The server reads them together with others and must keep them.
                    client.send_together(&[(command::READ, at, 512), (command::FLUSH, 0, 0)]);
                    assert!(client.try_send(command::WRITE, at, u32::try_from(length).unwrap(), &data));
                    sent.push((at, data));
                    at += length;
                }
                while client.outstanding() > 0 {
                    assert_eq!(client.receive().error, 0);
                }
                for (at, data) in sent {
                    let read = client.read(at, u32::try_from(data.len()).unwrap());
                    assert!(read == data, "client {number}: what is read at {at} is not what was written");
                }
                client.disconnect();
            });
        }
    });
    server.stop();
}

#[test]
fn what_was_read_and_waits_does_not_lock_out_the_largest_request() {
    let scene = Scene::new();
    let server = serve(&scene, "", "64MiB");
    // The server refuses this request without a device. When it answers, it has parsed everything sent with
    // it.
    let beyond = (command::READ, u64::from(64 * MIB), 1);
    let parsed = |client: &mut RawClient, requests: &[(u16, u64, u32)], data: &[u8]| {
        let cookies = client.send_together_with(&[&[beyond], requests].concat(), data);
        assert_eq!(client.receive().cookie, cookies[0]);
    };
    let mut hog = RawClient::connect(&server, "v");
    parsed(&mut hog, &[(command::WRITE, 0, 32 * MIB)], &[]);
    let mut largest = RawClient::connect(&server, "v");
    parsed(&mut largest, &[(command::READ, 0, 32 * MIB)], &[]);
    // Each of these waits behind the largest request. Each sends, after its first request, as much as the
    // server reads at a time. Together that is more than the largest request leaves free.
    let small = (command::WRITE, u64::from(32 * MIB), 60_000);
    let mut others: Vec<_> = (0..24).map(|_| RawClient::connect(&server, "v")).collect();
    for client in &mut others {
        parsed(client, &[(command::READ, 0, MIB), small, small, small], &[7; 60_000]);
    }
    drop(hog);
    assert_eq!(largest.receive().data.len(), 32 << 20);
    for mut client in others {
        for _ in 0..4 {
            assert_eq!(client.receive().error, 0);
        }
    }
    assert!(largest.read(u64::from(32 * MIB), 60_000) == [7; 60_000]);
    server.stop();
}

#[test]
fn small_requests_count_for_what_they_cost_when_nobody_reads_their_replies() {
    const READS: usize = 1_024;
    let scene = Scene::new();
    let server = serve(&scene, "", "64MiB");
    others_are_undisturbed(&server);
    let before = server.resident_kib();
    let mut requests = vec![(command::READ, 0, 1); READS];
    // More than a socket holds, so that the replies behind it stay in the server.
    requests[0] = (command::READ, 0, 256 * 1024);
    let mut deaf: Vec<_> = (0..64).map(|_| RawClient::connect(&server, "v")).collect();
    for client in &mut deaf {
        client.send_together(&requests);
    }
    for _ in 0..3 {
        others_are_undisturbed(&server);
        let grown = server.resident_kib().saturating_sub(before) / 1024;
        assert!(grown < 2 * 33 + 64, "{grown} MiB more than before, where 33 are allowed");
    }
    // When these clients read, they get everything.
    thread::scope(|scope| {
        for client in &mut deaf {
            scope.spawn(move || {
                for _ in 0..READS {
                    assert_eq!(client.receive().error, 0);
                }
                assert_eq!(client.outstanding(), 0);
            });
        }
    });
    drop(deaf);
    wait_until("all have left", || status(&server)["connections"] == 0);
    others_are_undisturbed(&server);
    server.stop();
}
