//! Killed in the middle of writes: what was flushed is there.
//!
//! SIGKILL takes the process and leaves the kernel, so that this finds whatever the gateway acknowledges while it
//! still holds it. What a power failure would take from the kernel is for the flush to have written; that it asks
//! for that is checked in `weir-backend`.

use std::collections::BTreeMap;

use crate::harness::{Flags, RawClient, Scene, Server, block, bytes, command};

const BLOCK: u32 = 4096;
const BLOCKS: u64 = 512;
const ROUNDS: u64 = 12;
/// Writes under way at a time, on each connection.
const DEPTH: usize = 24;

/// What the client knows about each block.
#[derive(Default)]
struct Known {
    /// The last stamp that was sent for a block.
    sent: BTreeMap<u64, u64>,
    /// The last stamp that was acknowledged for good.
    durable: BTreeMap<u64, u64>,
}

/// A connection that writes, and what is under way on it.
struct Writer {
    client: RawClient,
    /// Block, stamp and whether with FUA, by cookie.
    under_way: BTreeMap<u64, (u64, u64, bool)>,
    /// Acknowledged since the last flush.
    acknowledged: Vec<(u64, u64)>,
}

impl Writer {
    fn new(server: &Server) -> Self {
        Self { client: RawClient::connect(server, "v"), under_way: BTreeMap::new(), acknowledged: Vec::new() }
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

/// Writes on two connections and flushes on the first, until `acks` writes are acknowledged; then kills the server
/// with writes, and every other time a flush too, under way.
fn write_until_killed(server: Server, round: u64, acks: u64, known: &mut Known) {
    let mut writers = [Writer::new(&server), Writer::new(&server)];
    let choices = bytes(round, 1 << 16);
    let mut acknowledged = 0;
    let mut stamp = round << 32;
    for turn in 0.. {
        for (i, writer) in (0..).zip(&mut writers) {
            while writer.under_way.len() < DEPTH && acknowledged < acks {
                stamp += 1;
                let choice = usize::try_from(stamp & 0x7fff).expect("15 bits");
                let random = u64::from(choices[2 * choice]) << 8 | u64::from(choices[2 * choice + 1]);
                // Each connection has its own blocks, and none twice at a time, which would have no order.
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
        if turn % 4 == 3 {
            // A flush covers what was acknowledged before, on any connection.
            let before: Vec<_> =
                writers.iter_mut().flat_map(|writer| writer.acknowledged.drain(..)).collect();
            let flush = writers[0].client.send(command::FLUSH, Flags::NONE, 0, 0, &[]);
            if acknowledged + 40 > acks && round % 2 == 1 {
                break; // killed with the flush under way
            }
            flushed(&mut writers[0], flush, known);
            for (number, stamp) in before {
                let durable = known.durable.entry(number).or_default();
                *durable = stamp.max(*durable);
            }
        }
    }
    assert!(writers.iter().any(|writer| writer.client.outstanding() > 0), "it dies with requests under way");
    server.kill();
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

/// Every block holds what was flushed or what was sent later, whole.
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

fn survives_being_killed(control: &str) {
    let scene = Scene::new();
    let config = scene.configure(&format!(
        "[pool.p]\ncontrol = \"{control}\"\n[volume.v]\npool = \"p\"\nbackend = \"{}\"\nsize = \"{}B\"\n",
        scene.backend("v.img"),
        BLOCKS * u64::from(BLOCK)
    ));
    let mut known = Known::default();
    for round in 1..=ROUNDS {
        let server = Server::start(&config);
        check(&server, &known);
        write_until_killed(server, round, 100 + round * 97 % 700, &mut known);
    }
    let server = Server::start(&config);
    check(&server, &known);
    assert!(known.durable.len() > 100, "the rounds have flushed something: {}", known.durable.len());
    server.stop();
}

#[test]
fn every_flushed_write_survives_that_a_server_with_control_is_killed() {
    survives_being_killed("facade");
}

#[test]
fn every_flushed_write_survives_that_a_server_without_control_is_killed() {
    survives_being_killed("none");
}
