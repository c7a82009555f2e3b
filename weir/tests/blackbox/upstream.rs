//! Volumes on another server: nbdkit, qemu-nbd or weir itself behind weir. The server is killed in the
//! middle, and started again.
//!
//! `nbdkit --filter=cache cache=writeback` is a server with a volatile cache. When it is killed, it loses
//! what was not flushed, like a disk that loses its power.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use crate::harness::{Flags, Program, RawClient, Running, Scene, Server, block, bytes, command, wait_until};
use crate::verified_load::{fio, qemu_io};

const SIZE: u64 = 64 << 20;
const EIO: u32 = 5;

/// Starts nbdkit with these arguments, and waits until it lets clients in.
fn nbdkit(scene: &Scene, args: &str) -> Running {
    let socket = scene.file("upstream.sock");
    let _ = std::fs::remove_file(&socket); // one that was killed leaves it behind
    let running = Program::new("nbdkit")
        .args("--foreground --exit-with-parent --unix")
        .arg(socket.display())
        .args(args)
        .start();
    wait_until("nbdkit listens", || UnixStream::connect(&socket).is_ok());
    running
}

/// nbdkit on the scene's image, with a cache that is lost when nbdkit is killed.
pub(crate) fn nbdkit_with_volatile_cache(scene: &Scene) -> Running {
    nbdkit(scene, &format!("--filter=cache file {} cache=writeback", image(scene)))
}

/// The path of an image of zeroes, created the first time.
fn image(scene: &Scene) -> String {
    let path = scene.file("disk.img");
    if !path.exists() {
        File::create(&path)
            .and_then(|file| file.set_len(SIZE))
            .expect("the directory of a test can be written");
    }
    scene.text("disk.img")
}

/// The URI of the scene's socket for upstreams.
pub(crate) fn address(scene: &Scene) -> String {
    format!("nbd+unix:///?socket={}", scene.text("upstream.sock"))
}

pub(crate) fn config(backend: &str, more: &str) -> String {
    format!("[pool.p]\ncontrol = \"none\"\n[volume.v]\npool = \"p\"\nbackend = \"{backend}\"\n{more}")
}

fn serve(scene: &Scene) -> Server {
    scene.serve(&config(&address(scene), ""))
}

#[test]
fn fio_and_qemu_io_verify_what_they_wrote_through_weir_to_nbdkit() {
    let scene = Scene::new();
    let _upstream = nbdkit(&scene, "memory 64M");
    let server = serve(&scene);
    server.wait_for_log(0, "connections=4");
    fio(&scene, &server.uri("v"), "--numjobs=4 --iodepth=32 --rw=randwrite --bsrange=4k-64k --fsync=16");
    fio(&scene, &server.tcp_uri("v"), "--numjobs=2 --iodepth=4 --rw=randwrite --bs=2m");
    fio(
        &scene,
        &server.uri("v"),
        "--numjobs=2 --iodepth=16 --rw=randwrite --bsrange=512-9728 --bs_unaligned=1 --size=4m",
    );
    qemu_io(
        &server.uri("v"),
        &[
            "write -P 0x11 0 48M",
            "write -f -P 0x22 1M 64k",
            "write -z 4M 256k",
            "write -z -u 5M 256k",
            "discard 7M 1M",
            "flush",
            "read -P 0x11 0 1M",
            "read -P 0x22 1M 64k",
            "read -P 0 4M 256k",
            "read -P 0 5M 256k",
            "read -P 0x11 8M 40M",
        ],
    );
    server.stop();
}

#[test]
fn qemu_nbd_is_used_over_one_connection_unless_it_allows_several() {
    for (shared, connections) in [(1, "connections=1"), (8, "connections=4")] {
        let scene = Scene::new();
        let socket = scene.file("upstream.sock");
        let _upstream = Program::new("qemu-nbd")
            .args("--persistent --format=raw")
            .arg(format!("--shared={shared}"))
            .arg(format!("--socket={}", socket.display()))
            .arg(image(&scene))
            .start();
        wait_until("qemu-nbd listens", || socket.exists());
        let server = serve(&scene);
        server.wait_for_log(0, connections);
        fio(&scene, &server.uri("v"), "--numjobs=2 --iodepth=16 --rw=randwrite --bsrange=4k-64k --fsync=32");
        server.stop();
    }
}

