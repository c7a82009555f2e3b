//! Load of clients that verify every byte: `fio`, `qemu-io`.

use crate::harness::{Program, Scene, Server};

fn file_volume(scene: &Scene, control: &str, more: &str) -> Server {
    let backend = scene.backend("v.img");
    scene.serve(&format!(
        "[pool.p]\ncontrol = \"{control}\"\n[volume.v]\npool = \"p\"\nbackend = \"{backend}\"\nsize = \"64MiB\"\n{more}"
    ))
}

/// Writes all over each job's own 16 MiB, and reads everything back.
pub(crate) fn fio(scene: &Scene, uri: &str, job: &str) {
    let out = Program::new("fio")
        .args("--name=job --ioengine=nbd --size=16m --offset_increment=16m --thread --group_reporting")
        .args("--verify=crc32c --verify_fatal=1 --do_verify=1 --verify_state_save=0 --randrepeat=1 --output-format=json")
        .args(job)
        .arg(format!("--uri={uri}"))
        .directory(scene.path())
        .run();
    let report: serde_json::Value = serde_json::from_str(&out[out.find('{').expect("JSON")..]).expect("JSON");
    let job = &report["jobs"][0];
    assert_eq!(job["error"], 0);
    assert!(job["read"]["total_ios"].as_u64() > Some(0), "it has verified something");
}

#[test]
fn fio_verifies_what_it_wrote_through_a_pool_with_control() {
    let scene = Scene::new();
    let server = file_volume(
        &scene,
        "facade",
        "slo = [{ up_to = \"100000iops\", read = \"10ms\", write = \"10ms\" }]\n",
    );
    fio(&scene, &server.uri("v"), "--numjobs=4 --iodepth=32 --rw=randwrite --bsrange=4k-64k --fsync=16");
    fio(&scene, &server.tcp_uri("v"), "--numjobs=2 --iodepth=8 --rw=randrw --bs=4k");
    server.stop();
}

#[test]
fn fio_verifies_what_it_wrote_through_a_pool_without_control() {
    let scene = Scene::new();
    let server = file_volume(&scene, "none", "");
    fio(
        &scene,
        &server.tcp_uri("v"),
        "--numjobs=4 --iodepth=16 --rw=randwrite --bssplit=4k/50:16k/30:128k/20",
    );
    fio(&scene, &server.uri("v"), "--numjobs=1 --iodepth=1 --rw=write --bs=256k");
    server.stop();
}

#[test]
fn fio_verifies_blocks_that_no_page_is_aligned_with() {
    let scene = Scene::new();
    let server = file_volume(&scene, "facade", "");
    fio(
        &scene,
        &server.uri("v"),
        "--numjobs=2 --iodepth=16 --rw=randwrite --bsrange=512-9728 --bs_unaligned=1 --size=4m",
    );
    server.stop();
}

#[test]
fn fio_verifies_what_it_wrote_through_the_tightest_of_limits() {
    let scene = Scene::new();
    let limits = "[limits]\nrequests_per_connection = 2\nbytes_per_connection = \"32MiB\"\nbytes_in_flight = \"66MiB\"\n";
    let server = file_volume(&scene, "facade", limits);
    fio(&scene, &server.uri("v"), "--numjobs=4 --iodepth=32 --rw=randwrite --bs=2m");
    fio(&scene, &server.tcp_uri("v"), "--numjobs=4 --iodepth=16 --rw=randwrite --bs=8k --size=2m");
    server.stop();
}

/// Runs `qemu-io` with one command after the other. It reports a pattern that does not match.
pub(crate) fn qemu_io(uri: &str, commands: &[&str]) {
    let mut program = Program::new("qemu-io").args("-f raw --cache=none");
    for command in commands {
        program = program.arg("-c").arg(command);
    }
    let out = program.arg(uri).run();
    for failure in ["Pattern verification failed", "failed:", "Error", "nvalid"] {
        assert!(!out.contains(failure), "{out}");
    }
}

#[test]
fn qemu_io_finds_its_patterns_after_fua_discard_and_write_zeroes() {
    let scene = Scene::new();
    let server = file_volume(&scene, "facade", "");
    for uri in [server.uri("v"), server.tcp_uri("v")] {
        qemu_io(
            &uri,
            &[
                "write -P 0x11 0 8M",
                "write -f -P 0x22 1M 64k",
                "write -f -P 0x23 1234432 1536",
                "aio_write -P 0x33 2M 1M",
                "aio_write -P 0x44 3M 512",
                "aio_flush",
                "write -z 4M 256k",
                "write -z -u 5M 256k",
                "write -z -f 6M 4096",
                "write -z 6400512 1024",
                "discard 7M 1M",
                "flush",
                "read -P 0x11 0 1M",
                "read -P 0x22 1M 64k",
                "read -P 0x23 1234432 1536",
                "read -P 0x33 2M 1M",
                "read -P 0x44 3M 512",
                "read -P 0x11 3146240 3584",
                "read -P 0 4M 256k",
                "read -P 0x11 4456448 786432",
                "read -P 0 5M 256k",
                "read -P 0 6M 4096",
                "read -P 0 6400512 1024",
                "read -P 0x11 6401536 512",
                "read -P 0 7M 1M",
            ],
        );
    }
    // This runs over another connection, after all of that.
    qemu_io(&server.uri("v"), &["read -P 0x22 1M 64k", "read -P 0 5M 256k", "read -P 0x11 0 1M"]);
    server.stop();
}
