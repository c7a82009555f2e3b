//! The file as the operator wrote it: TOML tables in which every value knows its line and its full key.
//!
//! The table that the `toml` crate parses keeps the place of every key and value, so this module reads that
//! table directly. A [`Section`] is asked for each key, together with the values that the key accepts. It
//! notes a [`Problem`] for each mistake, so that one run reports them all. Deserialising into structs would
//! end at the first error, name no key path, and word the error in the parser's terms.

use std::cell::RefCell;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::accepts::Accepts;
use super::error::Problem;
use super::origin::{Origin, Resolved};

/// How much of a value a message repeats, in characters.
const MOST_SHOWN: usize = 60;

/// Keys of earlier versions, each with the key that replaces it, and its meaning.
const REPLACED: &[(&str, &str, &str)] = &[(
    "background_deadline",
    "background_share",
    "the part of the device's time that volumes without an SLO get where those with one keep it full",
)];

/// The text of the file and the problems found in it so far.
pub(super) struct Document<'t> {
    /// The file, and behind it the values that were set since it was read.
    text: &'t str,
    /// How many bytes of it are the file.
    file: usize,
    /// Where its lines end. Each value needs its line, and a file may have many values and many lines.
    line_ends: Vec<usize>,
    problems: RefCell<Vec<Problem>>,
}

/// A table of the file.
pub(super) struct Section<'d> {
    document: &'d Document<'d>,
    table: &'d DeTable<'d>,
    path: String,
    line: usize,
    keys: &'static [&'static str],
}

/// An element of an array of the file.
pub(super) struct Element<'d> {
    document: &'d Document<'d>,
    value: &'d Spanned<DeValue<'d>>,
    path: String,
}

impl<'t> Document<'t> {
    pub(super) fn new(text: &'t str, file: usize) -> Self {
        let line_ends =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        Self { text, file, line_ends, problems: RefCell::default() }
    }

    /// The tables of the file. If it is no TOML, `None` and a noted problem.
    pub(super) fn parse(&self) -> Option<Spanned<DeTable<'t>>> {
        DeTable::parse(&self.text[..self.file]).map_err(|error| self.note_syntax(&error)).ok()
    }

    /// The values that were set. `behind` is the same text with blanks in place of the file. If it is no
    /// TOML, `None` and a noted problem.
    pub(super) fn parse_changes<'c>(&self, behind: &'c str) -> Option<Spanned<DeTable<'c>>> {
        DeTable::parse(behind).map_err(|error| self.note_syntax(&error)).ok()
    }

    /// The problems found so far.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }

    /// Notes a problem.
    pub(super) fn note(&self, line: usize, key: &str, found: impl Into<String>, accepted: impl Into<String>) {
        let (found, accepted) = (found.into(), accepted.into());
        self.problems.borrow_mut().push(Problem { line, key: key.to_owned(), found, accepted });
    }

    fn note_syntax(&self, error: &toml::de::Error) {
        let span = error.span().unwrap_or(0..0);
        let line = self.line(&span);
        let here = self.text.get(span.clone()).unwrap_or_default();
        if error.message() == "duplicate key" {
            self.note(line, &self.duplicate_key(&span), "a second time", "each name once");
        } else {
            let found = if here.trim().is_empty() { "the end of the line" } else { &shorten(here) };
            self.note(line, "", found, format!("valid TOML ({})", error.message()));
        }
    }

    /// The full path of the key at `span`. The parser returns no table in this case, so the header of the
    /// table is searched in the text. The path is only for the message.
    fn duplicate_key(&self, span: &Range<usize>) -> String {
        let before = self.text.get(..span.start).unwrap_or_default();
        let before = &before[..before.rfind('\n').map_or(0, |end| end + 1)]; // the end of a line is a place to cut
        let header = |line: &str| line.trim_start().strip_prefix('[')?.split(']').next().map(str::to_owned);
        let line = self.text.get(before.len()..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        if let Some(path) = header(line) {
            return path;
        }
        let key = self.text.get(span.clone()).unwrap_or_default();
        match before.lines().rev().find_map(header) {
            Some(table) => format!("{table}.{key}"),
            None => key.to_owned(),
        }
    }

    /// The line of a span, counted from one; zero behind the file.
    fn line(&self, span: &Range<usize>) -> usize {
        if span.start > self.file {
            return 0;
        }
        1 + self.line_ends.partition_point(|end| *end < span.start)
    }

    /// A value in the form for a message.
    fn show(&self, value: &Spanned<DeValue<'_>>) -> String {
        match value.get_ref() {
            DeValue::String(text) => shorten(&format!("{text:?}")),
            DeValue::Array(array) if array.is_empty() => "an empty array".to_owned(),
            DeValue::Array(_) => "an array".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            _ => shorten(self.text.get(value.span()).unwrap_or_default()),
        }
    }
}

