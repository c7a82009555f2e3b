//! What a coordinator of bulk transfers reports, as tables for people.

use comfy_table::presets;
use weir_status::{DirectionStatus, NodeStatus, TransferStatus, TransfersStatus};

use crate::{dash, length, rate, size, table};

const NODES: [&str; 13] = [
    "node",
    "state",
    "probed",
    "",
    "transfers",
    "now",
    "last 10 s",
    "reserved",
    "external",
    "peak",
    "stored",
    "of",
    "objects",
];
const TRANSFERS: [&str; 11] =
    ["transfer", "what", "object", "state", "node", "done", "of", "had", "asked", "waited", "left"];

/// The columns that may go, the first of them first.
const SPARE_OF_NODES: [usize; 7] = [12, 2, 11, 10, 6, 9, 7];
const SPARE_OF_TRANSFERS: [usize; 6] = [9, 1, 6, 8, 10, 4];

/// The most transfers that are shown: more would leave the screen. `weir transfers list` shows all.
const MOST_SHOWN: usize = 50;

/// The coordinator in one line, two rows for each node, and a row for each of the first transfers. Each node
/// that is down, each sensor that is stale and each transfer that waits has a line that says why. The tables
/// fit into `width` columns.
pub fn transfers(status: &TransfersStatus, width: Option<u16>) -> String {
    let style = presets::UTF8_HORIZONTAL_ONLY;
    let nodes = status.nodes.iter().flat_map(|node| {
        let [(_, reads), (_, writes)] = node.directions();
        [row(node, "reads", reads), row(node, "writes", writes)]
    });
    let nodes = table(style, &NODES, nodes, |column| column < 4, &SPARE_OF_NODES, width);
    let mut parts = vec![format!("{}\n{nodes}", headline(status))];
    let down = status.nodes.iter().filter_map(|node| Some((&node.name, node.down.as_ref()?)));
    let down: Vec<_> = down.map(|(name, why)| format!("{name} is down: {why}")).collect();
    if !down.is_empty() {
        parts.push(down.join("\n"));
    }
    let stale: Vec<_> = status.nodes.iter().filter_map(stale).collect();
    if !stale.is_empty() {
        parts.push(stale.join("\n"));
    }
    let shown = &status.transfers[..status.transfers.len().min(MOST_SHOWN)];
    if !shown.is_empty() {
        let is_text = |column: usize| (1..5).contains(&column);
        let rows = shown.iter().map(transfer);
        parts.push(table(style, &TRANSFERS, rows, is_text, &SPARE_OF_TRANSFERS, width));
    }
    let waits = shown.iter().filter_map(|transfer| Some((transfer.transfer, transfer.why.as_ref()?)));
    let waits: Vec<_> = waits.map(|(number, why)| format!("{number} waits: {why}")).collect();
    if !waits.is_empty() {
        parts.push(waits.join("\n"));
    }
    let more = (status.transfers.len() - shown.len()) as u64 + status.left_out;
    if more > 0 {
        parts.push(format!("and {more} transfers more: weir transfers list"));
    }
    parts.join("\n\n")
}

/// The line of a node whose sensor is stale.
fn stale(node: &NodeStatus) -> Option<String> {
    let sensor = node.sensor.as_ref()?;
    let why = sensor.stale.as_ref()?;
    let last = sensor.age_s.map(|age| format!(" (its last good answer came {} ago)", time(age)));
    Some(format!("{}: its sensor is stale: {why}{}", node.name, last.unwrap_or_default()))
}

fn headline(status: &TransfersStatus) -> String {
    let TransfersStatus { policy, waiting, running, running_below, ended, .. } = status;
    let below = |count: u64| match count {
        0 => String::new(),
        count => format!(" ({count} below the rate asked for)"),
    };
    format!(
        "policy {policy}: {running} run{}, {waiting} wait; since the start {} done{}, {} failed, {} cancelled, {} \
         interrupted",
        below(*running_below),
        ended.done,
        below(ended.below),
        ended.failed,
        ended.cancelled,
        ended.interrupted
    )
}

