//! Changes since the file was read: `weir set`.
//!
//! A change is an additional value for a key of the file. The code that reads a file reads the whole anew
//! with this value. So nothing can be set that could not have been written in the file, and mistakes that
//! only show in several tables together are found too. To change single values in force instead would be a
//! second set of rules.
//!
//! A value is bounded in length and nesting before it is read. No value of a changeable key comes near these
//! bounds. They are there because a parser's behaviour with deeply nested brackets must not depend on the
//! text around them.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::accepts::quoted;
use super::error::{ConfigError, Problem};
use super::file::text_of;
use super::reader::{Document, join, shorten};
use super::{Config, ControllerConfig, ThrottleConfig, TransfersConfig, resolve};

/// The keys of each table that can be changed while it is served.
const CHANGEABLE: &[(&str, &[&str])] = &[
    ("volume", &["target", "priority", "max_iops", "max_bandwidth", "max_concurrency"]),
    ("pool", &["total_concurrency", "threshold"]),
];

/// The longest value, in bytes.
const LONGEST_VALUE: usize = 1024;

/// How deep arrays and tables may be nested in a value. A target and a total are tables of one level.
const DEEPEST_VALUE: usize = 8;

/// How many keys can be set at a time. Each metric of a target is a key of its own.
const MOST_KEYS: usize = 64;

/// A configuration file as it was read, and the changes since.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    path: PathBuf,
    /// Whether it was read from a file, which can be read again.
    is_file: bool,
    text: String,
    /// At most one for each key.
    changes: Vec<Change>,
}

/// A value for a key that replaces the file's.
#[derive(Clone, Debug)]
struct Change {
    table: String,
    name: String,
    key: String,
    /// The value as TOML, on one line; `None`: as if the key were not in the file.
    value: Option<String>,
}

