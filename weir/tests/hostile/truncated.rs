//! A file that another process cuts off while it is served.

use std::fs::OpenOptions;

use crate::harness::{Flags, RawClient, Scene, Server, block, command};

use super::neighbour::Neighbour;

const EIO: u32 = 5;
const BLOCKS: u64 = 256;

/// A server with the volume `v` of 1 MiB in the file `v.img`, on that backend; and beside it the volume `w`
/// in memory.
fn serve(scene: &Scene, backend: &str) -> Server {
    let array = "[array.a]\ndisks = 1\nraid = \"single\"\nsize = \"1MiB\"\n\
                 station = { servers = 8, service_time = \"10us\", exponential = false }\n";
    let array = if backend.starts_with("array") { array } else { "" };
    let file = scene.text("v.img");
    scene.serve(&format!(
        "[pool.p]\n{array}[volume.v]\npool = \"p\"\nbackend = \"{backend}:{file}\"\nsize = \"1MiB\"\n\
         [volume.w]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n"
    ))
}

fn cut_off(scene: &Scene, size: u64) {
    let file = OpenOptions::new().write(true).open(scene.file("v.img")).expect("it is served");
    file.set_len(size).expect("a file can be cut off");
}

#[test]
fn what_was_cut_off_a_file_is_no_zeroes_but_an_error_that_is_logged_once() {
    for backend in ["file", "array:a"] {
        let scene = Scene::new();
        let server = serve(&scene, backend);
        let neighbour = Neighbour::start(&server, "w");
        let mut client = RawClient::connect(&server, "v");
        for number in 0..BLOCKS {
            client.write(number * 4096, &block(number, 1));
        }
        cut_off(&scene, 10 * 4096 + 100);
        for (offset, length) in [(11 * 4096, 4096), (9 * 4096, 8192), (10 * 4096 + 50, 100), (1 << 19, 1)] {
            for _ in 0..50 {
                let answer = client.ask(command::READ, Flags::NONE, offset, length, &[]);
                assert_eq!(answer.error, EIO, "{backend}: a read of {length} bytes at {offset}");
            }
        }
        let refused = [
            client.ask(command::WRITE, Flags::NONE, 200 * 4096, 4096, &block(200, 2)),
            client.ask(command::WRITE_ZEROES, Flags::NONE, 100 * 4096, 4096, &[]),
            client.ask(command::TRIM, Flags::NONE, 100 * 4096, 4096, &[]),
            client.ask(command::FLUSH, Flags::NONE, 0, 0, &[]),
            RawClient::connect(&server, "v").ask(command::FLUSH, Flags::NONE, 0, 0, &[]),
        ];
        assert!(refused.iter().all(|answer| answer.error == EIO), "{backend}: {refused:?}");
        let length = std::fs::metadata(scene.file("v.img")).unwrap().len();
        assert_eq!(length, 10 * 4096 + 100, "{backend}: no write makes it longer, with a hole before it");
        for number in 0..10 {
            assert_eq!(client.read(number * 4096, 4096), block(number, 1), "{backend}");
        }
        client.write(0, &block(0, 2));
        neighbour.works_for(20);
        neighbour.finish();
        server.wait_for_log(0, "the file was cut off while it was served");
        let log = server.logged_since(0);
        assert_eq!(log.matches("was cut off").count(), 1, "{backend}: {log}");
        server.stop();
    }
}

#[test]
fn a_file_that_was_cut_off_is_noticed_by_the_next_flush_of_whoever_does_not_read() {
    let scene = Scene::new();
    let server = serve(&scene, "file");
    let mut client = RawClient::connect(&server, "v");
    client.write(200 * 4096, &block(200, 1));
    cut_off(&scene, 4096);
    assert_eq!(client.ask(command::FLUSH, Flags::NONE, 0, 0, &[]).error, EIO);
    client.write(0, &block(0, 1));
    assert_eq!(client.read(0, 4096), block(0, 1));
    server.stop();
}
