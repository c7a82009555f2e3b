//! Peers that make weir write lines to its log.

use rustix::process::Signal;

use super::neighbour::Neighbour;
use crate::harness::{Scene, connect_silently, ends};

const REFUSED: u64 = 2000;

/// The number of a field `lines=…`.
fn lines_left_out(line: &str) -> u64 {
    let (_, rest) = line.split_once("lines=").expect("the line says how many");
    rest.split(' ').next().unwrap().parse().expect("a number")
}

#[test]
fn refused_connections_do_not_fill_the_log_and_each_is_counted() {
    let scene = Scene::new();
    let server = scene.serve(
        "[limits]\nconnections = 1\n[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n",
    );
    let neighbour = Neighbour::start(&server, "v");
    neighbour.works_for(1);
    for _ in 0..REFUSED {
        ends(&mut connect_silently(&server));
    }
    neighbour.works_for(100);
    neighbour.finish();
    server.signal(Signal::TERM);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    let (told, lines): (Vec<_>, Vec<_>) =
        log.lines().filter(|line| line.contains("refused")).partition(|line| line.contains("lines="));
    // Twenty at once, and one in each five seconds that the test takes.
    assert!(lines.len() < 100, "{} lines", lines.len());
    let left_out: u64 = told.into_iter().map(lines_left_out).sum();
    assert_eq!(lines.len() as u64 + left_out, REFUSED, "each is written or counted");
}
