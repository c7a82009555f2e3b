//! `[array.NAME]` and the volumes on it: what the reader accepts and refuses, and what the report shows.

use std::path::PathBuf;

use super::super::volume::BackendConfig;
use super::{parse, problems, report};

const HEAD: &str = "[listen]\nnbd = [\"127.0.0.1:10809\"]\n[pool.a]\n[pool.b]\n";

/// 1 GiB behind a station; lines 5 to 9.
const ARRAY: &str = "[array.s]\ndisks = 1\nraid = \"single\"\nsize = \"1GiB\"\n\
    station = { servers = 8, service_time = \"5ms\", exponential = false }\n";

fn volume(name: &str, pool: &str, backend: &str, size: &str) -> String {
    format!("[volume.{name}]\npool = \"{pool}\"\nbackend = \"{backend}\"\nsize = \"{size}\"\n")
}

#[test]
fn a_volume_on_an_array_has_its_part_of_it_and_a_file() {
    let text = format!("{HEAD}{ARRAY}{}", volume("v", "a", "array:s:/srv/v:1.img", "1GiB"));
    let config = parse(&text);
    let file = PathBuf::from("/srv/v:1.img");
    assert_eq!(config.volumes["v"].backend.value, BackendConfig::Array("s".to_owned(), file));
    assert_eq!(config.arrays["s"].options.size(), 1 << 30);
    let report = report(&text);
    for row in [
        "array.s.station.service_time    5ms ",
        "array.s.size                    1GiB ",
        "array:s:/srv/v:1.img ",
    ] {
        assert!(report.contains(row), "{row} in\n{report}");
    }
}

#[test]
fn an_array_of_disks_is_read_with_all_that_it_can_have() {
    let array = "[array.\"fc.60\"]\ndisks = 6\ndisk = \"cheetah-18lp\"\nraid = \"raid5\"\nnvram = \"256MiB\"\n\
        read_cache = \"64MiB\"\nunits = 2\nlayout = \"striped\"\nport_bandwidth = \"100MB/s\"\n";
    let text = format!("{HEAD}{array}{}", volume("v", "a", "array:fc.60:/v", "20GiB"));
    assert_eq!(parse(&text).arrays["fc.60"].options.units.len(), 2);
    assert!(report(&text).contains("array.\"fc.60\".nvram"));
}

#[test]
fn what_makes_no_array_is_said_with_its_line_and_its_key() {
    let rest = volume("v", "a", "memory", "1GiB");
    for (from, to, expected) in [
        ("disks = 1", "disks = \"one\"", "6: array.s.disks: found \"one\"; accepted: u32"),
        ("size = \"1GiB\"", "size = \"1G\"", "8: array.s.size: found \"1G\"; accepted: a size with its unit"),
        (
            "size = \"1GiB\"",
            "sise = \"1GiB\"",
            "8: array.s.sise: found an unknown key; accepted: disks, disk, ssd",
        ),
        ("servers = 8", "servers = 0", "9: array.s.station.servers: found 0; accepted: a nonzero"),
        ("raid = \"single\"\n", "", "5: array.s: found nothing for raid; accepted: what docs/config.md says"),
        (
            "raid = \"single\"",
            "raid = \"raid5\"",
            "6: array.s.disks: found 1 disks (logical unit 0); accepted: for Raid5: 3 to",
        ),
        (
            "station =",
            "ssd = \"none\"\nstation =",
            "5: array.s.disk: found 2 of disk, ssd and station; accepted: one of the three",
        ),
        ("[array.s]", "[array.\"s s\"]", "5: array.\"s s\": found the name \"s s\"; accepted: 1 to 255 of"),
    ] {
        let found = problems(&format!("{HEAD}{}{rest}", ARRAY.replace(from, to)));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with(&format!("weir.toml:{expected}")), "{} for {expected}", found[0]);
    }
    let of_wrong = volume("v", "a", "array:s:/v", "1MiB");
    let found = problems(&format!("{HEAD}{}{of_wrong}", ARRAY.replace("servers = 8", "servers = 0")));
    assert_eq!(found.len(), 1, "the volume on it is not a second problem: {found:#?}");
    let found = problems(&format!("array = 1\n{HEAD}{rest}"));
    assert_eq!(found, ["weir.toml:1: array: found 1; accepted: tables [array.NAME]"]);
}

#[test]
fn an_array_has_one_pool_and_room_for_its_volumes_and_a_file_one_volume() {
    let first = volume("v", "a", "array:s:/v", "700MiB");
    for (second, expected) in [
        (
            volume("w", "b", "array:s:/w", "1MiB"),
            r#"16: volume.w.backend: found "array:s:/w", whose array volume.v uses from pool "a"; accepted: an array whose volumes are all in one pool"#,
        ),
        (
            volume("w", "a", "array:s:/w", "400MiB"),
            r#"17: volume.w.size: found "400MiB"; accepted: at most 339738624 bytes, which array s has left for it"#,
        ),
        (
            volume("w", "a", "array:s:/v", "1MiB"),
            r#"16: volume.w.backend: found "array:s:/v", the file of volume.v; accepted: a file for each volume"#,
        ),
        (
            volume("w", "a", "file:/v", "1MiB"),
            r#"16: volume.w.backend: found "file:/v", the file of volume.v; accepted: a file for each volume"#,
        ),
        (
            volume("w", "a", "array:t:/w", "1MiB"),
            r#"16: volume.w.backend: found "array:t:/w"; accepted: an array of this file: "s""#,
        ),
        (
            volume("w", "a", "array:s:w", "1MiB"),
            r#"16: volume.w.backend: found "array:s:w"; accepted: "file:/path" (absolute), "memory", "station:NAME", "array:NAME:/path", "nbd://host:port/export" or "nbd+unix:///export?socket=/path""#,
        ),
        (
            volume("w", "a", "array:s:/w", "1MiB").replace("size = \"1MiB\"\n", ""),
            r#"14: volume.w.size: found nothing, and backend "array:s:/w" has no size of its own; accepted: a size such as "20GiB""#,
        ),
    ] {
        assert_eq!(problems(&format!("{HEAD}{ARRAY}{first}{second}")), [format!("weir.toml:{expected}")]);
    }
}

#[test]
fn a_number_of_parts_that_no_array_has_is_a_line_and_takes_no_memory() {
    for (key, most) in [("units", "1024"), ("ports", "1024"), ("disks", "16384")] {
        let rest = if key == "disks" { "" } else { "disks = 6\n" };
        let array = format!(
            "[array.s]\n{key} = 4294967295\n{rest}disk = \"cheetah-18lp\"\nraid = \"raid0\"\nport_bandwidth = \"1MB/s\"\n"
        );
        let problems = problems(&format!("{HEAD}{array}{}", volume("v", "a", "array:s:/v", "1MiB")));
        let line = format!("weir.toml:6: array.s.{key}: found 4294967295; accepted: at most {most}");
        assert!(problems.contains(&line), "{problems:#?}");
    }
}
