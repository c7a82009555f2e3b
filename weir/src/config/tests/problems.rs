//! Bad files: one exact line for each rule.

use super::problems;

/// `[listen]`, a pool with control, one without, a station: lines 1 to 9. The text after them begins in line
/// 10.
const HEAD: &str = "[listen]
nbd = [\"127.0.0.1:10809\"]
[pool.a]
[pool.off]
control = \"none\"
[station.s]
servers = 8
service_time = \"5ms\"

";

/// A valid volume.
const VOLUME: &str = "[volume.v]\npool = \"a\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";

/// Asserts that each text after [`HEAD`] breaks one rule and gets this one line.
fn assert_lines(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(problems(&format!("{HEAD}{text}")), [format!("weir.toml:{expected}")], "{text}");
    }
}

/// Asserts that each text after [`VOLUME`], as additional keys of it, breaks one rule and gets this one line.
fn assert_volume_lines(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_lines(&[(&format!("{VOLUME}{text}"), expected)]);
    }
}

#[test]
fn a_text_that_is_no_toml_is_placed() {
    assert_lines(&[
        ("[volume", "10: found the end of the line; accepted: valid TOML (unclosed table, expected `]`)"),
        (
            "[volume.v]\npool = ",
            "11: found the end of the line; accepted: valid TOML (string values must be quoted, expected literal string)",
        ),
        ("[pool.a]\n", "10: pool.a: found a second time; accepted: each name once"),
        (
            "[volume.v]\npool = \"a\"\npool = \"a\"\n",
            "12: volume.v.pool: found a second time; accepted: each name once",
        ),
    ]);
}

#[test]
fn an_unknown_key_gets_the_list_of_those_that_are_known() {
    assert_volume_lines(&[
        (
            "iops = 1\n",
            "14: volume.v.iops: found an unknown key; accepted: pool, backend, size, connections, description, slo, slo_goal, target, priority, max_iops, max_bandwidth, max_concurrency, faults",
        ),
        (
            "[volumes.v]\n",
            "14: volumes: found an unknown key; accepted: listen, cluster, limits, pool, volume, station, array",
        ),
        (
            "[limits]\nconnection = 1\n",
            "15: limits.connection: found an unknown key; accepted: connections, connections_per_address, connections_per_volume, connections_kept, handshakes, handshake_timeout, requests_per_connection, bytes_per_connection, bytes_in_flight, reply_timeout, shutdown_timeout, api_connections, api_timeout, api_header_bytes, api_body_bytes",
        ),
        (
            "slo = [{ upto = 1, up_to = \"1iops\", read = \"1ms\", write = \"1ms\" }]\n",
            "14: volume.v.slo[0].upto: found an unknown key; accepted: up_to, read, write",
        ),
        (
            "faults = [{ on = \"read\", probability = 0.1, stall = true }]\n",
            "14: volume.v.faults[0].probability: found an unknown key; accepted: on, every, error, delay, stall",
        ),
        (
            "[volume.v.w]\n",
            "14: volume.v.w: found an unknown key; accepted: pool, backend, size, connections, description, slo, slo_goal, target, priority, max_iops, max_bandwidth, max_concurrency, faults",
        ),
    ]);
}

