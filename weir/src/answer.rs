//! What a verb was asked for, on standard output: for people, or as JSON for scripts.

use std::io::Write;

use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::say;
use crate::terminal::{printable, printable_json};

/// In which form a verb answers.
#[derive(Args, Clone, Copy, Default, Debug)]
pub(crate) struct Form {
    /// Print JSON for scripts, with units in the names of its keys (weir doc operating)
    #[arg(long)]
    pub(crate) json: bool,
}

impl Form {
    /// Prints the value: as JSON, or as the text that `shown` makes of it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn print<T: Serialize>(
        self,
        value: &T,
        shown: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        let text = if self.json { json(value)? } else { printable(shown(value).trim_end_matches('\n')) };
        Ok(writeln!(say::out(), "{text}")?)
    }
}

/// The value as JSON of several lines.
///
/// # Errors
/// If it is no plain data.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    Ok(printable_json(&serde_json::to_string_pretty(value)?))
}

/// The value as JSON of one line.
///
/// # Errors
/// If it is no plain data.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    Ok(printable_json(&serde_json::to_string(value)?))
}
