//! Whole volumes in and out: `nbdcopy`, `qemu-img`.

use std::fs;

use crate::harness::{Flags, Program, RawClient, Scene, Server, bytes, command};

/// The size is no multiple of any block.
const SIZE: usize = 24 * 1024 * 1024 + 1234;

/// Random data with runs of zeroes, aligned and not.
fn image() -> Vec<u8> {
    let mut data = bytes(7, SIZE);
    for (from, length) in [(0, 70_000), (1 << 20, 3 << 20), (9_999_999, 131_072), (SIZE - 5_000, 5_000)] {
        data[from..from + length].fill(0);
    }
    data
}

fn nbdcopy(args: &str, from: &str, to: &str) {
    Program::new("nbdcopy").args(args).arg(from).arg(to).run();
}

/// Copies in and out again, and compares.
fn round_trip(scene: &Scene, server: &Server, export: &str) {
    let (data, source, back) = (image(), scene.text("source"), scene.text("back"));
    fs::write(&source, &data).unwrap();
    for (uri, args) in [
        (server.uri(export), "--connections=4 --requests=32"),
        (server.tcp_uri(export), "--connections=2 --request-size=1048576"),
        (server.uri(export), "--synchronous --destination-is-zero"),
        (server.uri(export), "--connections=1 --allocated --flush"),
    ] {
        if args.contains("destination-is-zero") {
            let mut client = RawClient::connect(server, export);
            let length = u32::try_from(SIZE).unwrap();
            assert_eq!(client.ask(command::WRITE_ZEROES, Flags::NONE, 0, length, &[]).error, 0);
        } else {
            fs::write(scene.file("noise"), bytes(8, SIZE)).unwrap();
            nbdcopy("", &scene.text("noise"), &uri);
        }
        nbdcopy(args, &source, &uri);
        fs::write(&back, []).unwrap();
        let out = if args.contains("synchronous") { "--synchronous" } else { "--connections=4" };
        nbdcopy(out, &uri, &back);
        assert!(fs::read(&back).unwrap() == data, "{export} {args}: what came back differs");
    }
}

fn config(backend: &str, control: &str) -> String {
    format!(
        "[pool.p]\ncontrol = \"{control}\"\n[volume.v]\npool = \"p\"\nbackend = \"{backend}\"\nsize = \"{SIZE}B\"\n"
    )
}

#[test]
fn nbdcopy_copies_into_a_file_and_out_of_it_unchanged() {
    let scene = Scene::new();
    let server = scene.serve(&config(&scene.backend("v.img"), "facade"));
    round_trip(&scene, &server, "v");
    server.stop();
    assert!(fs::read(scene.file("v.img")).unwrap() == image(), "the file has what was copied");
}

#[test]
fn nbdcopy_copies_into_memory_and_out_of_it_unchanged() {
    let scene = Scene::new();
    let server = scene.serve(&config("memory", "none"));
    round_trip(&scene, &server, "v");
}

#[test]
fn qemu_img_converts_to_a_volume_and_finds_it_identical() {
    let scene = Scene::new();
    // qemu sees sectors of 512 bytes.
    let data = &image()[..24 << 20];
    fs::write(scene.file("source"), data).unwrap();
    let backend = scene.backend("v.img");
    let server = scene
        .serve(&format!("[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"{backend}\"\nsize = \"24MiB\"\n"));
    let qemu_img =
        |args: &str, from: &str, to: &str| Program::new("qemu-img").args(args).arg(from).arg(to).run();
    for uri in [server.uri("v"), server.tcp_uri("v")] {
        qemu_img("convert -n -W -m 8 -f raw -O raw", &scene.text("source"), &uri);
        qemu_img("compare -f raw -F raw", &scene.text("source"), &uri);
        qemu_img("convert -f raw -O qcow2", &uri, &scene.text("back.qcow2"));
        qemu_img("compare -f qcow2 -F raw", &scene.text("back.qcow2"), &uri);
    }
    server.stop();
    assert!(fs::read(scene.file("v.img")).unwrap() == data, "the file has what was converted");
}
