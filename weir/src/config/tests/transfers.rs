//! The file of a coordinator of transfers: what is required, what the defaults are, and what is refused.

use std::path::Path;

use bytesize::ByteSize;
use weir_model::Bandwidth;
use weir_transfer::{Class, PolicyName};

use super::super::transfers::{KEYS, NODE_KEYS, TRANSFERS_KEYS};
use super::super::{ConfigError, Source, TransfersConfig, transfers_report};

/// A file with every key.
const FULL: &str = r#"[transfers]
policy = "sm-r3"
state = "/srv/state"
address = "backup.example:9830"
ca = "/etc/weir/ca.pem"
certificate = "/etc/weir/backup.pem"
key = "/etc/weir/backup.key"
metrics = "127.0.0.1:0"
classes = ["low", "high"]
rate = "1MiB/s"
[node.array]
url = "file:///srv/array"
credentials = "array.key"
peak_read = "300MB/s"
peak_write = "120MB/s"
class = "high"
cost = 2
capacity = "2TB"
domain = "rack1"
sensor = "http://array.example:9813/metrics#/srv/array"
[node.tape]
url = "sftp://weir@tape.example:2222/objects"
"#;

/// The shortest file.
const SHORT: &str = "[transfers]\n[node.array]\nurl = \"file:///srv/array\"\n";

const CLASSES: &str = "accepted: an array of 1 to 16 names, the least important class first";

fn read(text: &str) -> Result<TransfersConfig, ConfigError> {
    let source = Source::of(Path::new("transfers.toml"), text.to_owned());
    assert_eq!(source.is_of_transfers(), text.contains("transfers"));
    source.transfers()
}

