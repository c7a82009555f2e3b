//! The file of a controller, and the changes in the file of a gateway whose pool has a controller.

use std::num::NonZeroU32;
use std::path::Path;

use weir_model::{Bandwidth, Iops, Percentile, Priority, Span, Target};

use super::super::{ConfigError, ControllerConfig, ControllerLaw, Source, controller_report};
use super::{parse, problems, report};

const GOOD: &str = r#"[controller]
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

const GATEWAY: &str = r#"[listen]
nbd = ["127.0.0.1:10809"]
[cluster]
name = "a"
ca = "/etc/weir/ca.pem"
certificate = "/etc/weir/a.pem"
key = "/etc/weir/a.key"
[pool.p]
control = "maestro"
controller = "10.0.0.1:7700"
[volume.v]
pool = "p"
backend = "memory"
size = "1MiB"
"#;

fn read(text: &str) -> Result<ControllerConfig, ConfigError> {
    Source::of(Path::new("controller.toml"), text.to_owned()).controller()
}

fn controller(text: &str) -> ControllerConfig {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

/// `text` with `new` in the place of `old`.
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old} in\n{text}");
    text.replace(old, new)
}

/// Asserts that the good file with `new` in the place of `old` is refused with this one line.
fn assert_refused(old: &str, new: &str, expected: &str) {
    let error = read(&replaced(GOOD, old, new)).expect_err(expected).to_string();
    assert_eq!(error, format!("controller.toml:{expected}"));
}

/// The same for the file of a gateway.
fn assert_refused_at_a_gateway(old: &str, new: &str, expected: &str) {
    assert_eq!(problems(&replaced(GATEWAY, old, new)), [format!("weir.toml:{expected}")]);
}

