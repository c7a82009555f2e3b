//! `weir nodes calibrate` that is ended in the middle.

use rustix::process::Signal;

use super::site::{Site, stored, write};
use crate::harness::wait_until;

#[test]
fn a_calibration_that_is_ended_leaves_nothing_and_one_that_is_killed_leaves_it_to_the_next() {
    let site = Site::of_files(&["a"]);
    let there = || stored(&site.scene.file("a"));
    let begun = || {
        let calibration = site.weir("nodes calibrate a").start();
        calibration.wait_for_log("writing to a");
        wait_until("it writes", || there() != (vec![], vec![]));
        calibration
    };
    for signal in [Signal::TERM, Signal::INT] {
        let mut calibration = begun();
        calibration.signal(signal);
        let ended = calibration.wait();
        assert_eq!(ended.code, Some(1), "{}", ended.log);
        assert!(ended.log.contains("a: stopped by a signal; nothing was measured"), "{}", ended.log);
        assert_eq!(there(), (vec![], vec![]));
    }
    begun().kill();
    assert_ne!(there(), (vec![], vec![]));
    let mut next = site.weir("nodes calibrate a").start();
    next.wait_for_log("writing to a");
    next.signal(Signal::TERM);
    assert_eq!(next.wait().code, Some(1));
    assert_eq!(there(), (vec![], vec![]));
}

#[test]
fn a_calibration_takes_no_object_for_its_own() {
    let site = Site::of_files(&["a"]);
    let content = write(&site.scene, "data", 1, 1_000);
    site.run("put data --name weir-calibration-0");
    let refused = site.refusal("nodes calibrate a");
    assert!(refused.contains("found weir-calibration-0; accepted: none"), "{refused}");
    site.expect_object("weir-calibration-0", &content);
}