impl<'d> Section<'d> {
    /// The whole file, which accepts `keys`.
    pub(super) fn root(
        document: &'d Document<'d>,
        table: &'d DeTable<'d>,
        keys: &'static [&'static str],
    ) -> Self {
        Self::checked(document, table, String::new(), 1, keys)
    }

    /// A table that accepts `keys`. A problem is noted for each other key.
    fn checked(
        document: &'d Document<'d>,
        table: &'d DeTable<'d>,
        path: String,
        line: usize,
        keys: &'static [&'static str],
    ) -> Self {
        let section = Self { document, table, path, line, keys };
        for key in table.keys().filter(|key| !keys.contains(&key.get_ref().as_ref())) {
            let line = document.line(&key.span());
            let replaced = REPLACED.iter().find(|(old, ..)| key.get_ref() == old);
            let (found, accepted) = match replaced.filter(|(_, new, _)| keys.contains(new)) {
                Some((_, new, what)) => ("a key of earlier versions", format!("{new}, {what}")),
                None => ("an unknown key", keys.join(", ")),
            };
            document.note(line, &section.path_of(key.get_ref()), found, accepted);
        }
        section
    }

    /// Full path of `key` of this table.
    pub(super) fn path_of(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Whether the key is there, with an accepted value or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// The value of `key`. If it is missing or not accepted, `None` and a noted problem.
    pub(super) fn required<T: 'static>(&self, key: &str, accepts: &Accepts<T>) -> Option<Resolved<T>> {
        if !self.has(key) {
            self.document.note(self.line, &self.path_of(key), "nothing", accepts.words());
        }
        self.read(key, accepts)
    }

    /// The value of `key`; if it is missing, `default` with this `reason`.
    pub(super) fn or_default<T: 'static>(
        &self,
        key: &str,
        accepts: &Accepts<T>,
        default: T,
        reason: &'static str,
    ) -> Resolved<T> {
        self.read(key, accepts).unwrap_or(Resolved { value: default, origin: Origin::Default(reason) })
    }

    /// The value of `key`, if it is there. `meaning` says what its absence means.
    pub(super) fn optional<T: 'static>(
        &self,
        key: &str,
        accepts: &Accepts<T>,
        meaning: &'static str,
    ) -> Resolved<Option<T>> {
        match self.read(key, accepts) {
            Some(found) => Resolved { value: Some(found.value), origin: found.origin },
            None => Resolved { value: None, origin: Origin::Default(meaning) },
        }
    }

    /// The elements of the array `key`; none if the key is missing. An empty array is a problem, and so is
    /// any other type.
    pub(super) fn elements(&self, key: &str, accepted: &str) -> Vec<Element<'d>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array().filter(|array| !array.is_empty()) else {
            self.refuse(key, accepted);
            return Vec::new();
        };
        let path = |i| format!("{}[{i}]", self.path_of(key));
        let document = self.document;
        array.iter().enumerate().map(|(i, value)| Element { document, value, path: path(i) }).collect()
    }

    /// The table `key`, which accepts `keys`.
    pub(super) fn section(&self, key: &str, keys: &'static [&'static str]) -> Option<Section<'d>> {
        let value = self.value(key)?;
        self.document.table(self.path_of(key), value, keys)
    }

    /// The tables `[key.NAME]`, by name, each of which accepts `keys`.
    pub(super) fn named(&self, key: &str, keys: &'static [&'static str]) -> Vec<(String, Section<'d>)> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(table) = value.get_ref().as_table() else {
            self.refuse(key, &format!("tables [{key}.NAME]"));
            return Vec::new();
        };
        let line = self.document.line(&value.span());
        let (document, path) = (self.document, self.path_of(key));
        let group = Section { document, table, path, line, keys: &[] };
        let mut named = Vec::new();
        for (name, value) in table {
            let path = group.path_of(name.get_ref());
            if let Some(section) = self.document.table(path, value, keys) {
                named.push((name.get_ref().to_string(), section));
            }
        }
        named
    }

    /// The values `key.NAME`, by name, of any type.
    pub(super) fn named_values(&self, key: &str) -> Vec<(String, Element<'d>)> {
        self.entries(key, &format!("tables [{key}.NAME]")).unwrap_or_default()
    }

    /// The values in the table `key`, by name; `None` if the key is missing. Any other type is a problem.
    pub(super) fn entries(&self, key: &str, accepted: &str) -> Option<Vec<(String, Element<'d>)>> {
        let element = Element { document: self.document, value: self.value(key)?, path: self.path_of(key) };
        let entries = element.entries();
        if entries.is_none() {
            self.refuse(key, accepted);
        }
        entries
    }

    /// A value whose origin is the table as a whole.
    pub(super) fn resolved<T>(&self, value: T) -> Resolved<T> {
        Resolved { value, origin: Origin::at(self.line) }
    }

    /// Notes that `key` does not accept its value.
    pub(super) fn refuse(&self, key: &str, accepted: &str) {
        if let Some(value) = self.value(key) {
            self.refuse_found(key, self.document.show(value), accepted);
        }
    }

    /// Notes that `key` does not accept its value, with the caller's words for what was found.
    pub(super) fn refuse_found(&self, key: &str, found: impl Into<String>, accepted: &str) {
        let line = self.value(key).map_or(self.line, |value| self.document.line(&value.span()));
        self.document.note(line, &self.path_of(key), found, accepted);
    }

    /// Notes that the table itself is not accepted.
    pub(super) fn refuse_table(&self, found: impl Into<String>, accepted: &str) {
        self.document.note(self.line, &self.path, found, accepted);
    }

    fn read<T: 'static>(&self, key: &str, accepts: &Accepts<T>) -> Option<Resolved<T>> {
        let value = self.value(key)?;
        self.document.read(&self.path_of(key), value, accepts)
    }

    fn value(&self, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        assert!(self.keys.contains(&key), "{key} is read, but is not among the keys of the table");
        self.table.get(key)
    }
}