/// A direction of a node. What concerns both stands in the row of the reads.
fn row(node: &NodeStatus, what: &str, direction: &DirectionStatus) -> [String; NODES.len()] {
    let once = |text: String| if what == "reads" { text } else { String::new() };
    let peak = direction.peak.map_or(dash(), |peak| {
        let measured = if peak.is_measured { " (measured)" } else { "" };
        format!("{}{measured}", rate(peak.bytes_per_s))
    });
    [
        once(node.name.clone()),
        once(if node.down.is_none() { "up" } else { "down" }.to_owned()),
        once(node.probed_age_s.map_or(dash(), |age| format!("{} ago", time(age)))),
        what.to_owned(),
        direction.active.to_string(),
        rate(direction.rate_bytes_per_s),
        rate(direction.average_bytes_per_s),
        rate(direction.reserved_bytes_per_s),
        external(node, direction),
        peak,
        once(size(node.stored_bytes)),
        once(node.capacity_bytes.map_or(dash(), size)),
        once(node.objects.to_string()),
    ]
}

/// What others than the transfers move; a dash if the node has no sensor.
fn external(node: &NodeStatus, direction: &DirectionStatus) -> String {
    let unknown = || if node.sensor.is_some() { "stale".to_owned() } else { dash() };
    direction.external_bytes_per_s.map_or_else(unknown, rate)
}

fn transfer(transfer: &TransferStatus) -> [String; TRANSFERS.len()] {
    [
        transfer.transfer.to_string(),
        transfer.kind.to_string(),
        transfer.object.clone(),
        state(transfer),
        transfer.node.clone().unwrap_or_else(dash),
        size(transfer.moved_bytes),
        transfer.bytes.map_or(dash(), size),
        transfer.had_bytes_per_s.map_or(dash(), rate),
        rate(transfer.asked_bytes_per_s),
        time(transfer.waited_s),
        transfer.left_s.map_or(dash(), time),
    ]
}