#[test]
fn a_value_of_the_wrong_type_gets_what_would_be_right() {
    assert_volume_lines(&[
        (
            "description = 5\n",
            "14: volume.v.description: found 5; accepted: a text of at most 4096 bytes, on one line",
        ),
        (
            "slo = \"10ms\"\n",
            r#"14: volume.v.slo: found "10ms"; accepted: an array of points such as { up_to = "300iops", read = "10ms", write = "15ms" }"#,
        ),
        (
            "slo = [\"10ms\"]\n",
            r#"14: volume.v.slo[0]: found "10ms"; accepted: a table with the keys up_to, read, write"#,
        ),
        (
            "max_concurrency = \"64\"\n",
            r#"14: volume.v.max_concurrency: found "64"; accepted: a whole number from 1 to 65536"#,
        ),
        (
            "max_concurrency = 0\n",
            "14: volume.v.max_concurrency: found 0; accepted: a whole number from 1 to 65536",
        ),
        (
            "max_concurrency = -1\n",
            "14: volume.v.max_concurrency: found -1; accepted: a whole number from 1 to 65536",
        ),
        (
            "max_concurrency = 4.5\n",
            "14: volume.v.max_concurrency: found 4.5; accepted: a whole number from 1 to 65536",
        ),
        (
            "[pool.b]\ncontrol = \"facade\"\ngrowth = 0\n",
            "16: pool.b.growth: found 0; accepted: a number above 0, at most 1, such as 0.1",
        ),
        (
            "[pool.b]\nbackground_share = 0.6\n",
            "15: pool.b.background_share: found 0.6; accepted: a number from 0 to 0.5, such as 0.01",
        ),
        (
            "[pool.b]\nbackground_deadline = \"10s\"\n",
            "15: pool.b.background_deadline: found a key of earlier versions; accepted: background_share, \
             the part of the device's time that volumes without an SLO get where those with one keep it full",
        ),
        (
            "[pool.b]\ncontrol = \"facade\"\ngrowth = nan\n",
            "16: pool.b.growth: found nan; accepted: a number above 0, at most 1, such as 0.1",
        ),
        (
            "[pool.b]\ncontrol = \"fair\"\n",
            r#"15: pool.b.control: found "fair"; accepted: one of "facade", "maestro", "promise", "pid", "none""#,
        ),
        (
            "[limits]\nconnections = 2000000\n",
            "15: limits.connections: found 2000000; accepted: a whole number from 1 to 1000000",
        ),
    ]);
    assert_lines(&[(
        "[volume]\nv = 5\n",
        "11: volume.v: found 5; accepted: a table with the keys pool, backend, size, connections, description, slo, slo_goal, target, priority, max_iops, max_bandwidth, max_concurrency, faults",
    )]);
    assert_eq!(
        problems(&format!("volume = 5\n{HEAD}")),
        ["weir.toml:1: volume: found 5; accepted: tables [volume.NAME]"]
    );
}

#[test]
fn a_quantity_needs_a_unit_that_means_one_thing() {
    assert_volume_lines(&[
        (
            "slo = [{ up_to = \"1iops\", read = \"10 sec?\", write = \"1ms\" }]\n",
            r#"14: volume.v.slo[0].read: found "10 sec?"; accepted: a duration such as "5ms", from 1us to 1h"#,
        ),
        (
            "slo = [{ up_to = \"1\", read = \"1ms\", write = \"1ms\" }]\n",
            r#"14: volume.v.slo[0].up_to: found "1"; accepted: a rate above zero such as "1200iops""#,
        ),
        (
            "slo = [{ up_to = \"1iops\", read = \"0s\", write = \"1ms\" }]\n",
            r#"14: volume.v.slo[0].read: found "0s"; accepted: a duration such as "5ms", from 1us to 1h"#,
        ),
        (
            "max_bandwidth = \"100MiB\"\n",
            r#"14: volume.v.max_bandwidth: found "100MiB"; accepted: a bandwidth such as "100MiB/s", above zero and below 16777216TiB/s"#,
        ),
        (
            "max_iops = 1200\n",
            r#"14: volume.v.max_iops: found 1200; accepted: a rate above zero such as "1200iops""#,
        ),
        (
            "[limits]\nreply_timeout = \"1M\"\n",
            r#"15: limits.reply_timeout: found "1M"; accepted: a duration such as "5ms", from 100ms to 1h"#,
        ),
        (
            "[limits]\nbytes_in_flight = \"2G\"\n",
            r#"15: limits.bytes_in_flight: found "2G"; accepted: a size such as "64MiB", from 32MiB to 1TiB"#,
        ),
    ]);
}

#[test]
fn an_slo_curve_must_increase() {
    let curve = |second: &str| {
        format!(
            "slo = [\n{{ up_to = \"300iops\", read = \"10ms\", write = \"15ms\" }},\n{{ {second} }},\n]\n"
        )
    };
    assert_volume_lines(&[
        (
            &curve("up_to = \"300iops\", read = \"10ms\", write = \"15ms\""),
            r#"16: volume.v.slo[1].up_to: found "300iops"; accepted: more than in the point before, 300iops"#,
        ),
        (
            &curve("up_to = \"400iops\", read = \"9ms\", write = \"15ms\""),
            r#"16: volume.v.slo[1].read: found "9ms"; accepted: no less than in the point before, at a lower rate, 10ms"#,
        ),
        (
            &curve("up_to = \"400iops\", read = \"10ms\", write = \"1ms\""),
            r#"16: volume.v.slo[1].write: found "1ms"; accepted: no less than in the point before, at a lower rate, 15ms"#,
        ),
        (
            "slo = []\n",
            r#"14: volume.v.slo: found an empty array; accepted: an array of points such as { up_to = "300iops", read = "10ms", write = "15ms" }"#,
        ),
        (
            "slo = [{ up_to = \"1iops\", read = \"1ms\" }]\n",
            r#"14: volume.v.slo[0].write: found nothing; accepted: a duration such as "5ms", from 1us to 1h"#,
        ),
    ]);
}

