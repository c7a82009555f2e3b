//! Clients that misbehave: each leaves another client undisturbed and the server's memory bounded.

use std::io::{ErrorKind, Read, Write};
use std::thread::spawn;

use crate::harness::{
    Flags, RawClient, Scene, Server, bytes, command, connect_silently, ends, status, wait_until,
};

/// A server whose clients may hold 64 MiB in all.
fn serve(scene: &Scene, limits: &str) -> Server {
    scene.serve(&format!(
        "[limits]\nbytes_in_flight = \"64MiB\"\nbytes_per_connection = \"32MiB\"\n{limits}
        [pool.p]
        [volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"64MiB\"\n"
    ))
}

/// Shows that another client can do a fixed amount of work, and verifies it.
pub(super) fn others_are_undisturbed(server: &Server) {
    for mut client in [RawClient::connect(server, "v"), RawClient::connect_tcp(server, "v")] {
        for turn in 0..50 {
            // This is small enough for a connection's own memory when other clients hold everything else.
            let data = bytes(turn, 16 * 1024);
            let offset = (32 << 20) + turn * 20_011;
            client.write(offset, &data);
            assert_eq!(client.read(offset, 16 * 1024), data);
        }
        client.flush();
        client.disconnect();
    }
}

/// Asserts that the server's memory has grown by no more than the limits allow, and the allocator's rounding.
fn assert_bounded(server: &Server, before_kib: u64) {
    let grown = server.resident_kib().saturating_sub(before_kib) / 1024;
    assert!(
        grown < 64 + 64 + 48,
        "{grown} MiB more: 64 in flight, 64 of the volume, the rest nobody ordered"
    );
}

#[test]
fn clients_that_never_read_their_replies_are_held_back() {
    let scene = Scene::new();
    let server = serve(&scene, "reply_timeout = \"1h\"");
    RawClient::connect(&server, "v").write(0, &bytes(1, 4 << 20));
    let before = server.resident_kib();
    let mut deaf: Vec<_> = (0..8).map(|_| RawClient::connect(&server, "v")).collect();
    for _ in 0..5 {
        for client in &mut deaf {
            // Each asks for 128 KiB at a time, until the server takes no more requests; 80,000 requests at
            // most.
            let mut sent = 0;
            while sent < 80_000 && client.send_without_waiting(command::READ, 0, 128 * 1024, &[]) {
                sent += 1;
            }
        }
        others_are_undisturbed(&server);
        assert_bounded(&server, before);
    }
    // When the clients read, they get everything that they asked for, except for the request that was not
    // sent completely.
    let read_all = |mut client: RawClient| {
        move || {
            while client.outstanding() > 1 {
                assert_eq!(client.receive().data.len(), 128 * 1024);
            }
        }
    };
    let readers: Vec<_> = deaf.into_iter().map(|client| spawn(read_all(client))).collect();
    readers.into_iter().for_each(|reader| reader.join().expect("it gets what it asked for"));
    others_are_undisturbed(&server);
    server.stop();
}

#[test]
fn clients_that_write_without_end_and_read_no_replies_are_held_back() {
    let scene = Scene::new();
    let server = serve(&scene, "reply_timeout = \"1h\"");
    let before = server.resident_kib();
    let data = bytes(5, 1 << 20);
    let mut deaf: Vec<_> = (0..4).map(|_| RawClient::connect(&server, "v")).collect();
    for _ in 0..5 {
        for client in &mut deaf {
            let mut sent = 0;
            while sent < 100 && client.send_without_waiting(command::WRITE, 0, 1 << 20, &data) {
                sent += 1;
            }
            // And small requests, whose replies are larger than they are.
            while sent < 20_000 && client.send_without_waiting(command::FLUSH, 0, 0, &[]) {
                sent += 1;
            }
        }
        others_are_undisturbed(&server);
        assert_bounded(&server, before);
    }
    server.stop();
}

#[test]
fn a_client_that_stops_in_the_middle_of_a_request_disturbs_nobody() {
    let scene = Scene::new();
    let server = serve(&scene, "reply_timeout = \"1h\"");
    let mut half_header = RawClient::connect(&server, "v");
    half_header.send_bytes(&0x2560_9513_u32.to_be_bytes());
    // The header of a write of 32 MiB, and a little of its data. That takes as much memory as one client may
    // hold.
    let half_writes: Vec<_> = (0..4)
        .map(|_| {
            let mut client = RawClient::connect(&server, "v");
            client.send(command::WRITE, Flags::NONE, 0, 32 << 20, &[1, 2, 3]);
            client
        })
        .collect();
    others_are_undisturbed(&server);
    drop(half_writes);
    drop(half_header);
    others_are_undisturbed(&server);
    assert_eq!(RawClient::connect(&server, "v").read(0, 3), [0, 0, 0], "half a write is none");
    server.stop();
}

#[test]
fn garbage_ends_only_the_connection_that_it_came_on() {
    let scene = Scene::new();
    let server = serve(&scene, "reply_timeout = \"1h\"");
    let before = server.resident_kib();
    for seed in 0..20 {
        let mut garbage = bytes(seed, 100_000);
        let mut client = RawClient::connect(&server, "v");
        client.send_bytes(&garbage);
        assert!(client.receive_or_end().is_none(), "a bad magic cannot be answered");

        // The handshake: either no valid flags, or valid flags and then noise.
        garbage[..4].copy_from_slice(&if seed % 2 == 0 { [0xff; 4] } else { [0, 0, 0, 3] });
        let mut socket = connect_silently(&server);
        let _ = socket.write_all(&garbage);
        ends(&mut socket);
    }
    others_are_undisturbed(&server);
    assert_bounded(&server, before);
    server.stop();
}

#[test]
fn a_bad_magic_in_the_midst_of_good_requests_closes_the_connection() {
    let scene = Scene::new();
    let server = serve(&scene, "reply_timeout = \"1h\"");
    let mut client = RawClient::connect(&server, "v");
    client.write(0, b"good");
    client.send_bytes(&[0x25, 0x60, 0x95, 0x14]);
    client.send_bytes(&[0; 24]);
    assert!(client.receive_or_end().is_none());
    assert_eq!(RawClient::connect(&server, "v").read(0, 4), b"good");
    server.stop();
}

#[test]
fn a_flood_of_options_is_cut_off() {
    let scene = Scene::new();
    let server = serve(&scene, "reply_timeout = \"1h\"");
    let before = server.resident_kib();
    // One client that reads the answers, and three that do not.
    let mut floods: Vec<_> = (0..4).map(|_| connect_silently(&server)).collect();
    let list = [&b"IHAVEOPT"[..], &[0, 0, 0, 3], &[0; 4]].concat();
    for flood in &mut floods {
        flood.write_all(&[0, 0, 0, 3]).unwrap();
        flood.set_nonblocking(true).unwrap();
    }
    for flood in &mut floods[1..] {
        while flood.write_all(&list.repeat(100)).is_ok() {}
    }
    others_are_undisturbed(&server);
    let reader = &mut floods[0];
    let mut options = 0;
    while options < 10_000 {
        match reader.write(&list) {
            Ok(_) => options += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                reader.set_nonblocking(false).unwrap();
                if reader.read(&mut [0; 65_536]).unwrap_or(0) == 0 {
                    break;
                }
                reader.set_nonblocking(true).unwrap();
            }
            Err(_) => break,
        }
    }
    reader.set_nonblocking(false).unwrap();
    ends(reader);
    others_are_undisturbed(&server);
    assert_bounded(&server, before);
    server.stop();
}

