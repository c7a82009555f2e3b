//! SIGHUP: the parts that stay are not disturbed, the parts that go finish what they accepted, and a mistake
//! changes nothing.

use std::fs;

use serde_json::Value;

use crate::harness::{Flags, Program, RawClient, Scene, Server, block, command, get, status, wait_until};

const ESHUTDOWN: u32 = 108;

/// A pool with the volume `steady` on a file, and `more`.
fn config(scene: &Scene, slo: &str, more: &str) -> String {
    let backend = scene.backend("steady.img");
    format!(
        "[pool.p]\n[volume.steady]\npool = \"p\"\nbackend = \"{backend}\"\nsize = \"32MiB\"\n{slo}\n{more}\n"
    )
}

/// A volume on a file, with `more` keys.
fn volume(scene: &Scene, name: &str, more: &str) -> String {
    let backend = scene.backend(&format!("{name}.img"));
    format!("[volume.{name}]\npool = \"p\"\nbackend = \"{backend}\"\nsize = \"4MiB\"\n{more}\n")
}

fn slo(latency: &str) -> String {
    format!("slo = [{{ up_to = \"100000iops\", read = \"{latency}\", write = \"{latency}\" }}]")
}

/// The pool `p` as the server tells it.
fn pool(server: &Server) -> Value {
    let status = status(server);
    let pools = status["pools"].as_array().expect("pools");
    pools.iter().find(|pool| pool["name"] == "p").expect("the pool p").clone()
}