#[test]
fn weir_can_stand_before_weir_over_tcp_and_take_it_for_one_with_its_slo() {
    let (behind, before) = (Scene::new(), Scene::new());
    let upstream = behind.serve_memory("64MiB");
    let slo = "slo = [{ up_to = \"100000iops\", read = \"10ms\", write = \"10ms\" }]\n";
    let config = config(&upstream.tcp_uri("v"), slo).replace("none", "facade");
    let server = before.serve(&config);
    fio(&before, &server.tcp_uri("v"), "--numjobs=4 --iodepth=16 --rw=randrw --bsrange=4k-128k");
    let mut client = RawClient::connect(&server, "v");
    client.write(0, &block(1, 1));
    client.flush();
    assert_eq!(RawClient::connect(&upstream, "v").read(0, 4096), block(1, 1));
    server.stop();
    upstream.stop();
}

#[test]
fn fio_does_not_notice_that_the_server_behind_was_killed_and_started_again() {
    let scene = Scene::new();
    let path = image(&scene);
    let arguments = format!("file {path}");
    let upstream = nbdkit(&scene, &arguments);
    let server = serve(&scene);
    let load = Program::new("fio")
        .args("--name=job --ioengine=nbd --size=16m --rw=randwrite --bs=4k --iodepth=16 --rate_iops=8000")
        .args("--verify=crc32c --verify_fatal=1 --do_verify=1 --verify_state_save=0")
        .arg(format!("--uri={}", server.uri("v")))
        .directory(scene.path())
        .start();
    wait_until("fio has written something", || {
        std::fs::metadata(&path).is_ok_and(|file| file.blocks() > 256)
    });
    drop(upstream); // by SIGKILL
    server.wait_for_log(0, "lost the server");
    let _upstream = nbdkit(&scene, &arguments);
    load.succeed();
    server.wait_for_log(0, "the server is back");
    server.stop();
}

#[test]
fn requests_that_come_while_the_server_is_away_are_answered_when_it_is_back() {
    let scene = Scene::new();
    let upstream = nbdkit_with_volatile_cache(&scene);
    let server = serve(&scene);
    let mut client = RawClient::connect(&server, "v");
    client.write(0, &block(0, 1));
    client.flush();
    drop(upstream);
    server.wait_for_log(0, "nothing that was answered is lost");
    let read = client.send(command::READ, Flags::NONE, 0, 4096, &[]);
    for number in 1..20 {
        client.send(command::WRITE, Flags::NONE, number << 12, 4096, &block(number, 1));
    }
    client.send(command::FLUSH, Flags::NONE, 0, 0, &[]);
    let _upstream = nbdkit_with_volatile_cache(&scene);
    for _ in 0..21 {
        let reply = client.receive();
        assert_eq!(reply.error, 0);
        assert!(reply.cookie != read || reply.data == block(0, 1));
    }
    for number in 0..20 {
        assert_eq!(client.read(number << 12, 4096), block(number, 1));
    }
    server.stop();
}

#[test]
fn each_client_is_told_once_that_what_it_did_not_flush_may_be_lost() {
    let scene = Scene::new();
    let upstream = nbdkit_with_volatile_cache(&scene);
    let server = serve(&scene);
    let mut clients = [RawClient::connect(&server, "v"), RawClient::connect(&server, "v")];
    clients[0].write(0, &block(0, 1));
    clients[0].flush();
    clients[0].write(0, &block(0, 2));
    drop(upstream);
    server.wait_for_log(0, "writes that were answered and not flushed may be lost");
    let _upstream = nbdkit_with_volatile_cache(&scene);
    let flush = |client: &mut RawClient| client.ask(command::FLUSH, Flags::NONE, 0, 0, &[]).error;
    assert_eq!(clients[0].read(0, 4096), block(0, 1), "the server has lost it indeed");
    // A write with FUA says nothing about other writes.
    assert_eq!(clients[0].ask(command::WRITE, Flags::FUA, 4096, 4096, &block(1, 1)).error, 0);
    let mut newcomer = RawClient::connect(&server, "v");
    assert_eq!(flush(&mut newcomer), EIO, "nobody was told before it, and it may be a client that is back");
    for client in &mut clients {
        assert_eq!(flush(client), EIO);
        assert_eq!(flush(client), 0);
    }
    assert_eq!(flush(&mut RawClient::connect(&server, "v")), 0);
    server.stop();
}

