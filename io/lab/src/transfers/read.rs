//! §III-A: a read may only go to a node with a replica, and the same rules choose which.
//!
//! One node cannot be reached. Some files have their only replica there: reading these is refused. In the
//! control, round robin chooses among the same replicas.

use super::{below, more_below, times, total};
use crate::bulk::BulkRecord;
use crate::study::{Figure, Records, percent};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let run = |name: &str| records.bulk.get(name);
    vec![
        Figure::new("at-replica", run("r3").and_then(|record| at_replica(record, "vm4"))),
        Figure::new("refused-rightly", run("r3").and_then(|record| refused_rightly(record, "vm4"))),
        Figure::new("total", total(records, "r3")),
        Figure::new("below", below(records, "r3")),
        Figure::new("times-rr", times(records, "r3", "rr")),
        Figure::new("fewer-below", more_below(records, "rr", "r3")),
        Figure::new("below-without", below(records, "rr")),
        Figure::new("deadline-times-r3", times(records, "deadline", "r3")),
        Figure::new("deadline-more-below", more_below(records, "deadline", "r3")),
    ]
}

/// Percent of the reads that went to a node with a replica that was up, of those that started.
fn at_replica(record: &BulkRecord, down: &str) -> Option<f64> {
    let down = record.nodes.iter().position(|name| name == down)?;
    let started = record.transfers.iter().filter_map(|one| Some((one.node?, &one.nodes)));
    let (there, all) = started.fold((0, 0), |(there, all), (node, nodes)| {
        (there + usize::from(nodes.contains(&node) && node != down), all + 1)
    });
    percent(there, all)
}

/// Percent of the reads that were refused if their only replica is at the node that is down, and not refused
/// otherwise. Nothing if there is no such read.
fn refused_rightly(record: &BulkRecord, down: &str) -> Option<f64> {
    let down = record.nodes.iter().position(|name| name == down)?;
    let is_lost = |nodes: &[usize]| nodes.iter().all(|node| *node == down);
    record.transfers.iter().find(|one| is_lost(&one.nodes))?;
    let right = record.transfers.iter().filter(|one| one.refused.is_some() == is_lost(&one.nodes));
    percent(right.count(), record.transfers.len())
}
