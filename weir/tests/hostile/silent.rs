//! Many peers that connect and send nothing, or that connect and stay.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::neighbour::Neighbour;
use crate::gateways::{Array, Gateway};
use crate::harness::{RawClient, Scene, Server, connect_silently, ends, status, wait_until};

/// A server with two volumes, `v` and `w`.
fn serve(scene: &Scene, limits: &str) -> Server {
    let volume =
        |name: &str| format!("[volume.{name}]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n");
    scene.serve(&format!("[limits]\n{limits}\n[pool.p]\n{}{}", volume("v"), volume("w")))
}

/// Connects to `export` over TCP until the server refuses. Returns the clients that it let in.
fn connect_as_often_as_possible(server: &Server, export: &str) -> Vec<RawClient> {
    let connect = || RawClient::try_connect_tcp(server, export).ok();
    let clients: Vec<_> = std::iter::from_fn(connect).take(1000).collect();
    assert!(clients.len() < 1000, "somebody is refused");
    clients
}

#[test]
fn silent_connections_keep_nobody_out_neither_over_tcp_nor_over_a_unix_socket() {
    let scene = Scene::new();
    let server = serve(&scene, "connections = 20\nhandshakes = 16\nhandshake_timeout = \"1h\"");
    let neighbour = Neighbour::start(&server, "v");
    // All sockets are held to the end. The server closes the ones that give way to others, and the rest stay.
    let tcp: Vec<_> = (0..200).map(|_| TcpStream::connect(&server.tcp).unwrap()).collect();
    let mut unix: Vec<_> = (0..200).map(|_| connect_silently(&server)).collect();
    neighbour.works_for(100);
    for export in ["v", "w"].repeat(5) {
        RawClient::connect(&server, export).disconnect();
        RawClient::try_connect_tcp(&server, export).unwrap().disconnect();
    }
    wait_until("no more are connected than the neighbour and limits.handshakes", || {
        status(&server)["connections"].as_u64().unwrap() <= 17
    });
    ends(&mut unix[0]);
    neighbour.works_for(100);
    neighbour.finish();
    drop((tcp, unix));
    server.stop();
}

#[test]
fn clients_of_one_volume_leave_places_for_those_of_another() {
    let scene = Scene::new();
    let server = serve(&scene, "connections = 24\nconnections_per_volume = 24\nconnections_per_address = 24");
    let neighbour = Neighbour::start(&server, "v");
    neighbour.works_for(1);
    let greedy = connect_as_often_as_possible(&server, "w");
    assert_eq!(greedy.len(), 24 - 4, "four are kept for v, one of which is taken");
    let others: Vec<_> = (0..3).map(|_| RawClient::connect(&server, "v")).collect();
    assert!(RawClient::try_connect(&server, "v").is_err(), "no place is left");
    neighbour.works_for(100);
    neighbour.finish();
    drop((greedy, others));
    server.stop();
}

#[test]
fn clients_of_one_address_leave_places_for_those_of_others() {
    let scene = Scene::new();
    let server = serve(&scene, "connections = 24\nconnections_per_address = 16");
    let neighbour = Neighbour::start(&server, "v");
    neighbour.works_for(1);
    let mut greedy = connect_as_often_as_possible(&server, "v");
    assert_eq!(greedy.len(), 16);
    greedy.extend(connect_as_often_as_possible(&server, "w"));
    assert_eq!(greedy.len(), 16 + 4, "beyond its share, an address has only what the other volume keeps");
    // Over the Unix socket, this process's user counts as another address than 127.0.0.1.
    RawClient::connect(&server, "v").disconnect();
    RawClient::connect(&server, "w").disconnect();
    neighbour.works_for(100);
    neighbour.finish();
    server.stop();
}

/// After so long, a controller closes a silent connection anyway.
const SILENCE: Duration = Duration::from_secs(5);

/// Connects from `host` and says nothing, again whenever it is closed, until the controller is gone.
fn stay_silent(host: &str, controller: SocketAddr) {
    let connect = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(host.parse().unwrap(), 0).into())?;
        socket.connect(&controller.into())?;
        std::io::Result::Ok(TcpStream::from(socket))
    };
    while let Ok(mut silent) = connect() {
        // A connection that was never accepted is not closed when the controller ends.
        silent.set_read_timeout(Some(SILENCE)).unwrap();
        let _ = silent.read(&mut [0]);
    }
}

#[test]
fn silent_connections_of_many_addresses_keep_no_gateway_from_its_controller() {
    let array = Array::new("127.0.7.10");
    let controller = array.controller();
    let first = Gateway::start(&controller, "a");
    wait_until("the first is there", || controller.held("a").is_some());
    let address: SocketAddr = controller.server.tcp.parse().unwrap();
    // As many as a controller lets in of one address, and more in all than it lets in of all.
    let silent: Vec<_> = (0..32 * 20)
        .map(|n| thread::spawn(move || stay_silent(&format!("127.0.8.{}", 1 + n % 20), address)))
        .collect();
    controller.server.wait_for_log(0, "connections have not proved that they are gateways");
    let second = Gateway::start(&controller, "b");
    wait_until("the second has come in", || controller.held("b").is_some());
    for gateway in [&first, &second] {
        ["v", "w"].iter().for_each(|volume| gateway.serve(volume));
    }
    // The second may have had to try again: the kernel's own queue of connections is full now and then.
    assert!(first.complaints().is_empty(), "{:?}", first.complaints());
    assert!(controller.held("a").is_some() && controller.held("b").is_some());
    controller.server.kill();
    silent.into_iter().for_each(|silent| silent.join().unwrap());
}
