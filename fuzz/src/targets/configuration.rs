//! An operator's input: configuration files of gateways and controllers, and the values of `weir set`.
//!
//! A piece is a line of the file. A piece that begins with `SET ` is a change: table, name, and keys with
//! values.

use weir::fuzzing::{Judged, change, configuration};

use super::Target;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "configuration",
    run,
    seeds,
    words: &[
        b"[",
        b"]",
        b"{",
        b"}",
        b"\"",
        b"=",
        b"#",
        b"none",
        b"[[",
        b"\"5ms\"",
        b"\"1GiB\"",
        b"\"900iops\"",
        b"-1",
        b"1e400",
        b"nan",
        b"true",
        b"9223372036854775807",
        b"'''",
        b"\\u0000",
        b"control = \"maestro\"\n",
        b"{ latency = \"1ms\" }",
        b"1979-05-27",
        b"\xc3\xa9",
    ],
    must_reach: &["gateway", "controller", "refused", "set", "set refused"],
};

const FACADE: &str = r#"[listen]
nbd = ["127.0.0.1:10809", "unix:/run/weir/nbd.sock"]
metrics = "127.0.0.1:9810"
[limits]
connections = 100
bytes_in_flight = "256MiB"
reply_timeout = "1m 30s"
[pool.p]
control = "facade"
growth = 0.1
[volume.v]
pool = "p"
backend = "memory"
size = "20GiB"
max_iops = "1200iops"
slo = [ { up_to = "300iops", read = "10ms", write = "15ms" }, { up_to = "1000iops", read = "25ms", write = "30ms" } ]
[volume."db.old"]
pool = "p"
backend = "nbd+unix:///x?socket=/run/x.sock"
faults = [ { error = "EIO", on = "read", every = 10 } ]
SET volume v max_iops=900iops
SET volume v max_bandwidth=none
"#;

const MAESTRO: &str = r#"[listen]
nbd = ["[::1]:0"]
control = "unix:/run/weir/control.sock"
[pool.p]
control = "maestro"
total_concurrency = { disks = 8 }
control_interval = "500ms"
[volume.v]
pool = "p"
backend = "file:/srv/v.img"
target = { latency = "10ms" }
priority = 2
[volume.w]
pool = "p"
backend = "file:/srv/w.img"
size = "1TiB"
target = { p99.9 = "10ms" }
max_concurrency = 64
SET volume v target.latency=5ms priority=4
SET volume w target={ iops = 900 }
SET pool p total_concurrency=80
"#;

const CONTROLLER: &str = r#"[controller]
listen = "10.0.0.1:7700"
ca = "/etc/weir/ca.pem"
certificate = "/etc/weir/controller.pem"
key = "/etc/weir/controller.key"
[gateway.a]
[gateway.b]
[pool.p]
total_concurrency = 8
[volume.v]
pool = "p"
priority = 4
[volume.w]
pool = "p"
target = { p95 = "20ms" }
max_concurrency = 2
"#;

fn seeds() -> Vec<Script> {
    let seeds = [FACADE, MAESTRO, CONTROLLER];
    seeds.into_iter().map(Script::of_lines).collect()
}

fn run(script: &Script, seen: &mut Seen) {
    let is_change = |piece: &&Vec<u8>| piece.starts_with(b"SET ");
    let lines: Vec<u8> = script.pieces.iter().filter(|piece| !is_change(piece)).flatten().copied().collect();
    let text = String::from_utf8_lossy(&lines);
    seen.message();
    seen.reach(match configuration(&text) {
        Judged::Gateway => "gateway",
        Judged::Controller => "controller",
        Judged::Agent => "agent",
        Judged::Coordinator => "coordinator",
        Judged::Refused => "refused",
    });
    // A change is also tried on a good file, whether this file was good or not.
    for piece in script.pieces.iter().filter(is_change) {
        let piece = String::from_utf8_lossy(piece);
        for text in [&*text, MAESTRO_FILE] {
            set(text, &piece, seen);
        }
    }
}

/// The file of [`MAESTRO`], without its changes.
const MAESTRO_FILE: &str = r#"[listen]
nbd = ["127.0.0.1:0"]
[pool.p]
control = "maestro"
[volume.v]
pool = "p"
backend = "memory"
size = "1GiB"
"#;

fn set(text: &str, piece: &str, seen: &mut Seen) {
    let mut words = piece.trim_end_matches('\n').splitn(4, ' ').skip(1);
    let (table, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let rest = words.next().unwrap_or_default();
    let set: Vec<(String, String)> = match rest.split_once('=') {
        // Most pieces change one key. A value with `={` in it is one value; otherwise each word with a `=` is
        // a change.
        Some((key, value)) if value.contains("={") || !value.contains('=') => {
            vec![(key.trim().to_owned(), value.trim().to_owned())]
        }
        _ => rest
            .split(' ')
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
    };
    seen.message();
    match change(text, table, name, &set) {
        None => {}
        Some(Judged::Refused) => seen.reach("set refused"),
        Some(_) => seen.reach("set"),
    }
}
