//! Records as files of JSON lines: each line is a value of one type.

use std::fmt::Write;

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The text of these lines.
///
/// # Panics
/// If a line is no JSON. Numbers and text always are.
pub(crate) fn to_text<L: Serialize>(lines: impl IntoIterator<Item = L>) -> String {
    let mut text = String::new();
    for line in lines {
        let json = serde_json::to_string(&line).expect("numbers and text are JSON");
        writeln!(text, "{json}").expect("memory takes it");
    }
    text
}

/// The lines of a text.
///
/// # Errors
/// For each line that is none, with its number.
pub(crate) fn parse<L: DeserializeOwned>(text: &str) -> impl Iterator<Item = anyhow::Result<L>> {
    let lines = text.lines().zip(1_u64..);
    lines.map(|(line, number)| serde_json::from_str(line).with_context(|| format!("line {number}")))
}
