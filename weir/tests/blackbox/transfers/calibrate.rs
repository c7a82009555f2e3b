//! `weir nodes calibrate` that is ended in the middle.

use std::fs;

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
fn a_calibration_removes_no_data_of_others() {
    let site = Site::of_files(&["a"]);
    write(&site.scene, "data", 1, 1_000);
    let refused = site.refusal("put data --name weir-calibration-0");
    assert!(
        refused.contains("found weir-calibration-0; accepted: one that does not begin with"),
        "{refused}"
    );
    let others = site.scene.write("a/weir-calibration-3", b"the data of others");
    let refused = site.refusal("nodes calibrate a");
    assert!(refused.contains("a: found a file weir-calibration-3 with other data"), "{refused}");
    assert_eq!(fs::read(others).unwrap(), b"the data of others");
    let refused = site.refusal("import a weir-calibration-3");
    assert!(refused.contains("name: found weir-calibration-3"), "{refused}");
}
