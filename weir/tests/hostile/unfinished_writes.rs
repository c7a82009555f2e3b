//! Clients that begin requests and do not finish them: large writes whose data do not come, and abandoned
//! connections.

use super::neighbour::Neighbour;
use crate::harness::{RawClient, Scene, Server, bytes, command, status, wait_until};

const MIB: u32 = 1 << 20;
const ATTACKERS: usize = 64;

/// A volume in memory without a promise.
fn volume(name: &str, more: &str) -> String {
    format!("[volume.{name}]\npool = \"p\"\nbackend = \"memory\"\nsize = \"64MiB\"\n{more}\n")
}

/// A server with memory for a few of the largest requests, and with longer time limits than a test takes.
fn serve(scene: &Scene, bytes_in_flight: &str, rest: &str) -> Server {
    scene.serve(&format!(
        "[limits]\nbytes_in_flight = \"{bytes_in_flight}\"\nbytes_per_connection = \"32MiB\"\n{rest}"
    ))
}

/// Connections that each announce a write of 32 MiB and send a byte of it. The server has read all of that.
fn announce_writes(server: &Server, export: &str) -> Vec<RawClient> {
    let announce = |_| {
        let mut client = RawClient::connect(server, export);
        // The server refuses this request without a device. When it answers, it has parsed everything sent
        // with it.
        let beyond = (command::READ, u64::from(64 * MIB), 1);
        let cookies = client.send_together_with(&[beyond, (command::WRITE, 0, 32 * MIB)], &[1]);
        assert_eq!(client.receive().cookie, cookies[0]);
        client
    };
    (0..ATTACKERS).map(announce).collect()
}

#[test]
fn a_volume_with_an_slo_works_on_with_requests_of_any_size_while_others_do_not_finish_their_writes() {
    let scene = Scene::new();
    let slo = "slo = [{ up_to = \"1000iops\", read = \"5ms\", write = \"5ms\" }]";
    let rest = format!("reply_timeout = \"1h\"\n[pool.p]\n{}{}", volume("good", slo), volume("bad", ""));
    let server = serve(&scene, "160MiB", &rest);
    let neighbour = Neighbour::start(&server, "good");
    neighbour.works_for(100);
    let attackers = announce_writes(&server, "bad");
    neighbour.works_for(500);
    let mut large = RawClient::connect(&server, "good");
    for round in 0..3 {
        let data = bytes(round, 32 << 20);
        large.write(32 << 20, &data);
        assert!(large.read(32 << 20, 32 * MIB) == data);
    }
    neighbour.works_for(100);
    assert_eq!(status(&server)["connections"], ATTACKERS + 2, "the attack has gone on all the time");
    neighbour.finish();
    drop(attackers);
    server.stop();
}

#[test]
fn volumes_without_a_promise_wait_for_one_another_and_not_for_each_connection() {
    let scene = Scene::new();
    let rest = format!("reply_timeout = \"1h\"\n[pool.p]\n{}{}", volume("good", ""), volume("bad", ""));
    let server = serve(&scene, "160MiB", &rest);
    let mut attackers = announce_writes(&server, "bad");
    let mut client = RawClient::connect(&server, "good");
    for round in 0..3 {
        let data = bytes(round, 16 << 20);
        client.write(0, &data);
        assert!(client.read(0, 16 * MIB) == data);
    }
    // This is more than the volume's own memory. The request gets in when an earlier one, whose turn it was,
    // is through.
    let data = bytes(9, 32 << 20);
    assert!(client.try_send(command::WRITE, 0, 32 * MIB, &data[..1]));
    attackers.truncate(ATTACKERS / 2);
    client.send_bytes(&data[1..]);
    assert_eq!(client.receive().error, 0);
    assert!(client.read(0, 32 * MIB) == data);
    server.stop();
}

