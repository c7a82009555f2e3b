//! `weir throttle` where it cannot start: what it says, and its exit code. No test here needs more rights
//! than a user has; the tests in `vm` and those of `io/agent` change a kernel.

use rustix::process::geteuid;

use crate::harness::{Outcome, Program, Scene};

/// The log of `weir throttle`, which must refuse to start.
fn refused(program: Program) -> String {
    let Outcome { code, out, log } = program.outcome();
    assert_eq!((code, out.as_str()), (Some(64), ""), "{log}");
    log
}

fn refused_throttle(arguments: &str) -> String {
    refused(Program::weir().arg("throttle").args(arguments))
}

#[test]
fn a_start_without_a_threshold_is_told_how_to_give_one() {
    for arguments in ["", "--dry-run"] {
        let log = refused_throttle(arguments);
        assert!(log.contains("--target-latency TIME, such as 15ms") && log.contains("file"), "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    }
}

#[test]
fn a_negative_time_is_refused_as_a_value_of_its_argument() {
    for (arguments, argument) in [
        ("--target-latency -5ms", "--target-latency"),
        ("tune vg0 --target-latency -5ms", "--target-latency"),
        ("tune vg0 --target-latency 5ms --step -5ms", "--step"),
    ] {
        let log = refused_throttle(arguments);
        assert!(log.contains(&format!("invalid value '-5ms' for '{argument} <TIME>': accepted: ")), "{log}");
    }
}

#[test]
fn a_capability_that_is_missing_is_no_fault_of_the_arguments() {
    let scene = Scene::new();
    scene.write("throttle.toml", "[throttle]\nthreshold = \"15ms\"\n");
    let file = scene.text("throttle.toml");
    for arguments in ["--target-latency 15ms", &file] {
        let program = if geteuid().is_root() {
            let less = "--bounding-set=-net_admin --inh-caps=-net_admin";
            Program::new("setpriv").args(less).arg(env!("CARGO_BIN_EXE_weir"))
        } else {
            Program::weir()
        };
        let log = refused(program.arg("throttle").args(arguments));
        assert!(log.starts_with("throttle: ") && log.contains("CAP_NET_ADMIN is missing"), "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    }
}

#[test]
fn a_figure_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let scene = Scene::new();
    let figure = scene.text("missing/tune.svg");
    let log = refused_throttle(&format!("tune vg0 --target-latency 15ms --figure {figure}"));
    assert!(log.starts_with(&format!("throttle tune: --figure: found {figure}: ")), "{log}");
}
