//! Configurations that cannot be served: a clear line for each problem, exit code 64, nothing half-started.

use std::fs;
use std::net::TcpListener;

use crate::harness::{Outcome, Program, RawClient, Scene, expect_refusal};

const POOL: &str = "[pool.p]\n";

/// A volume on a file that does not exist. If the server created the file and then failed, the file would
/// show it.
fn volume(scene: &Scene, name: &str, more: &str) -> String {
    let backend = scene.backend(&format!("{name}.img"));
    format!("[volume.{name}]\npool = \"p\"\nbackend = \"{backend}\"\n{more}\n")
}

fn good(scene: &Scene) -> String {
    format!("{POOL}{}", volume(scene, "good", "size = \"1MiB\""))
}

/// Asserts that serving `rest` is refused with one line that contains all of `expected`, and that the
/// directory stays as it is.
fn refused_in_one_line(scene: &Scene, rest: &str, expected: &[&str]) {
    let config = scene.configure(rest);
    let before = scene.listing();
    let lines = expect_refusal(&config);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    for part in expected {
        assert!(lines[0].contains(part), "{part:?} in {:?}", lines[0]);
    }
    assert_eq!(scene.listing(), before, "{rest}");
}

/// As [`refused_in_one_line`]. The line must also name the file of the configuration, a line of it, the key,
/// what was found and what is accepted.
fn refused_key(scene: &Scene, rest: &str, key: &str, found: &str, accepted: &str) {
    let place = format!("{}:", scene.text("weir.toml"));
    let (key, found, accepted) =
        (format!(" {key}: "), format!("found {found}"), format!("accepted: {accepted}"));
    refused_in_one_line(scene, rest, &[&place, &key, &found, &accepted]);
}

#[test]
fn unknown_keys_are_refused_with_those_that_are_known() {
    let scene = Scene::new();
    let good = good(&scene);
    refused_key(
        &scene,
        &format!("{good}iops = 5\n"),
        "volume.good.iops",
        "an unknown key",
        "pool, backend, size",
    );
    refused_key(
        &scene,
        &format!("{good}[pools.q]\n"),
        "pools",
        "an unknown key",
        "listen, cluster, limits, pool",
    );
    let misspelt = good.replace("[pool.p]", "[pool.p]\ncontroll = \"none\"");
    refused_key(&scene, &misspelt, "pool.p.controll", "an unknown key", "control,");
}

#[test]
fn values_without_a_unit_or_of_an_unknown_one_are_refused() {
    let scene = Scene::new();
    let sized = |size: &str| format!("{POOL}{}", volume(&scene, "v", &format!("size = {size}")));
    refused_key(&scene, &sized("\"20G\""), "volume.v.size", "\"20G\"", "a size such as \"64MiB\"");
    refused_key(&scene, &sized("4096"), "volume.v.size", "4096", "a size such as");
    let good = good(&scene);
    let slo = "slo = [{ up_to = \"300\", read = \"10ms\", write = \"10ms\" }]\n";
    refused_key(&scene, &format!("{good}{slo}"), "volume.good.slo[0].up_to", "\"300\"", "a rate above zero");
    let slo = "slo = [{ up_to = \"300iops\", read = \"10 sec?\", write = \"10ms\" }]\n";
    refused_key(
        &scene,
        &format!("{good}{slo}"),
        "volume.good.slo[0].read",
        "\"10 sec?\"",
        "a duration such as \"5ms\"",
    );
}

#[test]
fn a_name_that_is_there_twice_is_refused() {
    let scene = Scene::new();
    let twice = format!("{}{}", good(&scene), volume(&scene, "good", ""));
    refused_key(&scene, &twice, "volume.good", "a second time", "each name once");
    refused_key(&scene, &format!("{}{POOL}", good(&scene)), "pool.p", "a second time", "each name once");
}

#[test]
fn an_slo_that_does_not_increase_is_refused() {
    let scene = Scene::new();
    let slo = |second: &str| {
        format!(
            "{}slo = [{{ up_to = \"300iops\", read = \"10ms\", write = \"15ms\" }}, {second}]\n",
            good(&scene)
        )
    };
    let rate = slo("{ up_to = \"300iops\", read = \"20ms\", write = \"20ms\" }");
    refused_key(&scene, &rate, "volume.good.slo[1].up_to", "\"300iops\"", "more than in the point before");
    let latency = slo("{ up_to = \"400iops\", read = \"20ms\", write = \"14ms\" }");
    refused_key(&scene, &latency, "volume.good.slo[1].write", "\"14ms\"", "no less than in the point before");
}

