//! Good files: the values that they resolve to, and the report about them.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use rustix::io::Errno;
use weir_model::{Bandwidth, IoKind, Iops, QueueDepth, Slo, SloPoint, Span, TimeShare};

use super::super::fault::{Fault, FaultEffect};
use super::super::listen::{Address, TcpAddress};
use super::super::volume::BackendConfig;
use super::super::{Config, KEYS, cluster, controller, fault, limits, listen, pool, volume};
use super::{EXAMPLE, facade, parse, report};

/// A file with every key, none with its default.
const FULL: &str = r#"
[listen]
nbd = ["[::1]:10809", "gateway.example:10809"]

[limits]
connections = 1
handshake_timeout = "1m 30s"
requests_per_connection = 2
bytes_per_connection = "32MiB"
bytes_in_flight = "96MiB"
reply_timeout = "3s"
shutdown_timeout = "4s"

[pool.fast]
control = "facade"
control_period = "20ms"
growth = 0.25
initial_depth = 8
max_depth = 16
slo_window = "2s"
background_share = 0.05

[pool.plain]
control = "none"

[station.slow]
servers = 8
service_time = "5ms"

[volume.all]
pool = "fast"
backend = "station:slow"
size = "1GiB"
description = "everything set"
max_iops = "1200iops"
max_bandwidth = "100MiB/s"
max_concurrency = 64
faults = [
  { on = "write", every = 100, error = "EIO" },
  { on = "read", delay = "50ms" },
  { stall = true },
]

[volume.measured]
pool = "plain"
backend = "memory"
size = "64MiB"
slo = [{ up_to = "100iops", read = "1ms", write = "1ms" }]
"#;

#[test]
fn the_example_resolves_to_what_it_says() {
    let config = parse(EXAMPLE);
    let tcp = |host: &str, port| TcpAddress { host: host.to_owned(), port };
    let nbd: Vec<_> = config.listen.nbd.iter().map(|address| address.value.clone()).collect();
    let socket = Address::Unix(PathBuf::from("/run/weir/nbd.sock"));
    assert_eq!(nbd, [Address::Tcp(tcp("127.0.0.1", 10809)), socket]);
    assert_eq!(config.listen.metrics.value, Some(tcp("127.0.0.1", 9810)));
    assert_eq!(facade(&config.pools["array1"]).initial_depth.value, QueueDepth::new(200));
    let volume = &config.volumes["db"];
    assert_eq!(volume.backend.value, BackendConfig::File(PathBuf::from("/srv/weir/db.img")));
    assert_eq!(volume.size.value, Some(ByteSize::gib(20)));
    let point = |rate, read, write| SloPoint {
        up_to: Iops::new(rate).unwrap(),
        read: Span::from_millis(read),
        write: Span::from_millis(write),
    };
    assert_eq!(volume.slo.value, Some(Slo::new(vec![point(300.0, 10, 15), point(1000.0, 25, 30)]).unwrap()));
    assert_eq!(config.volumes["backup"].slo.value, None);
}

#[test]
fn every_key_can_be_set() {
    let config = parse(FULL);
    let limits = &config.limits;
    assert_eq!(limits.handshake_timeout.value, Span::from_secs(90));
    assert_eq!(limits.bytes_in_flight.value, ByteSize::mib(96));
    let pool = facade(&config.pools["fast"]);
    assert_eq!((pool.growth.value, pool.max_depth.value), (0.25, QueueDepth::new(16)));
    assert_eq!(pool.background_share.value, TimeShare::new(0.05).unwrap());
    let volume = &config.volumes["all"];
    assert_eq!(volume.backend.value, BackendConfig::Station("slow".to_owned()));
    assert_eq!(volume.max_iops.value, Iops::new(1200.0));
    assert_eq!(volume.max_bandwidth.value, Bandwidth::new(100 << 20));
    assert_eq!(volume.max_concurrency.value, NonZeroU32::new(64));
    let fault = |on, every, effect| Fault { on, every: NonZeroU64::new(every).unwrap(), effect };
    let faults: Vec<_> = volume.faults.iter().map(|fault| fault.value.clone()).collect();
    let expected = [
        fault(Some(IoKind::Write), 100, FaultEffect::Error(Errno::IO)),
        fault(Some(IoKind::Read), 1, FaultEffect::Delay(Span::from_millis(50))),
        fault(None, 1, FaultEffect::Stall),
    ];
    assert_eq!(faults, expected);
}

