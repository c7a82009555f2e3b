//! The memory of a coordinator with 100 nodes and 10,000 transfers, each with a client that is connected: as
//! many as one user of the machine may have. One for each node runs, and the others wait.
//!
//! The clients are one program, an example of `io/coordinator`: 10,000 programs would not fit beside what is
//! measured. StaticQoS takes one transfer for each node and no more: a node has four times the rate that each
//! asks for.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::MIB;
use super::site::{Coordinator, Policy};
use crate::bed::{TestBed, build};
use crate::cpu::peak_resident_kib;
use crate::progress::Progress;
use crate::report::{Bar, Figure, Row, Unit};
use crate::status;

/// The name for `--only`.
pub(super) const NAME: &str = "transfers-10000-waiting";

const NODES: u64 = 100;
const TRANSFERS: u64 = 10_000;

/// The most memory that the coordinator may ever have had, in MiB.
const MEMORY: Bar = Bar::AtMost(100.0);

/// What the coordinator says of its transfers.
#[derive(Deserialize)]
struct Status {
    waiting: u64,
    running: u64,
}

/// The clients. They leave when this is dropped.
struct Clients(Child);

impl Drop for Clients {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait(); // it ends with its standard input, and nobody needs it any more
    }
}

/// Measures it.
///
/// # Errors
/// If the coordinator or its clients fail.
#[allow(clippy::cast_precision_loss)] // far below 2^53
pub(super) fn measure(bed: &TestBed, progress: &mut Progress) -> anyhow::Result<Vec<Row>> {
    let clients = build(&["--package", "weir-coordinator", "--example", "queue"])?;
    let folder = bed.scratch("waiting-nodes");
    let mut nodes = String::new();
    for node in 0..NODES {
        let root = folder.join(format!("n{node}"));
        std::fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
        nodes += &format!("[node.n{node}]\nurl = \"file://{}\"\npeak_write = \"40MB/s\"\n", root.display());
    }
    let coordinator = Coordinator::start(bed, "waiting", Policy::Static, &nodes)?;
    let mut command = Command::new(clients);
    command.arg(coordinator.socket()).arg(TRANSFERS.to_string()).arg(NODES.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut clients = Clients(command.spawn().with_context(|| format!("{command:?}: cannot be run"))?);
    let said = clients.0.stdout.take().context("the clients' output is a pipe")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line).context("the clients' output")?;
    ensure!(line.contains("asked for"), "{command:?}: it ended before all had asked");
    let status: Status = status::read(coordinator.metrics()?)?;
    let kib = peak_resident_kib(coordinator.pid())?;
    drop(clients);
    progress.advance(1, &format!("{NAME}: {}", line.trim()));
    let row = |what: &str, value, unit, bar| {
        Row::alone(NAME.to_owned(), what.to_owned(), Figure { value, unit }, Some(bar))
    };
    let mib = kib as f64 * 1024.0 / MIB as f64;
    let here = (status.waiting + status.running) as f64;
    Ok(vec![
        row("transfers that wait or run", here, Unit::Count, Bar::AtLeast(TRANSFERS as f64)),
        row("memory at its highest", mib, Unit::Mebibytes, MEMORY),
    ])
}
