//! Clients that make the server hold as much memory as it may, in pieces of all sizes. It must not hold more.

use crate::harness::{RawClient, Scene, Server, bytes, command, status, wait_until};

/// `limits.bytes_in_flight`.
const LIMIT_MIB: u64 = 64;

/// The size of the volume, which is in memory.
const VOLUME_MIB: u64 = 32;

/// Memory of the program itself: code that it has not run before, stacks, the read buffer of a thread,
/// tables, memory that the allocator keeps, and 69 KiB for each of the 24 connections.
const ALLOWED_MIB: u64 = 16;

const DEAF: usize = 24;

fn assert_bounded(server: &Server, before_kib: u64, what: &str) {
    let grown = server.resident_kib().saturating_sub(before_kib) / 1024;
    assert!(grown <= VOLUME_MIB + LIMIT_MIB + ALLOWED_MIB, "{grown} MiB more than before after {what}");
}

#[test]
fn resident_memory_stays_within_what_may_be_in_flight_whatever_the_sizes_of_requests() {
    let scene = Scene::new();
    let server = scene.serve(&format!(
        "[limits]\nbytes_in_flight = \"{LIMIT_MIB}MiB\"\nbytes_per_connection = \"32MiB\"
        [pool.p]
        [volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"{VOLUME_MIB}MiB\"\n"
    ));
    let before = server.resident_kib();
    let data = bytes(1, 32 << 20);
    RawClient::connect(&server, "v").write(0, &data);
    let mut other = RawClient::connect(&server, "v");
    for length in [4096, 9_000, 33_000, 150_000, 1 << 20, 5 << 20, 32 << 20] {
        let mut deaf: Vec<_> = (0..DEAF).map(|_| RawClient::connect(&server, "v")).collect();
        for client in &mut deaf {
            let mut sent = 0;
            while sent < 1024 && client.send_without_waiting(command::READ, 0, length, &[]) {
                sent += 1;
            }
        }
        for _ in 0..20 {
            assert!(other.read(0, 4096) == data[..4096]);
            assert_bounded(&server, before, &format!("reads of {length} bytes that nobody takes"));
        }
        drop(deaf);
        wait_until("all have left", || status(&server)["connections"] == 1);
        assert_bounded(&server, before, &format!("reads of {length} bytes"));
    }
    server.stop();
}
