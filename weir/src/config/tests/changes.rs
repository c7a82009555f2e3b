//! Values that are set while serving: they are judged as the file is, and in force together with the rest of
//! it.

use std::path::Path;

use weir_api::Change;
use weir_model::{Iops, Priority, Span, Target};

use super::super::{Config, Source};
use super::maestro;

const FILE: &str = "[listen]
nbd = [\"127.0.0.1:10809\"]
[pool.p]
control = \"maestro\"
total_concurrency = 8
[volume.v]
pool = \"p\"
backend = \"memory\"
size = \"1MiB\"
target = { latency = \"10ms\" }
max_iops = \"500iops\"
[volume.\"w.old\"]
pool = \"p\"
backend = \"memory\"
size = \"1MiB\"
";

fn source() -> Source {
    Source::of(Path::new("weir.toml"), FILE.to_owned())
}

fn asked(table: &str, name: &str, set: &[(String, String)]) -> Change {
    Change { table: table.to_owned(), name: name.to_owned(), set: set.to_vec() }
}

/// `source` with this change, such as `volume v priority=4`.
fn change(source: &Source, words: &str) -> Result<(Source, Config), String> {
    let mut words = words.split(' ');
    let (table, name) = (words.next().unwrap(), words.next().unwrap());
    let set: Vec<_> = words
        .map(|word| word.split_once('=').unwrap())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let changed = source.with(&[asked(table, name, &set)]).map_err(|error| error.to_string())?;
    let config = changed.config().map_err(|error| error.to_string())?;
    Ok((changed, config))
}

fn set(words: &str) -> Config {
    change(&source(), words).unwrap_or_else(|error| panic!("{error}")).1
}

#[test]
fn what_is_set_is_in_force_and_the_rest_stays() {
    let config = set("volume v priority=4");
    let volume = &config.volumes["v"];
    assert_eq!(Some(volume.priority.value), Priority::new(4.0));
    assert_eq!(volume.target.value, Some(Target::Latency(Span::from_millis(10))));
    assert_eq!(
        Config { volumes: set("pool p total_concurrency=8").volumes, ..config },
        source().config().unwrap()
    );
}

#[test]
fn every_key_that_can_be_set_takes_what_the_file_takes() {
    let target = |words: &str| set(&format!("volume v {words}")).volumes["v"].target.value;
    assert_eq!(target("target.latency=5ms"), Some(Target::Latency(Span::from_millis(5))));
    let rate = Some(Target::Rate(Iops::new(400.0).unwrap()));
    assert_eq!((target("target.iops=400"), target("target.iops=400iops")), (rate, rate));
    assert!(matches!(target("target.p99.9=5ms"), Some(Target::Percentile(p, _)) if p.tenths() == 999));
    assert!(matches!(target("target.throughput=20MiB/s"), Some(Target::Throughput(_))));
    assert_eq!(target("target={iops=400}"), rate);
    assert_eq!(target("target=none"), None);
    let limits = &set("volume w.old max_iops=9iops max_bandwidth=1MiB/s max_concurrency=3").volumes["w.old"];
    assert_eq!(limits.max_iops.value, Iops::new(9.0));
    assert!(limits.max_bandwidth.value.is_some() && limits.max_concurrency.value.is_some());
    assert_eq!(set("volume v max_iops=none").volumes["v"].max_iops.value, None);
    let total =
        |words: &str| maestro(&set(words).pools["p"]).total_concurrency.value.requests().map(u32::from);
    assert_eq!(total("pool p total_concurrency=80"), Some(80));
    assert_eq!(total("pool p total_concurrency={disks=4}"), Some(16));
    assert_eq!(total("pool p total_concurrency=auto"), None);
}

#[test]
fn changes_add_up_and_the_last_of_a_key_counts() {
    let (first, _) = change(&source(), "volume v priority=4 target.iops=100").unwrap();
    let (second, _) = change(&first, "volume w.old priority=2").unwrap();
    let (_, config) = change(&second, "volume v target.iops=200").unwrap();
    let volume = &config.volumes["v"];
    assert_eq!(Some(volume.priority.value), Priority::new(4.0));
    assert_eq!(volume.target.value, Iops::new(200.0).map(Target::Rate));
    assert_eq!(Some(config.volumes["w.old"].priority.value), Priority::new(2.0));
}

#[test]
fn what_is_wrong_is_said_in_one_line_as_it_would_be_of_the_file() {
    let settable = "found a key that cannot be changed while serving; accepted: \
                    target, priority, max_iops, max_bandwidth, max_concurrency";
    for (words, expected) in [
        ("volume v priority=0", "volume.v.priority: found 0; accepted: a number above zero such as 4"),
        (
            "volume v priority=high",
            "volume.v.priority: found \"high\"; accepted: a number above zero such as 4",
        ),
        (
            "volume v target.latency=0s",
            "volume.v.target.latency: found \"0s\"; accepted: a duration such as \"5ms\", from 1us to 1h",
        ),
        (
            "volume v target.latency=5ms target.iops=9",
            "volume.v.target: found iops and latency; accepted: exactly one metric",
        ),
        ("volume x priority=4", "volume.x: found no such volume; accepted: \"v\", \"w.old\""),
        ("pool x total_concurrency=4", "pool.x: found no such pool; accepted: \"p\""),
        (
            "pool p total_concurrency=1",
            "pool.p.total_concurrency: found 1 requests for 2 volumes; accepted: at least 2, one for each volume",
        ),
        (
            "pool p control=none",
            "pool.p.control: found a key that cannot be changed while serving; accepted: total_concurrency, threshold",
        ),
        ("volume v size=1GiB", &format!("volume.v.size: {settable}")),
        ("volume v slo=none", &format!("volume.v.slo: {settable}")),
        ("volume v priority.x=1", &format!("volume.v.priority.x: {settable}")),
        ("volume v =1", &format!("volume.v.: {settable}")),
        ("volume v priority=1 priority=2", "volume.v.priority: found a second time; accepted: each key once"),
        ("volume v priority=", "volume.v.priority: found \"\"; accepted: a value, on one line"),
        (
            "volume v priority=1\npool=2",
            "volume.v.priority: found \"1\\npool=2\"; accepted: a value, on one line",
        ),
        (
            "listen x nbd=1",
            "listen: found a table that cannot be changed while serving; accepted: \"volume\", \"pool\"",
        ),
    ] {
        assert_eq!(change(&source(), words).unwrap_err(), *expected, "{words}");
    }
}

#[test]
fn a_value_cannot_be_more_than_a_value() {
    for text in ["1#", "4}", "{iops=1}#x", "\"", "'", "[", "1,", "\\"] {
        let error = change(&source(), &format!("volume v priority={text}")).unwrap_err();
        assert!(
            error.starts_with("volume.v.priority: found ") && error.lines().count() == 1,
            "{text}: {error}"
        );
        let error = change(&source(), &format!("volume v target.iops={text}")).unwrap_err();
        assert!(error.starts_with("volume.v.target.iops: found "), "{text}: {error}");
    }
}

#[test]
fn a_value_of_any_depth_is_taken_or_refused_in_one_line() {
    for depth in 1..200 {
        for (open, close) in [("[", "]"), ("{a=", "}"), ("[{a=", "}]"), ("[", ""), ("{a=", "")] {
            let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            for key in ["target.latency", "target", "priority"] {
                let error = change(&source(), &format!("volume v {key}={nested}")).unwrap_err();
                let is_a_line = error.starts_with("volume.v.") && error.lines().count() == 1;
                assert!(is_a_line && error.len() < 300, "{key}={nested}: {error}");
            }
        }
    }
    let nested = change(&source(), &format!("volume v target.latency={}", "[".repeat(9))).unwrap_err();
    let line =
        "volume.v.target.latency: found [[[[[[[[[; accepted: arrays and tables in each other at most 8 deep";
    assert_eq!(nested, line);
}

#[test]
fn what_is_set_is_bounded_in_length_and_number() {
    let long = change(&source(), &format!("volume v priority={}", "1".repeat(1025))).unwrap_err();
    assert_eq!(long, "volume.v.priority: found 1025 bytes; accepted: a value of at most 1024 bytes");
    let many: Vec<_> = (0..65).map(|i| (format!("target.p{i}"), "1ms".to_owned())).collect();
    let many = source().with(&[asked("volume", "v", &many)]).map(drop).unwrap_err().to_string();
    assert_eq!(many, "the change: found 65 keys; accepted: at most 64 at a time");
}

#[test]
fn changes_of_several_tables_are_judged_together_and_each_table_is_named_once() {
    let set = |key: &str, value: &str| [(key.to_owned(), value.to_owned())];
    let both = [
        asked("volume", "v", &set("priority", "4")),
        asked("volume", "w.old", &set("max_iops", "100iops")),
        asked("pool", "p", &set("total_concurrency", "2")),
    ];
    let config = source().with(&both).unwrap().config().unwrap();
    assert_eq!(config.volumes["v"].priority.value, Priority::new(4.0).unwrap());
    assert_eq!(config.volumes["w.old"].max_iops.value, Iops::new(100.0));
    let wrong = [
        asked("volume", "v", &set("priority", "0")),
        asked("volume", "w.old", &set("max_iops", "none")),
        asked("pool", "p", &set("total_concurrency", "1")),
    ];
    let problems = source().with(&wrong).unwrap().config().unwrap_err().to_string();
    assert_eq!(problems.lines().count(), 2, "both are named: {problems}");
    let again =
        [asked("pool", "p", &set("total_concurrency", "2")), asked("pool", "p", &set("threshold", "1ms"))];
    let refused = source().with(&again).map(drop).unwrap_err().to_string();
    assert_eq!(refused, "pool.p: found a second time; accepted: each volume and each pool once");
    for none in [&[][..], &[asked("volume", "v", &[])]] {
        let refused = source().with(none).map(drop).unwrap_err().to_string();
        assert!(refused.starts_with("the change: found no key; accepted: "), "{refused}");
    }
}

#[test]
fn names_with_strange_characters_are_refused_in_one_line() {
    let set = [("priority".to_owned(), "2".to_owned())];
    for (table, name, key) in [("a\nb", "v", "priority"), ("volume", "v\n\u{1b}[2J", "priority")] {
        let refused = source().with(&[asked(table, name, &set)]).and_then(|changed| changed.config());
        let error = refused.map(drop).unwrap_err().to_string();
        assert!(!error.contains(char::is_control), "{table} {name} {key}: {error:?}");
    }
    let key = [(format!("\u{1b}\n{}", "x".repeat(10_000)), "2".to_owned())];
    let error = source().with(&[asked("volume", "v", &key)]).map(drop).unwrap_err().to_string();
    assert!(!error.contains(char::is_control) && error.len() < 300, "{error:?}");
}

#[test]
fn without_a_file_there_is_nothing_to_read_again_and_one_sentence_says_so() {
    let source = Source::of_arguments("[throttle]\nthreshold = \"15ms\"\n".to_owned());
    let refused = source.read_again().unwrap_err().to_string();
    assert!(refused.starts_with("there is no file to read again"), "{refused}");
    assert!(!refused.contains("arguments") && !refused.contains("accepted"), "{refused}");
}
