//! An operator's mistakes: each gives a line, a running server goes on, and nothing is half done.

use std::fs::{Permissions, remove_file, set_permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use super::neighbour::Neighbour;
use crate::harness::{Authority, Outcome, Program, Scene, Server, expect_refusal, status};

const MAESTRO: &str = "[pool.p]\ncontrol = \"maestro\"\n\
    [volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";

#[test]
fn a_value_that_is_none_is_a_line_and_the_server_serves_on() {
    let scene = Scene::new();
    let server = Server::start(&scene.configure_controlled(MAESTRO));
    let neighbour = Neighbour::start(&server, "v");
    let set = |key: &str, value: &str| {
        let set = Program::weir().args("set volume v").arg(format!("{key}={value}"));
        set.arg("--server").arg(scene.control()).outcome()
    };
    let mut values = vec!["\"".to_owned(), "1e999".to_owned(), "\u{1b}[2J".to_owned(), "9".repeat(10_000)];
    for depth in [1, 8, 9, 77, 78, 79, 80, 81, 500] {
        values.extend(["[", "{a=", "[{a="].map(|open| open.repeat(depth)));
        values.push(format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    }
    for value in &values {
        for key in ["target.latency", "target", "priority"] {
            let Outcome { code, out, log } = set(key, value);
            let shown: String = value.chars().take(90).collect();
            assert_eq!((code, out.as_str()), (Some(64), ""), "{key}={shown}: {log}");
            let is_a_line = log.starts_with("volume.v.") && log.lines().count() == 1 && log.len() < 500;
            assert!(is_a_line, "{key}={shown}: {log}");
        }
    }
    let Outcome { code, log, .. } = set("priority", &"9".repeat(100_000));
    assert_eq!((code, log.lines().count()), (Some(64), 1), "{log}");
    assert!(log.contains("accepted: ") && log.contains("limits.api_body_bytes"), "{log}");
    neighbour.works_for(10);
    let Outcome { code, log, .. } = set("target.latency", "5ms");
    assert_eq!(code, Some(0), "what is right is in force: {log}");
    neighbour.finish();
}

#[test]
fn a_file_that_cannot_be_a_configuration_stops_no_server_at_a_reload() {
    let scene = Scene::new();
    let server = scene.serve_memory("1MiB");
    let neighbour = Neighbour::start(&server, "v");
    let config = scene.file("weir.toml");
    remove_file(&config).unwrap();
    mknodat(CWD, &config, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    server.signal(Signal::HUP);
    server.wait_for_log(0, "found something that is no regular file; accepted: a readable TOML file");
    neighbour.works_for(10);
    neighbour.finish();
    server.stop();
}

/// The file of a gateway with these tables, and with a controller that does not run.
fn controlled(tls: &str, pools: &[&str]) -> String {
    let pool = |name: &&str| {
        format!(
            "[pool.{name}]\ncontrol = \"maestro\"\ncontroller = \"127.0.0.1:1\"\n\
             [volume.{name}]\npool = \"{name}\"\nbackend = \"memory\"\nsize = \"1MiB\"\n"
        )
    };
    format!("[cluster]\nname = \"a\"\n{tls}{}", pools.iter().map(pool).collect::<String>())
}

#[test]
fn a_reload_whose_links_fail_changes_nothing() {
    let scene = Scene::new();
    let tls = Authority::new().issue(&scene, "a");
    let server = scene.serve(&controlled(&tls, &["p"]));
    let neighbour = Neighbour::start(&server, "p");
    let served = || status(&server)["pools"].as_array().unwrap().len();
    let allow = |mode| set_permissions(scene.file("key.pem"), Permissions::from_mode(mode)).unwrap();
    allow(0o644);
    let refused = server.reload(&controlled(&tls, &["p", "q"])).unwrap_err();
    assert!(refused.contains("not reloaded, nothing has changed") && refused.contains("found mode 0644"));
    assert_eq!(served(), 1, "nothing has changed");
    neighbour.works_for(10);
    server.reload(&controlled(&tls, &["p"])).expect("the files of a link that runs are not needed");
    allow(0o600);
    server.reload(&controlled(&tls, &["p", "q"])).unwrap();
    assert_eq!(served(), 2);
    neighbour.finish();
}

#[test]
fn a_key_that_others_can_read_is_refused_with_its_path_and_mode() {
    let scene = Scene::new();
    let tls = Authority::new().issue(&scene, "a");
    set_permissions(scene.file("key.pem"), Permissions::from_mode(0o640)).unwrap();
    let line = format!(
        "key {}: found mode 0640, by which others than its owner may use it; accepted: 0600 or 0400",
        scene.text("key.pem")
    );
    let refused = expect_refusal(&scene.configure(&controlled(&tls, &["p"])));
    assert!(refused.len() == 1 && refused[0].ends_with(&line), "{refused:?}");
    let controller = scene.write(
        "controller.toml",
        format!(
            "[controller]\nlisten = \"127.0.0.1:0\"\n{tls}[gateway.a]\n[pool.p]\ntotal_concurrency = 16\n\
             [volume.v]\npool = \"p\"\n"
        ),
    );
    let Outcome { code, out, log } = Program::weir().arg("controller").arg(controller.display()).outcome();
    assert_eq!((code, out.as_str()), (Some(64), ""), "{log}");
    assert!(log.trim_end().ends_with(&line) && log.lines().count() == 1, "{log}");
}
