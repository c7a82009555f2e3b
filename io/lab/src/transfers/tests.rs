//! The figures that have a rule of their own, on records made by hand.

use crate::bulk::{BulkRecord, BulkTransfer};
use crate::claims::claim;
use crate::study::Records;
use crate::study::testing::records;

/// 100 MB at a node, from and to these seconds.
fn transfer(node: usize, from: u64, to: u64) -> BulkTransfer {
    BulkTransfer {
        bytes: 100_000_000,
        nodes: vec![node],
        node: Some(node),
        started_us: Some(from * 1_000_000),
        ended_us: Some(to * 1_000_000),
        ..BulkTransfer::default()
    }
}

/// Runs of transfers that ask for 10 MB/s.
fn of_runs(runs: &[(&str, Vec<BulkTransfer>)]) -> Records {
    let record = |transfers: &Vec<BulkTransfer>| BulkRecord {
        nodes: ["vm1", "vm2", "vm3", "vm4"].map(str::to_owned).to_vec(),
        rate: 10_000_000,
        transfers: transfers.clone(),
    };
    let bulk = runs.iter().map(|(name, transfers)| ((*name).to_owned(), record(transfers))).collect();
    Records { bulk, ..records(Vec::new()) }
}

fn value(records: &Records, id: &str, figure: &str) -> Option<f64> {
    let figures = claim(id).expect("a claim")(records);
    figures.into_iter().find(|known| known.name == figure).expect("a figure").value
}

#[test]
fn the_slowest_node_governs_if_the_last_transfers_end_there() {
    let at = |last: usize| {
        let transfers = (0..20).map(|number| transfer(if number < 10 { 1 } else { last }, 0, 10 + number));
        value(&of_runs(&[("rr", transfers.collect())]), "transfer-rr", "slowest-node-last")
    };
    assert_eq!((at(0), at(2)), (Some(100.0), Some(0.0)));
}

#[test]
fn sm_r3_is_compared_with_the_policy_that_has_the_fewest_below() {
    // 10 and 5 MB/s.
    let (kept, below) = (|| transfer(1, 0, 10), || transfer(1, 0, 20));
    let runs = |r3: Vec<BulkTransfer>| {
        let others = ["rr", "r1", "r2"].map(|run| (run, vec![below(), below()]));
        let all: Vec<_> = others.into_iter().chain([("static", vec![kept(), below()]), ("r3", r3)]).collect();
        of_runs(&all)
    };
    let above = |r3| value(&runs(r3), "transfer-r3", "above-fewest");
    assert_eq!(above(vec![kept(), kept()]), Some(-50.0));
    assert_eq!(above(vec![kept(), below()]), Some(0.0));
    assert_eq!(above(vec![below(), below()]), Some(50.0));
}

#[test]
fn a_read_is_refused_rightly_only_if_its_last_replica_is_down() {
    let refused = |nodes: &[usize]| BulkTransfer {
        nodes: nodes.to_vec(),
        refused: Some("no replica".to_owned()),
        ..BulkTransfer::default()
    };
    let of = |transfers| {
        let records = of_runs(&[("r3", transfers)]);
        (value(&records, "transfer-read", "refused-rightly"), value(&records, "transfer-read", "at-replica"))
    };
    assert_eq!(of(vec![transfer(1, 0, 10), refused(&[3])]), (Some(100.0), Some(100.0)));
    assert_eq!(of(vec![transfer(3, 0, 10), refused(&[3])]).0, Some(50.0));
    assert_eq!(of(vec![refused(&[1, 3]), refused(&[3])]).0, Some(50.0));
    assert_eq!(of(vec![transfer(1, 0, 10)]).0, None, "nothing was tried");
    let elsewhere = BulkTransfer { nodes: vec![0, 3], ..transfer(1, 0, 10) };
    assert_eq!(of(vec![elsewhere]).1, Some(0.0));
    assert_eq!(of(vec![transfer(3, 0, 10)]).1, Some(0.0), "that node is down");
}
