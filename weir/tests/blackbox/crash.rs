//! Servers that are killed in the middle of writes, a hundred times in all: everything that was flushed must
//! be there. The volume is on a file, on another server, or on an array that two gateways serve. The kills
//! under Linux's own client and ext4 are in `vm`.
//!
//! SIGKILL ends the process and leaves the kernel. So these tests find a gateway that acknowledges data which
//! only the gateway itself holds. A power failure would also take the kernel's data, which is what a flush
//! must write out; `weir-backend` checks that the gateway asks the kernel for it. A server with a volatile
//! cache behind the gateway is killed too, and loses what was not flushed.

use std::collections::BTreeMap;
use std::path::Path;

use crate::harness::{Flags, RawClient, Scene, Server, block, bytes, command};
use crate::upstream::{self, nbdkit_with_volatile_cache};
use crate::vm::rounds;

const BLOCK: u32 = 4096;
const BLOCKS: u64 = 512;
/// The parts of the kills, in percent. ext4 has the rest, because its rounds take the longest.
const PERCENT_WITH_CONTROL: u64 = 20;
const PERCENT_WITHOUT_CONTROL: u64 = 20;
const PERCENT_UPSTREAM: u64 = 30;
const PERCENT_GATEWAYS: u64 = 20;
/// Writes under way at a time, on each connection.
const DEPTH: usize = 24;

/// The client's knowledge about each block.
#[derive(Default)]
struct Known {
    /// The last stamp that was sent for a block.
    sent: BTreeMap<u64, u64>,
    /// The last stamp of a block that was acknowledged as durable.
    durable: BTreeMap<u64, u64>,
}

/// A connection that writes, and its requests under way.
struct Writer {
    client: RawClient,
    /// The number of the server that it writes to.
    server: usize,
    /// Block, stamp and whether with FUA, by cookie.
    under_way: BTreeMap<u64, (u64, u64, bool)>,
    /// Block and stamp of the writes acknowledged since the last flush.
    acknowledged: Vec<(u64, u64)>,
}

impl Writer {
    /// The writer of this number, at one of the servers.
    fn new(servers: &[Server], number: usize) -> Self {
        let server = number % servers.len();
        let client = RawClient::connect(&servers[server], "v");
        Self { client, server, under_way: BTreeMap::new(), acknowledged: Vec::new() }
    }

    fn send(&mut self, number: u64, stamp: u64, fua: bool, known: &mut Known) {
        let flags = if fua { Flags::FUA } else { Flags::NONE };
        let offset = number * u64::from(BLOCK);
        let cookie = self.client.send(command::WRITE, flags, offset, BLOCK, &block(number, stamp));
        self.under_way.insert(cookie, (number, stamp, fua));
        known.sent.insert(number, stamp);
    }

    fn receive(&mut self, known: &mut Known) {
        let reply = self.client.receive();
        assert_eq!(reply.error, 0);
        let (number, stamp, fua) = self.under_way.remove(&reply.cookie).expect("a write");
        self.acknowledged.push((number, stamp));
        if fua {
            known.durable.insert(number, stamp);
        }
    }
}

/// Writes on two connections, to one server or to one each, and flushes at each server, until `acks` writes
/// are acknowledged. At the end there are writes under way, and in every other round a flush, too.
fn write_until_it_is_time(servers: &[Server], round: u64, acks: u64, known: &mut Known) -> [Writer; 2] {
    let mut writers = [Writer::new(servers, 0), Writer::new(servers, 1)];
    let choices = bytes(round, 1 << 16);
    let mut acknowledged = 0;
    let mut stamp = round << 32;
    for turn in 0.. {
        for (i, writer) in (0..).zip(&mut writers) {
            while writer.under_way.len() < DEPTH && acknowledged < acks {
                stamp += 1;
                let choice = usize::try_from(stamp & 0x7fff).expect("15 bits");
                let random = u64::from(choices[2 * choice]) << 8 | u64::from(choices[2 * choice + 1]);
                // Each connection has its own blocks. It writes none twice at a time, because two such writes
                // have no order.
                let number = random % (BLOCKS / 2) * 2 + i;
                if writer.under_way.values().any(|(busy, ..)| *busy == number) {
                    continue;
                }
                writer.send(number, stamp, random % 7 == 0, known);
            }
            if acknowledged >= acks {
                break;
            }
            for _ in 0..DEPTH / 2 {
                writer.receive(known);
                acknowledged += 1;
            }
        }
        if acknowledged >= acks {
            break;
        }
        let is_last = acknowledged + 40 > acks && round % 2 == 1;
        if turn % 4 == 3 && flush_each(servers, &mut writers, is_last, known) {
            break;
        }
    }
    assert!(writers.iter().any(|writer| writer.client.outstanding() > 0), "it dies with requests under way");
    writers
}

/// Flushes at each server. A flush covers the writes that this server has acknowledged before, on any
/// connection. With `is_last`, it does not wait for the flushes, and returns true.
fn flush_each(servers: &[Server], writers: &mut [Writer; 2], is_last: bool, known: &mut Known) -> bool {
    for server in 0..servers.len() {
        let here = writers.iter_mut().filter(|writer| writer.server == server);
        let before: Vec<_> = here.flat_map(|writer| writer.acknowledged.drain(..)).collect();
        let writer = writers.iter_mut().find(|writer| writer.server == server).expect("each has one");
        let flush = writer.client.send(command::FLUSH, Flags::NONE, 0, 0, &[]);
        if is_last {
            continue;
        }
        flushed(writer, flush, known);
        for (number, stamp) in before {
            let durable = known.durable.entry(number).or_default();
            *durable = stamp.max(*durable);
        }
    }
    is_last
}

