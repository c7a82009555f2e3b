//! `weir throttle` where it cannot start: what it says, and its exit code. No test here needs more rights
//! than a user has; the tests in `vm` and those of `io/agent` change a kernel.

use std::net::TcpListener;

use rustix::process::{Signal, geteuid};

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

/// weir without the right to change queues.
fn weir_without_net_admin() -> Program {
    if geteuid().is_root() {
        let less = "--bounding-set=-net_admin --inh-caps=-net_admin";
        Program::new("setpriv").args(less).arg(env!("CARGO_BIN_EXE_weir"))
    } else {
        Program::weir()
    }
}

#[test]
fn a_dry_run_whose_address_is_in_use_says_so_and_goes_on() {
    let scene = Scene::new();
    let agent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = agent.local_addr().expect("it is bound");
    scene.write("throttle.toml", format!("[throttle]\nthreshold = \"15ms\"\nmetrics = \"{address}\"\n"));
    let arguments = format!("throttle --dry-run {}", scene.text("throttle.toml"));
    let mut dry_run = weir_without_net_admin().args(&arguments).start();
    dry_run.wait_for("state in the log alone");
    dry_run.signal(Signal::TERM);
    let Outcome { code, log, .. } = dry_run.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains(&format!("{address}: cannot listen")) && log.contains("serves no metrics"), "{log}");
}

#[test]
fn a_capability_that_is_missing_is_no_fault_of_the_arguments() {
    let scene = Scene::new();
    scene.write("throttle.toml", "[throttle]\nthreshold = \"15ms\"\n");
    let file = scene.text("throttle.toml");
    for arguments in ["--target-latency 15ms", &file] {
        let log = refused(weir_without_net_admin().arg("throttle").args(arguments));
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