#[test]
fn a_volume_in_no_pool_is_refused() {
    let scene = Scene::new();
    let volume = volume(&scene, "v", "size = \"1MiB\"");
    refused_key(
        &scene,
        &format!("[pool.q]\n{volume}"),
        "volume.v.pool",
        "\"p\"",
        "a pool of this file: \"q\"",
    );
    refused_key(&scene, &volume, "volume.v.pool", "\"p\"", "a pool of this file, which has none");
    let none = format!("{POOL}{}", volume.replace("pool = \"p\"\n", ""));
    refused_key(&scene, &none, "volume.v.pool", "nothing", "the name of a pool");
}

#[test]
fn each_problem_of_a_file_has_a_line_of_its_own_in_order() {
    let scene = Scene::new();
    let config = scene.configure(&format!(
        "{}iops = 5\nmax_concurrency = 0\n[limits]\nconnections = \"many\"\n",
        good(&scene)
    ));
    let lines = expect_refusal(&config);
    let keys = ["volume.good.iops", "volume.good.max_concurrency", "limits.connections"];
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for (line, key) in lines.iter().zip(keys) {
        assert!(line.contains(key), "{key} in {line}");
    }
    // `weir check` says the same.
    let Outcome { code, out, log } = Program::weir().arg("check").arg(config.display()).outcome();
    assert_eq!((code, out.as_str(), log.trim_end()), (Some(64), "", lines.join("\n").as_str()));
}

#[test]
fn a_configuration_that_cannot_be_read_is_refused() {
    let scene = Scene::new();
    for path in [scene.file("missing.toml"), scene.path().to_owned()] {
        let lines = expect_refusal(&path);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with(path.to_str().unwrap()) && lines[0].contains("accepted"), "{lines:?}");
    }
    let broken = scene.write("weir.toml", "[listen\nnbd = 3\n");
    let lines = expect_refusal(&broken);
    assert!(lines.len() == 1 && lines[0].contains("weir.toml:1: ") && lines[0].contains("TOML"), "{lines:?}");
    let binary = scene.write("weir.toml", [0xff, 0xfe, 0, 1]);
    assert_eq!(expect_refusal(&binary).len(), 1);
}

#[test]
fn a_backend_that_cannot_be_opened_is_refused_and_no_file_is_left_of_the_others() {
    let scene = Scene::new();
    let with = |backend: &str, size: &str| {
        format!("{}[volume.z]\npool = \"p\"\nbackend = \"{backend}\"\n{size}\n", good(&scene))
    };
    let size = "size = \"1MiB\"";
    let nowhere = scene.backend("no/such/directory.img");
    refused_in_one_line(
        &scene,
        &with(&nowhere, size),
        &["volume.z.backend", "no/such/directory.img", "No such file"],
    );
    refused_in_one_line(
        &scene,
        &with(&scene.backend("missing.img"), ""),
        &["volume.z.backend", "missing.img", "give a size"],
    );
    fs::create_dir(scene.file("directory")).unwrap();
    refused_in_one_line(
        &scene,
        &with(&scene.backend("directory"), size),
        &["volume.z.backend", "is a directory"],
    );
    scene.write("empty", "");
    refused_in_one_line(&scene, &with(&scene.backend("empty"), ""), &["volume.z.backend", "empty"]);
    refused_in_one_line(
        &scene,
        &with("file:/dev/null", size),
        &["volume.z.backend", "/dev/null", "character device"],
    );
    refused_key(&scene, &with("floppy:a", size), "volume.z.backend", "\"floppy:a\"", "\"file:/path\"");
    refused_key(
        &scene,
        &with("station:x", size),
        "volume.z.backend",
        "\"station:x\"",
        "a station of this file",
    );
    refused_key(&scene, &with("memory", ""), "volume.z.size", "nothing", "a size such as");
    let same = with(&scene.backend("good.img"), size);
    refused_key(
        &scene,
        &same,
        "volume.z.backend",
        &format!("{:?}", scene.backend("good.img")),
        "a file for each volume",
    );
}