/// Waits for the flush among the replies to writes.
fn flushed(writer: &mut Writer, flush: u64, known: &mut Known) {
    loop {
        let reply = writer.client.receive();
        assert_eq!(reply.error, 0);
        if reply.cookie == flush {
            return;
        }
        let (number, stamp, fua) = writer.under_way.remove(&reply.cookie).expect("a write");
        writer.acknowledged.push((number, stamp));
        if fua {
            known.durable.insert(number, stamp);
        }
    }
}

/// Checks that every block is whole, and holds what was flushed or what was sent later.
fn check(server: &Server, known: &Known) {
    let mut client = RawClient::connect(server, "v");
    for number in 0..BLOCKS {
        let data = client.read(number * u64::from(BLOCK), BLOCK);
        let stamp = u64::from_le_bytes(data[8..16].try_into().unwrap());
        let of = |map: &BTreeMap<u64, u64>| map.get(&number).copied().unwrap_or(0);
        let (durable, sent) = (of(&known.durable), of(&known.sent));
        assert!(
            (durable..=sent).contains(&stamp),
            "block {number}: {stamp:x} is not in {durable:x}..={sent:x}"
        );
        assert!(stamp == 0 && data == [0; 4096] || data == block(number, stamp), "block {number} is torn");
    }
}

/// How many writes are acknowledged before the kill of a round.
fn acks(round: u64) -> u64 {
    100 + round * 97 % 700
}

fn survives_being_killed(control: &str, rounds: u64) {
    let scene = Scene::new();
    let config = scene.configure(&format!(
        "[pool.p]\ncontrol = \"{control}\"\n[volume.v]\npool = \"p\"\nbackend = \"{}\"\nsize = \"{}B\"\n",
        scene.backend("v.img"),
        BLOCKS * u64::from(BLOCK)
    ));
    let mut known = Known::default();
    for round in 1..=rounds {
        let servers = [Server::start(&config)];
        check(&servers[0], &known);
        let writers = write_until_it_is_time(&servers, round, acks(round), &mut known);
        servers.into_iter().for_each(Server::kill);
        drop(writers);
    }
    ends_well(&config, &known);
}

/// Starts the server once more after the last kill, and checks the blocks.
fn ends_well(config: &Path, known: &Known) {
    let server = Server::start(config);
    check(&server, known);
    assert!(known.durable.len() > 100, "the rounds have flushed something: {}", known.durable.len());
    server.stop();
}

#[test]
fn every_flushed_write_survives_that_a_server_with_control_is_killed() {
    survives_being_killed("facade", rounds(PERCENT_WITH_CONTROL));
}

#[test]
fn every_flushed_write_survives_that_a_server_without_control_is_killed() {
    survives_being_killed("none", rounds(PERCENT_WITHOUT_CONTROL));
}

#[test]
fn every_flushed_write_survives_that_a_server_and_the_one_behind_it_are_killed() {
    let scene = Scene::new();
    let config = scene.configure(&upstream::config(&upstream::address(&scene), ""));
    let mut known = Known::default();
    for round in 1..=rounds(PERCENT_UPSTREAM) {
        // Each round starts a new one: nbdkit now and then aborts when its client is killed.
        let behind = nbdkit_with_volatile_cache(&scene);
        let servers = [Server::start(&config)];
        check(&servers[0], &known);
        let writers = write_until_it_is_time(&servers, round, acks(round), &mut known);
        if round % 2 == 0 {
            drop(behind); // by SIGKILL, and what is in its cache is gone
            servers.into_iter().for_each(Server::kill);
        } else {
            servers.into_iter().for_each(Server::kill);
            drop(behind);
        }
        drop(writers);
    }
    let _behind = nbdkit_with_volatile_cache(&scene);
    ends_well(&config, &known);
}

#[test]
fn every_flushed_write_survives_that_one_of_two_gateways_is_killed_or_both_and_the_array() {
    let (array_scene, scenes) = (Scene::new(), [Scene::new(), Scene::new()]);
    let array_config = array_scene.configure(&upstream::config(
        &array_scene.backend("v.img"),
        &format!("size = \"{}B\"\n", BLOCKS * u64::from(BLOCK)),
    ));
    let address = format!("nbd+unix:///v?socket={}", array_scene.text("nbd.sock"));
    let configs = scenes.each_ref().map(|scene| scene.configure(&upstream::config(&address, "")));
    let mut array = Server::start(&array_config);
    let mut known = Known::default();
    let mut gateways = configs.each_ref().map(|config| Server::start(config));
    for round in 1..=rounds(PERCENT_GATEWAYS) {
        gateways.iter().for_each(|gateway| check(gateway, &known));
        let mut writers = write_until_it_is_time(&gateways, round, acks(round), &mut known);
        let dies = usize::try_from(round % 3).expect("one of three");
        if dies == 2 {
            array.kill();
            gateways.into_iter().for_each(Server::kill);
            array = Server::start(&array_config);
            gateways = configs.each_ref().map(|config| Server::start(config));
            continue;
        }
        let [first, second] = gateways;
        let (killed, other) = if dies == 0 { (first, second) } else { (second, first) };
        killed.kill();
        // The other gateway answers its client as if nothing had happened.
        let alive = &mut writers[1 - dies];
        while alive.client.outstanding() > 0 {
            let reply = alive.client.receive();
            assert_eq!(reply.error, 0);
        }
        let again = Server::start(&configs[dies]);
        gateways = if dies == 0 { [again, other] } else { [other, again] };
    }
    gateways.into_iter().for_each(Server::stop);
    array.stop();
    ends_well(&array_config, &known);
}
