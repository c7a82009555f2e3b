//! `weir explain`: what was decided about a volume in the last control intervals, and why.

use clap::{Args, ValueEnum};
use weir_api::intervals_path;
use weir_status::Explanation;

use crate::answer::Form;
use crate::ask;
use crate::config::{NAMES, is_name};
use crate::failure::Failure;
use crate::named::{ServerArgument, Usual};
use crate::terminal::{self, printable};

/// What to explain.
#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The kind of thing to explain
    kind: Kind,
    /// Its name
    name: String,
    #[command(flatten)]
    server: ServerArgument,
    #[command(flatten)]
    form: Form,
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
    let ExplainArguments { kind: Kind::Volume, name, server, form } = arguments;
    if !is_name(&name) {
        let found = printable(&name);
        return Err(Failure::usage(format!(
            "volume {found:?}: found a name of no volume; accepted: {NAMES}"
        )));
    }
    let explained: Explanation = ask::get(&server.to_ask(Usual::GATEWAY)?, &intervals_path(&name)).await?;
    form.print(&explained, |explained| weir_table::explanation(explained, terminal::width()))
}
