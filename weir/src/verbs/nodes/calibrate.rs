//! `weir nodes calibrate NODE`: measures what a node writes and reads at most.
//!
//! Four streams write incompressible data to a new object each, and then read it, for at most ten seconds and
//! 256 MiB each. What the operating system of the node keeps in memory counts as what the node can do. If
//! that misleads, the operator gives `peak_read` in the file instead.
//!
//! The names of the objects and of their partials are the same each time. So a calibration finds, and
//! removes, what an earlier one left that was killed. With names of their own, nobody could tell what is
//! left: a node lists nothing. Two costs: two calibrations of a node at a time fail, and an upload to S3
//! whose client was killed is found only by the bucket's own rule. The coordinator takes no object of such a
//! name, and a file with other data than a calibration's stays: then nothing is measured.

use std::cell::{Cell, RefCell};
use std::pin::pin;

use anyhow::anyhow;
use blake3::OutputReader;
use bytes::Bytes;
use futures_util::future::join_all;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use weir_clock::Clock;
use weir_coordinator::CALIBRATION;
use weir_model::{Instant, Span};
use weir_node::{ErrorKind, Node, NodeError, Note, ObjectName, PartialId};

use crate::answer::Form;
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

/// What one stream writes and then reads.
struct Stream {
    object: ObjectName,
    id: PartialId,
    /// Of its partial.
    notes: RefCell<Vec<Note>>,
}

/// Measures a node, and tells the coordinator. Nothing stays on the node, also if a signal ends it.
///
/// # Errors
/// If the node is none of the file's, fails, or the coordinator does not answer.
pub(super) async fn calibrate(
    coordinator: &CoordinatorArgument,
    name: &str,
    form: Form,
) -> Result<(), Failure> {
    let config =
        Source::read(coordinator.file()).and_then(|source| source.transfers()).map_err(Failure::usage)?;
    let nodes = crate::transfers::nodes(&config).map_err(|failure| failure.in_file(coordinator.file()))?;
    let known = nodes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let node = nodes.iter().find(|(found, _)| found == name).map(|(_, node)| node.clone());
    let node = node.ok_or_else(|| Failure::usage(format!("node: found {name:?}; accepted: {known}")))?;
    let client = coordinator.client()?;
    // Before anything is written, this also sees that there is somebody to tell.
    client.objects(CALIBRATION).await.map_err(failure)?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let streams: Vec<_> = (0..STREAMS).map(|stream| Stream::new(&node, stream)).collect();
    let of_node = |error: NodeError| Failure::Runtime(anyhow!("{name}: {error}"));
    for stream in &streams {
        if !stream.is_ours(&node).await.map_err(of_node)? {
            let file = &stream.object;
            let found = format!("{name}: found a file {file} with other data; accepted: none of that name");
            return Err(Failure::usage(found));
        }
    }
    clean(&node, &streams).await.map_err(of_node)?;
    say::on_stderr(format_args!("weir: writing to {name} for at most {} s", LONGEST.as_secs_f64()));
    let stop = Cell::new(false);
    let measured = {
        let mut measuring = pin!(measure(Clock::new(), &node, &streams, name, &stop));
        let signalled = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        tokio::select! {
            measured = &mut measuring => measured,
            () = signalled => {
                stop.set(true);
                measuring.await
            }
        }
    };
    if let Err(error) = clean(&node, &streams).await {
        say::on_stderr(format_args!(
            "weir: {name} keeps data of the calibration, which the next one removes: {error}"
        ));
    }
    let stopped = || Failure::Runtime(anyhow!("{name}: stopped by a signal; nothing was measured"));
    let (read, write) = measured.map_err(of_node)?.ok_or_else(stopped)?;
    client.set_peak(name, read, write).await.map_err(failure)?;
    let peaks = Peaks { node: name.to_owned(), read_bytes_per_s: read, write_bytes_per_s: write };
    form.print(&peaks, |_| format!("{name}: reads {}, writes {}", text::rate(read), text::rate(write)))
}

/// What was measured.
#[derive(Serialize)]
struct Peaks {
    node: String,
    read_bytes_per_s: u64,
    write_bytes_per_s: u64,
}

impl Stream {
    fn new(node: &Node, number: u64) -> Self {
        let name = format!("{CALIBRATION}{number}");
        let id = name.parse().expect("it has letters, digits and - only");
        let notes = RefCell::new(node.notes_before(&id));
        Self { object: name.parse().expect("a plain word is a name"), id, notes }
    }

