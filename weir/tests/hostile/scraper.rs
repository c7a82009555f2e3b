//! Many peers of the metrics address and of the control socket that never finish.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use socket2::SockRef;

use super::neighbour::Neighbour;
use crate::harness::{RawClient, Scene, Server, get, status, wait_until};

/// The lowest limit on open files with which this process can itself hold the connections of a test.
const CONNECTIONS: usize = 500;

fn serve(scene: &Scene, limits: &str) -> Server {
    let pool = "[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";
    Server::start(&scene.configure_controlled(&format!("[limits]\n{limits}\n{pool}")))
}

fn metrics_address(server: &Server) -> &str {
    server.metrics.strip_prefix("http://").unwrap().split('/').next().unwrap()
}

#[test]
fn scrapers_that_never_finish_keep_no_descriptors_and_nobody_out() {
    let scene = Scene::new();
    let server = serve(&scene, "api_connections = 16\napi_timeout = \"1h\"");
    let neighbour = Neighbour::start(&server, "v");
    neighbour.works_for(1);
    let before = server.descriptors();
    let idle: Vec<_> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(metrics_address(&server)).unwrap()).collect();
    let head = b"GET /metrics HTTP/1.1\r\nHost: a\r\n";
    let begun: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut stream = UnixStream::connect(scene.file("control.sock")).unwrap();
            // A connection that gave way to another is closed already.
            let _ = stream.write_all(head);
            stream
        })
        .collect();
    neighbour.works_for(100);
    assert!(get(&server.metrics).contains("weir_connections"), "a scraper is answered beside them");
    RawClient::connect(&server, "v").disconnect();
    wait_until("those who never finish have few descriptors", || {
        server.descriptors().saturating_sub(before) <= 2 * 16 + 8
    });
    neighbour.works_for(100);
    neighbour.finish();
    drop((idle, begun));
    server.stop();
}

#[test]
fn headers_and_bodies_without_end_take_no_memory() {
    let scene = Scene::new();
    let server = serve(&scene, "api_connections = 32");
    let neighbour = Neighbour::start(&server, "v");
    neighbour.works_for(100);
    let before = server.resident_kib();
    let line = [&b"x-header: "[..], &[b'a'; 4000], &b"\r\n"[..]].concat();
    let post = "POST /v1/changes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    let endless = format!("{post}Transfer-Encoding: chunked\r\n\r\n");
    let chunk = [&b"1000\r\n"[..], &[b' '; 4096], &b"\r\n"[..]].concat();
    for (head, more) in [(&b"GET /metrics HTTP/1.1\r\n"[..], &line), (endless.as_bytes(), &chunk)] {
        let mut peers: Vec<_> =
            (0..32).map(|_| UnixStream::connect(scene.file("control.sock")).unwrap()).collect();
        for peer in &mut peers {
            let _ = peer.write_all(head);
            // Each sends 16 MiB, unless the server cuts it off, which it must.
            let sent = (0..4096).take_while(|_| peer.write_all(more).is_ok()).count();
            assert!(sent < 4096, "a request without end is cut off");
        }
    }
    neighbour.works_for(100);
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB for requests that never end");
    neighbour.finish();
    server.stop();
}

#[test]
fn a_peer_that_says_nothing_or_takes_nothing_is_closed_after_its_time() {
    let scene = Scene::new();
    let server = serve(&scene, "api_timeout = \"100ms\"");
    let neighbour = Neighbour::start(&server, "v");
    let mut silent = TcpStream::connect(metrics_address(&server)).unwrap();
    assert_eq!(silent.read(&mut [0; 16]).unwrap_or(0), 0, "it is closed");
    let mut begun = TcpStream::connect(metrics_address(&server)).unwrap();
    begun.write_all(b"GET /metr").unwrap();
    assert_eq!(begun.read(&mut [0; 16]).unwrap_or(0), 0, "it is closed");
    assert_eq!(status(&server)["connections"], 1);
    neighbour.works_for(100);
    neighbour.finish();
    server.stop();
}

#[test]
fn with_few_descriptors_fewer_clients_are_accepted_and_volumes_work() {
    let scene = Scene::new();
    let pool = "[pool.p]\n[volume.v]\npool = \"p\"\n";
    let config =
        scene.configure(&format!("{pool}backend = \"{}\"\nsize = \"1MiB\"\n", scene.backend("v.img")));
    let server = Server::start_with_open_files(&config, 256);
    server.wait_for_log(0, "the limit on open files is too small for limits.connections = 10500");
    let neighbour = Neighbour::start(&server, "v");
    let connect = || RawClient::try_connect(&server, "v").ok();
    let clients: Vec<_> = std::iter::from_fn(connect).take(256).collect();
    assert!(clients.len() < 200, "{} clients leave too few descriptors for others", clients.len());
    // There are still descriptors for work that needs one.
    assert!(get(&server.metrics).contains("weir_connections"));
    neighbour.works_for(100);
    neighbour.finish();
    drop(clients);
    server.stop();
}

#[test]
fn answers_that_nobody_reads_are_kept_for_all_together_and_not_for_each() {
    let volume = |n| format!("[volume.v{n}]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n");
    let volumes: String = (0..600).map(volume).collect();
    let scene = Scene::new();
    let server = scene.serve(&format!("[limits]\napi_timeout = \"1h\"\n[pool.p]\n{volumes}"));
    let neighbour = Neighbour::start(&server, "v0");
    neighbour.works_for(1);
    let answer = get(&server.metrics).len() as u64;
    let before = server.resident_kib();
    let readers: Vec<_> = (0..32)
        .map(|_| {
            let mut reader = TcpStream::connect(metrics_address(&server)).unwrap();
            SockRef::from(&reader).set_recv_buffer_size(4096).unwrap();
            reader.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            reader.read_exact(&mut [0]).unwrap(); // its answer has begun
            reader
        })
        .collect();
    let grown = server.resident_kib().saturating_sub(before) << 10;
    assert!(grown < 8 * answer, "{grown} bytes for 32 answers of {answer} bytes");
    neighbour.works_for(100);
    neighbour.finish();
    drop(readers);
    server.stop();
}