#[test]
fn a_size_smaller_than_the_file_is_refused_and_the_file_is_not_cut() {
    let scene = Scene::new();
    let data = crate::harness::bytes(1, 5000);
    let path = scene.write("v.img", &data);
    let rest = format!("{}{}", good(&scene), volume(&scene, "v", "size = \"4096B\""));
    refused_in_one_line(&scene, &rest, &["volume.v", "v.img", "5000", "4096", "accepted"]);
    assert_eq!(fs::read(&path).unwrap(), data);
    // A larger file is no problem. But if another value is wrong, the file must stay as it was.
    let rest = format!("{POOL}{}{}", volume(&scene, "v", "size = \"8192B\""), volume(&scene, "w", ""));
    refused_in_one_line(&scene, &rest, &["volume.w.backend"]);
    assert_eq!(fs::read(&path).unwrap(), data);
}

#[test]
fn an_address_in_use_is_refused() {
    let scene = Scene::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let path = scene.configure(&good(&scene));
    let text = fs::read_to_string(&path).unwrap();
    for (key, shown) in
        [("nbd = [\"127.0.0.1:0\"", "listen.nbd[0]"), ("metrics = \"127.0.0.1:0\"", "listen.metrics")]
    {
        scene.write("weir.toml", text.replace(key, &key.replace("127.0.0.1:0", &address)));
        let lines = expect_refusal(&path);
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in [shown, address.as_str(), "in use"] {
            assert!(lines[0].contains(part), "{part} in {lines:?}");
        }
        assert_eq!(scene.listing(), ["weir.toml"], "no file, no socket");
    }
}

#[test]
fn the_socket_of_a_live_server_is_left_to_it() {
    let scene = Scene::new();
    let server = scene.serve(&good(&scene));
    let mut client = RawClient::connect(&server, "good");
    client.write(0, b"precious");
    let other = format!("{POOL}{}", volume(&scene, "other", "size = \"1MiB\""));
    refused_in_one_line(
        &scene,
        &other,
        &["listen.nbd[1]", &scene.text("nbd.sock"), "a live server", "accepted"],
    );
    assert_eq!(RawClient::connect(&server, "good").read(0, 8), b"precious", "it still answers there");
    assert_eq!(client.read(0, 8), b"precious");
    server.stop();
}

#[test]
fn the_socket_of_a_dead_server_is_taken_over_and_a_file_in_its_place_is_not() {
    let scene = Scene::new();
    let server = scene.serve(&good(&scene));
    server.kill();
    assert!(scene.file("nbd.sock").exists(), "a server that is killed removes nothing");
    scene.serve(&good(&scene)).stop();
    scene.write("nbd.sock", "precious");
    refused_in_one_line(&scene, &good(&scene), &["listen.nbd[1]", "nbd.sock", "not a socket"]);
    assert_eq!(fs::read(scene.file("nbd.sock")).unwrap(), b"precious");
}

#[test]
fn two_servers_do_not_serve_one_file() {
    let scene = Scene::new();
    let server = scene.serve(&good(&scene));
    let second = Scene::new();
    let backend = scene.backend("good.img");
    let rest = format!("{}[volume.v]\npool = \"p\"\nbackend = \"{backend}\"\n", good(&second));
    refused_in_one_line(&second, &rest, &["volume.v.backend", "good.img", "in use"]);
    let link = second.file("link.img");
    std::os::unix::fs::symlink(scene.file("good.img"), &link).unwrap();
    let rest = format!("{POOL}[volume.v]\npool = \"p\"\nbackend = \"file:{}\"\n", link.display());
    refused_in_one_line(&second, &rest, &["volume.v.backend", "link.img", "in use"]);
    RawClient::connect(&server, "good").disconnect();
    server.stop();
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    let scene = Scene::new();
    let limits = |text: &str| format!("[limits]\n{text}\n{}", good(&scene));
    refused_key(
        &scene,
        &limits("bytes_in_flight = \"32MiB\""),
        "limits.bytes_in_flight",
        "\"32MiB\"",
        "at least limits.bytes_per_connection",
    );
    refused_key(
        &scene,
        &limits("handshake_timeout = \"1ms\""),
        "limits.handshake_timeout",
        "\"1ms\"",
        "a duration such as",
    );
    refused_key(&scene, &limits("connections = 0"), "limits.connections", "0", "a whole number from 1");
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for args in ["", "serve", "serve a b", "nosuch", "top --times x --server http://127.0.0.1:1"] {
        let Outcome { code, out, log } = Program::weir().args(args).outcome();
        assert_eq!((code, out.as_str()), (Some(64), ""), "{args}: {log}");
        assert!(!log.is_empty());
    }
}