impl<'d> Element<'d> {
    /// The element. If it is not accepted, `None` and a noted problem.
    pub(super) fn read<T: 'static>(&self, accepts: &Accepts<T>) -> Option<Resolved<T>> {
        self.document.read(&self.path, self.value, accepts)
    }

    /// The values in it by name, if it is a table.
    pub(super) fn entries(&self) -> Option<Vec<(String, Self)>> {
        let table = self.value.get_ref().as_table()?;
        let (document, path) = (self.document, |name: &str| join(&self.path, name));
        let entry = |name: &str, value| (name.to_owned(), Self { document, value, path: path(name) });
        Some(table.iter().map(|(name, value)| entry(name.get_ref(), value)).collect())
    }

    /// The element as a table that accepts `keys`.
    pub(super) fn section(&self, keys: &'static [&'static str]) -> Option<Section<'d>> {
        self.document.table(self.path.clone(), self.value, keys)
    }

    /// The element as a type that reads itself. If it does not, `None` and a noted problem.
    ///
    /// This is for the text forms that other crates own. Serde ends at the first problem.
    pub(super) fn deserialize<T: DeserializeOwned>(&self) -> Option<T> {
        match T::deserialize(ValueDeserializer::from(self.value.clone())) {
            Ok(value) => Some(value),
            Err(error) => {
                let span = error.span().unwrap_or_else(|| self.value.span());
                let (line, path) =
                    (self.document.line(&span), innermost(self.path.clone(), self.value, &span));
                let (found, accepted) = self.document.found_and_accepted(&error, &span);
                self.document.note(line, &path, found, accepted);
                None
            }
        }
    }

    /// Every value in it that is no table and no array: its full key, and the text of the value, without
    /// quotes.
    pub(super) fn written(&self) -> Vec<(String, Resolved<String>)> {
        let mut values = Vec::new();
        self.document.list(&self.path, self.value, &mut values);
        values
    }

    /// Notes that the value under `key` of the table is not accepted, or is missing.
    pub(super) fn refuse_key(&self, key: &str, found: impl Into<String>, accepted: impl Into<String>) {
        let there = self.value.get_ref().as_table().and_then(|table| table.get(key)).unwrap_or(self.value);
        self.document.note(self.document.line(&there.span()), &join(&self.path, key), found, accepted);
    }

    /// Notes that the element is not accepted, with the caller's words for what was found.
    pub(super) fn refuse_found(&self, found: impl Into<String>, accepted: impl Into<String>) {
        let line = self.document.line(&self.value.span());
        self.document.note(line, &self.path, found, accepted);
    }

    /// Notes that the element is not accepted.
    pub(super) fn refuse(&self, accepted: &str) {
        let line = self.document.line(&self.value.span());
        self.document.note(line, &self.path, self.document.show(self.value), accepted);
    }
}