fn transfers(text: &str) -> TransfersConfig {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The lines of the message for a bad file, without the name of the file.
fn problems(text: &str) -> Vec<String> {
    let message = read(text).expect_err(text).to_string();
    message.lines().map(|line| line.strip_prefix("transfers.toml:").unwrap().to_owned()).collect()
}

/// Asserts that the full file with `new` in the place of `old` is refused with this one line.
fn assert_refused(old: &str, new: &str, expected: &str) {
    assert!(FULL.contains(old), "{old}");
    assert_eq!(problems(&FULL.replacen(old, new, 1)), [expected], "{new}");
}

/// The row of the report for a key: the value, and its origin.
fn row(report: &str, key: &str) -> String {
    let row = report.lines().find(|line| line.split_whitespace().next() == Some(key));
    let row = row.unwrap_or_else(|| panic!("{key} in\n{report}"));
    row.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_key_can_be_set() {
    let config = transfers(FULL);
    assert_eq!(config.policy.value, PolicyName::SmR3);
    assert_eq!(config.state.value, Path::new("/srv/state"));
    assert_eq!(config.address.value.as_ref().unwrap().to_string(), "backup.example:9830");
    assert_eq!(config.tls.as_ref().unwrap().key.value, Path::new("/etc/weir/backup.key"));
    assert_eq!(config.metrics.value.to_string(), "127.0.0.1:0");
    assert_eq!(config.rate.value.get(), 1 << 20);
    let names: Vec<_> = config.classes.iter().map(|class| &*class.value).collect();
    assert_eq!(names, ["low", "high"]);
    let node = &config.nodes["array"];
    assert_eq!(node.url.value.to_string(), "file:///srv/array");
    assert_eq!(node.credentials.value.as_deref(), Some(Path::new("array.key")));
    assert_eq!(node.peak_read.value, Bandwidth::new(300_000_000));
    assert_eq!(node.peak_write.value, Bandwidth::new(120_000_000));
    assert_eq!((node.class.value, config.class_name(Class(1))), (Some(Class(1)), "high"));
    assert_eq!((node.cost.value, node.capacity.value), (2, Some(ByteSize::tb(2))));
    assert_eq!(node.domain.value, "rack1");
    let sensor = node.sensor.value.as_ref().unwrap();
    assert_eq!((sensor.authority(), sensor.choice()), ("array.example:9813", Some("/srv/array")));
    assert_eq!(config.nodes["tape"].class.value, None);
}

#[test]
fn the_url_of_a_node_is_enough_and_the_report_says_why_the_rest_is_as_it_is() {
    let config = transfers(SHORT);
    assert!(config.tls.is_none());
    let report = transfers_report(&config).to_string();
    for (key, expected) in [
        ("transfers.policy", "deadline default: as many transfers at a node as it serves in time"),
        ("transfers.state", "/var/lib/weir/transfers default: where services keep state"),
        ("transfers.address", "- default: only clients of this machine are served"),
        ("transfers.metrics", "127.0.0.1:9812 default: beside a gateway's 9810 and an agent's 9811"),
        ("transfers.classes[0]", "bronze default: three are enough for most"),
        ("transfers.classes[1]", "silver default: three are enough for most"),
        ("transfers.classes[2]", "gold default: three are enough for most"),
        ("transfers.rate", "10MB/s default: about ten such transfers fit on one disk"),
        ("node.array.url", "file:///srv/array line 3"),
        ("node.array.credentials", "- default: no secret is shown"),
        ("node.array.peak_read", "- default: not known until it is measured"),
        ("node.array.peak_write", "- default: not known until it is measured"),
        ("node.array.class", "- default: transfers of every class"),
        ("node.array.cost", "0 default: no bound leaves it out"),
        ("node.array.capacity", "- default: as much as the storage takes"),
        ("node.array.domain", "array default: it fails on its own"),
        ("node.array.sensor", "- default: nothing is known of the loads of others"),
    ] {
        assert_eq!(row(&report, key), expected, "{report}");
    }
    assert_eq!(report.lines().count(), 17, "{report}");
}

#[test]
fn the_report_names_the_line_of_every_value() {
    let report = transfers_report(&transfers(FULL)).to_string();
    for (key, expected) in [
        ("transfers.policy", "sm-r3 line 2"),
        ("transfers.address", "backup.example:9830 line 4"),
        ("transfers.certificate", "/etc/weir/backup.pem line 6"),
        ("transfers.classes[1]", "high line 9"),
        ("transfers.rate", "1MiB/s line 10"),
        ("node.array.credentials", "array.key line 13"),
        ("node.array.peak_read", "300MB/s line 14"),
        ("node.array.class", "high line 16"),
        ("node.array.cost", "2 line 17"),
        ("node.array.capacity", "2TB line 18"),
        ("node.array.domain", "rack1 line 19"),
        ("node.array.sensor", "http://array.example:9813/metrics#/srv/array line 20"),
        ("node.tape.url", "sftp://weir@tape.example:2222/objects line 22"),
    ] {
        assert_eq!(row(&report, key), expected, "{report}");
    }
}

#[test]
fn a_policy_that_compares_with_peaks_accepts_nodes_without_them() {
    for policy in PolicyName::ALL {
        let text = SHORT.replace("[transfers]", &format!("[transfers]\npolicy = \"{policy}\""));
        assert_eq!(transfers(&text).policy.value, policy);
    }
}

#[test]
fn a_table_that_is_missing_is_one_line() {
    let nodes = "1: transfers: found nothing; accepted: a table [transfers]; each of its keys has a default";
    assert_eq!(problems("[node.array]\nurl = \"file:///srv/array\"\n"), [nodes]);
    let least = "accepted: at least one table [node.NAME]";
    assert_eq!(problems("[transfers]\n"), [format!("1: node: found nothing; {least}")]);
    let tables = "accepted: 1 to 1000 tables [node.NAME]";
    assert_eq!(problems("[transfers]\n[node]\n"), [format!("2: node: found 0 nodes; {tables}")]);
    let many: String = (0..1001).map(|i| format!("[node.n{i}]\nurl = \"file:///srv/{i}\"\n")).collect();
    assert_eq!(problems(&format!("{many}[transfers]\n")), [format!("1: node: found 1001 nodes; {tables}")]);
    assert_eq!(
        transfers(&format!("[transfers]\n{}", many.replace("[node.n0]\nurl = \"file:///srv/0\"\n", "")))
            .nodes
            .len(),
        1000
    );
    let named = "1: node: found 5; accepted: tables [node.NAME]";
    assert_eq!(problems("node = 5\n[transfers]\n"), [named]);
    let keys = "url, credentials, peak_read, peak_write, class, cost, capacity, domain, sensor";
    let table = format!("3: node.a: found 5; accepted: a table with the keys {keys}");
    assert_eq!(problems("[transfers]\n[node]\na = 5\n"), [table]);
    let own = "policy, state, address, ca, certificate, key, metrics, classes, rate";
    let table = format!("1: transfers: found 5; accepted: a table with the keys {own}");
    assert_eq!(problems("transfers = 5\n[node.a]\nurl = \"file:///srv/a\"\n"), [table]);
}

#[test]
fn a_wrong_value_of_the_coordinator_is_one_line() {
    let (rate, directory) = (
        "accepted: a bandwidth such as \"100MiB/s\", above zero and below 16777216TiB/s",
        "accepted: the absolute path of a directory, at most 90 bytes",
    );
    let long = format!("/{}", "s".repeat(90));
    let beginning = format!("/{}", "s".repeat(58));
    for (old, new, expected) in [
        (
            "\"sm-r3\"",
            "\"sm-r4\"",
            "2: transfers.policy: found \"sm-r4\"; accepted: one of \"rr\", \"static\", \"sm-r1\", \"sm-r2\", \
             \"sm-r3\", \"deadline\"",
        ),
        ("\"/srv/state\"", "\"state\"", &format!("3: transfers.state: found \"state\"; {directory}")),
        ("/srv/state", &long, &format!("3: transfers.state: found \"{beginning}…; {directory}")),
        (
            "backup.example:9830",
            "backup.example",
            "4: transfers.address: found \"backup.example\"; accepted: an address or a host name, with a port, \
             such as \"backup.example:9830\"",
        ),
        (
            "\"/etc/weir/ca.pem\"",
            "\"ca.pem\"",
            "5: transfers.ca: found \"ca.pem\"; accepted: the absolute path of a PEM file",
        ),
        (
            "127.0.0.1:0",
            "127.0.0.300:0",
            "8: transfers.metrics: found \"127.0.0.300:0\"; accepted: an address or a host name, with a port, \
             such as \"127.0.0.1:9812\"",
        ),
        ("\"1MiB/s\"", "\"1MiB\"", &format!("10: transfers.rate: found \"1MiB\"; {rate}")),
        ("\"1MiB/s\"", "\"0B/s\"", &format!("10: transfers.rate: found \"0B/s\"; {rate}")),
        (
            "rate = \"1MiB/s\"",
            "name = \"a\"",
            "10: transfers.name: found an unknown key; accepted: policy, state, address, ca, certificate, key, \
             metrics, classes, rate",
        ),
        ("[node.tape]", "[pool.p]\n[node.tape]", "21: pool: found an unknown key; accepted: transfers, node"),
    ] {
        assert_refused(old, new, expected);
    }
}

#[test]
fn the_address_for_other_machines_and_the_certificate_go_together() {
    for (key, line) in [("ca", 4), ("certificate", 5), ("key", 6)] {
        let found = "found nothing; accepted: the absolute path of a PEM file";
        let given = FULL.lines().find(|line| line.starts_with(key)).unwrap();
        assert_refused(&format!("{given}\n"), "", &format!("1: transfers.{key}: {found}"));
        let refused = problems(&FULL.replace("address = \"backup.example:9830\"\n", ""));
        let found = "found a file of transfers.address, which is not there";
        let accepted = "accepted: nothing, or address = \"host:port\"";
        assert!(refused.contains(&format!("{line}: transfers.{key}: {found}; {accepted}")), "{refused:?}");
        assert_eq!(refused.len(), 3, "{refused:?}");
    }
    assert_refused(
        "127.0.0.1:0",
        "backup.example:9830",
        "4: transfers.address: found \"backup.example:9830\"; accepted: an address that is not transfers.metrics",
    );
}

#[test]
fn classes_are_some_names_and_none_is_there_twice() {
    let cases = [
        ("[]", format!("9: transfers.classes: found an empty array; {CLASSES}")),
        ("\"low\"", format!("9: transfers.classes: found \"low\"; {CLASSES}")),
        (
            "[\"high\", \"high\"]",
            "9: transfers.classes[1]: found \"high\"; accepted: each class once".to_owned(),
        ),
        (
            "[\"lo w\", \"high\"]",
            "9: transfers.classes[0]: found \"lo w\"; accepted: 1 to 255 of A-Z a-z 0-9 . _ -".to_owned(),
        ),
        ("[1]", "9: transfers.classes[0]: found 1; accepted: 1 to 255 of A-Z a-z 0-9 . _ -".to_owned()),
    ];
    for (new, expected) in &cases {
        assert_refused("[\"low\", \"high\"]", new, expected);
    }
    let names = |count: u8| format!("{:?}", (1..=count).map(|i| format!("c{i}")).collect::<Vec<_>>());
    assert_refused(
        "[\"low\", \"high\"]",
        &names(17),
        &format!("9: transfers.classes: found 17 classes; {CLASSES}"),
    );
    let text = FULL.replace("[\"low\", \"high\"]", &names(16)).replace("\"high\"", "\"c16\"");
    assert_eq!(transfers(&text).nodes["array"].class.value, Some(Class(15)));
}

#[test]
fn a_wrong_value_of_a_node_is_one_line() {
    let rate = "accepted: a bandwidth such as \"100MiB/s\", above zero and below 16777216TiB/s";
    let size = "accepted: a size such as \"64MiB\", from 1B to 1000PB";
    let names = "accepted: 1 to 255 of A-Z a-z 0-9 . _ -";
    for (old, new, expected) in [
        ("[node.array]", "[node.\"a b\"]", &*format!("11: node.\"a b\": found the name \"a b\"; {names}")),
        ("\"array.key\"", "\"\"", "13: node.array.credentials: found \"\"; accepted: the path of a file"),
        ("\"300MB/s\"", "300", &format!("14: node.array.peak_read: found 300; {rate}")),
        ("\"120MB/s\"", "\"120MB\"", &format!("15: node.array.peak_write: found \"120MB\"; {rate}")),
        (
            "class = \"high\"",
            "class = \"gold\"",
            "16: node.array.class: found \"gold\"; accepted: one of transfers.classes: \"low\", \"high\"",
        ),
        (
            "cost = 2",
            "cost = -1",
            "17: node.array.cost: found -1; accepted: a whole number from 0 to 1000000",
        ),
        (
            "cost = 2",
            "cost = 1000001",
            "17: node.array.cost: found 1000001; accepted: a whole number from 0 to 1000000",
        ),
        ("\"2TB\"", "\"2T\"", &format!("18: node.array.capacity: found \"2T\"; {size}")),
        ("\"2TB\"", "\"0B\"", &format!("18: node.array.capacity: found \"0B\"; {size}")),
        ("\"rack1\"", "\"rack 1\"", &format!("19: node.array.domain: found \"rack 1\"; {names}")),
        (
            "domain = \"rack1\"",
            "rack = 1",
            "19: node.array.rack: found an unknown key; accepted: url, credentials, peak_read, peak_write, \
             class, cost, capacity, domain, sensor",
        ),
    ] {
        assert_refused(old, new, expected);
    }
}

#[test]
fn a_url_has_one_of_five_schemes_and_no_password() {
    let accepted = "accepted: file:///ROOT, s3://BUCKET?endpoint=http://HOST, webdav://HOST/PATH, \
                    webdavs://HOST/PATH or sftp://HOST/ROOT";
    assert_refused(
        "url = \"sftp://weir@tape.example:2222/objects\"\n",
        "",
        &format!("21: node.tape.url: found nothing; {accepted}"),
    );
    for url in ["", "s3://", "/srv/array", "http://host/", "srv:///array"] {
        let expected = format!("22: node.tape.url: found \"{url}\"; {accepted}");
        assert_refused("sftp://weir@tape.example:2222/objects", url, &expected);
    }
    for url in [
        "sftp://weir:secret@host/",
        "http://weir:secret@host",
        "weir:secret@host",
        "s3://a:secret@b?c",
        "sftp://weir:sec/ret@host/",
        "webdav://weir:sec#ret@host/",
        "s3://bucket?endpoint=http://weir:secret@host:9000",
        "s3://bucket?endpoint=http%3A%2F%2Fweir%3Asecret%40host",
    ] {
        let found = "found a url with a password";
        let accepted = "accepted: a url without a password, and credentials = \"PATH\" of a file with it";
        assert_refused(
            "sftp://weir@tape.example:2222/objects",
            url,
            &format!("22: node.tape.url: {found}; {accepted}"),
        );
    }
    for url in [
        "file:///srv/a",
        "s3://bucket/objects?endpoint=https://s3.example:9000&region=eu",
        "sftp://weir@host:22/a:b@c",
        "webdav://[::1]:8080/",
        "webdavs://host/dav/",
    ] {
        transfers(&FULL.replace("sftp://weir@tape.example:2222/objects", url));
    }
}

#[test]
fn a_sensor_is_the_url_of_an_agent_without_a_password() {
    let given = "http://array.example:9813/metrics#/srv/array";
    let accepted = "accepted: http://HOST:PORT/metrics, and #DIRECTORY or #DEVICE behind it if the agent serves \
                    several";
    for url in
        ["", "array.example:9813", "https://array.example:9813/metrics", "http://array.example/metrics"]
    {
        assert_refused(given, url, &format!("20: node.array.sensor: found \"{url}\"; {accepted}"));
    }
    for secret in ["weir:secret", "weir:sec/ret"] {
        let url = format!("http://{secret}@array.example:9813/metrics");
        let expected = format!("20: node.array.sensor: found a url with a password; {accepted}");
        assert_refused(given, &url, &expected);
    }
    assert_eq!(
        row(&transfers_report(&transfers(FULL)).to_string(), "node.array.sensor"),
        format!("{given} line 20")
    );
}

#[test]
fn two_nodes_with_one_url_would_be_one_file_and_are_refused() {
    let twice = format!("{SHORT}\n[node.twin]\nurl = \"file:///srv/array\"\n");
    let found = problems(&twice).join("\n");
    assert!(found.contains("node.twin.url: found that of node.array; accepted: another url"), "{found}");
}

#[test]
fn every_key_is_in_the_manual_and_its_example_is_valid() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/transfers.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    for key in [KEYS, TRANSFERS_KEYS, NODE_KEYS].concat() {
        let named = [format!("`{key}`"), format!("`[{key}]`"), format!("`[{key}.NAME]`")];
        assert!(
            named.iter().any(|name| manual.contains(name)),
            "docs/transfers.md says nothing about `{key}`"
        );
    }
    let example = manual.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let (example, short) =
        (transfers_report(&transfers(example)).to_string(), transfers_report(&transfers(SHORT)).to_string());
    let value = |row: &str| row.split(' ').next().unwrap().to_owned();
    let own = short.lines().filter_map(|line| line.split_whitespace().next());
    for key in own.filter(|key| key.starts_with("transfers.") && *key != "transfers.address") {
        assert_eq!(
            value(&row(&example, key)),
            value(&row(&short, key)),
            "{key}: the example has the default"
        );
    }
}
