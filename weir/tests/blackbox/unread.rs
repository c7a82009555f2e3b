//! Replies that a client has not read yet when their pool is removed, or the server ends. The server still
//! owes them to the client, for the time that the client has to read.

use std::fs;

use rustix::process::Signal;

use crate::harness::{RawClient, Scene, Server, bytes, command, status, wait_until};

const MIB: u32 = 1 << 20;

/// More than sockets hold, and less than a connection may have in memory.
const UNREAD: u32 = 24;

/// Two pools with a volume each in memory.
fn config(with_going: bool) -> String {
    let pool = |pool: &str, volume: &str| {
        format!(
            "[pool.{pool}]\n[volume.{volume}]\npool = \"{pool}\"\nbackend = \"memory\"\nsize = \"24MiB\"\n"
        )
    };
    let going = if with_going { pool("q", "going") } else { String::new() };
    format!("{}{going}", pool("p", "steady"))
}

/// A client of `going` with 24 reads of 1 MiB that the server has accepted and owes the replies to. The data
/// are in the order of the cookies.
struct Unread {
    client: RawClient,
    cookies: Vec<u64>,
    data: Vec<Vec<u8>>,
}

impl Unread {
    fn new(server: &Server) -> Self {
        let mut client = RawClient::connect(server, "going");
        let data: Vec<_> = (0..UNREAD).map(|number| bytes(number.into(), MIB as usize)).collect();
        for (number, data) in (0..).zip(&data) {
            client.write(number * u64::from(MIB), data);
        }
        // The first request is sent in one piece with the reads. The server refuses it without a device, so
        // when it answers, it has parsed all of them.
        let beyond = (command::READ, u64::from(UNREAD * MIB), 1);
        let reads = (0..UNREAD).map(|number| (command::READ, u64::from(number * MIB), MIB));
        let cookies = client.send_together(&[beyond].into_iter().chain(reads).collect::<Vec<_>>());
        assert_eq!(client.receive().cookie, cookies[0]);
        Self { client, cookies: cookies[1..].to_vec(), data }
    }

    /// Reads everything up to the end of the connection. Calls `pause` before each reply.
    fn read_all(mut self, mut pause: impl FnMut()) {
        while self.client.outstanding() > 0 {
            pause();
            let reply = self.client.receive(); // a second answer to the same is a failure there
            let number = self.cookies.iter().position(|cookie| *cookie == reply.cookie).expect("a read");
            assert_eq!(reply.error, 0);
            assert!(reply.data == self.data[number], "read {number} has other data");
        }
        assert!(self.client.receive_or_end().is_none(), "everything is answered, and so it is over");
    }
}

fn one_pool_is_left(server: &Server) {
    wait_until("the pool is gone", || status(server)["pools"].as_array().map(Vec::len) == Some(1));
}

/// Checks that another client can write and read back.
fn is_undisturbed(client: &mut RawClient, stamp: u64) {
    let data = bytes(stamp, 100_000);
    client.write(stamp * 1_000, &data);
    assert!(client.read(stamp * 1_000, 100_000) == data);
}

#[test]
fn a_pool_that_is_removed_owes_its_clients_the_replies_that_they_have_not_read() {
    let scene = Scene::new();
    let server = scene.serve(&config(true));
    let mut other = RawClient::connect(&server, "steady");
    for round in 0..2 {
        let unread = Unread::new(&server);
        let logged = server.log_length();
        server.reload(&config(false)).unwrap();
        one_pool_is_left(&server);
        let mut stamp = 100 * round;
        unread.read_all(|| {
            stamp += 1;
            is_undisturbed(&mut other, stamp);
        });
        // Its clients have all replies a moment before the volume is flushed and closed.
        server.wait_for_log(logged, "no longer served volume=\"going\"");
        server.reload(&config(true)).unwrap();
        assert_eq!(
            RawClient::connect(&server, "going").read(0, 512),
            [0; 512],
            "a new volume, in a new pool"
        );
    }
    is_undisturbed(&mut other, 1_000);
    server.stop();
}

#[test]
fn a_client_that_leaves_without_reading_does_not_hold_up_the_removal_of_its_pool() {
    let scene = Scene::new();
    let server = scene.serve(&config(true));
    let mut other = RawClient::connect(&server, "steady");
    let unread = Unread::new(&server);
    server.reload(&config(false)).unwrap();
    one_pool_is_left(&server);
    drop(unread);
    server.wait_for_log(0, "no longer served");
    is_undisturbed(&mut other, 1);
    server.stop();
}

#[test]
fn a_slow_reader_gets_everything_that_it_is_owed_before_the_server_ends() {
    let scene = Scene::new();
    let server = scene.serve(&format!("[limits]\nshutdown_timeout = \"60s\"\n{}", config(true)));
    let unread = Unread::new(&server);
    // A slow server sets the pace. All reads together take longer than clients without owed replies get to
    // leave.
    let elsewhere = Scene::new();
    let metronome = elsewhere.serve(
        "[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"
        faults = [{ delay = \"50ms\" }]\n",
    );
    let mut beat = RawClient::connect(&metronome, "v");
    server.signal(Signal::TERM);
    unread.read_all(|| drop(beat.read(0, 512)));
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("did not finish in time"), "{log}");
}

#[test]
fn a_client_that_never_reads_holds_up_the_end_no_longer_than_its_time() {
    let scene = Scene::new();
    let file = config(true).replace("\"memory\"", &format!("\"{}\"", scene.backend("v.img")));
    let (_, going) = file.split_once("[pool.q]").expect("there is one");
    let server = scene.serve(&format!("[limits]\nshutdown_timeout = \"200ms\"\n[pool.q]{going}"));
    let unread = Unread::new(&server);
    server.signal(Signal::TERM);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    let file = fs::read(scene.file("v.img")).unwrap();
    assert!(file == unread.data.concat(), "what was written is there");
}
