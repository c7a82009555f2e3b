//! The numbers of a set-up, and each of them a tenth larger or smaller.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anyhow::bail;
use toml::Value;

use super::{Varied, shown};
use crate::experiment::Experiment;
use crate::library::matches;

/// The tables of a file that describe the set-up. The others are words, bounds, and what is drawn.
const SET_UP: [&str; 7] = ["array", "bulk", "curve", "delay", "engine", "run", "volume"];

/// The tables whose entries have names. A number that is the same in several of them is one number.
const NAMED: [&str; 6] = ["array", "curve", "initiator", "node", "run", "volume"];

/// The tables in which the named ones are one level deeper, as in `delay.run.NAME`.
const IN_A_PART: [&str; 2] = ["bulk", "delay"];

/// A number of the set-up, or a list of numbers, which are varied together: a curve with one point moved is
/// no curve.
#[derive(Clone, PartialEq, Debug)]
pub struct Number {
    /// Its path, such as `engine.growth`; with `*` for the name of an array, a curve, a run or a volume if it
    /// is the same in several, and for the places of a list.
    pub name: String,
    /// All places where it stands: their paths and their values.
    places: Vec<(String, Value)>,
}

/// The numbers of an experiment that are neither the paper's nor its maker's, by their paths.
///
/// # Errors
/// If the file says of a number that it is published, or that the claim hangs on it, and there is none.
pub fn numbers(experiment: &Experiment) -> anyhow::Result<Vec<Number>> {
    let document: toml::Table = toml::from_str(&experiment.text)?;
    let mut leaves = Vec::new();
    for table in SET_UP {
        if let Some(value) = document.get(table) {
            walk(table, value, &mut leaves);
        }
    }
    let of_machines = experiment.machine.values().flat_map(|machine| &machine.published);
    let published: Vec<_> = experiment.paper.numbers.iter().chain(of_machines).collect();
    if let Some(pattern) =
        published.iter().find(|pattern| !leaves.iter().any(|(path, _)| matches(pattern, path)))
    {
        bail!("{}: found the published number \"{pattern}\"; accepted: one of the set-up", experiment.id);
    }
    leaves.retain(|(path, _)| !published.iter().any(|pattern| matches(pattern, path)));
    let mut lists: BTreeMap<String, Number> = BTreeMap::new();
    for (path, value) in leaves {
        let name = without_places(&path);
        let number = lists.entry(name.clone()).or_insert_with(|| Number { name, places: Vec::new() });
        number.places.push((path, value));
    }
    let mut groups: BTreeMap<(String, String), Number> = BTreeMap::new();
    for number in lists.into_values() {
        match groups.entry((without_name(&number.name), number.shown())) {
            Entry::Vacant(vacant) => drop(vacant.insert(number)),
            Entry::Occupied(mut same) => {
                let same = same.get_mut();
                same.name = without_name(&number.name);
                same.places.extend(number.places);
            }
        }
    }
    let numbers: Vec<Number> = groups.into_values().collect();
    if let Some(unknown) = experiment.hangs_on.iter().find(|name| !numbers.iter().any(|n| n.name == **name)) {
        let known: Vec<_> = numbers.iter().map(|number| number.name.as_str()).collect();
        bail!("{}: hangs_on: found \"{unknown}\"; accepted: {}", experiment.id, known.join(", "));
    }
    Ok(numbers)
}

/// The experiment with a value that its file lists, in all places that the pattern `key` names.
pub(super) fn listed(experiment: &Experiment, key: &str, value: &Value) -> anyhow::Result<Varied> {
    let document: toml::Table = toml::from_str(&experiment.text)?;
    let paths = places(&document, key);
    if paths.is_empty() {
        bail!("{}: vary: found key = \"{key}\"; accepted: a key of the set-up, with its path", experiment.id);
    }
    let values: Vec<_> = paths.into_iter().map(|path| (path, value.clone())).collect();
    let from = value_at(&document, key).map_or_else(|| "none".to_owned(), |value| shown(&value));
    let varied = experiment.with_values("vary", &values)?;
    Ok(Varied { number: key.to_owned(), from, to: shown(value), experiment: varied })
}

