//! The file of a packet-delay agent: what is required, what the defaults are, and what is refused.

use std::path::Path;

use weir_model::Span;
use weir_throttle::{Packets, Settings};

use super::super::throttle::threshold_argument;
use super::super::{Source, throttle_report};

fn problems(text: &str) -> Vec<String> {
    match Source::of(Path::new("throttle.toml"), text.to_owned()).throttle() {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

#[test]
fn a_threshold_is_enough_and_whatever_is_accepted_can_be_decided_by() {
    let source = |text: &str| Source::of(Path::new("throttle.toml"), text.to_owned());
    let config = source("[throttle]\nthreshold = \"15ms\"\n").throttle().unwrap();
    assert_eq!(config.settings(), Settings::new(Span::from_millis(15)));

    let text = "[throttle]\nthreshold = \"1us\"\nceiling = \"2.5s\"\npackets = \"acks\"\nintegral_time = \"1us\"\n\
                proportional_gain = 100\nsetpoint_share = 1\nexempt = [\"10.0.0.0/28\"]\nforced = [\"10.0.0.16\"]\n\
                [resource.vg0]\nthreshold = \"60s\"\n";
    let config = source(text).throttle().unwrap();
    assert_eq!(config.settings().check(), Ok(()));
    assert_eq!(config.settings().packets, Packets::Acks);
    assert!(
        throttle_report(&config).to_string().contains("throttle.packets"),
        "{}",
        throttle_report(&config).to_string()
    );
}

#[test]
fn what_cannot_be_is_refused_with_its_line() {
    let duration = "accepted: a duration such as \"5ms\", from 1us to 1m";
    let delay = "accepted: a multiple of 0.5ms such as \"40ms\", from 0.5ms to 2s 500ms";
    for (line, expected) in [
        ("ceiling = \"3s\"", format!("throttle.ceiling: found \"3s\"; {delay}")),
        ("ceiling = \"0.7ms\"", format!("throttle.ceiling: found \"0.7ms\"; {delay}")),
        (
            "proportional_gain = 101",
            "throttle.proportional_gain: found 101; accepted: a number above 0, at most 100, such as 0.25"
                .into(),
        ),
        ("integral_time = \"0s\"", format!("throttle.integral_time: found \"0s\"; {duration}")),
        (
            "packets = \"some\"",
            "throttle.packets: found \"some\"; accepted: \"all\", \"acks\" or \"payload\"".into(),
        ),
        (
            "exempt = [\"10.0.0.5\"]\nforced = [\"10.0.0.4\", \"10.0.0.5\"]",
            "throttle.forced[1]: found \"10.0.0.5\"; accepted: an initiator that throttle.exempt does not \
             cover, as 10.0.0.5 does"
                .into(),
        ),
        (
            "exempt = [\"10.0.0.0/28\"]\nforced = [\"10.0.0.5\"]",
            "throttle.forced[0]: found \"10.0.0.5\"; accepted: an initiator that throttle.exempt does not \
             cover, as 10.0.0.0/28 does"
                .into(),
        ),
        (
            "metrics = \"10.0.0.300:9811\"",
            "throttle.metrics: found \"10.0.0.300:9811\"; accepted: an address or a host name, with \
             a port, such as \"127.0.0.1:9811\""
                .into(),
        ),
        (
            "write_limit = \"20000000TiB/s\"",
            "throttle.write_limit: found \"20000000TiB/s\"; accepted: a bandwidth such as \
             \"100MiB/s\", above zero and below 16777216TiB/s"
                .into(),
        ),
    ] {
        let text = format!("[throttle]\nthreshold = \"15ms\"\n{line}\n");
        let found = problems(&text);
        assert!(found.iter().any(|problem| problem.contains(&expected)), "{line}: {found:?}");
    }
    let long = problems(&format!("[throttle]\nthreshold = \"15ms\"\n{} = 1\n", "k".repeat(5000)));
    assert!(long[0].contains("kkk…") && long[0].chars().count() < 1000, "{long:?}");
    let zero = problems("[throttle]\nthreshold = \"0s\"\n");
    assert!(zero[0].ends_with(&format!("2: throttle.threshold: found \"0s\"; {duration}")), "{zero:?}");
    assert!(problems("")[0].contains("a table [throttle] with the key threshold"));
}

#[test]
fn an_argument_is_accepted_as_the_file_accepts_it() {
    assert_eq!(threshold_argument("15ms"), Ok(Span::from_millis(15)));
    for text in ["0s", "15", "2m", ""] {
        let accepted = "accepted: a duration such as \"5ms\", from 1us to 1m";
        assert_eq!(threshold_argument(text), Err(accepted.to_owned()), "{text}");
    }
}

#[test]
fn a_control_character_in_the_name_of_a_resource_is_escaped_and_not_another_character() {
    let text = "[throttle]\nthreshold = \"15ms\"\n[resource.\"a\\u001bb\"]\nthreshold = \"8ms\"\n";
    let source = |text: &str| Source::of(Path::new("throttle.toml"), text.to_owned());
    let report = throttle_report(&source(text).throttle().unwrap()).to_string();
    assert!(report.contains("resource.\"a\\u{1b}b\".threshold"), "{report}");
    let refused = problems(&text.replace("8ms", "0s"));
    assert!(refused[0].contains("resource.\"a\\u{1b}b\".threshold: found"), "{refused:?}");
}