impl Source {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = text_of(path).map_err(|error| ConfigError::unreadable(path, error))?;
        Ok(Self::of(path, text))
    }

    /// A source with the text `text`, as if it had been read from `path`.
    pub(crate) fn of(path: &Path, text: String) -> Self {
        Self { path: path.to_owned(), is_file: true, text, changes: Vec::new() }
    }

    /// What the arguments of a command say, as the text of a file.
    pub(crate) fn of_arguments(text: String) -> Self {
        Self { is_file: false, ..Self::of(Path::new("arguments"), text) }
    }

    /// The file as it is now, without the changes.
    ///
    /// # Errors
    /// If it cannot be read, or there is none.
    pub(crate) fn read_again(&self) -> Result<Self, ConfigError> {
        if self.is_file {
            return Self::read(&self.path);
        }
        Err(ConfigError::without_file())
    }

    /// Whether it was read from a file.
    pub(crate) fn is_file(&self) -> bool {
        self.is_file
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration of a gateway, with the changes.
    ///
    /// # Errors
    /// If anything in it is wrong. Then every problem is named.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        self.read_by(resolve)
    }

    /// The configuration of a controller, with the changes.
    ///
    /// # Errors
    /// If anything in it is wrong. Then every problem is named.
    pub(crate) fn controller(&self) -> Result<ControllerConfig, ConfigError> {
        self.read_by(super::controller::resolve)
    }

    /// The configuration of a packet-delay agent.
    ///
    /// # Errors
    /// If anything in it is wrong. Then every problem is named.
    pub(crate) fn throttle(&self) -> Result<ThrottleConfig, ConfigError> {
        self.read_by(super::throttle::resolve)
    }

    /// The configuration of a coordinator of transfers.
    ///
    /// # Errors
    /// If anything in it is wrong. Then every problem is named.
    pub(crate) fn transfers(&self) -> Result<TransfersConfig, ConfigError> {
        self.read_by(super::transfers::resolve)
    }

    /// Whether it is the file of a controller rather than of a gateway.
    pub(crate) fn is_of_controller(&self) -> bool {
        self.has_table("controller")
    }

    /// Whether it is the file of a packet-delay agent.
    pub(crate) fn is_of_throttle(&self) -> bool {
        self.has_table("throttle")
    }

    /// Whether it is the file of a coordinator of transfers.
    pub(crate) fn is_of_transfers(&self) -> bool {
        self.has_table("transfers")
    }

    fn has_table(&self, name: &str) -> bool {
        DeTable::parse(&self.text).is_ok_and(|table| table.get_ref().contains_key(name))
    }

    fn read_by<T>(
        &self,
        resolve: impl for<'d> Fn(&'d Document<'d>, &'d DeTable<'d>) -> T,
    ) -> Result<T, ConfigError> {
        let lines = (0..).zip(&self.changes).filter_map(|(i, change): (usize, _)| {
            change.value.as_ref().map(|value| format!("{} = {value}\n", label(i)))
        });
        let set: String = lines.collect();
        // The changes are parsed on their own, behind as many spaces as the file has bytes. So a place in
        // this text is the same place in file and changes together.
        let behind = " ".repeat(self.text.len() + 1) + &set;
        let both = format!("{}\n{set}", self.text);
        let document = Document::new(&both, self.text.len());
        let config = document.parse().and_then(|mut table| {
            let values = document.parse_changes(&behind)?;
            self.apply(&document, table.get_mut(), values.into_inner());
            Some(resolve(&document, &table.into_inner()))
        });
        match (config, document.into_problems()) {
            (Some(config), problems) if problems.is_empty() => Ok(config),
            (_, problems) => Err(ConfigError::invalid(&self.path, problems)),
        }
    }

    /// The same source with other values, as text, for keys of tables. `none` takes a key away. `target.iops`
    /// stands for a target with this metric.
    ///
    /// # Errors
    /// If one of the keys cannot be changed, or has no value. Then the first problem of each table is named.
    pub(crate) fn with(&self, wanted: &[weir_api::Change]) -> Result<Self, ConfigError> {
        let (mut changes, mut problems) = (Vec::new(), Vec::new());
        for (i, weir_api::Change { table, name, set }) in wanted.iter().enumerate() {
            if wanted.iter().take(i).any(|other| (&other.table, &other.name) == (table, name)) {
                problems.push(problem(&join(table, name), "a second time", "each volume and each pool once"));
            }
            match read_changes(table, name, set) {
                Ok(read) => changes.extend(read),
                Err(problem) => problems.push(problem),
            }
        }
        let keys = wanted.iter().map(|change| change.set.len()).sum::<usize>();
        if keys > MOST_KEYS {
            let accepted = format!("at most {MOST_KEYS} at a time");
            problems = vec![problem("the change", format!("{keys} keys"), accepted)];
        }
        if keys == 0 {
            problems.push(problem("the change", "no key", "a table, a name, and keys with their values"));
        }
        if !problems.is_empty() {
            return Err(ConfigError::invalid(&self.path, problems));
        }
        let mut changed = self.clone();
        let is_same = |one: &Change, other: &Change| {
            (&one.table, &one.name, &one.key) == (&other.table, &other.name, &other.key)
        };
        changed.changes.retain(|before| !changes.iter().any(|change| is_same(before, change)));
        changed.changes.extend(changes);
        Ok(changed)
    }

    /// Puts the values of the changes, found by their labels, into the table of the file.
    fn apply<'d>(&self, document: &Document<'_>, table: &mut DeTable<'d>, mut values: DeTable<'d>) {
        for (i, change) in self.changes.iter().enumerate() {
            let Change { table: kind, name, key, .. } = change;
            let tables = table.get_mut(kind.as_str()).and_then(as_table);
            let Some(tables) = tables else {
                let accepted = format!("a {kind} of this file, which has none");
                document.note(0, &join(kind, name), format!("no such {kind}"), accepted);
                continue;
            };
            let names = quoted(tables.keys().map(|name| name.get_ref().as_ref()));
            let Some(found) = tables.get_mut(name.as_str()).and_then(as_table) else {
                let found = format!("no such {kind}");
                document.note(0, &join(kind, name), found, names);
                continue;
            };
            found.remove(key.as_str());
            if let Some(value) = values.remove(label(i).as_str()) {
                found.insert(Spanned::new(value.span(), key.clone().into()), value);
            }
        }
    }
}

