//! Pools under Maestro's law: totals, targets and priorities.

use weir_model::{Bandwidth, Iops, Percentile, Priority, Span, Target};

use super::super::Config;
use super::{maestro, parse, problems, report};

/// Lines 1 to 7. The text after them begins in line 8.
const HEAD: &str = "[listen]
nbd = [\"127.0.0.1:10809\"]
[pool.p]
control = \"maestro\"
[pool.f]
control = \"facade\"
[pool.n]
";

/// A volume of this pool and name, with one more line.
fn volume(pool: &str, name: &str, line: &str) -> String {
    format!("[volume.{name}]\npool = \"{pool}\"\nbackend = \"memory\"\nsize = \"1MiB\"\n{line}\n")
}

/// The volume `v` in the pool `p`, with one more line.
fn with(line: &str) -> Config {
    parse(&format!("{HEAD}{}", volume("p", "v", line)))
}

/// Asserts that the volume `v` with this additional line is refused with this message.
fn assert_refused(pool: &str, line: &str, expected: &str) {
    let found = problems(&format!("{HEAD}control = \"none\"\n{}", volume(pool, "v", line)));
    assert_eq!(found, [format!("weir.toml:13: volume.v.{expected}")], "{line}");
}

/// The pool `p` with these additional lines, and two volumes in it.
fn pool(lines: &str) -> String {
    let head = HEAD.replace("\"maestro\"\n", &format!("\"maestro\"\n{lines}\n"));
    format!("{head}{}{}", volume("p", "v", ""), volume("p", "w", ""))
}

#[test]
fn a_target_is_one_metric() {
    let target = |line: &str| with(&format!("target = {{ {line} }}")).volumes["v"].target.value;
    let ms = Span::from_millis;
    let p = |tenths, latency| Some(Target::Percentile(Percentile::from_tenths(tenths).unwrap(), latency));
    assert_eq!(target("latency = \"10ms\""), Some(Target::Latency(ms(10))));
    assert_eq!(
        target("throughput = \"20MiB/s\""),
        Some(Target::Throughput(Bandwidth::new(20 << 20).unwrap()))
    );
    for rate in ["900", "900.0", "\"900iops\""] {
        assert_eq!(target(&format!("iops = {rate}")), Some(Target::Rate(Iops::new(900.0).unwrap())));
    }
    assert_eq!(target("p95 = \"20ms\""), p(950, ms(20)));
    assert_eq!(target("p50 = \"20ms\""), p(500, ms(20)));
    for tenths in ["\"p99.9\"", "p99.9"] {
        assert_eq!(target(&format!("{tenths} = \"20ms\"")), p(999, ms(20)), "{tenths}");
    }
    assert_eq!(with("").volumes["v"].target.value, None);
}

#[test]
fn a_target_of_zero_of_two_metrics_or_of_none_is_refused() {
    let latency = "accepted: a duration such as \"5ms\", from 1us to 1h";
    let rate = "accepted: a rate above zero such as 900 or \"900iops\"";
    let metrics = "accepted: latency, throughput, iops, or a percentile from p0.1 to p99.9, such as p95";
    for (line, expected) in [
        ("latency = \"0s\"", &*format!("target.latency: found \"0s\"; {latency}")),
        ("p95 = \"0ms\"", &format!("target.p95: found \"0ms\"; {latency}")),
        ("p99.9 = 5", &format!("target.p99.9: found 5; {latency}")),
        ("iops = 0", &format!("target.iops: found 0; {rate}")),
        ("iops = inf", &format!("target.iops: found inf; {rate}")),
        ("iops = nan", &format!("target.iops: found nan; {rate}")),
        ("iops = \"0iops\"", &format!("target.iops: found \"0iops\"; {rate}")),
        (
            "throughput = \"0B/s\"",
            "target.throughput: found \"0B/s\"; accepted: a bandwidth such as \"100MiB/s\", above zero and below 16777216TiB/s",
        ),
        ("iops = 900, latency = \"5ms\"", "target: found iops and latency; accepted: exactly one metric"),
        ("", "target: found no metric; accepted: exactly one metric"),
        ("p100 = \"5ms\"", &format!("target.p100: found an unknown metric; {metrics}")),
        ("p0 = \"5ms\"", &format!("target.p0: found an unknown metric; {metrics}")),
        ("\"p99.99\" = \"5ms\"", &format!("target.\"p99.99\": found an unknown metric; {metrics}")),
        ("mean = \"5ms\"", &format!("target.mean: found an unknown metric; {metrics}")),
    ] {
        assert_refused("p", &format!("target = {{ {line} }}"), expected);
    }
    assert_refused(
        "p",
        "target = \"10ms\"",
        "target: found \"10ms\"; accepted: a table with one metric: { latency = \"10ms\" }, \
         { p95 = \"20ms\" } or another percentile, { throughput = \"20MiB/s\" } or { iops = 900 }",
    );
}

#[test]
fn a_priority_is_a_number_above_zero() {
    let priority = |line: &str| with(line).volumes["v"].priority.value;
    assert_eq!(Some(priority("priority = 4")), Priority::new(4.0));
    assert_eq!(Some(priority("priority = 0.5")), Priority::new(0.5));
    assert_eq!(Some(priority("")), Priority::new(1.0));
    for wrong in ["0", "-1", "-0.5", "inf", "nan", "\"4\""] {
        let expected = format!("priority: found {wrong}; accepted: a number above zero such as 4");
        assert_refused("p", &format!("priority = {wrong}"), &expected);
    }
}

#[test]
fn what_belongs_to_another_law_is_refused() {
    let slo = "slo = [{ up_to = \"300iops\", read = \"10ms\", write = \"15ms\" }]";
    assert_refused(
        "p",
        slo,
        "slo: found an slo in pool \"p\", whose control = \"maestro\" knows targets instead; \
         accepted: nothing; give it a target, such as { latency = \"10ms\" }",
    );
    for (pool, control) in [("f", "facade"), ("n", "none")] {
        for (key, line) in [("target", "target = { iops = 9 }"), ("priority", "priority = 4")] {
            let expected = format!(
                "{key}: found a {key} in pool \"{pool}\", whose control = \"{control}\" knows none; \
                 accepted: nothing, or a pool with control = \"maestro\" or \"promise\""
            );
            assert_refused(pool, line, &expected);
        }
    }
    let of = |line: &str, of: &str| {
        let found = problems(&pool(line));
        let key = line.split(' ').next().unwrap();
        let expected = format!(
            "weir.toml:5: pool.p.{key}: found a setting of control = {of}; accepted: nothing, or control = {of}"
        );
        assert_eq!(found, [expected]);
    };
    for line in ["growth = 0.1", "control_period = \"50ms\"", "max_depth = 9"] {
        of(line, "\"facade\"");
    }
    of("background_share = 0.1", "\"facade\" or \"promise\"");
    let text = format!("{HEAD}total_concurrency = 9\n{}", volume("p", "v", ""));
    let lines = problems(&text);
    assert!(
        lines[0].contains("pool.n.total_concurrency: found a setting of control = \"maestro\""),
        "{lines:?}"
    );
}

#[test]
fn a_total_is_a_number_of_requests_of_disks_or_found_by_probing() {
    let total = |line: &str| {
        maestro(&parse(&pool(line)).pools["p"]).total_concurrency.value.requests().map(u32::from)
    };
    assert_eq!(total("total_concurrency = 160"), Some(160));
    assert_eq!(total("total_concurrency = { disks = 40 }"), Some(160));
    assert_eq!(total("total_concurrency = \"auto\""), None);
    assert_eq!(total(""), None, "nothing need be known");
    let accepted = "accepted: a number of requests from 1 to 65536, { disks = 40 } for 4 a disk, or \"auto\"";
    for (wrong, found) in [
        ("0", "0"),
        ("-4", "-4"),
        ("65537", "65537"),
        ("1.5", "1.5"),
        ("\"160\"", "\"160\""),
        ("{ disks = 0 }", "a table"),
        ("{ disk = 4 }", "a table"),
        ("{ disks = 4, more = 1 }", "a table"),
    ] {
        let expected = format!("weir.toml:5: pool.p.total_concurrency: found {found}; {accepted}");
        assert_eq!(problems(&pool(&format!("total_concurrency = {wrong}"))), [expected], "{wrong}");
    }
}

#[test]
fn a_total_that_leaves_a_volume_without_a_request_is_refused() {
    assert_eq!(
        problems(&pool("total_concurrency = 1")),
        ["weir.toml:5: pool.p.total_concurrency: found 1 requests for 2 volumes; \
          accepted: at least 2, one for each volume"]
    );
    parse(&pool("total_concurrency = 2"));
}

#[test]
fn where_listeners_are_ports_each_needs_a_request_of_each_volume() {
    let two = |lines: &str| {
        pool(&format!("ports = \"listeners\"\n{lines}")).replace(":10809\"", ":10809\", \"127.0.0.1:10810\"")
    };
    assert_eq!(
        problems(&two("total_concurrency = 3")),
        ["weir.toml:6: pool.p.total_concurrency: found 3 requests for 2 volumes at 2 ports; \
          accepted: at least 4, one for each volume at each port"]
    );
    parse(&two("total_concurrency = 4"));
    assert_eq!(
        problems(&format!("{}max_concurrency = 1\n", two("total_concurrency = 4"))),
        ["weir.toml:20: volume.w.max_concurrency: found 1; accepted: at least 2, one at each port"]
    );
    parse(&format!("{}max_concurrency = 2\n", two("")));
}

#[test]
fn the_report_names_what_is_in_force_under_this_law() {
    let text = pool("total_concurrency = { disks = 40 }")
        .replace("[volume.w]\n", "[volume.w]\ntarget = { p95 = \"20ms\" }\npriority = 4\n");
    let report = report(&text);
    let line = |key: &str| {
        let line = report.lines().find(|line| line.split_whitespace().next() == Some(key));
        line.unwrap_or_else(|| panic!("{key} in\n{report}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("pool.p.control"), "pool.p.control maestro line 4");
    assert_eq!(
        line("pool.p.total_concurrency"),
        "pool.p.total_concurrency 160, 4 for each of 40 disks line 5"
    );
    assert!(line("pool.p.control_interval").starts_with("pool.p.control_interval 2s default: as in Maestro"));
    assert_eq!(line("volume.w.target"), "volume.w.target p95 20ms line 15");
    assert_eq!(line("volume.w.priority"), "volume.w.priority 4 line 16");
    assert!(line("volume.v.target").contains("- default: nothing is promised"));
    assert!(!report.contains("volume.w.slo") && !report.contains("pool.p.growth"), "{report}");
}
