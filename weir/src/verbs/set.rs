//! `weir set`: changes a target, a priority, a limit or a threshold of a volume or a pool while a server
//! serves it.
//!
//! The server judges the change as it judges its file, and puts it in force or refuses it as a whole. The
//! change lasts until the server reads its file again.

use std::io::Write;

use clap::{Args, ValueEnum};
use weir_api::{CHANGES_PATH, Change};

use crate::ask;
use crate::failure::Failure;
use crate::say;

/// The change, and the server.
#[derive(Args, Debug)]
pub(crate) struct SetArguments {
    /// The kind of thing to change
    kind: Kind,
    /// Its name
    name: String,
    /// For a volume: priority=4, target.latency=5ms, target.p95=20ms, target.throughput=20MiB/s,
    /// target.iops=900, max_iops=1200iops, max_bandwidth=100MiB/s, max_concurrency=64; for a pool:
    /// total_concurrency=80, threshold=10ms. KEY=none takes it away
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// The server: its configuration file, or its control socket
    #[arg(long, value_name = "SOURCE", default_value = ask::USUAL_CONTROL)]
    server: String,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Kind {
    /// A volume, which clients see as a disk
    Volume,
    /// A pool: volumes that share a device
    Pool,
}

/// Asks the server for the change, and prints what is in force.
///
/// # Errors
/// If the server does not answer, or refuses; then nothing has changed.
pub(crate) async fn set(arguments: SetArguments) -> Result<(), Failure> {
    let server = ask::to_change(&arguments.server)?;
    let table = match arguments.kind {
        Kind::Volume => "volume",
        Kind::Pool => "pool",
    };
    let change = Change { table: table.to_owned(), name: arguments.name, set: arguments.set };
    let in_force = server.post(CHANGES_PATH, &change).await.map_err(ask::failure)?;
    Ok(writeln!(say::out(), "{in_force}")?)
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("accepted: KEY=VALUE, such as priority=4")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
