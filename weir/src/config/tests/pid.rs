//! Pools with `control = "pid"`: what is required, what the defaults are, and what is refused.

use weir_model::{Bandwidth, Span};

use super::super::Config;
use super::super::pool::Control;
use super::{parse, problems, report};

/// A pool with these lines from line 5 on, and a volume in it.
fn file(lines: &str) -> String {
    format!(
        "[listen]\nnbd = [\"127.0.0.1:10809\"]\n[pool.p]\ncontrol = \"pid\"\n{lines}\n\
         [volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n"
    )
}

fn pid(config: &Config) -> &super::super::pid::Pid {
    let Control::Pid(pid) = &config.pools["p"].control.value else { panic!("another control") };
    pid
}

#[test]
fn a_threshold_is_enough_and_everything_else_can_be_set() {
    let config = parse(&file("threshold = \"15ms\""));
    let (ms, found) = (Span::from_millis, pid(&config));
    assert_eq!((found.threshold.value, found.ceiling.value), (ms(15), ms(100)));
    assert_eq!(found.write_limit.value, Bandwidth::new(256 << 10).unwrap());
    let law = weir_engine::OneSidedPidConfig::default();
    let gains = (found.proportional_gain.value, found.integral_time.value);
    assert_eq!(gains, (law.proportional_gain, law.integral_time), "the law's own defaults");

    let all = "threshold = \"1ms\"\nwrite_limit = \"2MiB/s\"\nceiling = \"20.5ms\"\nproportional_gain = 0.5\n\
               integral_time = \"1s\"";
    let config = parse(&file(all));
    let found = pid(&config);
    assert_eq!((found.threshold.value, found.ceiling.value), (ms(1), Span::from_micros(20_500)));
    assert_eq!(found.write_limit.value, Bandwidth::new(2 << 20).unwrap());
    assert_eq!((found.proportional_gain.value, found.integral_time.value), (0.5, ms(1_000)));
}

#[test]
fn what_the_law_cannot_work_with_is_refused_with_its_line() {
    let duration = "accepted: a duration such as \"5ms\"";
    let delay = "accepted: a multiple of 0.5ms such as \"40ms\", from 0.5ms to 10s";
    let gain = "accepted: a number above 0, at most 100, such as 0.25";
    for (line, expected) in [
        ("", format!("3: pool.p.threshold: found nothing; {duration}, from 10us to 10s")),
        ("threshold = \"0s\"", format!("5: pool.p.threshold: found \"0s\"; {duration}, from 10us to 10s")),
        (
            "threshold = \"1ms\"\nceiling = \"20.3ms\"",
            format!("6: pool.p.ceiling: found \"20.3ms\"; {delay}"),
        ),
        ("threshold = \"1ms\"\nceiling = \"11s\"", format!("6: pool.p.ceiling: found \"11s\"; {delay}")),
        (
            "threshold = \"1ms\"\nproportional_gain = -1",
            format!("6: pool.p.proportional_gain: found -1; {gain}"),
        ),
        (
            "threshold = \"1ms\"\nproportional_gain = nan",
            format!("6: pool.p.proportional_gain: found nan; {gain}"),
        ),
        (
            "threshold = \"1ms\"\nintegral_time = \"0s\"",
            format!("6: pool.p.integral_time: found \"0s\"; {duration}, from 1ms to 1m"),
        ),
        (
            "threshold = \"1ms\"\nwrite_limit = \"0B/s\"",
            "6: pool.p.write_limit: found \"0B/s\"; accepted: a bandwidth such as \"100MiB/s\", above zero and below 16777216TiB/s"
                .into(),
        ),
        (
            "threshold = \"1ms\"\ngrowth = 0.1",
            "6: pool.p.growth: found a setting of control = \"facade\"; accepted: nothing, or control = \
             \"facade\""
                .into(),
        ),
    ] {
        assert_eq!(problems(&file(line)), [format!("weir.toml:{expected}")], "{line}");
    }
    let facade = file("threshold = \"1ms\"").replace("control = \"pid\"", "control = \"facade\"");
    let other =
        "5: pool.p.threshold: found a setting of control = \"pid\"; accepted: nothing, or control = \"pid\"";
    assert_eq!(problems(&facade), [format!("weir.toml:{other}")]);
}

#[test]
fn a_promise_is_measured_there_and_not_enforced_and_a_cap_is_enforced() {
    let slo = "slo = [{ up_to = \"9iops\", read = \"1ms\", write = \"1ms\" }]\nmax_iops = \"10iops\"\n";
    let report = report(&format!("{}{slo}", file("threshold = \"15ms\"")));
    assert!(report.contains("measured, not enforced (control = pid)"), "{report}");
    assert!(report.contains("pool.p.threshold"), "{report}");
    assert!(report.contains("volume.v.max_iops"), "{report}");
    let target = format!("{}target = {{ latency = \"5ms\" }}\n", file("threshold = \"15ms\""));
    let knows_none = "10: volume.v.target: found a target in pool \"p\", whose control = \"pid\" knows none; \
                      accepted: nothing, or a pool with control = \"maestro\" or \"promise\"";
    assert_eq!(problems(&target), [format!("weir.toml:{knows_none}")]);
}