/// Whether it waits or runs, and what is odd about that.
fn state(transfer: &TransferStatus) -> String {
    let below = if transfer.is_below { ", below its rate" } else { "" };
    let held = transfer.held_to_bytes_per_s.map(|held| format!(", held to {}", rate(held)));
    format!("{}{below}{}", transfer.state, held.unwrap_or_default())
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, and no time is negative
fn time(seconds: f64) -> String {
    length((seconds * 1e3) as u64)
}

#[cfg(test)]
mod tests {
    use weir_status::{EndedTransfers, PeakStatus, SensorStatus, TransferKind, TransferState};

    use super::*;

    fn node() -> NodeStatus {
        NodeStatus {
            name: "array".to_owned(),
            url: "file:///srv/array".to_owned(),
            down: None,
            probed_age_s: Some(4.25),
            sensor: None,
            reads: DirectionStatus::default(),
            writes: DirectionStatus {
                active: 3,
                rate_bytes_per_s: 110_000_000,
                average_bytes_per_s: 95_000_000,
                reserved_bytes_per_s: 30_000_000,
                peak: Some(PeakStatus { bytes_per_s: 120_000_000, is_measured: true }),
                moved_bytes: 1,
                external_bytes_per_s: None,
            },
            class: "silver".to_owned(),
            cost: 2,
            domain: "rack1".to_owned(),
            capacity_bytes: Some(2_000_000_000_000),
            stored_bytes: 1_500_000_000,
            objects: 42,
        }
    }

    fn running(number: u64) -> TransferStatus {
        TransferStatus {
            transfer: number,
            kind: TransferKind::Put,
            object: "backup/db".to_owned(),
            state: TransferState::Running,
            why: None,
            node: Some("array".to_owned()),
            bytes: Some(1_000_000_000),
            moved_bytes: 250_000_000,
            had_bytes_per_s: Some(5_000_000),
            asked_bytes_per_s: 10_000_000,
            held_to_bytes_per_s: None,
            is_below: true,
            waited_s: 1.5,
            left_s: Some(150.0),
        }
    }

    fn waiting(number: u64) -> TransferStatus {
        TransferStatus {
            state: TransferState::Waiting,
            why: Some("no node can give it 10.0 MB/s now".to_owned()),
            node: None,
            moved_bytes: 0,
            had_bytes_per_s: None,
            is_below: false,
            left_s: None,
            ..running(number)
        }
    }

    #[test]
    fn a_node_has_a_row_for_each_direction_with_units_and_says_how_old_its_state_is() {
        let text = transfers(&TransfersStatus { nodes: vec![node()], ..TransfersStatus::default() }, None);
        for part in [
            "up",
            "4.2 s ago",
            "reads",
            "writes",
            "110 MB/s",
            "95.0 MB/s",
            "30.0 MB/s",
            "120 MB/s (measured)",
            "1.50 GB",
            "2.00 TB",
            "42",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert_eq!(text.matches("array").count(), 1, "{text}");
    }

    /// The cell of a column in the row of a node's writes.
    fn external_of(node: &NodeStatus) -> String {
        let [(_, reads), (_, writes)] = node.directions();
        assert_eq!(external(node, reads), if node.sensor.is_some() { "stale" } else { "-" });
        external(node, writes)
    }

    #[test]
    fn the_load_of_others_is_a_rate_or_stale_with_its_reason_or_a_dash_without_a_sensor() {
        assert_eq!(external_of(&node()), "-");
        let why = "no answer within 1 s".to_owned();
        let stale = SensorStatus { age_s: Some(7.0), stale: Some(why) };
        let stale = NodeStatus { sensor: Some(stale), ..node() };
        let text =
            transfers(&TransfersStatus { nodes: vec![stale.clone()], ..TransfersStatus::default() }, None);
        let line = "array: its sensor is stale: no answer within 1 s (its last good answer came 7.0 s ago)";
        assert!(text.contains(line), "{text}");
        assert_eq!(external_of(&stale), "stale");
        let writes = DirectionStatus { external_bytes_per_s: Some(150_000_000), ..stale.writes.clone() };
        assert_eq!(external_of(&NodeStatus { writes, ..stale }), "150 MB/s");
    }

    #[test]
    fn a_transfer_below_its_rate_says_so_and_one_that_waits_says_why() {
        let held = TransferStatus { is_below: false, held_to_bytes_per_s: Some(20_000_000), ..running(8) };
        let status = TransfersStatus {
            policy: "deadline".to_owned(),
            waiting: 1,
            running: 2,
            running_below: 1,
            ended: EndedTransfers { done: 40, below: 3, failed: 1, ..EndedTransfers::default() },
            transfers: vec![running(7), held, waiting(9)],
            ..TransfersStatus::default()
        };
        let text = transfers(&status, None);
        for part in [
            "policy deadline: 2 run (1 below the rate asked for), 1 wait; since the start 40 done (3 below the \
             rate asked for), 1 failed, 0 cancelled, 0 interrupted",
            "running, below its rate",
            "running, held to 20.0 MB/s",
            "5.00 MB/s",
            "2 m 30 s",
            "9 waits: no node can give it 10.0 MB/s now",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }

    #[test]
    fn a_node_that_is_down_says_why_and_transfers_that_are_not_shown_are_counted() {
        let down = NodeStatus { down: Some("connection refused".to_owned()), ..node() };
        let listed = (0..60).map(waiting).collect();
        let status = TransfersStatus {
            nodes: vec![down],
            transfers: listed,
            left_out: 5,
            ..TransfersStatus::default()
        };
        let text = transfers(&status, None);
        for part in ["array is down: connection refused", "and 15 transfers more: weir transfers list"] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert_eq!(text.matches(" waits: ").count(), MOST_SHOWN, "{text}");
    }
}
