//! `weir nodes`: what the storage nodes of a coordinator do, and what they can do.

use clap::{Args, Subcommand};
use weir_coordinator::proto::{Direction, NodeInfo, NodeList};

use crate::answer::Form;
use crate::failure::Failure;
use crate::transfers::shapes::Nodes;
use crate::transfers::{CoordinatorArgument, failure, text};

mod calibrate;

/// What to do.
#[derive(Args, Debug)]
pub(crate) struct NodesArguments {
    #[command(flatten)]
    coordinator: CoordinatorArgument,
    #[command(flatten)]
    form: Form,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Measure what a node writes and reads at most, for at most 10 s each, and tell the coordinator
    Calibrate {
        /// The node
        node: String,
        #[command(flatten)]
        form: Form,
    },
}

/// Prints the nodes, or measures one.
///
/// # Errors
/// If the coordinator does not answer, or the node cannot be measured.
pub(crate) async fn nodes(arguments: NodesArguments) -> Result<(), Failure> {
    let NodesArguments { coordinator, form, what } = arguments;
    if let Some(What::Calibrate { node, form }) = what {
        return calibrate::calibrate(&coordinator, &node, form).await;
    }
    let listed = coordinator.client()?.nodes().await.map_err(failure)?;
    form.print(&Nodes::from(&listed), |_| shown(&listed))
}

/// Two rows for each node, and a line for each that is down or whose sensor is stale.
fn shown(listed: &NodeList) -> String {
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
    let table = text::table(&head, &[3, 4, 5, 6, 7, 8, 9, 10], &[10, 9, 5, 8, 6, 7], rows);
    let mut lines = vec![table, format!("policy: {}", listed.policy)];
    let down = listed.nodes.iter().filter(|node| !node.is_up);
    lines.extend(down.map(|node| format!("{} is down: {}", node.name, node.why)));
    for node in &listed.nodes {
        if let Some(sensor) = node.sensor.as_ref().filter(|sensor| !sensor.stale.is_empty()) {
            lines.push(format!("{}: its sensor is stale: {}", node.name, sensor.stale));
        }
    }
    lines.join("\n")
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
