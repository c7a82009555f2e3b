//! Storage that loses data: no client may take lost data for durable, whichever client's request found the
//! loss.
//!
//! The device's faults are injected, so that these tests run anywhere. The kernel's own way of losing data,
//! with a file system above it, is in `vm`. A server with a volatile cache is in `upstream`.

use crate::harness::{Flags, RawClient, Scene, Server, block, command, status, wait_until};

const EIO: u32 = 5;
const LOSS: &str = "writes that were answered and not flushed may be lost";

/// One volume `v` on a file.
struct Volume(Scene);

impl Volume {
    fn serve() -> (Self, Server) {
        let volume = Self(Scene::new());
        let server = volume.0.serve(&volume.text(""));
        (volume, server)
    }

    /// The text of its pool and itself, with these faults.
    fn text(&self, faults: &str) -> String {
        let faults = if faults.is_empty() { String::new() } else { format!("faults = [{faults}]\n") };
        let backend = self.0.backend("v.img");
        format!("[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"{backend}\"\nsize = \"64MiB\"\n{faults}")
    }

    /// Makes the storage behave like this from now on.
    fn misbehave(&self, server: &Server, faults: &str) {
        server.reload(&self.text(faults)).expect("faults can be changed");
    }
}

fn flush(client: &mut RawClient) -> u32 {
    client.ask(command::FLUSH, Flags::NONE, 0, 0, &[]).error
}

/// Ends the connection without a disconnect. Returns when the server has seen that, and has `left`
/// connections.
fn vanish(client: RawClient, server: &Server, left: u64) {
    drop(client);
    wait_until("the server has seen a client go", || status(server)["connections"] == left);
}

/// Connects, flushes and disconnects. Returns the error of the flush.
fn newcomer(server: &Server, others: u64) -> u32 {
    let mut client = RawClient::connect(server, "v");
    let error = flush(&mut client);
    vanish(client, server, others);
    error
}

