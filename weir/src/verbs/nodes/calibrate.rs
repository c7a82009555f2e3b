//! `weir nodes calibrate NODE`: measures what a node writes and reads at most.
//!
//! Four streams write incompressible data to a new object each, and then read it, for at most ten seconds and
//! 256 MiB each. What the operating system of the node keeps in memory counts as what the node can do. If
//! that misleads, the operator gives `peak_read` in the file instead.

use std::io::Write;

use anyhow::anyhow;
use bytes::Bytes;
use weir_clock::Clock;
use weir_model::{Instant, Span};
use weir_node::{Node, NodeError, ObjectName};

use crate::config::Source;
use crate::failure::Failure;
use crate::say;
use crate::transfers::{CoordinatorArgument, failure, text};

/// How many streams go on at a time.
const STREAMS: u64 = 4;
/// How long each direction takes at most.
const LONGEST: Span = Span::from_secs(10);
/// The most that each stream moves, in bytes.
const MOST: u64 = 256 << 20;
/// The size of a piece, in bytes.
const PIECE: usize = 1 << 20;

/// Measures a node, and tells the coordinator.
///
/// # Errors
/// If the node is none of the file's, fails, or the coordinator does not answer.
pub(super) async fn calibrate(coordinator: &CoordinatorArgument, name: &str) -> Result<(), Failure> {
    let config =
        Source::read(coordinator.file()).and_then(|source| source.transfers()).map_err(Failure::usage)?;
    let nodes = crate::transfers::nodes(&config).map_err(|failure| failure.in_file(coordinator.file()))?;
    let known = nodes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let node = nodes.iter().find(|(found, _)| found == name).map(|(_, node)| node.clone());
    let node = node.ok_or_else(|| Failure::usage(format!("node: found {name:?}; accepted: {known}")))?;
    let client = coordinator.client()?;
    client.nodes().await.map_err(failure)?; // before anything is written, see that there is somebody to tell
    say::on_stderr(format_args!("weir: writing to {name} for at most {} s", LONGEST.as_secs_f64()));
    let clock = Clock::new();
    let names = (0..STREAMS).map(|stream| object(&clock, stream)).collect::<Vec<_>>();
    let measured = measure(clock, &node, &names, name).await;
    for object in &names {
        if let Err(error) = node.remove(object).await {
            say::on_stderr(format_args!("weir: {object} is left on {name}: {error}"));
        }
    }
    let (read, write) = measured.map_err(|error| Failure::Runtime(anyhow!("{name}: {error}")))?;
    client.set_peak(name, read, write).await.map_err(failure)?;
    Ok(writeln!(say::out(), "{name}: reads {}, writes {}", text::rate(read), text::rate(write))?)
}

async fn measure(
    clock: Clock,
    node: &Node,
    names: &[ObjectName],
    name: &str,
) -> Result<(u64, u64), NodeError> {
    let began = clock.now();
    let writes = names.iter().map(|object| write(clock, node, object, began + LONGEST));
    let written: u64 = all(writes).await?.iter().sum();
    let write = per_second(written, clock.now().since(began));
    say::on_stderr(format_args!("weir: reading from {name} for at most {} s", LONGEST.as_secs_f64()));
    let began = clock.now();
    let reads = names.iter().map(|object| read(clock, node, object, began + LONGEST));
    let read: u64 = all(reads).await?.iter().sum();
    Ok((per_second(read, clock.now().since(began)), write))
}

/// Runs all at the same time.
async fn all<F>(streams: impl Iterator<Item = F>) -> Result<Vec<u64>, NodeError>
where
    F: Future<Output = Result<u64, NodeError>>,
{
    futures_util::future::try_join_all(streams).await
}

async fn write(clock: Clock, node: &Node, name: &ObjectName, until: Instant) -> Result<u64, NodeError> {
    let id = name.as_str().parse().expect("it has letters, digits and - only");
    let mut writer = node.begin(name, &id, None).await?;
    let mut noise = blake3::Hasher::new().update(name.as_str().as_bytes()).finalize_xof();
    let mut bytes = 0;
    while bytes < MOST && clock.now() < until {
        let mut piece = vec![0; PIECE];
        noise.fill(&mut piece);
        writer.write(Bytes::from(piece)).await?;
        bytes += PIECE as u64;
    }
    writer.finish().await?;
    Ok(bytes)
}

async fn read(clock: Clock, node: &Node, name: &ObjectName, until: Instant) -> Result<u64, NodeError> {
    let mut reader = node.read(name, 0).await?;
    let mut bytes = 0;
    while let Some(piece) = reader.next().await? {
        bytes += piece.len() as u64;
        if clock.now() >= until {
            break;
        }
    }
    Ok(bytes)
}

/// The name of a stream's object. Two calibrations at a time do not meet.
fn object(clock: &Clock, stream: u64) -> ObjectName {
    let word = format!("weir-calibration-{:x}-{}-{stream}", clock.unix_ms(), std::process::id());
    word.parse().expect("a plain word is a name")
}

fn per_second(bytes: u64, passed: Span) -> u64 {
    text::rate_of(bytes, passed.as_nanos() / 1_000_000).max(1)
}
