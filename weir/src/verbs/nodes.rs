//! `weir nodes`: what the storage nodes of a coordinator do, and what they can do.

use std::io::Write;

use clap::{Args, Subcommand};
use weir_coordinator::proto::{Direction, NodeInfo};

use crate::failure::Failure;
use crate::say;
use crate::terminal::printable;
use crate::transfers::{CoordinatorArgument, failure, text};

mod calibrate;

/// What to do.
#[derive(Args, Debug)]
pub(crate) struct NodesArguments {
    #[command(flatten)]
    coordinator: CoordinatorArgument,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Measure what a node writes and reads at most, for at most 10 s each, and tell the coordinator
    Calibrate {
        /// The node
        node: String,
    },
}

/// Prints the nodes, or measures one.
///
/// # Errors
/// If the coordinator does not answer, or the node cannot be measured.
pub(crate) async fn nodes(arguments: NodesArguments) -> Result<(), Failure> {
    let NodesArguments { coordinator, what } = arguments;
    if let Some(What::Calibrate { node }) = what {
        return calibrate::calibrate(&coordinator, &node).await;
    }
    let listed = coordinator.client()?.nodes().await.map_err(failure)?;
    let head = [
        "node",
        "state",
        "",
        "transfers",
        "now",
        "last 10 s",
        "reserved",
        "external",
        "peak",
        "stored",
        "of",
    ];
    let rows = listed.nodes.iter().flat_map(|node| {
        [("reads", node.reads.unwrap_or_default()), ("writes", node.writes.unwrap_or_default())]
            .map(|(what, direction)| row(node, what, direction))
    });
    let out = &mut say::out();
    writeln!(out, "{}", printable(&text::table(&head, &[3, 4, 5, 6, 7, 8, 9, 10], rows).to_string()))?;
    writeln!(out, "policy: {}", listed.policy)?;
    for node in listed.nodes.iter().filter(|node| !node.is_up) {
        writeln!(out, "{}", printable(&format!("{} is down: {}", node.name, node.why)))?;
    }
    for node in &listed.nodes {
        if let Some(sensor) = node.sensor.as_ref().filter(|sensor| !sensor.stale.is_empty()) {
            let line = format!("{}: its sensor is stale: {}", node.name, sensor.stale);
            writeln!(out, "{}", printable(&line))?;
        }
    }
    Ok(())
}

fn row(node: &NodeInfo, what: &str, direction: Direction) -> Vec<String> {
    let is_first = what == "reads";
    let once = |text: String| if is_first { text } else { String::new() };
    let unknown = if node.sensor.is_some() { "stale" } else { "-" };
    let measured = if direction.peak_measured { " (measured)" } else { "" };
    vec![
        once(node.name.clone()),
        once(if node.is_up { "up" } else { "down" }.to_owned()),
        what.to_owned(),
        direction.active.to_string(),
        text::rate(direction.rate),
        text::rate(direction.average),
        text::rate(direction.reserved),
        direction.external.map_or(unknown.to_owned(), text::rate),
        format!("{}{measured}", text::rate_or_dash(direction.peak)),
        once(text::size(node.stored_bytes)),
        once(node.capacity.map_or("-".to_owned(), text::size)),
    ]
}