fn volume_names(server: &Server) -> Vec<String> {
    let pool = pool(server);
    let names = pool["volumes"].as_array().expect("volumes").iter();
    names.map(|volume| volume["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn reloads_under_load_disturb_nobody() {
    let scene = Scene::new();
    let server = scene.serve(&config(&scene, "", ""));
    let mut fio = Program::new("fio")
        .args("--name=steady --ioengine=nbd --size=8m --offset_increment=8m --numjobs=2 --thread --rw=randwrite --bs=4k")
        .args("--iodepth=16 --loops=3 --verify=crc32c --verify_fatal=1 --verify_state_save=0")
        .arg(format!("--uri={}", server.uri("steady")))
        .directory(scene.path())
        .start();
    wait_until("fio writes", || {
        get(&server.metrics).lines().any(|line| line.contains("op=\"write\"") && !line.ends_with(" 0"))
    });
    let mut reloads = 0;
    while fio.is_running() || reloads < 4 {
        let latency = ["1ms", "50ms"][reloads % 2];
        server.reload(&config(&scene, &slo(latency), &volume(&scene, "guest", ""))).unwrap();
        let mut guest = RawClient::connect(&server, "guest");
        let stamp = block(0, reloads as u64);
        guest.write(0, &stamp);
        let logged = server.log_length();
        server.reload(&config(&scene, "", "")).unwrap();
        assert!(guest.receive_or_end().is_none(), "the volume of an idle client goes at once");
        server.wait_for_log(logged, "no longer served");
        reloads += 1;
        // The file is free for the next round, and holds what was written.
        assert_eq!(volume_names(&server), ["steady"]);
        assert_eq!(&fs::read(scene.file("guest.img")).unwrap()[..4096], stamp);
    }
    fio.succeed();
    server.stop();
}

#[test]
fn a_new_slo_is_in_force_from_the_next_control_period_on() {
    let scene = Scene::new();
    let server = scene.serve(&config(&scene, &slo("10ms"), ""));
    let target = |server: &Server| pool(server)["volumes"][0]["slo_target_us"].clone();
    assert_eq!(target(&server), 10_000);
    let mut client = RawClient::connect(&server, "steady");
    server.reload(&config(&scene, &slo("33ms"), "")).unwrap();
    wait_until("the next control period begins", || target(&server) == 33_000);
    client.write(0, &block(0, 1));
    server.reload(&config(&scene, "", "")).unwrap();
    wait_until("the next control period begins", || target(&server) == Value::Null);
    assert_eq!(client.read(0, 4096), block(0, 1));
}

/// A volume whose device stalls, with one request at the device and the others queued before it.
fn with_requests_queued(scene: &Scene, writes: u64) -> (Server, RawClient) {
    let stalled = volume(scene, "going", "max_concurrency = 1\nfaults = [{ stall = true }]");
    let server = scene.serve(&config(scene, "", &stalled));
    let mut client = RawClient::connect(&server, "going");
    for number in 0..writes {
        client.send(command::WRITE, Flags::NONE, number * 4096, 4096, &block(number, 1));
    }
    wait_until("all requests have arrived", || {
        let pool = pool(&server);
        pool["in_flight"] == 1 && pool["queued"].as_u64() == Some(writes - 1)
    });
    (server, client)
}

#[test]
fn a_volume_that_is_removed_answers_every_request_that_is_queued_once() {
    let scene = Scene::new();
    let (server, mut client) = with_requests_queued(&scene, 300);
    let mut other = RawClient::connect(&server, "steady");
    server.reload(&config(&scene, "", "")).unwrap();
    // The fault goes with the volume, so the accepted requests are done now.
    let replies = client.receive_to_end();
    assert_eq!(replies.len(), 300, "none is lost; the client itself would notice one answered twice");
    assert!(replies.iter().all(|reply| reply.error == 0), "what was accepted is done");
    server.wait_for_log(0, "no longer served");
    assert!(RawClient::try_connect(&server, "going").is_err(), "it is no export any more");
    other.write(0, &block(0, 7));
    assert_eq!(other.read(0, 4096), block(0, 7));
    let file = fs::read(scene.file("going.img")).unwrap();
    for number in 0..300 {
        let at = usize::try_from(number).unwrap() * 4096;
        assert_eq!(file[at..at + 4096], block(number, 1), "write {number} was answered and is not there");
    }
    server.stop();
}

#[test]
fn requests_that_come_after_the_removal_are_refused_while_those_before_it_are_done() {
    let scene = Scene::new();
    // The device is slow, so that the volume is still ending when the late requests come.
    let slow =
        volume(&scene, "going", "max_concurrency = 1\nfaults = [{ on = \"write\", delay = \"100ms\" }]");
    let server = scene.serve(&config(&scene, "", &slow));
    let mut client = RawClient::connect(&server, "going");
    let early: Vec<_> =
        (0..10).map(|n| client.send(command::WRITE, Flags::NONE, n * 4096, 4096, &block(n, 1))).collect();
    wait_until("all requests have arrived", || pool(&server)["queued"].as_u64() >= Some(1));
    server.reload(&config(&scene, "", "")).unwrap();
    let late = client.send(command::READ, Flags::NONE, 0, 4096, &[]);
    let late_write = client.send(command::WRITE, Flags::NONE, 0, 4096, &block(0, 2));
    for reply in client.receive_to_end() {
        if early.contains(&reply.cookie) {
            // Requests that the server had not read yet at the time of the removal are late, too.
            assert!([0, ESHUTDOWN].contains(&reply.error), "{}", reply.error);
        } else {
            assert!([late, late_write].contains(&reply.cookie));
            assert_eq!(reply.error, ESHUTDOWN);
        }
    }
    server.stop();
}

#[test]
fn a_request_that_waits_for_memory_is_answered_when_its_volume_is_removed_and_holds_up_nobody() {
    let scene = Scene::new();
    let limits = "[limits]\nbytes_per_connection = \"32MiB\"\nbytes_in_flight = \"33MiB\"\n";
    let memory = |name: &str, more: &str| {
        format!("[volume.{name}]\npool = \"p\"\nbackend = \"memory\"\nsize = \"40MiB\"\n{more}\n")
    };
    let stuck = memory("stuck", "faults = [{ stall = true }]");
    let rest = format!("{limits}{}", config(&scene, "", &stuck));
    let server = scene.serve(&format!("{rest}{}", memory("going", "")));
    let mut hog = RawClient::connect(&server, "stuck");
    hog.send(command::READ, Flags::NONE, 0, 31 << 20, &[]);
    wait_until("nearly all memory is taken", || pool(&server)["in_flight"] == 1);
    let mut client = RawClient::connect(&server, "going");
    let cookies = client.send_together(&[(command::READ, 0, 512), (command::READ, 0, 8 << 20)]);
    assert_eq!(client.receive().cookie, cookies[0]);
    server.reload(&rest).unwrap();
    let replies = client.receive_to_end();
    assert_eq!(
        replies.iter().map(|reply| (reply.cookie, reply.error)).collect::<Vec<_>>(),
        [(cookies[1], ESHUTDOWN)]
    );
    // This is more than a connection's own memory, so the client has to get in line.
    let mut other = RawClient::connect(&server, "steady");
    assert_eq!(other.read(0, 512 << 10).len(), 512 << 10);
    server.reload(&rest.replace("faults = [{ stall = true }]", "")).unwrap();
    assert_eq!(hog.receive().data.len(), 31 << 20);
    server.stop();
}

#[test]
fn a_write_whose_data_is_still_on_its_way_when_its_volume_is_removed_is_not_done() {
    let scene = Scene::new();
    let slow = volume(&scene, "going", "faults = [{ on = \"write\", delay = \"300ms\" }]");
    let server = scene.serve(&config(&scene, "", &slow));
    let mut client = RawClient::connect(&server, "going");
    let whole = client.send(command::WRITE, Flags::NONE, 0, 4096, &block(0, 1));
    wait_until("the first is at the device", || pool(&server)["in_flight"] == 1);
    let half = client.send(command::WRITE, Flags::NONE, 4096, 8192, &block(1, 1));
    server.reload(&config(&scene, "", "")).unwrap();
    client.send_bytes(&block(2, 1));
    for reply in client.receive_to_end() {
        // The second request has no answer if the first was done before the rest of the second's data came.
        assert!(
            (reply.cookie, reply.error) == (whole, 0) || (reply.cookie, reply.error) == (half, ESHUTDOWN)
        );
    }
    assert!(client.outstanding() <= 1);
    server.wait_for_log(0, "no longer served");
    let file = fs::read(scene.file("going.img")).unwrap();
    assert_eq!(file[..4096], block(0, 1));
    assert!(file[4096..].iter().all(|byte| *byte == 0), "half a write is none");
    server.stop();
}

#[test]
fn a_fault_that_is_taken_away_lets_go_of_what_it_held() {
    let scene = Scene::new();
    let (server, mut client) = with_requests_queued(&scene, 50);
    server.reload(&config(&scene, "", &volume(&scene, "going", ""))).unwrap();
    for _ in 0..50 {
        assert_eq!(client.receive().error, 0);
    }
    assert_eq!(client.read(49 * 4096, 4096), block(49, 1), "the connection goes on");
    server.stop();
}

#[test]
fn a_pool_changes_its_control_with_requests_queued() {
    let scene = Scene::new();
    let (server, mut client) = with_requests_queued(&scene, 50);
    let without =
        config(&scene, "", &volume(&scene, "going", "")).replace("[pool.p]", "[pool.p]\ncontrol = \"none\"");
    server.reload(&without).unwrap();
    for _ in 0..50 {
        assert_eq!(client.receive().error, 0);
    }
    assert_eq!(pool(&server)["control"], "none");
    server.reload(&config(&scene, "", &volume(&scene, "going", ""))).unwrap();
    assert_eq!(pool(&server)["control"], "promise");
    assert_eq!(client.read(0, 4096), block(0, 1));
    server.stop();
}

#[test]
fn a_file_that_is_wrong_changes_nothing_and_is_reported() {
    let scene = Scene::new();
    let good = config(&scene, &slo("10ms"), "");
    let server = scene.serve(&good);
    let mut client = RawClient::connect(&server, "steady");
    client.write(0, &block(0, 1));
    for (bad, expected) in [
        (good.replace("[pool.p]", "[pool.q]"), "volume.steady.pool: found \"p\""),
        (good.replace("slo =", "sol ="), "volume.steady.sol: found an unknown key"),
        ("[pool.p".to_owned(), "valid TOML"),
        (good.replace("steady.img", "moved.img"), "volume.steady.backend: cannot change"),
        (good.replace("32MiB", "64MiB"), "volume.steady.size: cannot change"),
        (
            format!("{good}[pool.q]\n").replace("pool = \"p\"", "pool = \"q\""),
            "volume.steady.pool: cannot change",
        ),
        (
            format!(
                "{good}{}",
                volume(&scene, "no/such/directory", "").replace("[volume.no/such/directory]", "[volume.new]")
            ),
            "volume.new.backend",
        ),
    ] {
        let refusal = server.reload(&bad).unwrap_err();
        assert!(
            refusal.contains("nothing has changed") && refusal.contains(expected),
            "{expected:?} in:\n{refusal}"
        );
        assert_eq!(volume_names(&server), ["steady"]);
        assert_eq!(pool(&server)["volumes"][0]["slo_target_us"], 10_000);
        assert_eq!(client.read(0, 4096), block(0, 1), "its client is not disturbed");
    }
    assert_eq!(
        scene.listing(),
        ["nbd.sock", "steady.img", "weir.toml"],
        "no file was made for what was refused"
    );
    server.reload(&good).unwrap();
    server.stop();
}

#[test]
fn addresses_cannot_change_while_serving() {
    let scene = Scene::new();
    let good = config(&scene, "", "");
    let server = scene.serve(&good);
    let text = fs::read_to_string(scene.file("weir.toml")).unwrap();
    scene.write("weir.toml", text.replace("nbd.sock", "other.sock"));
    let refusal = server.reload(&good).unwrap_err();
    assert!(refusal.contains("listen.nbd: cannot change while it runs: found "), "{refusal}");
    assert!(!refusal.contains("listen.metrics"), "{refusal}");
    assert!(!scene.file("other.sock").exists());
    RawClient::connect(&server, "steady").disconnect();
}

#[test]
fn a_pool_that_is_removed_with_its_volumes_finishes_them_and_can_come_back() {
    let scene = Scene::new();
    let both =
        config(&scene, "", &format!("[pool.q]\n{}", volume(&scene, "going", "").replace("\"p\"", "\"q\"")));
    let server = scene.serve(&both);
    for stamp in 1..4 {
        let mut client = RawClient::connect(&server, "going");
        client.write(0, &block(0, stamp));
        let logged = server.log_length();
        server.reload(&config(&scene, "", "")).unwrap();
        assert!(client.receive_or_end().is_none());
        wait_until("the pool is gone", || status(&server)["pools"].as_array().map(Vec::len) == Some(1));
        // Only then is its file free.
        server.wait_for_log(logged, "no longer served");
        server.reload(&both).unwrap();
        assert_eq!(RawClient::connect(&server, "going").read(0, 4096), block(0, stamp));
    }
    server.stop();
}

#[test]
fn a_volume_that_has_not_ended_is_not_served_beside_itself() {
    let scene = Scene::new();
    let other = "[volume.other]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";
    let without = format!("[pool.p]\n[station.slow]\nservers = 1\nservice_time = \"1m\"\n{other}");
    let with = format!("{without}[volume.v]\npool = \"p\"\nbackend = \"station:slow\"\nsize = \"1MiB\"\n");
    let server = scene.serve(&with);
    let mut client = RawClient::connect(&server, "v");
    client.send(command::READ, Flags::NONE, 0, 4096, &[]);
    wait_until("the read is at the device", || status(&server)["pools"][0]["in_flight"] == 1);
    server.reload(&without).expect("it can be removed");
    let refused = server.reload(&with).expect_err("the one before has a read at its device");
    assert!(refused.contains("volume.v: found one of this name that still finishes"), "{refused}");
    server.reload(&without).expect("nothing has changed");
    assert_eq!(RawClient::connect(&server, "other").read(0, 512).len(), 512);
    server.kill();
}