#[test]
fn no_flushed_write_is_lost_however_often_the_server_behind_is_killed() {
    const BLOCKS: u64 = 256;
    let scene = Scene::new();
    let mut upstream = nbdkit_with_volatile_cache(&scene);
    let server = serve(&scene);
    let mut client = RawClient::connect(&server, "v");
    // For each block: the last stamp that was sent, and the last one that is durable.
    let (mut sent, mut durable) = (BTreeMap::new(), BTreeMap::new());
    for round in 1..=6_u64 {
        let choices = bytes(round, 1 << 10);
        let mut stamp = round << 32;
        for burst in 0..2 {
            let start = usize::from(choices[burst]);
            let mut under_way: BTreeMap<u64, (u64, u64, bool)> = BTreeMap::new();
            for number in choices[start..start + 96].iter().map(|choice| u64::from(*choice)) {
                if under_way.values().any(|(busy, ..)| *busy == number) {
                    continue; // two at a time would have no order
                }
                stamp += 1;
                let fua = number % 7 == 0;
                let flags = if fua { Flags::FUA } else { Flags::NONE };
                let cookie = client.send(command::WRITE, flags, number << 12, 4096, &block(number, stamp));
                under_way.insert(cookie, (number, stamp, fua));
                sent.insert(number, stamp);
            }
            let half = under_way.len() / 2;
            let mut acknowledged = Vec::new();
            while !under_way.is_empty() {
                if burst == 1 && under_way.len() == half {
                    let log = server.log_length();
                    drop(upstream);
                    server.wait_for_log(log, "may be lost");
                    upstream = nbdkit_with_volatile_cache(&scene);
                }
                let reply = client.receive();
                assert_eq!(reply.error, 0, "a write is sent again");
                let (number, stamp, fua) = under_way.remove(&reply.cookie).expect("a write");
                acknowledged.push((number, stamp));
                if fua {
                    durable.insert(number, stamp);
                }
            }
            let flushed = client.ask(command::FLUSH, Flags::NONE, 0, 0, &[]).error;
            assert_eq!(flushed, if burst == 0 { 0 } else { EIO }, "a loss is told, and nothing else");
            if flushed == 0 {
                durable.extend(acknowledged);
            }
        }
        let mut reader = RawClient::connect(&server, "v");
        for number in 0..BLOCKS {
            let data = reader.read(number << 12, 4096);
            let found = u64::from_le_bytes(data[8..16].try_into().unwrap());
            let of = |map: &BTreeMap<u64, u64>| map.get(&number).copied().unwrap_or(0);
            assert!((of(&durable)..=of(&sent)).contains(&found), "block {number}: {found:x}");
            assert!(
                found == 0 && data == [0; 4096] || data == block(number, found),
                "block {number} is torn"
            );
        }
    }
    assert!(durable.values().filter(|stamp| **stamp > 0).count() > 100, "the rounds have flushed something");
    server.stop();
}

#[test]
fn a_server_that_comes_back_with_another_size_is_refused_until_it_is_as_before() {
    let scene = Scene::new();
    let upstream = nbdkit(&scene, "memory 64M");
    let server = serve(&scene);
    let mut client = RawClient::connect(&server, "v");
    drop(upstream);
    let other = nbdkit(&scene, "memory 32M");
    client.send(command::READ, Flags::NONE, SIZE - 4096, 4096, &[]);
    server.wait_for_log(0, "the export has changed: its size was 67108864 bytes and is 33554432");
    drop(other);
    let _upstream = nbdkit(&scene, "memory 64M");
    assert_eq!(client.receive().error, 0);
    server.stop();
}

