//! `weir explain`: what was decided about a volume in the last control intervals, and why.

use std::io::Write;

use clap::{Args, ValueEnum};
use weir_api::intervals_path;
use weir_status::Explanation;

use crate::ask;
use crate::failure::Failure;
use crate::say;
use crate::terminal::printable;

/// What to explain.
#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The kind of thing to explain
    kind: Kind,
    /// Its name
    name: String,
    /// The server: its configuration file, the URL of its metrics address, or its control socket
    #[arg(default_value = ask::USUAL_METRICS)]
    source: String,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Kind {
    /// A volume, which clients see as a disk
    Volume,
}

/// Prints a row for each interval.
///
/// # Errors
/// If there is no server that answers, or no such volume.
pub(crate) async fn explain(arguments: ExplainArguments) -> Result<(), Failure> {
    let ExplainArguments { kind: Kind::Volume, name, source } = arguments;
    let explained: Explanation = ask::get(&ask::to_ask(&source)?, &intervals_path(&name)).await?;
    Ok(writeln!(say::out(), "{}", printable(&weir_table::explanation(&explained)))?)
}