#[test]
fn there_is_memory_for_as_many_promises_as_the_file_makes() {
    let volume = |number: u32| {
        let slo = "slo = [{ up_to = \"9iops\", read = \"1ms\", write = \"1ms\" }]";
        format!("[volume.v{number}]\npool = \"a\"\nbackend = \"memory\"\nsize = \"1MiB\"\n{slo}\n")
    };
    let bytes = |count| {
        let volumes: String = (0..count).map(volume).collect();
        parse(&format!("[listen]\nnbd = [\"h:1\"]\n[pool.a]\n{volumes}")).limits.bytes_in_flight.value
    };
    assert_eq!((bytes(1), bytes(16), bytes(100)), (ByteSize::gib(1), ByteSize::gib(1), ByteSize::mib(6400)));
}

#[test]
fn the_report_names_every_value_and_where_it_comes_from() {
    assert_eq!(report(EXAMPLE), include_str!("example_report.txt"));
}

#[test]
fn the_report_says_what_is_not_enforced() {
    let report = report(FULL);
    let line = |key: &str| report.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    let slo = line("volume.measured.slo[0]");
    assert!(
        slo.contains("up to 100iops: read 1ms, write 1ms; measured, not enforced (control = none)"),
        "{slo}"
    );
    assert!(line("volume.all.faults[0]").contains("one write in 100 fails with EIO"));
    assert!(!report.contains("pool.plain.growth"), "a law that is off has no settings in force");
}

#[test]
fn moving_a_setting_to_another_line_changes_nothing() {
    let moved = format!("# a comment\n\n{EXAMPLE}");
    assert_eq!(parse(&moved), parse(EXAMPLE));
    let default_written_out = EXAMPLE.replace("[pool.array1]", "[pool.array1]\ngrowth = 0.1");
    assert_eq!(parse(&default_written_out), parse(EXAMPLE));
    let changed = EXAMPLE.replace("[pool.array1]", "[pool.array1]\ngrowth = 0.2");
    assert_ne!(parse(&changed), parse(EXAMPLE));
}

#[test]
fn every_key_is_in_the_manual() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/config.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let keys = [
        KEYS,
        cluster::KEYS,
        controller::KEYS,
        controller::CONTROLLER_KEYS,
        listen::KEYS,
        limits::KEYS,
        pool::KEYS,
        pool::TOTAL_KEYS,
        pool::STATION_KEYS,
        volume::KEYS,
        volume::SLO_KEYS,
        fault::KEYS,
    ];
    for key in keys.concat() {
        let named = [format!("`{key}`"), format!("`[{key}]`"), format!("`[{key}.NAME]`")];
        assert!(named.iter().any(|name| manual.contains(name)), "docs/config.md says nothing about `{key}`");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Config::load(Path::new("nowhere/weir.toml")).unwrap_err().to_string();
    assert!(error.starts_with("nowhere/weir.toml: found No such file or directory"), "{error}");
}

#[test]
fn a_volume_on_another_server_has_its_size_and_some_connections() {
    let volume = "[volume.v]\npool = \"a\"\nbackend = \"nbd://[::1]:7000/db\"\n";
    let report = report(&format!("[listen]\nnbd = [\"h:1\"]\n[pool.a]\n{volume}"));
    let value = |key: &str| {
        let line = report.lines().find(|line| line.starts_with(key)).expect("each key has a line");
        line[key.len()..]
            .split("  ")
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("|")
    };
    assert_eq!(value("volume.v.backend"), "nbd://[::1]:7000/db|line 6");
    assert_eq!(value("volume.v.size"), "-|default: the size that the server has");
    assert_eq!(value("volume.v.connections"), "4|default: many servers work on each with threads of its own");
}