#[test]
fn a_volume_needs_a_pool_and_a_backend_that_are_there() {
    let volume = |pool: &str, rest: &str| format!("[volume.v]\npool = \"{pool}\"\n{rest}");
    assert_lines(&[
        ("", "1: volume: found nothing; accepted: at least one table [volume.NAME]"),
        (
            "[volume.v]\nbackend = \"memory\"\nsize = \"1MiB\"\n",
            "10: volume.v.pool: found nothing; accepted: the name of a pool",
        ),
        (
            &volume("a", ""),
            r#"10: volume.v.backend: found nothing; accepted: "file:/path" (absolute), "memory", "station:NAME", "array:NAME:/path", "nbd://host:port/export" or "nbd+unix:///export?socket=/path""#,
        ),
        (
            &volume("b", "backend = \"memory\"\nsize = \"1MiB\"\n"),
            r#"11: volume.v.pool: found "b"; accepted: a pool of this file: "a", "off""#,
        ),
        (
            &volume("a", "backend = \"memory\"\n"),
            r#"10: volume.v.size: found nothing, and backend "memory" has no size of its own; accepted: a size such as "20GiB""#,
        ),
        (
            &volume("a", "backend = \"station:s\"\n"),
            r#"10: volume.v.size: found nothing, and backend "station:s" has no size of its own; accepted: a size such as "20GiB""#,
        ),
        (
            &volume("a", "backend = \"station:t\"\nsize = \"1MiB\"\n"),
            r#"12: volume.v.backend: found "station:t"; accepted: a station of this file: "s""#,
        ),
        (
            &volume("a", "backend = \"file:db.img\"\n"),
            r#"12: volume.v.backend: found "file:db.img"; accepted: "file:/path" (absolute), "memory", "station:NAME", "array:NAME:/path", "nbd://host:port/export" or "nbd+unix:///export?socket=/path""#,
        ),
        (
            &volume("a", "backend = \"nbds://server/disk\"\n"),
            r#"12: volume.v.backend: found "nbds://server/disk"; accepted: "file:/path" (absolute), "memory", "station:NAME", "array:NAME:/path", "nbd://host:port/export" or "nbd+unix:///export?socket=/path""#,
        ),
        (
            &volume("a", "backend = \"nbd+unix:///disk\"\n"),
            r#"12: volume.v.backend: found "nbd+unix:///disk"; accepted: "file:/path" (absolute), "memory", "station:NAME", "array:NAME:/path", "nbd://host:port/export" or "nbd+unix:///export?socket=/path""#,
        ),
        (
            &volume("a", "backend = \"nbd://server/disk\"\nsize = \"1GiB\"\n"),
            r#"13: volume.v.size: found a size, and backend "nbd://server/disk" has its own; accepted: nothing"#,
        ),
        (
            &volume("a", "backend = \"nbd://server/disk\"\nconnections = 65\n"),
            r#"13: volume.v.connections: found 65; accepted: a whole number from 1 to 64"#,
        ),
        (
            &volume("a", "backend = \"memory\"\nsize = \"1MiB\"\nconnections = 2\n"),
            r#"14: volume.v.connections: found a number of connections, and backend "memory" has none; accepted: nothing, or a backend "nbd://host:port/export""#,
        ),
        (
            &volume("a", "backend = \"memory:1\"\n"),
            r#"12: volume.v.backend: found "memory:1"; accepted: "file:/path" (absolute), "memory", "station:NAME", "array:NAME:/path", "nbd://host:port/export" or "nbd+unix:///export?socket=/path""#,
        ),
    ]);
}

#[test]
fn a_station_belongs_to_one_pool() {
    let volume = |name: &str, pool: &str| {
        format!("[volume.{name}]\npool = \"{pool}\"\nbackend = \"station:s\"\nsize = \"1MiB\"\n")
    };
    assert_lines(&[(
        &(volume("v", "a") + &volume("w", "off")),
        r#"16: volume.w.backend: found "station:s", which volume.v uses from pool "a"; accepted: a station whose volumes are all in one pool"#,
    )]);
    assert_volume_lines(&[(
        "[station.t]\nservers = 0\nservice_time = \"1ms\"\n",
        "15: station.t.servers: found 0; accepted: a whole number from 1 to 4096",
    )]);
}