#[test]
fn options_that_are_too_long_are_refused_without_memory_for_them() {
    let scene = Scene::new();
    let server = serve(&scene, "reply_timeout = \"1h\"");
    let before = server.resident_kib();
    for option in 0..12_u32 {
        let mut socket = connect_silently(&server);
        let hello = [&[0, 0, 0, 3], &b"IHAVEOPT"[..], &option.to_be_bytes(), &[0xff; 4]].concat();
        socket.write_all(&hello).unwrap();
        ends(&mut socket);
    }
    others_are_undisturbed(&server);
    assert_bounded(&server, before);
    server.stop();
}

#[test]
fn no_more_connections_than_the_limit_are_let_in() {
    let scene = Scene::new();
    let server = serve(&scene, "connections = 3");
    let mut clients: Vec<_> = (0..3).map(|_| RawClient::connect(&server, "v")).collect();
    assert_eq!(status(&server)["connections"], 3);
    for _ in 0..5 {
        assert!(RawClient::try_connect(&server, "v").is_err(), "one too many");
    }
    for client in &mut clients {
        client.flush();
    }
    clients.pop().unwrap().disconnect();
    wait_until("a place is free", || RawClient::try_connect(&server, "v").is_ok());
    server.stop();
}

#[test]
fn a_limit_on_connections_that_is_lowered_holds_for_those_to_come() {
    let scene = Scene::new();
    let server = serve(&scene, "connections = 4");
    let clients: Vec<_> = (0..4).map(|_| RawClient::connect(&server, "v")).collect();
    let config = std::fs::read_to_string(scene.file("weir.toml")).unwrap();
    let rest: String = config.lines().skip(3).map(|line| format!("{line}\n")).collect();
    server.reload(&rest.replace("connections = 4", "connections = 2")).unwrap();
    for client in clients {
        client.disconnect();
    }
    wait_until("all have left", || status(&server)["connections"] == 0);
    let _two = [RawClient::connect(&server, "v"), RawClient::connect(&server, "v")];
    assert!(RawClient::try_connect(&server, "v").is_err(), "a third is one too many now");
    server.stop();
}

#[test]
fn a_client_that_says_nothing_is_closed_after_the_time_for_handshakes() {
    let scene = Scene::new();
    let server = serve(&scene, "handshake_timeout = \"100ms\"");
    let mut entered = RawClient::connect(&server, "v");
    ends(&mut connect_silently(&server));
    let mut slow = connect_silently(&server);
    slow.write_all(&[0, 0, 0, 3, b'I', b'H']).unwrap();
    ends(&mut slow);
    entered.flush(); // the time is for the handshake only
    server.stop();
}

#[test]
fn a_client_that_takes_no_reply_is_closed_after_the_time_for_replies() {
    let scene = Scene::new();
    let server = serve(&scene, "reply_timeout = \"100ms\"");
    let mut deaf = RawClient::connect(&server, "v");
    while deaf.send_without_waiting(command::READ, 0, 1 << 20, &[]) {}
    wait_until("it is closed", || status(&server)["connections"] == 0);
    others_are_undisturbed(&server);
    server.stop();
}