    /// What it writes: always the same bytes, which no compression makes shorter.
    fn noise(&self) -> OutputReader {
        blake3::Hasher::new().update(self.object.as_str().as_bytes()).finalize_xof()
    }

    /// Whether the node has nothing under its name, or what an earlier calibration wrote. The first piece
    /// tells: nobody else writes this noise.
    async fn is_ours(&self, node: &Node) -> Result<bool, NodeError> {
        let mut reader = match node.read(&self.object, 0).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
            reader => reader?,
        };
        let found = match reader.next().await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
            found => found?.unwrap_or_default(),
        };
        let mut noise = vec![0; found.len()];
        self.noise().fill(&mut noise);
        Ok(!found.is_empty() && found == noise)
    }
}

/// Removes everything that a calibration may have left. No writer may be at work any more.
async fn clean(node: &Node, streams: &[Stream]) -> Result<(), NodeError> {
    let one = async |stream: &Stream| {
        let notes = stream.notes.borrow().clone();
        let discarded = node.discard(&notes).await.map(drop);
        node.remove(&stream.object).await.and(discarded)
    };
    join_all(streams.iter().map(one)).await.into_iter().collect()
}

/// What the node reads and writes, in bytes a second; `None` if it was stopped. No stream is at work any more
/// then: what a stream that is dropped has ordered may still come about.
async fn measure(
    clock: Clock,
    node: &Node,
    streams: &[Stream],
    name: &str,
    stop: &Cell<bool>,
) -> Result<Option<(u64, u64)>, NodeError> {
    let began = clock.now();
    let written =
        all(streams.iter().map(|stream| write(clock, node, stream, began + LONGEST, stop)), stop).await?;
    let write = per_second(written, clock.now().since(began));
    if stop.get() {
        return Ok(None);
    }
    say::on_stderr(format_args!("weir: reading from {name} for at most {} s", LONGEST.as_secs_f64()));
    let began = clock.now();
    let read =
        all(streams.iter().map(|stream| read(clock, node, stream, began + LONGEST, stop)), stop).await?;
    let read = per_second(read, clock.now().since(began));
    Ok((!stop.get()).then_some((read, write)))
}

/// Runs all at the same time, until each has ended. One that fails stops the others.
async fn all<F>(streams: impl Iterator<Item = F>, stop: &Cell<bool>) -> Result<u64, NodeError>
where
    F: Future<Output = Result<u64, NodeError>>,
{
    let one = async |stream: F| stream.await.inspect_err(|_| stop.set(true));
    join_all(streams.map(one)).await.into_iter().sum()
}

async fn write(
    clock: Clock,
    node: &Node,
    stream: &Stream,
    until: Instant,
    stop: &Cell<bool>,
) -> Result<u64, NodeError> {
    let Stream { object, id, notes } = stream;
    let mut writer = node.begin(object, id, None).await?;
    let mut noise = stream.noise();
    let mut bytes = 0;
    // At least one piece, as the next calibration knows an object of this one by its data.
    while bytes == 0 || bytes < MOST && clock.now() < until && !stop.get() {
        let mut piece = vec![0; PIECE];
        noise.fill(&mut piece);
        let written = writer.write(Bytes::from(piece)).await;
        // Those of the node's own ids, such as an upload's; the others are there from the start.
        let known = notes.borrow().clone();
        notes.borrow_mut().extend(writer.take_notes().into_iter().filter(|note| !known.contains(note)));
        written?;
        bytes += PIECE as u64;
    }
    if !stop.get() {
        writer.finish().await?;
    }
    Ok(bytes)
}

async fn read(
    clock: Clock,
    node: &Node,
    stream: &Stream,
    until: Instant,
    stop: &Cell<bool>,
) -> Result<u64, NodeError> {
    let mut reader = node.read(&stream.object, 0).await?;
    let mut bytes = 0;
    while let Some(piece) = reader.next().await? {
        bytes += piece.len() as u64;
        if clock.now() >= until || stop.get() {
            break;
        }
    }
    Ok(bytes)
}

fn per_second(bytes: u64, passed: Span) -> u64 {
    text::rate_of(bytes, passed.as_nanos() / 1_000_000).max(1)
}