#[test]
fn a_file_belongs_to_one_volume_however_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    std::fs::write(directory.path().join("there.img"), "").unwrap();
    std::os::unix::fs::symlink("there.img", directory.path().join("other.img")).unwrap();
    for (first, second) in [("x.img", "x.img"), ("x.img", "sub/../x.img"), ("there.img", "other.img")] {
        let volume = |name: &str, file: &str| {
            format!("[volume.{name}]\npool = \"a\"\nbackend = \"file:{path}/{file}\"\n")
        };
        let text = volume("v", first) + &volume("w", second);
        let shown: String = format!("\"file:{path}/{second}\"");
        assert_lines(&[(
            &text,
            &format!(
                "15: volume.w.backend: found {shown}, the file of volume.v; accepted: a file for each volume"
            ),
        )]);
    }
}

#[test]
fn what_nobody_would_enforce_is_refused() {
    let capped =
        |cap: &str| format!("[volume.v]\npool = \"off\"\nbackend = \"memory\"\nsize = \"1MiB\"\n{cap}\n");
    assert_lines(&[
        (
            &capped("max_iops = \"10iops\""),
            r#"14: volume.v.max_iops: found a cap in pool "off", whose control = "none" enforces none; accepted: nothing, or a pool with control = "facade", "maestro", "promise" or "pid""#,
        ),
        (
            &capped("max_bandwidth = \"1MiB/s\""),
            r#"14: volume.v.max_bandwidth: found a cap in pool "off", whose control = "none" enforces none; accepted: nothing, or a pool with control = "facade", "maestro", "promise" or "pid""#,
        ),
        (
            &capped("max_concurrency = 1"),
            r#"14: volume.v.max_concurrency: found a cap in pool "off", whose control = "none" enforces none; accepted: nothing, or a pool with control = "facade", "maestro", "promise" or "pid""#,
        ),
        (
            &format!("{VOLUME}[pool.plain]\ncontrol = \"none\"\ngrowth = 0.1\n"),
            r#"16: pool.plain.growth: found a setting of control = "facade"; accepted: nothing, or control = "facade""#,
        ),
    ]);
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    assert_volume_lines(&[
        (
            "[limits]\nbytes_per_connection = \"1MiB\"\n",
            r#"15: limits.bytes_per_connection: found "1MiB"; accepted: a size such as "64MiB", from 32MiB to 1TiB"#,
        ),
        (
            "[limits]\nbytes_in_flight = \"32MiB\"\n",
            r#"15: limits.bytes_in_flight: found "32MiB"; accepted: at least limits.bytes_per_connection, 64MiB"#,
        ),
        (
            "slo = [{ up_to = \"1iops\", read = \"1ms\", write = \"1ms\" }]\n[limits]\nbytes_per_connection = \"32MiB\"\nbytes_in_flight = \"63MiB\"\n",
            r#"17: limits.bytes_in_flight: found "63MiB"; accepted: at least 64MiB, 32MiB for each volume with an slo or a target and 32MiB for all"#,
        ),
        (
            "[limits]\nbytes_per_connection = \"2GiB\"\n",
            r#"15: limits.bytes_per_connection: found "2GiB"; accepted: at most limits.bytes_in_flight, 1GiB"#,
        ),
        (
            "[pool.b]\ncontrol = \"facade\"\nmax_depth = 100\n",
            "16: pool.b.max_depth: found 100; accepted: at least initial_depth, 200 by default",
        ),
        (
            "[pool.b]\ncontrol = \"facade\"\ninitial_depth = 20\nmax_depth = 10\n",
            "16: pool.b.initial_depth: found 20; accepted: at most max_depth, 10",
        ),
    ]);
}

#[test]
fn a_fault_does_exactly_one_thing() {
    assert_volume_lines(&[
        (
            "faults = [{ on = \"write\" }]\n",
            "14: volume.v.faults[0]: found a rule that does nothing; accepted: exactly one of error, delay, stall",
        ),
        (
            "faults = [{ error = \"EIO\", stall = true }]\n",
            "14: volume.v.faults[0]: found error and stall; accepted: exactly one of error, delay, stall",
        ),
        ("faults = [{ stall = false }]\n", "14: volume.v.faults[0].stall: found false; accepted: true"),
        (
            "faults = [{ error = \"EWHAT\" }]\n",
            r#"14: volume.v.faults[0].error: found "EWHAT"; accepted: one of "EIO", "ENOSPC", "ENOMEM", "EINVAL", "EPERM", "EROFS", "EOPNOTSUPP", "ETIMEDOUT""#,
        ),
        (
            "faults = [{ on = \"writes\", error = \"EIO\" }]\n",
            r#"14: volume.v.faults[0].on: found "writes"; accepted: one of "read", "write", "flush", "trim", "write_zeroes", "cache", "block_status""#,
        ),
        (
            "faults = [{ every = 0, error = \"EIO\" }]\n",
            "14: volume.v.faults[0].every: found 0; accepted: a whole number from 1 to 1000000000",
        ),
    ]);
}

