//! `weir lab run --real`: what it does to the machine goes again.

use rustix::process::Signal;

use crate::harness::{Program, Scene, wait_until};

use super::super::in_guest;
use super::super::kernel_client::shell;

/// Everything that a test bed consists of.
fn beds() -> String {
    shell(
        "ip netns list; ls /sys/class/net /dev/mapper; ls /run | grep weirbed || true
         losetup --list
         find /sys/kernel/config -name '*weirbed*'; pgrep qemu || true
         tc -j qdisc show; nft -j list ruleset",
    )
}

#[test]
fn an_experiment_that_is_interrupted_takes_its_test_bed_away() {
    in_guest("an_experiment_that_is_interrupted_takes_its_test_bed_away", || {
        let before = beds();
        let scene = Scene::new();
        let lab = Program::weir().args("lab run delay-overhead --real --out");
        let mut lab = lab.arg(scene.file("lab").display()).start();
        wait_until("clients are at work", || !shell("pgrep qemu-img || true").is_empty());
        lab.signal(Signal::INT);
        let outcome = lab.wait();
        assert_eq!(outcome.code, Some(1), "{}", outcome.log);
        assert!(outcome.log.contains("stopped; the test bed is taken away"), "{}", outcome.log);
        assert_eq!(beds(), before);
    });
}
