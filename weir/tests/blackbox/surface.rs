//! What the operator's commands have in common: how a server is named, JSON, tables that fit the terminal,
//! and changes that are made together.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use crate::harness::{Outcome, Program, Scene, Server, get, wait_until};

const TWO: &str = "[pool.array1]\ncontrol = \"promise\"\n\
    [volume.oltp]\npool = \"array1\"\nbackend = \"memory\"\nsize = \"1MiB\"\ntarget = { latency = \"5ms\" }\n\
    [volume.batch-of-the-second-data-centre]\npool = \"array1\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";

/// The verbs that ask a gateway.
const ASKING: [&str; 4] = ["status", "top --times 1", "explain volume oltp", "why oltp"];

fn served(scene: &Scene) -> Server {
    Server::start(&scene.configure_controlled(TWO))
}

fn run(words: &str, server: &str) -> Outcome {
    Program::weir().args(words).arg("--server").arg(server).outcome()
}

fn json(words: &str, server: &str) -> Value {
    let Outcome { code, out, log } = run(words, server);
    assert_eq!((code, log.as_str()), (Some(0), ""), "{words}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words}: {error}: {out}"))
}

#[test]
fn every_verb_takes_a_server_by_its_file_its_address_and_its_socket() {
    let scene = Scene::new();
    let server = served(&scene);
    let (file, socket) = (scene.text("weir.toml"), scene.text("control.sock"));
    let url = server.metrics.replace("/metrics", "");
    let address = url.replace("http://", "");
    for named in [&file, &url, &address, &scene.control(), &socket] {
        for words in ASKING {
            let Outcome { code, out, log } = run(words, named);
            assert_eq!((code, log.as_str()), (Some(0), ""), "{words} --server {named}");
            assert!(out.contains("oltp") || out.contains("worst off"), "{words} --server {named}: {out}");
        }
        let Outcome { code, log, .. } = run("set volume oltp max_iops=900iops", named);
        let can_change = ![&url, &address].contains(&named);
        assert_eq!(code == Some(0), can_change, "{named}: {log}");
    }
    let by_variable = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["status", "--json"])
        .env("WEIR_SERVER", &address)
        .output()
        .expect("it is built");
    assert!(by_variable.status.success(), "{}", String::from_utf8_lossy(&by_variable.stderr));
}

#[test]
fn what_names_no_server_is_told_what_it_was_taken_for() {
    let all =
        ASKING.into_iter().chain(["set volume oltp priority=2", "throttle status", "throttle explain disk"]);
    for words in all {
        let Outcome { code, out, log } = run(words, "127.0.0.1");
        assert_eq!((code, out.as_str()), (Some(64), ""), "{words}: {log}");
        let is_told = log.starts_with("server \"127.0.0.1\": taken for a configuration file")
            && log.contains(
                "accepted: the configuration file of the server, its address such as 127.0.0.1:9810",
            );
        assert!(is_told && log.lines().count() == 1, "{words}: {log}");
    }
    let Outcome { code, log, .. } = run("nodes", "127.0.0.1:9812");
    assert_eq!(code, Some(64), "{log}");
    assert!(log.contains("accepted: the configuration file of the coordinator"), "{log}");
}

#[test]
fn a_gateway_is_no_agent_and_is_told_apart_from_one() {
    let scene = Scene::new();
    let _server = served(&scene);
    let Outcome { code, log, .. } = run("throttle status", &scene.control());
    assert_eq!(code, Some(64), "{log}");
    assert!(log.ends_with("found a gateway; accepted: a packet-delay agent"), "{log}");
}

