//! A server's reports about itself: `/metrics`, `weir status`, `weir top`.

use std::collections::BTreeMap;

use crate::harness::{Flags, Outcome, Program, RawClient, Scene, Server, bytes, command, get, wait_until};

/// Samples by name and labels, such as `weir_pool_queued{pool="p"}`.
type Samples = BTreeMap<String, f64>;

/// Reads OpenMetrics text, more strictly than scrapers do. Every family must have its type and help before
/// its samples, every sample a family, and the text an end.
fn parse(text: &str) -> Samples {
    let mut samples = Samples::new();
    let mut types = BTreeMap::new();
    let mut helped = Vec::new();
    let body = text.strip_suffix("# EOF\n").expect("an end");
    for line in body.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (family, words) = help.split_once(' ').expect("a family and words");
            assert!(!words.is_empty() && !helped.contains(&family), "{line}");
            helped.push(family);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (family, kind) = kind.split_once(' ').expect("a family and a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(types.insert(family, kind).is_none(), "{family} has two types");
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a series and a value");
            let name = series.split('{').next().unwrap();
            let family = types.iter().find(|(family, kind)| {
                let suffix = name.strip_prefix(**family);
                match **kind {
                    "counter" => suffix == Some("_total"),
                    "histogram" => matches!(suffix, Some("_bucket" | "_sum" | "_count")),
                    _ => suffix == Some(""),
                }
            });
            let (family, _) = family.unwrap_or_else(|| panic!("{line}: no family has such samples"));
            assert!(helped.contains(family), "{family} has no help");
            let value = value.parse().unwrap_or_else(|_| panic!("{line}: no number"));
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} is there twice");
        }
    }
    check_histograms(&samples);
    samples
}

