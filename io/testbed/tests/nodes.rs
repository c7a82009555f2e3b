//! A few transfers on real nodes, run as an experiment runs them.

use weir_lab::bulk::{Bench, BulkRecord};
use weir_lab::experiment::Experiment;
use weir_testbed::{RealNodes, Stop};

/// The record of a run of an experiment with so many transfers; `None` if this machine has no such nodes.
fn record(claim: &str, file: &str, text: &str, run: &str, count: u32) -> Option<BulkRecord> {
    let text = text.replace("count = 100", &format!("count = {count}"));
    let experiment = Experiment::parse(file, &text).expect("the experiment is valid");
    let scenario = experiment.bulk.expect("it has storage nodes");
    match RealNodes::start(Stop::default()) {
        Ok(nodes) => Some(nodes.transfer(&scenario, run, 1).expect("the nodes run it")),
        Err(why) => {
            weir_guest::skipped(concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped"), claim, &format!("{why:#}"));
            None
        }
    }
}

#[test]
fn writes_are_spread_over_three_real_nodes_at_the_rates_of_the_experiment() {
    let text = include_str!("../../../experiments/transfers/transfer-rr.toml");
    let claim = "real nodes: writes at the rates of the experiment";
    let Some(record) = record(claim, "transfers/transfer-rr.toml", text, "rr", 6) else { return };
    assert_eq!(record.nodes, ["vm1", "vm2", "vm3"]);
    let places: Vec<_> = record.transfers.iter().map(|one| one.node.expect("it started")).collect();
    assert_eq!(places, [0, 1, 2, 0, 1, 2]);
    for one in &record.transfers {
        // No stream gets more than 26 MB/s; a machine that is busy makes all of them slower.
        let rate = one.rate().expect("it ended");
        assert!(rate > 0.0 && rate < 27.0, "{rate} MB/s: {one:?}");
    }
    // 20 MB/s for two.
    assert!(record.transfers[0].rate().expect("it ended") < 21.0, "{:?}", record.transfers[0]);
}

#[test]
fn a_read_of_what_only_a_lost_node_has_is_refused_and_the_others_are_read_where_a_replica_is() {
    let text = include_str!("../../../experiments/transfers/transfer-read.toml");
    let claim = "real nodes: reads where a replica is";
    let Some(record) = record(claim, "transfers/transfer-read.toml", text, "r3", 10) else { return };
    let (lost, read): (Vec<_>, Vec<_>) = record.transfers.iter().partition(|one| one.nodes == [3]);
    let why = lost[0].refused.as_ref().expect("nobody has it");
    assert!(lost.len() == 1 && why.contains("no replica of object-009 can be reached: vm4 is down"), "{why}");
    for one in read {
        assert!(one.refused.is_none() && one.nodes.contains(&one.node.expect("it started")), "{one:?}");
    }
}
