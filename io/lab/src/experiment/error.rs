//! An error in an experiment's file: the line, the key, what was found, and what is accepted.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error in an experiment's file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExperimentError {
    file: String,
    line: Option<usize>,
    key: String,
    message: String,
}

impl ExperimentError {
    /// An error at a key.
    pub(crate) fn at(file: &str, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, key: key.into(), message: message.into() }
    }

    /// The same error in the text of several files. `origin` gives the file that a line is from, and the
    /// line's number in that file.
    pub(crate) fn in_files<'f>(mut self, origin: impl FnOnce(usize) -> (&'f str, usize)) -> Self {
        if let Some(line) = self.line {
            let (file, line) = origin(line);
            (self.file, self.line) = (file.to_owned(), Some(line));
        }
        self
    }

    /// The parser's error about `text`, with the line and the key at which the parser stopped.
    pub(crate) fn of_parser(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let span = error.span();
        let line = span.clone().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let key = span.and_then(|span| key_at(text, &span)).unwrap_or_default();
        Self { file: file.to_owned(), line, key, message: in_our_words(error.message()) }
    }
}

impl std::error::Error for ExperimentError {}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, key, message } = self;
        write!(f, "{file}:")?;
        if let Some(line) = line {
            write!(f, "{line}:")?;
        }
        if !key.is_empty() {
            write!(f, " {key}:")?;
        }
        write!(f, " {message}")
    }
}

/// Puts serde's message into the project's words. Serde says `invalid value: string "5x", expected a
/// duration`, and `unknown field `x`, expected one of ...`.
fn in_our_words(message: &str) -> String {
    let message = message.replace("invalid value: string ", "").replace("invalid type: ", "");
    match message.split_once(", expected ") {
        Some((found, accepted)) => format!("found {}; accepted: {accepted}", found.trim()),
        None => message.trim_end().to_owned(),
    }
}

/// The full path of the innermost key whose value holds `span`.
fn key_at(text: &str, span: &Range<usize>) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let mut path = Vec::new();
    descend(document.get_ref(), span, &mut path);
    (!path.is_empty()).then(|| path.join("."))
}

fn descend(table: &DeTable<'_>, span: &Range<usize>, path: &mut Vec<String>) {
    for (key, value) in table {
        if key.span() == *span || holds(value, span) {
            path.push(key.get_ref().to_string());
            return descend_value(value, span, path);
        }
    }
}

fn descend_value(value: &Spanned<DeValue<'_>>, span: &Range<usize>, path: &mut Vec<String>) {
    match value.get_ref() {
        DeValue::Table(table) => descend(table, span, path),
        DeValue::Array(array) => {
            if let Some(place) = array.iter().position(|element| holds(element, span)) {
                if let Some(last) = path.last_mut() {
                    last.push_str(&format!("[{place}]"));
                }
                descend_value(&array[place], span, path);
            }
        }
        _ => {}
    }
}

/// Whether `span` lies in the value or in anything below it. The span of a table that is written under a
/// header covers only the header, so the values below are asked too.
fn holds(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> bool {
    let own = value.span();
    let within = own.start <= span.start && span.end <= own.end;
    within
        || match value.get_ref() {
            DeValue::Table(table) => {
                table.iter().any(|(key, value)| key.span() == *span || holds(value, span))
            }
            DeValue::Array(array) => array.iter().any(|element| holds(element, span)),
            _ => false,
        }
}
