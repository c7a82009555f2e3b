//! Volumes on a simulated array: real clients, real bytes, and the array's time.

use crate::harness::{Program, RawClient, Scene, block};

/// Two volumes on six disks.
fn config(scene: &Scene, overhead: &str) -> String {
    let volume = |name: &str| {
        let file = scene.text(&format!("{name}.img"));
        format!("[volume.{name}]\npool = \"p\"\nbackend = \"array:a:{file}\"\nsize = \"1GiB\"\n")
    };
    format!(
        "[pool.p]\n[array.a]\ndisks = 6\ndisk = \"cheetah-18lp\"\nraid = \"raid5\"\nsize = \"2GiB\"\n\
         nvram = \"64MiB\"\noverhead = \"{overhead}\"\nport_bandwidth = \"100MB/s\"\n{}{}",
        volume("v"),
        volume("w")
    )
}

#[test]
fn what_was_written_to_a_simulated_array_is_there_after_a_restart() {
    let scene = Scene::new();
    let server = scene.serve(&config(&scene, "100us"));
    let mut clients = ["v", "w"].map(|name| RawClient::connect(&server, name));
    for number in 0..20 {
        for (stamp, client) in (1..).zip(&mut clients) {
            client.write(number << 24, &block(number, stamp));
        }
    }
    clients[0].flush();
    server.stop();
    let server = scene.serve(&config(&scene, "100us"));
    for (stamp, name) in (1..).zip(["v", "w"]) {
        let mut client = RawClient::connect(&server, name);
        for number in 0..20 {
            assert_eq!(client.read(number << 24, 4096), block(number, stamp));
        }
    }
    server.stop();
}

#[test]
fn fio_verifies_what_it_wrote_to_a_simulated_array() {
    let scene = Scene::new();
    let server = scene.serve(&config(&scene, "100us"));
    Program::new("fio")
        .args("--name=job --ioengine=nbd --size=1m --offset_increment=64m --numjobs=2 --thread --rw=randwrite --bs=4k")
        .args("--iodepth=16 --verify=crc32c --verify_fatal=1 --do_verify=1 --verify_state_save=0")
        .arg(format!("--uri={}", server.uri("v")))
        .directory(scene.path())
        .run();
    server.stop();
}

#[test]
fn an_array_cannot_change_while_a_volume_on_it_is_served() {
    let scene = Scene::new();
    let server = scene.serve(&config(&scene, "100us"));
    let refusal = server.reload(&config(&scene, "200us")).unwrap_err();
    assert!(refusal.contains("volume.v.backend: cannot change while the volume is served"), "{refusal}");
    RawClient::connect(&server, "v").write(0, &block(0, 1));
    server.stop();
}