impl Number {
    /// The value, as the file says it. Of a list, all values that are there.
    pub fn shown(&self) -> String {
        let mut values: Vec<String> = Vec::new();
        for value in self.places.iter().map(|(_, value)| shown(value)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.join(", ")
    }

    /// The experiment with this number a tenth larger or smaller; or by the least step that the model
    /// accepts.
    pub(super) fn by_a_tenth(&self, experiment: &Experiment, up: bool) -> Result<Varied, String> {
        let mut reason = "there is no value near it".to_owned();
        for step in [Step::Tenth, Step::Whole, Step::Power] {
            let varied = |(path, value): &(String, Value)| Some((path.clone(), step.of(value, up)?));
            let Some(places) = self.places.iter().map(varied).collect::<Option<Vec<_>>>() else { continue };
            let other = Self { name: self.name.clone(), places };
            match experiment.with_values(&self.name, &other.places) {
                Ok(experiment) => {
                    let (number, from, to) = (self.name.clone(), self.shown(), other.shown());
                    return Ok(Varied { number, from, to, experiment });
                }
                Err(problem) => reason = problem.to_string(),
            }
        }
        Err(reason)
    }
}

/// By how much a value is varied.
#[derive(Clone, Copy)]
enum Step {
    /// By a tenth.
    Tenth,
    /// By the nearest whole number: disks are counted.
    Whole,
    /// Twice or half: a model may take powers of two only.
    Power,
}

impl Step {
    /// The other value; `None` if there is none above zero, or it would be the same.
    fn of(self, value: &Value, up: bool) -> Option<Value> {
        let (number, unit) = parts(value)?;
        let other = match self {
            Self::Tenth if value.is_integer() => return None,
            Self::Tenth => number * if up { 1.1 } else { 0.9 },
            Self::Whole => {
                let step = (number * 0.1).round().max(1.0);
                if up { number + step } else { number - step }
            }
            Self::Power => number * if up { 2.0 } else { 0.5 },
        };
        let other = put_together(value, other, &unit);
        (other != *value && parts(&other)?.0 > 0.0).then_some(other)
    }
}

/// The path with `*` in the place of each place of a list.
fn without_places(path: &str) -> String {
    let star = |part| if str::parse::<usize>(part).is_ok() { "*" } else { part };
    path.split('.').map(star).collect::<Vec<_>>().join(".")
}

/// The path with `*` in the place of the name.
fn without_name(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('.').collect();
    let name = if IN_A_PART.contains(&parts[0]) { 2 } else { 1 };
    if (NAMED.contains(&parts[0]) || NAMED.contains(&parts[1])) && parts.len() > name + 1 {
        parts[name] = "*";
    }
    parts.join(".")
}

/// Collects the numbers of a value, each with its path.
fn walk(path: &str, value: &Value, leaves: &mut Vec<(String, Value)>) {
    match value {
        Value::Table(table) => {
            // The values of a sweep are what the claim is about, and the name of a file is no number.
            for (key, value) in table.iter().filter(|(key, _)| !["file", "sweep"].contains(&key.as_str())) {
                walk(&format!("{path}.{key}"), value, leaves);
            }
        }
        Value::Array(array) => {
            for (place, value) in array.iter().enumerate() {
                walk(&format!("{path}.{place}"), value, leaves);
            }
        }
        // Nothing varies a zero.
        other if parts(other).is_some_and(|(number, _)| number > 0.0) => {
            leaves.push((path.to_owned(), other.clone()));
        }
        _ => {}
    }
}

/// The number at the beginning of a value, and what stands behind it. In a list of loads such as `["50
/// threads", "idle"]` each load is a value of its own.
#[allow(clippy::cast_precision_loss)] // numbers of disks and the like
fn parts(value: &Value) -> Option<(f64, String)> {
    match value {
        Value::Integer(number) => Some((*number as f64, String::new())),
        Value::Float(number) => Some((*number, String::new())),
        Value::String(text) => {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
            let (number, unit) = text.split_at(end);
            Some((number.parse().ok()?, unit.to_owned()))
        }
        _ => None,
    }
}

/// A value of the same kind. Six digits are enough, and 0.1 x 3 is then 0.3.
#[allow(clippy::cast_possible_truncation)] // numbers of disks and the like
fn put_together(like: &Value, number: f64, unit: &str) -> Value {
    let rounded = (number * 1e6).round() / 1e6;
    match like {
        Value::Integer(_) => Value::Integer(number.round() as i64),
        Value::Float(_) => Value::Float(rounded),
        _ => Value::String(format!("{rounded}{unit}")),
    }
}

/// The paths of a file that a pattern names. `*` stands for the name of an array, a curve, a run or a
/// volume; the last key need not be there.
fn places(document: &toml::Table, pattern: &str) -> Vec<String> {
    let mut parts = pattern.splitn(3, '.');
    let (Some(table), Some(name), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return vec![pattern.to_owned()];
    };
    let names = document.get(table).and_then(Value::as_table).into_iter().flat_map(toml::Table::keys);
    let wanted = names.filter(|known| matches(name, known));
    wanted.map(|known| format!("{table}.{known}.{rest}")).collect()
}

fn value_at(document: &toml::Table, pattern: &str) -> Option<Value> {
    let path = places(document, pattern).into_iter().next()?;
    let mut keys = path.split('.');
    let mut here = document.get(keys.next()?)?;
    for key in keys {
        here = here.get(key)?;
    }
    Some(here.clone())
}