#[test]
fn a_flush_that_fails_at_the_device_is_told_to_each_client() {
    let (volume, server) = Volume::serve();
    let mut clients = [(); 3].map(|()| RawClient::connect(&server, "v"));
    for (number, client) in (0..).zip(&mut clients) {
        client.write(number << 12, &block(number, 1));
    }
    volume.misbehave(&server, r#"{ on = "flush", error = "EIO" }"#);
    assert_eq!(flush(&mut clients[0]), EIO, "by the device itself");
    volume.misbehave(&server, "");
    assert_eq!(flush(&mut clients[0]), 0, "it knows");
    for client in &mut clients[1..] {
        assert_eq!(flush(client), EIO, "the device's success hides nothing");
        assert_eq!(flush(client), 0);
    }
    assert_eq!(newcomer(&server, 3), 0);
    server.wait_for_log(0, LOSS);
    server.stop();
}

#[test]
fn a_durable_write_that_fails_is_a_loss_for_what_was_written_before() {
    let (volume, server) = Volume::serve();
    let mut clients = [(); 2].map(|()| RawClient::connect(&server, "v"));
    clients[0].write(0, &block(0, 1));
    clients[1].write(4096, &block(1, 1));
    volume.misbehave(&server, r#"{ on = "write", error = "EIO" }"#);
    assert_eq!(clients[0].ask(command::WRITE, Flags::FUA, 8192, 4096, &block(2, 1)).error, EIO);
    volume.misbehave(&server, "");
    for client in &mut clients {
        assert_eq!(flush(client), EIO, "the kernel may have told the durable write of any earlier one");
        assert_eq!(flush(client), 0);
    }
    server.stop();
}

#[test]
fn a_write_that_fails_or_is_refused_is_told_by_its_own_answer_alone() {
    let (volume, server) = Volume::serve();
    let mut client = RawClient::connect(&server, "v");
    volume.misbehave(&server, r#"{ on = "write", error = "EIO" }"#);
    assert_eq!(client.ask(command::WRITE, Flags::NONE, 0, 4096, &block(0, 1)).error, EIO);
    volume.misbehave(&server, r#"{ on = "write", error = "EPERM" }"#);
    assert_ne!(client.ask(command::WRITE, Flags::FUA, 0, 4096, &block(0, 1)).error, 0);
    assert_eq!(flush(&mut client), 0);
    server.stop();
}

#[test]
fn flushes_in_flight_at_a_loss_fail_though_the_device_says_that_they_succeed() {
    let (volume, server) = Volume::serve();
    let mut clients = [(); 2].map(|()| RawClient::connect(&server, "v"));
    clients[0].write(0, &block(0, 1));
    volume.misbehave(&server, r#"{ on = "flush", stall = true }, { on = "write", error = "EIO" }"#);
    for client in &mut clients {
        client.send_together(&[(command::FLUSH, 0, 0); 2]);
    }
    let mut third = RawClient::connect(&server, "v");
    assert_eq!(third.ask(command::WRITE, Flags::FUA, 4096, 4096, &block(1, 1)).error, EIO);
    volume.misbehave(&server, ""); // and the flushes go on, to a device that is well
    for client in &mut clients {
        assert_eq!([client.receive().error, client.receive().error], [EIO, EIO]);
        assert_eq!(flush(client), 0);
    }
    server.stop();
}

#[test]
fn a_client_that_leaves_without_knowing_of_a_loss_is_told_when_it_is_back() {
    let (volume, server) = Volume::serve();
    let mut clients = vec![RawClient::connect(&server, "v"), RawClient::connect(&server, "v")];
    clients[1].write(0, &block(0, 1));
    volume.misbehave(&server, r#"{ on = "flush", error = "EIO" }"#);
    assert_eq!(flush(&mut clients[0]), EIO);
    volume.misbehave(&server, "");
    vanish(clients.remove(1), &server, 1);
    assert_eq!(newcomer(&server, 1), EIO);
    assert_eq!(newcomer(&server, 1), 0, "told once");
    server.stop();
}

#[test]
fn a_client_that_is_away_when_its_data_is_lost_is_told_when_it_is_back() {
    let (volume, server) = Volume::serve();
    let mut clients = vec![RawClient::connect(&server, "v"), RawClient::connect(&server, "v")];
    clients[1].write(0, &block(0, 1));
    vanish(clients.remove(1), &server, 1);
    volume.misbehave(&server, r#"{ on = "flush", error = "EIO" }"#);
    assert_eq!(flush(&mut clients[0]), EIO);
    volume.misbehave(&server, "");
    assert_eq!(newcomer(&server, 1), EIO);
    assert_eq!(newcomer(&server, 1), 0);
    server.stop();
}

#[test]
fn a_reply_that_its_client_never_took_has_told_nobody() {
    const READ: u32 = 32 << 20; // far more than a socket holds
    let (volume, server) = Volume::serve();
    let (mut other, mut deaf) = (RawClient::connect(&server, "v"), RawClient::connect(&server, "v"));
    volume.misbehave(&server, r#"{ on = "flush", error = "EIO" }"#);
    deaf.send(command::READ, Flags::NONE, 0, READ, &[]);
    deaf.taste();
    deaf.send(command::FLUSH, Flags::NONE, 0, 0, &[]); // its reply waits behind the data
    server.wait_for_log(0, LOSS);
    volume.misbehave(&server, "");
    assert_eq!(flush(&mut other), EIO);
    vanish(deaf, &server, 1);
    assert_eq!(newcomer(&server, 1), EIO);
    assert_eq!(newcomer(&server, 1), 0);
    server.stop();
}

#[test]
fn a_loss_that_a_client_was_not_told_of_outlives_the_removal_of_the_volume() {
    let (volume, server) = Volume::serve();
    let mut clients = [(); 2].map(|()| RawClient::connect(&server, "v"));
    clients[1].write(0, &block(0, 1));
    volume.misbehave(&server, r#"{ on = "flush", error = "EIO" }"#);
    assert_eq!(flush(&mut clients[0]), EIO);
    let another = "[pool.p]\n[volume.w]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";
    server.reload(another).expect("a volume can be removed");
    server.wait_for_log(0, "the volume ended before each client was told of a loss");
    server.wait_for_log(0, "no longer served");
    drop(clients);
    volume.misbehave(&server, ""); // and is there again
    assert_eq!(flush(&mut RawClient::connect(&server, "v")), EIO);
    assert_eq!(flush(&mut RawClient::connect(&server, "v")), 0);
    server.stop();
}