/// The row of the report for a key: the value, and its origin.
fn row(report: &str, key: &str) -> String {
    let row = report.lines().find(|line| line.split_whitespace().next() == Some(key));
    let row = row.unwrap_or_else(|| panic!("{key} in\n{report}"));
    row.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_good_file_resolves_to_what_it_says() {
    let config = controller(GOOD);
    assert_eq!(config.listen.value.to_string(), "10.0.0.1:7700");
    assert_eq!((config.status.value, config.control.value), (None, None));
    assert_eq!(config.tls.key.value, Path::new("/etc/weir/controller.key"));
    assert_eq!(config.gateways, ["a", "b"]);
    assert_eq!(config.pool, "p");
    let ControllerLaw::Maestro(shared) = &config.law.value else { panic!("another law") };
    assert_eq!(shared.total_concurrency.value.requests(), NonZeroU32::new(8));
    assert_eq!(shared.control_interval.value, Span::from_secs(2));
    let (v, w) = (&config.volumes["v"], &config.volumes["w"]);
    assert_eq!((v.target.value, Some(v.priority.value)), (None, Priority::new(4.0)));
    let p95 = Percentile::from_tenths(950).unwrap();
    assert_eq!(w.target.value, Some(Target::Percentile(p95, Span::from_millis(20))));
    assert_eq!((w.max_concurrency.value, w.max_iops.value), (NonZeroU32::new(2), None));
}

#[test]
fn every_key_can_be_set() {
    let text = replaced(
        GOOD,
        "[gateway.a]",
        "status = \"127.0.0.1:9811\"\ncontrol = \"unix:/run/weir/controller.sock\"\n[gateway.a]",
    );
    let text = replaced(&text, "_concurrency = 8", "_concurrency = \"auto\"\ncontrol_interval = \"100ms\"");
    let text = replaced(
        &text,
        "priority = 4",
        "priority = 0.5\nmax_iops = \"900iops\"\nmax_bandwidth = \"1MiB/s\"\n",
    );
    let config = controller(&replaced(&text, "[pool.p]", "[pool.p]\ncontrol = \"maestro\""));
    assert_eq!(config.status.value.unwrap().to_string(), "127.0.0.1:9811");
    assert_eq!(config.control.value.unwrap(), Path::new("/run/weir/controller.sock"));
    let ControllerLaw::Maestro(shared) = &config.law.value else { panic!("another law") };
    assert_eq!(shared.total_concurrency.value.requests(), None);
    assert_eq!(shared.control_interval.value, Span::from_millis(100));
    let volume = &config.volumes["v"];
    assert_eq!(volume.max_iops.value, Iops::new(900.0));
    assert_eq!(volume.max_bandwidth.value, Bandwidth::new(1 << 20));
}

#[test]
fn a_table_that_is_missing_or_there_twice_is_one_line() {
    let own = GOOD.split("[gateway.a]").next().unwrap();
    assert_refused(
        own,
        "",
        "1: controller: found nothing; accepted: a table [controller] with listen, ca, certificate and key",
    );
    assert_refused(
        "[gateway.a]\n[gateway.b]\n",
        "",
        "1: gateway: found nothing; accepted: a table [gateway.NAME] for each gateway",
    );
    assert_refused(
        "[pool.p]\ntotal_concurrency = 8\n",
        "",
        "1: pool: found nothing; accepted: one table [pool.NAME]: a controller has one array",
    );
    assert_refused(
        "[pool.p]\n",
        "[pool.o]\n[pool.p]\n",
        "8: pool: found 2 tables; accepted: one table [pool.NAME]: a controller has one array",
    );
    let volumes = GOOD.split_once("[volume.v]").unwrap().1;
    assert_refused(
        &format!("[volume.v]{volumes}"),
        "",
        "1: volume: found nothing; accepted: at least one table [volume.NAME]",
    );
}

/// The file of a controller under the law of promises.
fn of_promises() -> String {
    let text = GOOD.split("[volume.v]").next().unwrap();
    replaced(text, "total_concurrency = 8", "control = \"promise\"")
}

#[test]
fn under_the_law_of_promises_a_controller_needs_gateways_and_a_pool_and_nothing_to_share_out() {
    let config = controller(&of_promises());
    assert_eq!((&config.law.value, config.volumes.len()), (&ControllerLaw::Promise, 0));
    let shown = controller_report(&config).to_string();
    assert!(row(&shown, "pool.p.control").starts_with("promise "), "{shown}");
    assert!(!shown.contains("total_concurrency"), "{shown}");
    let refused = |text: &str| read(text).expect_err("it is refused").to_string();
    assert_eq!(
        refused(&format!("{}[volume.v]\npool = \"p\"\n", of_promises())),
        "controller.toml:10: volume: found a volume of a pool with control = \"promise\"; \
         accepted: nothing; what it is promised stands in the files of its gateways"
    );
    assert_eq!(
        refused(&replaced(&of_promises(), "[pool.p]", "[pool.p]\ntotal_concurrency = 8")),
        "controller.toml:9: pool.p.total_concurrency: found a setting of control = \"maestro\"; \
         accepted: nothing, or control = \"maestro\""
    );
}

#[test]
fn a_volume_cannot_be_changed_at_a_controller_that_has_none() {
    let source = Source::of(Path::new("controller.toml"), of_promises());
    let set = [("priority".to_owned(), "4".to_owned())];
    let changed = source
        .with(&[weir_api::Change { table: "volume".to_owned(), name: "v".to_owned(), set: set.to_vec() }])
        .expect("the key can be changed");
    assert_eq!(
        changed.controller().expect_err("there is no volume").to_string(),
        "volume.v: found no such volume; accepted: a volume of this file, which has none"
    );
}

#[test]
fn a_gateway_under_the_law_of_promises_has_the_promises_of_its_volumes_in_its_own_file() {
    let promised = replaced(GATEWAY, "control = \"maestro\"", "control = \"promise\"");
    let text = replaced(&promised, "[volume.v]", "[volume.v]\ntarget = { latency = \"5ms\" }");
    let config = parse(&text);
    assert_eq!(config.pools["p"].controller().map(ToString::to_string), Some("10.0.0.1:7700".to_owned()));
    assert!(row(&report(&text), "pool.p.controller").starts_with("10.0.0.1:7700 "));
}

#[test]
fn a_volume_is_in_the_pool_of_the_controller() {
    assert_refused(
        "pool = \"p\"\npriority",
        "pool = \"q\"\npriority",
        "11: volume.v.pool: found \"q\"; accepted: \"p\", the pool of this controller",
    );
    assert_refused(
        "pool = \"p\"\npriority",
        "priority",
        "10: volume.v.pool: found nothing; accepted: \"p\", the pool of this controller",
    );
}

#[test]
fn each_volume_needs_two_requests_at_each_gateway() {
    assert_refused(
        "total_concurrency = 8",
        "total_concurrency = 7",
        "9: pool.p.total_concurrency: found 7 requests for 2 volumes at 2 gateways; \
         accepted: at least 8: two for each volume at each gateway, of which one is always left for it",
    );
    assert_refused(
        "max_concurrency = 2",
        "max_concurrency = 1",
        "16: volume.w.max_concurrency: found 1; accepted: at least 2, one for each gateway",
    );
}

#[test]
fn a_wrong_value_is_refused_as_at_a_gateway() {
    for (old, new, expected) in [
        (
            "target = { p95 = \"20ms\" }",
            "target = { p95 = \"20ms\", iops = 9 }",
            "15: volume.w.target: found iops and p95; accepted: exactly one metric",
        ),
        (
            "priority = 4",
            "priority = 0",
            "12: volume.v.priority: found 0; accepted: a number above zero such as 4",
        ),
        (
            "\"/etc/weir/ca.pem\"",
            "\"ca.pem\"",
            "3: controller.ca: found \"ca.pem\"; accepted: the absolute path of a PEM file",
        ),
        (
            "key = \"/etc/weir/controller.key\"\n",
            "",
            "1: controller.key: found nothing; accepted: the absolute path of a PEM file",
        ),
        (
            "\"10.0.0.1:7700\"",
            "\"10.0.0.1\"",
            "2: controller.listen: found \"10.0.0.1\"; accepted: an address or a host name, with a port, such as \"10.0.0.1:7700\"",
        ),
        (
            "total_concurrency = 8",
            "control = \"facade\"",
            "9: pool.p.control: found \"facade\"; accepted: one of \"maestro\", \"promise\"",
        ),
        (
            "[gateway.a]",
            "[gateway.\"a b\"]",
            "6: gateway.\"a b\": found the name \"a b\"; accepted: 1 to 255 of A-Z a-z 0-9 . _ -",
        ),
    ] {
        assert_refused(old, new, expected);
    }
    let relative = replaced(GOOD, "[gateway.a]", "control = \"unix:c.sock\"\n[gateway.a]");
    let error = read(&relative).unwrap_err().to_string();
    let expected = "controller.toml:6: controller.control: found \"unix:c.sock\"; accepted: ";
    assert!(error.starts_with(expected) && error.lines().count() == 1, "{error}");
}

#[test]
fn what_is_a_gateways_to_say_is_unknown_to_a_controller() {
    for (old, new, expected) in [
        (
            "[gateway.a]",
            "[listen]\n[gateway.a]",
            "6: listen: found an unknown key; accepted: controller, gateway, pool, volume",
        ),
        (
            "priority = 4",
            "backend = \"memory\"",
            "12: volume.v.backend: found an unknown key; \
             accepted: pool, target, priority, max_iops, max_bandwidth, max_concurrency",
        ),
        (
            "total_concurrency = 8",
            "ports = \"one\"",
            "9: pool.p.ports: found an unknown key; accepted: control, total_concurrency, control_interval",
        ),
    ] {
        assert_refused(old, new, expected);
    }
}

#[test]
fn the_report_names_every_value_of_a_controller() {
    let report = controller_report(&controller(GOOD)).to_string();
    for (key, expected) in [
        ("controller.listen", "10.0.0.1:7700 line 2"),
        ("controller.certificate", "/etc/weir/controller.pem line 4"),
        ("pool.p.total_concurrency", "8 line 9"),
        ("volume.v.priority", "4 line 12"),
        ("volume.w.target", "p95 20ms line 15"),
        ("volume.w.max_concurrency", "2 line 16"),
    ] {
        assert_eq!(row(&report, key), expected, "{report}");
    }
    assert!(row(&report, "controller.status").starts_with("- default: "), "{report}");
    assert!(row(&report, "pool.p.control_interval").starts_with("2s default: "), "{report}");
}

#[test]
fn a_gateway_names_its_controller_and_itself() {
    let config = parse(GATEWAY);
    assert_eq!(config.pools["p"].controller().unwrap().to_string(), "10.0.0.1:7700");
    assert_eq!(config.cluster.unwrap().name.value, "a");
    let report = report(GATEWAY);
    assert_eq!(row(&report, "pool.p.controller"), "10.0.0.1:7700 line 10");
    assert_eq!(row(&report, "cluster.name"), "a line 4");
    assert_eq!(row(&report, "cluster.key"), "/etc/weir/a.key line 7");
    for elsewhere in ["total_concurrency", "ports", "target", "priority", "max_"] {
        assert!(!report.contains(elsewhere), "{elsewhere} is the controller's to say:\n{report}");
    }
}

#[test]
fn a_controller_and_who_the_gateway_is_go_together() {
    let cluster = &GATEWAY[GATEWAY.find("[cluster]").unwrap()..GATEWAY.find("[pool.p]").unwrap()];
    assert_refused_at_a_gateway(
        cluster,
        "",
        "1: cluster: found nothing, and pool \"p\" has a controller; \
         accepted: a table [cluster] with name, ca, certificate and key",
    );
    assert_refused_at_a_gateway(
        "controller = \"10.0.0.1:7700\"\n",
        "",
        "3: cluster: found who the gateway is to a controller, and no pool has one; \
         accepted: nothing, or a pool with controller = \"host:port\"",
    );
    assert_refused_at_a_gateway(
        "name = \"a\"",
        "name = \"a/b\"",
        "4: cluster.name: found \"a/b\"; accepted: a name of the certificate, of A-Z a-z 0-9 . _ -",
    );
    assert_refused_at_a_gateway(
        "\"10.0.0.1:7700\"",
        "\"nowhere\"",
        "10: pool.p.controller: found \"nowhere\"; accepted: the address of a controller such as \"10.0.0.1:7700\"",
    );
}

#[test]
fn what_stands_at_the_controller_is_refused_at_a_gateway() {
    for (key, value) in [("total_concurrency", "9"), ("ports", "\"listeners\"")] {
        assert_refused_at_a_gateway(
            "[volume.v]",
            &format!("{key} = {value}\n[volume.v]"),
            &format!(
                "11: pool.p.{key}: found a setting that the pool's controller has in its file; accepted: nothing"
            ),
        );
    }
    for (key, value) in [
        ("target", "{ iops = 9 }"),
        ("priority", "4"),
        ("max_iops", "\"9iops\""),
        ("max_bandwidth", "\"1MiB/s\""),
        ("max_concurrency", "9"),
        ("slo", "[{ up_to = \"9iops\", read = \"1ms\", write = \"1ms\" }]"),
    ] {
        assert_refused_at_a_gateway(
            "size = \"1MiB\"\n",
            &format!("size = \"1MiB\"\n{key} = {value}\n"),
            &format!(
                "15: volume.v.{key}: found a setting of a volume in pool \"p\", which has a controller; \
                 accepted: nothing; it stands in the file of the controller, without slo"
            ),
        );
    }
    for law in ["facade", "none"] {
        assert_refused_at_a_gateway(
            "\"maestro\"",
            &format!("\"{law}\""),
            "10: pool.p.controller: found a setting of control = \"maestro\" or \"promise\"; \
             accepted: nothing, or control = \"maestro\" or \"promise\"",
        );
    }
}

#[test]
fn the_examples_of_the_manual_are_valid_and_each_gateway_has_its_controller() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/several-gateways.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let blocks = manual.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap());
    let (controllers, gateways): (Vec<_>, Vec<_>) = blocks.partition(|block| block.contains("[controller]"));
    assert_eq!((controllers.len(), gateways.len()), (2, 2), "one of each file for each law");
    for (of_controller, of_gateway) in controllers.into_iter().zip(gateways) {
        let (controller, gateway) = (controller(of_controller), parse(of_gateway));
        let is_promised = controller.law.value == ControllerLaw::Promise;
        assert!(is_promised || controller.volumes.keys().eq(gateway.volumes.keys()));
        assert!(controller.gateways.contains(&gateway.cluster.unwrap().name.value));
        let pool = &gateway.pools[&controller.pool];
        assert_eq!(pool.control.value.kind(), controller.law.value.kind());
        assert_eq!(pool.controller(), Some(&controller.listen.value));
    }
}
