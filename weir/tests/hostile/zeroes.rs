//! Clients of a capped volume that ask for much with few bytes: long ranges of zeroes, trims, ranges to
//! cache, flushes.
//!
//! The caps are so low that they let nothing more through during a test than at its start. The tests read the
//! device's work from the counters, so they do not depend on the speed of the machine.

use super::neighbour::Neighbour;
use crate::harness::{Flags, RawClient, Scene, Server, command, get, status, wait_until};

const MIB: u32 = 1 << 20;
const GIB: u32 = 1 << 30;

/// The largest piece of a long request.
const PIECE: u64 = 32 << 20;

/// This many rounds of the neighbour show that it works on.
const ROUNDS: u64 = 300;

/// A server with a volume `attacked` that has this cap, and beside it in the same pool a volume `good` with a
/// promised latency.
fn serve(scene: &Scene, cap: &str) -> Server {
    let (attacked, good) = (scene.backend("attacked.img"), scene.backend("good.img"));
    scene.serve(&format!(
        "[limits]\nshutdown_timeout = \"100ms\"\n[pool.p]\n\
         [volume.attacked]\npool = \"p\"\nbackend = \"{attacked}\"\nsize = \"8GiB\"\n{cap}\n\
         [volume.good]\npool = \"p\"\nbackend = \"{good}\"\nsize = \"1MiB\"\n\
         slo = [{{ up_to = \"1000000iops\", read = \"20ms\", write = \"20ms\" }}]\n"
    ))
}

/// How many requests of a kind to the attacked volume the device has finished, and the number of their bytes.
fn done(server: &Server, op: &str) -> (u64, u64) {
    let text = get(&server.metrics);
    let of = |family: &str| {
        let series = format!("weir_{family}_total{{pool=\"p\",volume=\"attacked\",op=\"{op}\"}} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&series));
        let value = value.unwrap_or_else(|| panic!("no {series}in\n{text}"));
        value.parse::<f64>().unwrap_or_else(|_| panic!("{series}{value} is no number"))
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // counts, far below 2^53
    (of("requests") as u64, of("request_bytes") as u64)
}

/// Sends a flood of requests beside a neighbour. Returns the device's work at the time when the neighbour has
/// worked on.
fn flood(cap: &str, requests: &[(u16, u64, u32)], op: &str) -> (u64, u64) {
    let scene = Scene::new();
    let server = serve(&scene, cap);
    let neighbour = Neighbour::start(&server, "good");
    let mut client = RawClient::connect(&server, "attacked");
    client.send_together(requests);
    assert_eq!(client.receive().error, 0, "the first passes at once");
    neighbour.works_for(ROUNDS);
    let done = done(&server, op);
    neighbour.finish();
    done
}

#[test]
fn zeroes_do_not_pass_a_cap_on_bandwidth() {
    let zeroes = [(command::WRITE_ZEROES, 0, MIB); 64];
    assert_eq!(flood("max_bandwidth = \"1kB/s\"", &zeroes, "write_zeroes"), (1, u64::from(MIB)));
}

#[test]
fn ranges_to_be_cached_do_not_pass_a_cap_on_bandwidth() {
    let cache = [(command::CACHE, 0, MIB); 64];
    assert_eq!(flood("max_bandwidth = \"1kB/s\"", &cache, "cache"), (1, u64::from(MIB)));
}

#[test]
fn flushes_do_not_pass_a_cap_on_requests() {
    let flushes = [(command::FLUSH, 0, 0); 64];
    assert_eq!(flood("max_iops = \"0.001iops\"", &flushes, "flush"), (1, 0));
}

#[test]
fn a_long_trim_does_not_pass_a_cap_on_requests() {
    let scene = Scene::new();
    let server = serve(&scene, "max_iops = \"0.001iops\"");
    let neighbour = Neighbour::start(&server, "good");
    let mut client = RawClient::connect(&server, "attacked");
    client.send(command::TRIM, Flags::NONE, 0, 4 * (GIB - MIB), &[]);
    wait_until("a piece of it was trimmed", || done(&server, "trim").0 > 0);
    neighbour.works_for(ROUNDS);
    assert_eq!(done(&server, "trim"), (1, PIECE));
    neighbour.finish();
}

#[test]
fn what_a_client_that_leaves_has_asked_for_is_not_gone_on_with() {
    let scene = Scene::new();
    let server = serve(&scene, "max_bandwidth = \"1kB/s\"");
    let neighbour = Neighbour::start(&server, "good");
    let mut client = RawClient::connect(&server, "attacked");
    client.send(command::WRITE_ZEROES, Flags::NONE, 0, 3 * GIB, &[]);
    wait_until("a piece of it was written", || done(&server, "write_zeroes").0 > 0);
    drop(client);
    // Another client disconnects, and does not wait either.
    let mut client = RawClient::connect(&server, "attacked");
    client.send(command::WRITE_ZEROES, Flags::NONE, 0, 3 * GIB, &[]);
    assert!(client.try_send(command::DISCONNECT, 0, 0, &[]));
    drop(client);
    wait_until("both have left", || status(&server)["connections"] == 1);
    neighbour.works_for(ROUNDS);
    assert_eq!(done(&server, "write_zeroes"), (1, PIECE));
    neighbour.finish();
    server.stop();
}

#[test]
fn a_long_range_of_zeroes_is_zero_to_its_last_byte_and_is_answered_once() {
    let scene = Scene::new();
    let server = serve(&scene, "");
    let mut client = RawClient::connect(&server, "attacked");
    let (first, last) = (513, 513 + u64::from(GIB) - 1);
    for at in [first - 1, first, PIECE, 2 * PIECE - 1, last, last + 1] {
        client.write(at, &[7]);
    }
    let reply = client.ask(command::WRITE_ZEROES, Flags::FUA, first, GIB, &[]);
    assert_eq!(reply.error, 0);
    assert_eq!(client.outstanding(), 0);
    for (at, expected) in
        [(first - 1, 7), (first, 0), (PIECE, 0), (2 * PIECE - 1, 0), (last, 0), (last + 1, 7)]
    {
        assert_eq!(client.read(at, 1), [expected], "byte {at}");
    }
    assert_eq!(done(&server, "write_zeroes"), (33, u64::from(GIB)), "pieces of 32 MiB, and two odd ends");
}

#[test]
fn the_first_error_of_a_long_request_is_its_answer_and_its_end() {
    let scene = Scene::new();
    let faults = "faults = [{ on = \"write_zeroes\", every = 3, error = \"ENOSPC\" }]";
    let server = serve(&scene, faults);
    let mut client = RawClient::connect(&server, "attacked");
    let reply = client.ask(command::WRITE_ZEROES, Flags::NONE, 0, GIB, &[]);
    assert_eq!(reply.error, 28, "NBD_ENOSPC");
    assert_eq!(done(&server, "write_zeroes"), (3, 2 * PIECE));
    client.disconnect();
}
