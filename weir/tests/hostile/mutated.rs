//! Mutated messages of clients over real sockets, many thousands of them.
//!
//! `weir-fuzz` tries the parsers on their own, faster and deeper. Here the parsers stand where they are used:
//! with buffers, budgets, queues and a device behind them. `WEIR_FUZZ_MESSAGES` sets how many messages are
//! sent, and `WEIR_FUZZ_SEED` which.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_fuzz::{Effort, Script, mutate, targets, transcripts};

use super::neighbour::Neighbour;
use crate::harness::{Scene, Server, connect_silently};

/// The memory that the server may have resident in addition to `limits.bytes_in_flight` and to what it had
/// before. It holds buffers that are kept for the next request, and memory that the allocator of a debug
/// build keeps.
const ALLOWANCE_KIB: u64 = 96 << 10;

/// `limits.bytes_in_flight` of the server.
const IN_FLIGHT_KIB: u64 = 64 << 10;

/// The number of connections between two looks at the memory.
const LOOK_EACH: usize = 64;

#[test]
fn no_mutated_message_harms_a_neighbour_or_takes_more_memory_than_the_limits() {
    let scene = Scene::new();
    let server = scene.serve(
        "[limits]\nbytes_per_connection = \"32MiB\"\nbytes_in_flight = \"64MiB\"\n[pool.p]\n\
         [volume.good]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n\
         [volume.db]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n",
    );
    let neighbour = Neighbour::start(&server, "good");
    neighbour.works_for(10);
    let most_kib = server.resident_kib() + IN_FLIGHT_KIB + ALLOWANCE_KIB;

    let effort = Effort::from_environment(30_000);
    let target = targets::by_name("nbd-server").expect("it is in the list");
    let seeds = transcripts::of_clients("db");
    let mut random = Pcg64Mcg::seed_from_u64(effort.seed);
    let (mut messages, mut bytes, mut connections, mut worst_kib) = (0, 0, 0, 0);
    while messages < effort.messages {
        let mut script = seeds[random.random_range(0..seeds.len())].clone();
        mutate(&mut script, &seeds, target.words, &mut random);
        messages += script.pieces.len() as u64;
        bytes += say(&server, &script);
        connections += 1;
        if connections % LOOK_EACH == 0 {
            worst_kib = worst_kib.max(server.resident_kib());
            assert!(worst_kib <= most_kib, "{worst_kib} KiB are resident after {messages} messages");
        }
    }
    println!(
        "seed {}: {messages} messages over {connections} connections, answered with {bytes} bytes; \
         {worst_kib} KiB resident at the worst",
        effort.seed
    );
    neighbour.works_for(10);
    neighbour.finish();
    server.stop();
}

/// Sends a script over a connection of its own, hangs up, and reads the answer. Returns the number of bytes
/// read.
fn say(server: &Server, script: &Script) -> u64 {
    let mut socket = connect_silently(server);
    for piece in &script.pieces {
        // The server has hung up. It may have said why, but need not.
        if socket.write_all(piece).is_err() {
            break;
        }
    }
    let _ = socket.shutdown(Shutdown::Write);
    take_all(&mut socket)
}

fn take_all(socket: &mut UnixStream) -> u64 {
    let (mut taken, mut buffer) = (0, [0; 64 << 10]);
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return taken,
            Ok(count) => taken += count as u64,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return taken,
            Err(error) => panic!("the server neither answers nor hangs up: {error}"),
        }
    }
}