/// The changes that `set` asks for. Each key must be changeable and have a value.
fn read_changes(table: &str, name: &str, set: &[(String, String)]) -> Result<Vec<Change>, Problem> {
    let Some((_, keys)) = CHANGEABLE.iter().find(|(changeable, _)| *changeable == table) else {
        let tables = quoted(CHANGEABLE.iter().map(|(table, _)| table));
        return Err(problem(&join("", table), "a table that cannot be changed while serving", tables));
    };
    let path = |key: &str| format!("{}.{}", join(table, name), shorten(key));
    let change = |key: &str, value| Change {
        table: table.to_owned(),
        name: name.to_owned(),
        key: key.to_owned(),
        value,
    };
    let mut changes = Vec::new();
    let mut metrics = Vec::new();
    for (i, (key, text)) in set.iter().enumerate() {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._".contains(&byte);
        let top = key.split('.').next().unwrap_or_default();
        if !key.bytes().all(plain) || !keys.contains(&top) || (top != key && top != "target") {
            let found = "a key that cannot be changed while serving";
            return Err(problem(&path(key), found, keys.join(", ")));
        }
        let is_again = |(other, _): &(String, String)| other == key || other == top;
        if set[..i].iter().any(is_again) {
            return Err(problem(&path(key), "a second time", "each key once"));
        }
        match key.strip_prefix("target.") {
            Some(metric) => metrics.push(format!("{metric:?} = {}", value(&path(key), text)?)),
            None if text == "none" => changes.push(change(key, None)),
            None => changes.push(change(key, Some(value(&path(key), text)?))),
        }
    }
    if !metrics.is_empty() {
        changes.retain(|change| change.key != "target");
        changes.push(change("target", Some(format!("{{ {} }}", metrics.join(", ")))));
    }
    Ok(changes)
}

/// The text as a value of TOML; if it is none, it becomes a string.
fn value(path: &str, text: &str) -> Result<String, Problem> {
    if text.len() > LONGEST_VALUE {
        let accepted = format!("a value of at most {LONGEST_VALUE} bytes");
        return Err(problem(path, format!("{} bytes", text.len()), accepted));
    }
    if text.is_empty() || text.contains(char::is_control) {
        return Err(problem(path, shorten(&format!("{text:?}")), "a value, on one line"));
    }
    if depth(text) > DEEPEST_VALUE {
        let accepted = format!("arrays and tables in each other at most {DEEPEST_VALUE} deep");
        return Err(problem(path, shorten(text), accepted));
    }
    let assignment = format!("v = {text}");
    let whole = "v = ".len()..assignment.len();
    let parsed = DeTable::parse(&assignment).ok();
    let is_value = parsed.is_some_and(|table| table.get_ref().get("v").is_some_and(|v| v.span() == whole));
    Ok(if is_value { text.to_owned() } else { toml::Value::String(text.to_owned()).to_string() })
}

/// How deep brackets are nested in a text. Brackets inside strings count too.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn problem(key: &str, found: impl Into<String>, accepted: impl Into<String>) -> Problem {
    Problem { line: 0, key: key.to_owned(), found: found.into(), accepted: accepted.into() }
}

fn label(i: usize) -> String {
    format!("change{i}")
}

fn as_table<'v, 'd>(value: &'v mut Spanned<DeValue<'d>>) -> Option<&'v mut DeTable<'d>> {
    if let DeValue::Table(table) = value.get_mut() { Some(table) } else { None }
}