/// Checks that buckets rise, and that the last one has everything.
fn check_histograms(samples: &Samples) {
    let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (series, value) in samples.iter().filter(|(series, _)| series.contains("_bucket{")) {
        let (before, after) = series.split_once("le=\"").expect("a bucket has a bound");
        let (bound, after) = after.split_once('"').unwrap();
        let bound = bound.parse().expect("a bound is a number");
        let labels = format!("{before}{}", after.trim_start_matches(','));
        buckets.entry(labels.replace("_bucket{", "_count{")).or_default().push((bound, *value));
    }
    assert!(!buckets.is_empty());
    for (count, mut of_series) in buckets {
        of_series.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(of_series.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{count}: {of_series:?}");
        let (bound, last) = *of_series.last().unwrap();
        assert!(bound.is_infinite() && Some(&last) == samples.get(&count), "{count}: {of_series:?}");
    }
}

const VOLUME: &str = "pool=\"p\",volume=\"v\"";

fn serve(scene: &Scene) -> Server {
    scene.serve(
        "[pool.p]\ncontrol = \"facade\"\nslo_window = \"50ms\"
        [volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"16MiB\"
        slo = [{ up_to = \"100000iops\", read = \"20ms\", write = \"40ms\" }]
        faults = [{ on = \"trim\", every = 2, error = \"EIO\" }]
        [pool.q]\ncontrol = \"none\"
        [volume.w]\npool = \"q\"\nbackend = \"memory\"\nsize = \"1MiB\"\n",
    )
}

/// Sends 10 reads, 7 writes, 3 flushes, 4 trims (2 of which fail), 2 zeroes, 1 cache.
fn known_requests(client: &mut RawClient) {
    for _ in 0..10 {
        client.read(0, 4096);
    }
    for _ in 0..7 {
        client.write(8192, &bytes(1, 10_000));
    }
    for _ in 0..3 {
        client.flush();
    }
    for _ in 0..4 {
        client.ask(command::TRIM, Flags::NONE, 0, 65_536, &[]);
    }
    for _ in 0..2 {
        assert_eq!(client.ask(command::WRITE_ZEROES, Flags::NONE, 0, 1000, &[]).error, 0);
    }
    assert_eq!(client.ask(command::CACHE, Flags::NONE, 0, 4096, &[]).error, 0);
}

#[test]
fn metrics_parse_and_have_every_family() {
    let scene = Scene::new();
    let server = serve(&scene);
    let mut client = RawClient::connect(&server, "v");
    known_requests(&mut client);
    let samples = wait_for_windows(&server);
    for series in [
        format!("weir_slo_target_seconds{{{VOLUME}}}"),
        format!("weir_slo_windows_total{{{VOLUME},verdict=\"met\"}}"),
        format!("weir_slo_windows_total{{{VOLUME},verdict=\"missed\"}}"),
        "weir_pool_depth_target{pool=\"p\"}".to_owned(),
        "weir_pool_in_flight{pool=\"p\"}".to_owned(),
        "weir_pool_in_flight{pool=\"q\"}".to_owned(),
        "weir_pool_in_flight_peak{pool=\"p\"}".to_owned(),
        "weir_pool_queued{pool=\"q\"}".to_owned(),
        "weir_connections".to_owned(),
    ] {
        assert!(samples.contains_key(&series), "{series} in {samples:#?}");
    }
    for stage in ["queued", "device", "total"] {
        for direction in ["read", "write"] {
            let series = format!("weir_{stage}_seconds_count{{{VOLUME},direction=\"{direction}\"}}");
            assert!(samples.contains_key(&series), "{series}");
        }
    }
    assert!(
        !samples.contains_key("weir_pool_depth_target{pool=\"q\"}"),
        "without control there is no target"
    );
}

/// The metrics once a window has closed.
fn wait_for_windows(server: &Server) -> Samples {
    let mut samples = Samples::new();
    wait_until("a window has closed", || {
        samples = parse(&get(&server.metrics));
        samples.iter().any(|(series, value)| series.starts_with("weir_slo_windows_total{") && *value > 0.0)
            && samples.contains_key("weir_pool_in_flight_peak{pool=\"p\"}")
    });
    samples
}

#[test]
fn metrics_agree_with_the_requests_that_were_made_and_only_rise() {
    let scene = Scene::new();
    let server = serve(&scene);
    let mut client = RawClient::connect(&server, "v");
    let mut before = Samples::new();
    for turn in 1..=3_u32 {
        known_requests(&mut client);
        let samples = parse(&get(&server.metrics));
        let of = |name: &str, labels: &str| samples[&format!("weir_{name}{{{VOLUME},{labels}}}")];
        let times = |n: u32| f64::from(n * turn);
        for (op, count, length, errors) in [
            ("read", 10, 4096, 0),
            ("write", 7, 10_000, 0),
            ("flush", 3, 0, 0),
            ("trim", 4, 65_536, 2),
            ("write_zeroes", 2, 1000, 0),
            ("cache", 1, 4096, 0),
            ("block_status", 0, 0, 0),
        ] {
            let op_label = format!("op=\"{op}\"");
            assert_equal(of("requests_total", &op_label), times(count), op);
            assert_equal(of("request_bytes_total", &op_label), times((count - errors) * length), op);
            assert_equal(of("request_errors_total", &op_label), times(errors), op);
        }
        for stage in ["queued", "device", "total"] {
            let count = format!("{stage}_seconds_count");
            assert_equal(of(&count, "direction=\"read\""), times(10), stage);
            assert_equal(of(&count, "direction=\"write\""), times(7), stage);
        }
        let sum = |stage: &str| of(&format!("{stage}_seconds_sum"), "direction=\"read\"");
        assert!(
            sum("queued") + sum("device") <= sum("total") + 1e-9,
            "the parts are no longer than the whole"
        );
        assert_equal(samples["weir_connections"], 1.0, "connections");
        assert_equal(samples["weir_pool_in_flight{pool=\"p\"}"], 0.0, "in flight");
        for (series, value) in
            before.iter().filter(|(series, _)| series.contains("_total{") || series.contains("_bucket{"))
        {
            assert!(samples[series] >= *value, "{series} has fallen");
        }
        before = samples;
    }
}

fn assert_equal(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 1e-6, "{what}: {found} where {expected} is expected");
}

#[test]
fn the_target_in_force_follows_the_mix_of_reads_and_writes() {
    let scene = Scene::new();
    let server = serve(&scene);
    let mut client = RawClient::connect(&server, "v");
    let series = format!("weir_slo_target_seconds{{{VOLUME}}}");
    let mut target = |write: bool, wanted: f64| {
        wait_until("the target is that of the mix", || {
            if write {
                client.write(0, &[1; 512])
            } else {
                drop(client.read(0, 512))
            }
            (parse(&get(&server.metrics))[&series] - wanted).abs() < 1e-6
        });
    };
    target(false, 0.020);
    target(true, 0.040);
}

#[test]
fn status_and_top_print_a_row_for_each_volume() {
    let scene = Scene::new();
    let server = serve(&scene);
    known_requests(&mut RawClient::connect(&server, "v"));
    wait_for_windows(&server);
    let url = server.metrics.replace("/metrics", "");
    let rows = |out: &str, name: &str| out.lines().filter(|line| line.trim_start().starts_with(name)).count();
    let status = Program::weir().args("status --server").arg(&url).run();
    for column in ["volume", "offered IO/s", "mean", "p99", "SLO", "depth"] {
        assert!(status.contains(column), "{column} in\n{status}");
    }
    // The volume with a promise has a second row: how well that was kept.
    assert_eq!((rows(&status, "v "), rows(&status, "w ")), (2, 1), "{status}");
    let top = Program::weir().args("top --times 2 --server").arg(&url).run();
    assert_eq!((rows(&top, "v "), rows(&top, "w ")), (4, 2), "{top}");
    let Outcome { code, out, log } =
        Program::weir().args("status --server").arg("http://127.0.0.1:1").outcome();
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(log.contains("http://127.0.0.1:1") && log.lines().count() == 1, "{log}");
}