#[test]
fn the_smallest_block_of_the_server_is_told_to_clients_and_kept() {
    let scene = Scene::new();
    let policy = "blocksize-minimum=4096 blocksize-preferred=8192 blocksize-maximum=65536 blocksize-error-policy=error";
    let _upstream = nbdkit(&scene, &format!("--filter=blocksize-policy memory 64M {policy}"));
    let server = serve(&scene);
    let told = Program::new("nbdinfo").arg(server.uri("v")).run();
    assert!(
        told.contains("block_size_minimum: 4096") && told.contains("block_size_preferred: 8192"),
        "{told}"
    );
    let mut client = RawClient::connect(&server, "v");
    let einval = 22;
    assert_eq!(client.ask(command::READ, Flags::NONE, 512, 512, &[]).error, einval);
    let data = bytes(1, 1 << 20);
    client.write(4096, &data);
    assert_eq!(client.read(4096, 1 << 20), data);
    server.stop();
}

#[test]
fn a_read_only_export_is_served_read_only() {
    let scene = Scene::new();
    let _upstream = nbdkit(&scene, "--readonly memory 64M");
    let server = serve(&scene);
    assert!(Program::new("nbdinfo").arg(server.uri("v")).run().contains("is_read_only: true"));
    let eperm = 1;
    let mut client = RawClient::connect(&server, "v");
    assert_eq!(client.ask(command::WRITE, Flags::NONE, 0, 4096, &block(0, 1)).error, eperm);
    assert_eq!(client.read(0, 4096), [0; 4096]);
    server.stop();
}

#[test]
fn a_server_that_is_absent_or_refuses_the_export_is_named_and_nothing_is_served() {
    let refusal = |scene: &Scene, backend: &str| {
        let file = scene.configure(&config(backend, ""));
        let outcome = Program::weir().arg("serve").arg(file.display()).outcome();
        assert_ne!(outcome.code, Some(0));
        assert_eq!(outcome.out, "");
        outcome.log
    };
    let scene = Scene::new();
    let log = refusal(&scene, &address(&scene));
    let expected = format!("volume.v.backend: {}: cannot connect: No such file", address(&scene));
    assert!(log.contains(&expected), "{log}");
    let behind = Scene::new();
    let server = behind.serve_memory("1MiB");
    let log = refusal(&scene, &server.tcp_uri("w"));
    let expected = format!("{}: there is no export \"w\"", server.tcp_uri("w"));
    assert!(log.contains(&expected) && log.contains("\"v\""), "{log}");
    server.stop();
}

#[test]
fn a_reload_adds_a_server_and_refuses_one_that_is_absent_without_disturbing_anybody() {
    let scene = Scene::new();
    let _upstream = nbdkit(&scene, "memory 64M");
    let memory = "[pool.p]\n[volume.m]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";
    let volume = |backend: &str| format!("{memory}[volume.v]\npool = \"p\"\nbackend = \"{backend}\"\n");
    let server = scene.serve(memory);
    let mut client = RawClient::connect(&server, "m");
    client.write(0, &block(0, 1));
    let refusal = server.reload(&volume("nbd+unix:///?socket=/nonexistent.sock")).unwrap_err();
    assert!(
        refusal.contains("volume.v.backend: nbd+unix:///?socket=/nonexistent.sock: cannot connect"),
        "{refusal}"
    );
    server.reload(&volume(&address(&scene))).unwrap();
    RawClient::connect(&server, "v").write(0, &block(0, 2));
    assert_eq!(client.read(0, 4096), block(0, 1));
    let fixed = server.reload(&format!("{}connections = 2\n", volume(&address(&scene)))).unwrap_err();
    assert!(fixed.contains("volume.v.connections: cannot change"), "{fixed}");
    server.stop();
}
