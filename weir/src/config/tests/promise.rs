//! Pools with `control = "promise"`: each kind of promise is accepted, one for each volume, and the rest is
//! refused.

use weir_model::TimeShare;

use super::super::pool::Control;
use super::{parse, problems, report};

/// A pool with these lines from line 5 on, and a volume in it, which ends with these lines.
fn file(pool: &str, volume: &str) -> String {
    format!(
        "[listen]\nnbd = [\"127.0.0.1:10809\"]\n[pool.p]\ncontrol = \"promise\"\n{pool}\
         [volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n{volume}"
    )
}

const SLO: &str = "slo = [{ up_to = \"9iops\", read = \"1ms\", write = \"2ms\" }]\n";

fn share(text: &str) -> TimeShare {
    let config = parse(text);
    let Control::Promise(promise) = &config.pools["p"].control.value else { panic!("another control") };
    promise.background_share.value
}

#[test]
fn nothing_is_required_and_the_background_share_can_be_set() {
    assert_eq!(share(&file("", "")), TimeShare::PERCENT);
    assert_eq!(share(&file("background_share = 0.05\n", "")), TimeShare::new(0.05).unwrap());
    assert_eq!(
        problems(&file("background_share = 0.6\n", "")),
        ["weir.toml:5: pool.p.background_share: found 0.6; accepted: a number from 0 to 0.5, such as 0.01"]
    );
}

#[test]
fn a_pool_has_the_law_of_promises_unless_its_file_names_another() {
    assert_eq!(share(&file("", SLO).replace("control = \"promise\"\n", "")), TimeShare::PERCENT);
}

#[test]
fn a_rate_that_the_volumes_own_cap_is_not_well_above_is_refused() {
    let of = |target: &str, cap: &str| problems(&file("", &format!("target = {{ {target} }}\n{cap}\n")));
    assert_eq!(
        of("iops = 500", "max_iops = \"500iops\""),
        ["weir.toml:9: volume.v.target: found a rate beside a max_iops of 500iops; \
          accepted: a rate that max_iops is at least 1.1 times of"]
    );
    assert_eq!(
        of("throughput = \"2MiB/s\"", "max_bandwidth = \"1MiB/s\""),
        ["weir.toml:9: volume.v.target: found a rate beside a max_bandwidth of 1MiB/s; \
          accepted: a rate that max_bandwidth is at least 1.1 times of"]
    );
    parse(&file("", "target = { iops = 100 }\nmax_iops = \"111iops\"\n"));
}

#[test]
fn a_volume_may_have_an_slo_or_a_target_of_each_kind_and_a_priority_and_caps_beside_it() {
    let beside = "priority = 4\nmax_iops = \"1000iops\"\nmax_bandwidth = \"2MiB/s\"\nmax_concurrency = 2\n";
    for metric in ["latency = \"5ms\"", "p99 = \"5ms\"", "iops = 900", "throughput = \"1MiB/s\""] {
        parse(&file("", &format!("target = {{ {metric} }}\n{beside}")));
    }
    let told = report(&file("", &format!("{SLO}{beside}")));
    let values = told.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
    let values: Vec<_> =
        values.filter(|line| line.starts_with("pool.p") || line.contains("volume.v")).collect();
    for line in ["pool.p.control promise", "pool.p.background_share 0.01", "volume.v.priority 4"] {
        assert!(values.iter().any(|value| value == line), "{line}: {told}");
    }
    assert!(told.contains("up to 9iops: read 1ms, write 2ms ") && !told.contains("not enforced"), "{told}");
    assert!(told.contains("volume.v.max_concurrency"), "{told}");
    let told = report(&file("", "target = { p99 = \"5ms\" }\n"));
    assert!(told.contains("volume.v.target") && !told.contains("volume.v.slo "), "{told}");
}

#[test]
fn a_promise_has_a_goal_and_what_is_promised_nothing_has_none() {
    let goal = |volume: &str| {
        let told = report(&file("", volume));
        let line = told.lines().find(|line| line.starts_with("volume.v.slo_goal")).map(str::to_owned);
        line.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
    };
    let usual = Some("0.99 default: one window in a hundred may be missed".to_owned());
    assert_eq!(goal(SLO), usual);
    assert_eq!(goal("target = { iops = 9 }\n"), usual);
    assert_eq!(goal(""), None);
    assert!(goal(&format!("{SLO}slo_goal = 0.999\n")).is_some_and(|line| line.starts_with("0.999 line ")));
    for wrong in ["0.4", "1", "99"] {
        let refused = problems(&file("", &format!("{SLO}slo_goal = {wrong}\n")));
        let line = format!(
            "weir.toml:10: volume.v.slo_goal: found {wrong}; accepted: a number from 0.5 to 0.99999, such as 0.99"
        );
        assert_eq!(refused, [line]);
    }
    // A promise that `weir set` takes away leaves the goal in the file.
    assert!(
        goal("slo_goal = 0.9\n").is_some_and(|line| line.starts_with("0.9; no effect: no promise line "))
    );
    let wrong = problems(&file("", "target = { iops = \"many\" }\nslo_goal = 0.9\n"));
    assert!(wrong.len() == 1 && wrong[0].contains("volume.v.target"), "{wrong:?}");
}

#[test]
fn a_volume_has_one_promise() {
    assert_eq!(
        problems(&file("", &format!("target = {{ iops = 9 }}\n{SLO}"))),
        [
            "weir.toml:10: volume.v.slo: found an slo beside a target in pool \"p\", whose control = \"promise\" \
          holds a volume to one promise; accepted: nothing, or an slo without a target"
        ]
    );
}

#[test]
fn the_settings_of_other_laws_are_refused() {
    for (line, of) in [
        ("growth = 0.1", "facade"),
        ("total_concurrency = 9", "maestro"),
        ("ports = \"listeners\"", "maestro"),
        ("threshold = \"5ms\"", "pid"),
    ] {
        let key = line.split(' ').next().unwrap();
        let of = format!("control = \"{of}\"");
        let expected =
            format!("weir.toml:5: pool.p.{key}: found a setting of {of}; accepted: nothing, or {of}");
        let found = problems(&file(&format!("{line}\n"), ""));
        assert!(found.contains(&expected), "{found:?}");
    }
}