impl<'d> Document<'d> {
    fn list(&self, path: &str, value: &Spanned<DeValue<'_>>, values: &mut Vec<(String, Resolved<String>)>) {
        match value.get_ref() {
            DeValue::Table(table) => {
                table.iter().for_each(|(key, value)| self.list(&join(path, key.get_ref()), value, values));
            }
            DeValue::Array(array) => {
                let elements = array.iter().enumerate();
                elements.for_each(|(i, value)| self.list(&format!("{path}[{i}]"), value, values));
            }
            scalar => {
                let raw = self.text.get(value.span()).unwrap_or_default();
                let value_as_text = scalar.as_str().unwrap_or(raw).to_owned();
                let origin = Origin::at(self.line(&value.span()));
                values.push((path.to_owned(), Resolved { value: value_as_text, origin }));
            }
        }
    }

    /// Serde's message, in the two halves of a problem. Serde has no other interface for it than its text.
    fn found_and_accepted(&self, error: &toml::de::Error, span: &Range<usize>) -> (String, String) {
        let message = error.message();
        if let Some((found, accepted)) = message.split_once("; accepted: ") {
            return (found.trim_start_matches("found ").to_owned(), accepted.to_owned());
        }
        let (what, accepted) =
            message.split_once(", expected ").unwrap_or((message, "what docs/config.md says"));
        let accepted = accepted.trim_start_matches("one of ").replace('`', "");
        let found = match what.split_once(' ') {
            Some(("unknown", rest)) if rest.starts_with("field") => "an unknown key".to_owned(),
            Some(("missing", rest)) => {
                format!("nothing for {}", rest.trim_start_matches("field ").replace('`', ""))
            }
            Some(("invalid" | "unknown", _)) => shorten(self.text.get(span.clone()).unwrap_or_default()),
            _ => what.to_owned(),
        };
        (found, accepted)
    }

    fn read<T: 'static>(
        &self,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        accepts: &Accepts<T>,
    ) -> Option<Resolved<T>> {
        let line = self.line(&value.span());
        if let Some(value) = accepts.read(value.get_ref()) {
            return Some(Resolved { value, origin: Origin::at(line) });
        }
        self.note(line, path, self.show(value), accepts.words());
        None
    }

    fn table(
        &'d self,
        path: String,
        value: &'d Spanned<DeValue<'d>>,
        keys: &'static [&'static str],
    ) -> Option<Section<'d>> {
        let line = self.line(&value.span());
        if let Some(table) = value.get_ref().as_table() {
            return Some(Section::checked(self, table, path, line, keys));
        }
        self.note(line, &path, self.show(value), format!("a table with the keys {}", keys.join(", ")));
        None
    }
}

/// The full path of the value that an error at `span` is about, within `value` at `path`. It is the innermost
/// value that holds the span, in its key or in itself.
fn innermost(path: String, value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> String {
    let holds = |outer: &Range<usize>| outer.start <= span.start && span.end <= outer.end;
    let within: Option<(String, &Spanned<DeValue<'_>>)> = match value.get_ref() {
        DeValue::Table(table) => table
            .iter()
            .find(|(key, value)| holds(&key.span()) || holds(&value.span()))
            .map(|(key, value)| (join(&path, key.get_ref()), value)),
        DeValue::Array(array) => {
            let found = array.iter().enumerate().find(|(_, value)| holds(&value.span()));
            found.map(|(i, value)| (format!("{path}[{i}]"), value))
        }
        _ => None,
    };
    match within {
        Some((path, value)) => innermost(path, value, span),
        None => path,
    }
}

/// The full path of `key` in the table `path`, quoted if TOML requires that.
pub(super) fn join(path: &str, key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    // A shortened key is in quotation marks too: it has an ellipsis. Control characters are escaped in them.
    let key = beginning(key);
    let key = if !key.is_empty() && key.chars().all(bare) { key } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The beginning of a text, on one line.
pub(super) fn shorten(text: &str) -> String {
    beginning(text).replace(char::is_control, " ")
}

fn beginning(text: &str) -> String {
    let first: String = text.chars().take(MOST_SHOWN).collect();
    if first.len() < text.len() { format!("{first}…") } else { first }
}