#[test]
fn a_client_that_sends_slowly_may_take_longer_than_the_time_for_replies() {
    let scene = Scene::new();
    let server = serve(&scene, "64MiB", &format!("reply_timeout = \"2s\"\n[pool.p]\n{}", volume("v", "")));
    // A slow server sets the pace. All of it together takes longer than the time-out.
    let elsewhere = Scene::new();
    let metronome = elsewhere.serve(
        "[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"
        faults = [{ delay = \"50ms\" }]\n",
    );
    let mut beat = RawClient::connect(&metronome, "v");
    let mut slow = RawClient::connect(&server, "v");
    let data = bytes(1, 8 << 20);
    let (first, rest) = data.split_at(1);
    assert!(slow.try_send(command::WRITE, 0, 8 * MIB, first));
    for piece in rest.chunks(128 << 10) {
        drop(beat.read(0, 512));
        slow.send_bytes(piece);
    }
    assert_eq!(slow.receive().error, 0);
    assert!(slow.read(0, 8 * MIB) == data);
    server.stop();
}

#[test]
fn a_client_that_trickles_is_closed() {
    let scene = Scene::new();
    let limits = "reply_timeout = \"100ms\"\n[pool.p]\n";
    let server = serve(&scene, "64MiB", &format!("{limits}{}", volume("v", "")));
    let mut trickle = RawClient::connect(&server, "v");
    assert!(trickle.try_send(command::WRITE, 0, 32 * MIB, &[1]));
    wait_until("it is closed", || {
        let left = status(&server)["connections"] == 0;
        trickle.send_bytes(&[1]);
        left
    });
    server.stop();
}

#[test]
fn what_a_client_holds_is_free_when_it_goes_though_nobody_reads_from_it() {
    let scene = Scene::new();
    let slow = volume("slow", "max_iops = \"0.001iops\"");
    let limits =
        "reply_timeout = \"1h\"\nshutdown_timeout = \"100ms\"\nrequests_per_connection = 3\n[pool.p]\n";
    let server = serve(&scene, "33MiB", &format!("{limits}{slow}{}", volume("other", "")));
    let queued = || status(&server)["pools"][0]["queued"].as_u64().expect("a number");
    let mut first = RawClient::connect(&server, "slow");
    first.send_together(&[(command::READ, 0, 512); 3]);
    wait_until("the rate is used up", || queued() > 0);
    let before = queued();
    let request = |at: u32| (command::READ, u64::from(at * MIB), 8 * MIB);
    let requests = [request(0), request(8), request(16), request(24)];
    // Over TCP, a stream that ends behind unread requests may end with a disconnect. So nothing is left
    // unread.
    for (connect, sent) in [(RawClient::connect as fn(&Server, &str) -> _, 4), (RawClient::connect_tcp, 3)] {
        let mut held = connect(&server, "slow");
        held.send_together(&requests[..sent]);
        wait_until("it has as many requests as it may", || queued() == before + 3);
        drop(held);
        wait_until("what it asked for has gone with it", || queued() == before);
    }
    assert_eq!(RawClient::connect(&server, "other").read(0, 32 * MIB).len(), 32 << 20);
    assert_eq!(queued(), before);
    server.stop();
}

#[test]
fn a_client_that_has_said_goodbye_and_closed_its_side_gets_what_it_is_owed() {
    let scene = Scene::new();
    let server = scene.serve(
        "[pool.p]\n[station.s]\nservers = 1\nservice_time = \"20ms\"
        [volume.v]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"1MiB\"\n",
    );
    for connect in [RawClient::connect, RawClient::connect_tcp] {
        let mut client = connect(&server, "v");
        let data = bytes(3, 4096);
        client.send_together_with(&[(command::WRITE, 0, 4096), (command::READ, 8192, 4096)], &data);
        assert!(client.try_send(command::DISCONNECT, 0, 0, &[]));
        client.end_sending();
        let replies = client.receive_to_end();
        assert_eq!(replies.iter().map(|reply| reply.error).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(RawClient::connect(&server, "v").read(0, 4096), data);
    }
    wait_until("all have left", || status(&server)["connections"] == 0);
    server.stop();
}