#[test]
fn a_name_must_fit_labels_and_uris() {
    let volume = |name: &str| VOLUME.replace("volume.v", &format!("volume.{name}"));
    assert_lines(&[
        (&volume("\"\""), r#"10: volume."": found the name ""; accepted: 1 to 255 of A-Z a-z 0-9 . _ -"#),
        (
            &volume("\"a b\""),
            r#"10: volume."a b": found the name "a b"; accepted: 1 to 255 of A-Z a-z 0-9 . _ -"#,
        ),
        (
            &format!("{VOLUME}[pool.\"é\"]\n"),
            r#"14: pool."é": found the name "é"; accepted: 1 to 255 of A-Z a-z 0-9 . _ -"#,
        ),
    ]);
    let long = problems(&format!("{HEAD}{}", volume(&"x".repeat(256))));
    assert!(long[0].ends_with("accepted: 1 to 255 of A-Z a-z 0-9 . _ -"), "{long:?}");
}

#[test]
fn a_gateway_listens_somewhere_and_nowhere_twice() {
    let text = |listen: &str| format!("{listen}\n[pool.a]\n{VOLUME}");
    let cases = [
        ("", "1: listen: found nothing; accepted: a table [listen] with the key nbd"),
        (
            "[listen]",
            r#"1: listen.nbd: found nothing; accepted: at least one address, such as ["127.0.0.1:10809"]"#,
        ),
        (
            "[listen]\nnbd = []",
            r#"2: listen.nbd: found an empty array; accepted: an array of addresses, such as ["127.0.0.1:10809"]"#,
        ),
        (
            "[listen]\nnbd = \"127.0.0.1:10809\"",
            r#"2: listen.nbd: found "127.0.0.1:10809"; accepted: an array of addresses, such as ["127.0.0.1:10809"]"#,
        ),
        (
            "[listen]\nnbd = [\"127.0.0.1\"]",
            r#"2: listen.nbd[0]: found "127.0.0.1"; accepted: an address: "host:port", "[::1]:port" or "unix:/path" (absolute, at most 107 bytes)"#,
        ),
        (
            "[listen]\nnbd = [\"127.0.0.300:1\"]",
            r#"2: listen.nbd[0]: found "127.0.0.300:1"; accepted: an address: "host:port", "[::1]:port" or "unix:/path" (absolute, at most 107 bytes)"#,
        ),
        (
            "[listen]\nnbd = [\"localhost:65536\"]",
            r#"2: listen.nbd[0]: found "localhost:65536"; accepted: an address: "host:port", "[::1]:port" or "unix:/path" (absolute, at most 107 bytes)"#,
        ),
        (
            "[listen]\nnbd = [\"unix:run/weir.sock\"]",
            r#"2: listen.nbd[0]: found "unix:run/weir.sock"; accepted: an address: "host:port", "[::1]:port" or "unix:/path" (absolute, at most 107 bytes)"#,
        ),
        (
            "[listen]\nnbd = [\"[::1]:1\", \"[::1]:1\"]",
            r#"2: listen.nbd[1]: found "[::1]:1"; accepted: each address once"#,
        ),
        (
            "[listen]\nnbd = [\"[::1]:1\"]\nmetrics = \"[::1]:1\"",
            r#"3: listen.metrics: found "[::1]:1"; accepted: an address that is not in listen.nbd"#,
        ),
        (
            "[listen]\nnbd = [\"[::1]:1\"]\nmetrics = \"unix:/run/m.sock\"",
            r#"3: listen.metrics: found "unix:/run/m.sock"; accepted: an address or a host name, with a port, such as "127.0.0.1:9810""#,
        ),
    ];
    for (listen, expected) in cases {
        assert_eq!(problems(&text(listen)), [format!("weir.toml:{expected}")], "{listen}");
    }
}

#[test]
fn every_problem_of_a_file_is_reported_in_the_order_of_lines() {
    let text =
        format!("{HEAD}[volume.v]\npool = \"b\"\nbackend = \"tape\"\nsize = 5\nslo = 1\n[limits]\nx = 1\n");
    let lines = problems(&text);
    let numbers: Vec<_> = lines.iter().map(|line| line.split(':').nth(1).unwrap()).collect();
    assert_eq!(numbers, ["12", "13", "14", "16"], "{lines:#?}");
}
