//! `weir transfers`: serves a coordinator of bulk transfers, or asks one.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use weir_coordinator::proto::{State, TransferInfo};

use crate::answer::Form;
use crate::failure::Failure;
use crate::say;
use crate::terminal::printable;
use crate::transfers::shapes::{Transfer, Transfers};
use crate::transfers::{CoordinatorArgument, failure, text};

mod report;
mod serve;

/// What to do.
#[derive(Args, Debug)]
pub(crate) struct TransfersArguments {
    #[command(flatten)]
    coordinator: CoordinatorArgument,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Queue, place and record the transfers of all clients until stopped (SIGTERM)
    Serve {
        /// The configuration file of the coordinator
        file: PathBuf,
    },
    /// Print the transfers that wait, run or were interrupted
    List {
        /// Those that have ended, too
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        form: Form,
    },
    /// Print all that is known of a transfer
    Show {
        /// Its number
        transfer: u64,
        #[command(flatten)]
        form: Form,
    },
    /// End a transfer, and remove what it has written
    Cancel {
        /// Its number
        transfer: u64,
    },
    /// Draw the rates and the waits of the transfers that are done
    Report(report::ReportArguments),
    /// Have the coordinator write a copy of its catalogue to a new file on its own host
    Backup {
        /// The file; an absolute path
        path: PathBuf,
        #[command(flatten)]
        form: Form,
    },
}

/// Serves, or asks.
///
/// # Errors
/// If the coordinator cannot start, or there is none that answers.
pub(crate) async fn transfers(arguments: TransfersArguments) -> Result<(), Failure> {
    let TransfersArguments { coordinator, what } = arguments;
    let out = &mut say::out();
    match what.unwrap_or(What::List { all: false, form: Form::default() }) {
        What::Serve { file } => return serve::serve(&file).await,
        What::List { all, form } => {
            let listed = coordinator.client()?.transfers(all).await.map_err(failure)?;
            form.print(&Transfers::of(&listed), |_| shown_list(&listed))?;
        }
        What::Show { transfer, form } => {
            let found = coordinator.client()?.transfer(transfer).await.map_err(failure)?;
            form.print(&Transfer::from(&found), |_| shown(&found))?;
        }
        What::Cancel { transfer } => {
            let found = coordinator.client()?.cancel(transfer).await.map_err(failure)?;
            writeln!(out, "transfer {transfer} of {} is cancelled", printable(&found.name))?;
        }
        What::Report(arguments) => return report::report(&coordinator, &arguments).await,
        What::Backup { path, form } => {
            let path = path
                .to_str()
                .ok_or_else(|| Failure::usage("backup: found a path that is no text in UTF-8"))?;
            let bytes = coordinator.client()?.backup(path).await.map_err(failure)?;
            let done = BackedUp { path: path.to_owned(), bytes };
            form.print(&done, |done| format!("{path}: {} of catalogue", text::size(done.bytes)))?;
        }
    }
    Ok(())
}

/// A copy of the catalogue.
#[derive(Serialize)]
struct BackedUp {
    path: String,
    bytes: u64,
}

/// A row for each transfer, and a line for each reason to wait.
fn shown_list(listed: &[TransferInfo]) -> String {
    let head = ["transfer", "what", "object", "state", "node", "done", "of", "rate", "asked"];
    let table = text::table(&head, &[0, 5, 6, 7, 8], &[1, 6, 8, 4], listed.iter().map(row));
    let mut lines = vec![table];
    let mut waiting: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for transfer in listed.iter().filter(|transfer| transfer.state() == State::Waiting) {
        waiting.entry(&transfer.why).or_default().push(transfer.transfer);
    }
    for (why, transfers) in waiting {
        let numbers: Vec<_> = transfers.iter().rev().take(5).map(u64::to_string).collect();
        let more = match transfers.len().saturating_sub(numbers.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        lines.push(format!("waiting: {}{more}: {why}", numbers.join(", ")));
    }
    lines.join("\n")
}

fn row(transfer: &TransferInfo) -> Vec<String> {
    vec![
        transfer.transfer.to_string(),
        text::kind(transfer.kind()).to_owned(),
        transfer.name.clone(),
        text::state(transfer.state()).to_owned(),
        if transfer.node.is_empty() { "-".to_owned() } else { transfer.node.clone() },
        text::size(transfer.moved),
        transfer.bytes.map_or("-".to_owned(), text::size),
        had(transfer),
        text::rate(transfer.rate),
    ]
}

fn shown(transfer: &TransferInfo) -> String {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let first_byte = transfer.first_byte_ms.saturating_sub(transfer.asked_ms);
    let lines = [
        ("transfer", transfer.transfer.to_string()),
        ("what", text::kind(transfer.kind()).to_owned()),
        ("object", transfer.name.clone()),
        ("state", text::state(transfer.state()).to_owned()),
        ("because", or_dash(&transfer.why)),
        ("node", or_dash(&transfer.node)),
        ("size", transfer.bytes.map_or("not known".to_owned(), |bytes| format!("{bytes} B"))),
        ("done", format!("{} B", transfer.moved)),
        ("rate", had(transfer)),
        ("asked for", text::rate(transfer.rate)),
        ("class", transfer.class.clone()),
        ("deadline", transfer.deadline_ms.map_or("-".to_owned(), text::time)),
        ("asked at", text::time(transfer.asked_ms)),
        ("started at", text::time(transfer.started_ms)),
        ("waited", if transfer.first_byte_ms == 0 { "-".to_owned() } else { text::length(first_byte) }),
        ("ended at", text::time(transfer.ended_ms)),
    ];
    lines.iter().map(|(key, value)| format!("{key:>10}  {value}\n")).collect()
}

/// The rate that it had while it moved data.
fn had(transfer: &TransferInfo) -> String {
    match transfer.moving_ms {
        0 => "-".to_owned(),
        moving => text::rate(text::rate_of(transfer.moved, moving)),
    }
}
