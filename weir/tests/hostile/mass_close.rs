//! Many connections with many waiting requests, closed at once. A close may only cost what its own connection
//! had.

use super::neighbour::Neighbour;
use crate::harness::{RawClient, Scene, Server, command, status, wait_until};

const ATTACKERS: usize = 400;
/// As many requests as a connection may have.
const REQUESTS: usize = 1024;
const VISITS: u64 = 200;

/// The server's processor time for clients that come, read a block and go.
fn visits(server: &Server) -> u64 {
    let before = server.computed_nanos();
    for visit in 0..VISITS {
        let mut client = RawClient::connect(server, "v");
        client.read(visit * 4096, 4096);
        client.disconnect();
    }
    server.computed_nanos() - before
}

#[test]
fn a_close_costs_no_more_after_many_connections_with_much_that_waited_were_closed() {
    let scene = Scene::new();
    let volume = |name: &str, more: &str| {
        format!("[volume.{name}]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n{more}\n")
    };
    let capped = volume("capped", "max_iops = \"0.001iops\"");
    let server = scene.serve(&format!("[pool.p]\n{}{capped}", volume("v", "")));
    let neighbour = Neighbour::start(&server, "v");
    neighbour.works_for(10);
    neighbour.finish();
    visits(&server);
    let before = visits(&server);
    let neighbour = Neighbour::start(&server, "v");
    let requests = vec![(command::CACHE, 0, 4096); REQUESTS];
    let mut attackers: Vec<_> = (0..ATTACKERS).map(|_| RawClient::connect(&server, "capped")).collect();
    for attacker in &mut attackers {
        attacker.send_together(&requests);
    }
    wait_until("nearly all of it waits", || {
        status(&server)["pools"][0]["queued"].as_u64() >= Some((ATTACKERS as u64 - 1) * REQUESTS as u64)
    });
    drop(attackers);
    neighbour.works_for(200);
    wait_until("all have left", || status(&server)["connections"] == 1);
    neighbour.finish();
    let after = visits(&server);
    assert!(after < 3 * before, "{after} ns for {VISITS} visits, {before} ns before");
    server.stop();
}