#[test]
fn json_is_what_the_server_answers_and_has_units_in_its_names() {
    let scene = Scene::new();
    let server = served(&scene);
    let control = scene.control();
    let status = json("status --json", &control);
    let told: Value = serde_json::from_str(&get(&server.metrics.replace("/metrics", "/v1/status"))).unwrap();
    let sizes = |status: &Value| {
        let volumes = status["pools"][0]["volumes"].as_array().expect("volumes").clone();
        volumes.iter().map(|volume| volume["size_bytes"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&status), [1 << 20, 1 << 20]);
    assert_eq!(sizes(&status), sizes(&told));
    let Outcome { out, .. } = run("top --times 2 --json", &control);
    assert_eq!(out.lines().count(), 2, "a line for each second: {out}");
    for line in out.lines() {
        assert_eq!(sizes(&serde_json::from_str(line).expect("each line is JSON")), sizes(&status));
    }
    assert_eq!(json("explain volume oltp --json", &control)["control"], "promise");
    assert_eq!(json("why oltp --json", &control)["volume"], "oltp");
    let checked = Program::weir().args("check --json").arg(scene.text("weir.toml")).run();
    let checked: Value = serde_json::from_str(&checked).expect("it is JSON");
    let settings = checked["settings"].as_array().expect("a list");
    let target = settings.iter().find(|setting| setting["key"] == "volume.oltp.target").expect("a target");
    assert_eq!(
        (&target["value"], &target["origin"]),
        (&"latency 5ms".into(), &"line 11".into()),
        "{checked}"
    );
}

#[test]
fn several_changes_are_in_force_together_or_not_at_all_and_what_differs_is_shown() {
    let scene = Scene::new();
    let _server = served(&scene);
    let control = scene.control();
    let both = "set volume oltp target.latency=8ms priority=4 volume batch-of-the-second-data-centre max_iops=100iops";
    let dry = json(&format!("{both} --dry-run --json"), &control);
    let setting =
        |key: &str, old: Value, new: Value| serde_json::json!({ "key": key, "old": old, "new": new });
    let differs = [
        setting("volume.batch-of-the-second-data-centre.max_iops", Value::Null, "100iops".into()),
        setting("volume.oltp.target", "latency 5ms".into(), "latency 8ms".into()),
        setting("volume.oltp.priority", "1".into(), "4".into()),
    ];
    assert_eq!((&dry["dry_run"], &dry["settings"]), (&true.into(), &differs.as_slice().into()), "{dry}");
    assert_eq!(json(&format!("{both} --dry-run --json"), &control), dry, "nothing has changed");
    let Outcome { out, .. } = run(&format!("{both} --dry-run"), &control);
    assert!(
        out.starts_with("nothing has changed; volume oltp: target.latency=8ms priority=4; volume "),
        "{out}"
    );
    assert!(out.contains(" would be in force at once, until ") && out.contains("latency 8ms"), "{out}");

    // One change of several that is wrong keeps all of them out, and is refused in a dry run too.
    let wrong = "set volume oltp priority=2 volume nobody priority=2";
    for words in [wrong.to_owned(), format!("{wrong} --dry-run")] {
        let Outcome { code, out, log } = run(&words, &control);
        assert_eq!((code, out.as_str()), (Some(64), ""), "{words}");
        assert!(log.starts_with("volume.nobody: found no such volume; accepted: "), "{log}");
    }
    assert_eq!(json(&format!("{both} --dry-run --json"), &control)["settings"], dry["settings"]);

    let done = json(&format!("{both} --json"), &control);
    assert_eq!((&done["dry_run"], &done["settings"]), (&false.into(), &dry["settings"]), "{done}");
    let again = run(both, &control).out;
    assert!(again.ends_with("no setting differs"), "{again}");
}

#[test]
fn changes_of_two_operators_at_a_time_are_never_mixed() {
    let scene = Scene::new();
    let _server = served(&scene);
    let control = scene.control();
    // Each asks for a pair that belongs together.
    let set = |n: u32| {
        format!(
            "set volume oltp max_iops={n}iops volume batch-of-the-second-data-centre max_iops={n}iops --json"
        )
    };
    let pair = |answer: &Value| {
        let settings = answer["settings"].as_array().expect("a list");
        settings.iter().map(|setting| [setting["old"].clone(), setting["new"].clone()]).collect::<Vec<_>>()
    };
    let answers: Vec<Value> = thread::scope(|scope| {
        let one = |first: u32| {
            let (set, control) = (&set, &control);
            move || (0..10).map(|i| json(&set(first + i), control)).collect::<Vec<_>>()
        };
        let both = [100, 200].map(|first| scope.spawn(one(first)));
        both.into_iter().flat_map(|one| one.join().expect("it has not panicked")).collect()
    });
    assert_eq!(answers.len(), 20);
    for answer in &answers {
        let pair = pair(answer);
        assert!(pair.len() == 2 && pair[0] == pair[1], "both volumes had, and have, the same: {answer}");
    }
}

#[test]
fn an_answer_that_is_no_success_says_why_as_json() {
    let scene = Scene::new();
    let server = served(&scene);
    let base = server.metrics.replace("/metrics", "");
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let refusal = |path: &str| {
        let mut answer = agent.get(format!("{base}{path}")).call().expect("it answers");
        let text = answer.body_mut().read_to_string().expect("it is text");
        let body: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"));
        (answer.status().as_u16(), body["error"].as_str().expect("a reason").to_owned())
    };
    for (path, status, words) in [
        ("/v1/nothing", 404, "found no such path; accepted: /metrics, /v1/status"),
        ("/v1/volumes/nobody/why", 404, "volume nobody: not served; accepted: "),
        ("/v1/volumes/oltp/why?last_s=0", 400, "accepted: last_s=N"),
    ] {
        let (found, why) = refusal(path);
        assert!(found == status && why.contains(words), "{path}: {found} {why}");
    }
    let mut posted = agent.post(format!("{base}/v1/status")).send("{}").expect("it answers");
    let body = posted.body_mut().read_to_string().expect("it is text");
    let allow = posted.headers().get("allow").expect("what is allowed").to_str().expect("text").to_owned();
    assert_eq!((posted.status().as_u16(), allow.as_str()), (405, "GET,HEAD"), "{body}");
    assert!(body.contains("found the method POST; accepted: GET,HEAD"), "{body}");
}

#[test]
fn how_well_a_promise_is_kept_is_told_over_each_horizon() {
    let scene = Scene::new();
    let volume = |name: &str, more: &str| {
        format!("[volume.{name}]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n{more}")
    };
    let slo = |latency: &str, goal: &str| {
        format!("slo = [{{ up_to = \"1000000iops\", read = \"{latency}\", write = \"{latency}\" }}]\n{goal}")
    };
    let file = ["[pool.p]\ncontrol = \"none\"\nslo_window = \"20ms\"\n".to_owned()]
        .into_iter()
        .chain([volume("kept", &slo("10s", "slo_goal = 0.9\n")), volume("missed", &slo("1us", ""))])
        .chain([volume("free", "")]);
    let server = Server::start(&scene.configure_controlled(&file.collect::<String>()));
    let load = |volume| {
        let load = Program::weir().arg("load").arg(server.uri(volume));
        load.args("--depth 1 --rate 1000iops --arrivals constant --duration 5m").start()
    };
    let _loads = ["kept", "missed"].map(load);
    let url = server.metrics.replace("/metrics", "/v1/volumes");
    let listed = || {
        let listed: Value = serde_json::from_str(&get(&url)).expect("the list is JSON");
        listed["volumes"].as_array().expect("volumes").clone()
    };
    wait_until("windows were judged", || {
        let is_judged = |volume: &Value| {
            let hour = &volume["attainment"]["last_hour"];
            let count = |of: &str| hour[of].as_u64().unwrap_or_default();
            count("windows_met") + count("windows_missed") > 20
        };
        let listed = listed();
        listed.iter().filter(|volume| volume["name"] != "free").all(is_judged)
    });
    let listed = listed();
    let [free, kept, missed] = &*listed else { panic!("three volumes: {listed:?}") };
    assert_eq!((&free["name"], &free["attainment"]), (&"free".into(), &Value::Null));
    for horizon in ["last_minute", "last_hour", "last_day", "since_start"] {
        let of = |volume: &Value, key: &str| volume["attainment"][horizon][key].clone();
        assert_eq!(of(missed, "met_percent"), 0.0, "{horizon}: {missed}");
        let burn = of(missed, "burn_rate").as_f64().expect("a burn rate");
        assert!((burn - 100.0).abs() < 1e-6, "{horizon}: all of it, where one in a hundred may be: {missed}");
        let counted = of(kept, "windows_met").as_u64().expect("a number");
        assert!(counted > 0 && of(kept, "windows_missed") == 0, "{horizon}: {kept}");
        assert_eq!(of(kept, "budget_left_percent"), 100.0, "{horizon}: {kept}");
        // A day has not passed in this test, and an hour has not.
        let is_whole = horizon == "since_start";
        assert_eq!(of(kept, "is_whole"), is_whole, "{horizon}: {kept}");
    }
    assert_eq!((&kept["attainment"]["goal_percent"], &kept["pool"]), (&90.0.into(), &"p".into()));
    let metrics = get(&server.metrics);
    for series in [
        "weir_slo_goal_ratio{pool=\"p\",volume=\"kept\"} 0.9",
        "weir_slo_attainment_ratio{pool=\"p\",volume=\"kept\",horizon=\"minute\"} 1.0",
        "weir_slo_error_budget_left_ratio{pool=\"p\",volume=\"kept\",horizon=\"day\"} 1.0",
        "weir_slo_horizon_windows{pool=\"p\",volume=\"missed\",horizon=\"start\",verdict=\"met\"} 0",
    ] {
        assert!(metrics.lines().any(|line| line == series), "{series} in\n{metrics}");
    }
    assert!(!metrics.contains("weir_slo_goal_ratio{pool=\"p\",volume=\"free\"}"));
    let shown = run("status", &scene.control()).out;
    for part in ["last hour", "burn rate, hour", "budget left, day", "90 %", "0.00 % of ", "100.00 % of "] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    server.stop();
}

/// What a command prints on a terminal of so many columns.
fn on_terminal(columns: u16, words: &str, server: &Path) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&terminal).expect("it is new");
    unlockpt(&terminal).expect("it is new");
    let end = ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("it is unlocked");
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&end, size).expect("it is a terminal");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(words.split(' ')).arg("--server").arg(server);
    let mut child = command.stdout(Stdio::from(end)).stdin(Stdio::null()).spawn().expect("it is built");
    drop(command); // with it goes this process's end of the terminal, so the reading below ends
    let mut shown = Vec::new();
    let mut terminal = File::from(terminal);
    let mut piece = [0; 4096];
    // A terminal whose other end is closed has an error, not an end.
    while let Ok(length @ 1..) = terminal.read(&mut piece) {
        shown.extend_from_slice(&piece[..length]);
    }
    assert!(child.wait().expect("it is a child").success());
    String::from_utf8(shown).expect("it is text").replace("\r\n", "\n")
}

#[test]
fn tables_fit_the_terminal_and_are_whole_where_there_is_none() {
    let scene = Scene::new();
    let _server = served(&scene);
    let whole = run("status", &scene.control()).out;
    assert!(whole.contains("batch-of-the-second-data-centre") && !whole.contains("no room for"), "{whole}");
    let socket = scene.file("control.sock");
    for columns in [200, 120, 100, 80, 60] {
        let shown = on_terminal(columns, "status", &socket);
        // The line below a table is a sentence, which the terminal itself wraps.
        let table = shown.lines().filter(|line| !line.starts_with("no room for"));
        let widest = table.map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns), "{columns}: {widest}\n{shown}");
        assert!(shown.contains("oltp") && shown.contains("SLO"), "{columns}:\n{shown}");
    }
    // The figures of the moment are another matter.
    let head = |shown: &str| shown.lines().nth(1).map(str::to_owned);
    let wide = on_terminal(500, "status", &socket);
    assert!(head(&wide) == head(&whole) && wide.contains("batch-of-the-second-data-centre"), "{wide}");
    let narrow = on_terminal(80, "status", &socket);
    assert!(narrow.contains("batch-of-th…a-centre"), "{narrow}");
}
