//! Reads the metrics of a `weir node agent`: what one device has done.
//!
//! Only three metrics count. Other lines are passed over, so that a proxy may add its own. A line of one of
//! the three that is odd is an error, and no guess: a wrong counter would look like a load. For the same
//! reason a page counts only with its last line, `# EOF`: a page that is cut short may end inside a number.

use std::collections::BTreeMap;

use thiserror::Error;
use weir_transfer::DeviceBytes;

const PRESENT: &str = "weir_node_device_present";
const READ: &str = "weir_node_device_read_bytes_total";
const WRITTEN: &str = "weir_node_device_written_bytes_total";

/// The last line of a page (OpenMetrics 1.0).
const END: &str = "# EOF";

/// The most devices of a page that an error names.
const MOST_NAMED: usize = 3;

/// The most characters of a line that an error repeats.
const MOST_TOLD: usize = 60;

/// What a device has done, by its sensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// The kernel's name of it. Another name is another device, with other counters.
    pub name: String,
    /// What it has moved in all.
    pub bytes: DeviceBytes,
}

/// Why a page does not tell what a device has done.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("found {found}; accepted: {accepted}")]
pub struct Unfit {
    found: String,
    accepted: String,
}

/// The devices of a page, by directory (empty for a device that was named itself) and name.
type Rows = BTreeMap<(String, String), Row>;

/// What a page says of a device.
#[derive(Default)]
struct Row {
    present: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
}

/// The device of a page: the one that `choice` names, by its directory or its name, or else the only one.
///
/// # Errors
/// If there is no such device or several, if it is not there, if a line about a device is odd, or if the page
/// has no end.
pub fn device(page: &str, choice: Option<&str>) -> Result<Device, Unfit> {
    if page.contains(PRESENT) && page.lines().last() != Some(END) {
        return Err(unfit("a page that is cut short", &format!("a page whose last line is {END}")));
    }
    let mut rows = Rows::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let Some((metric, rest)) = line.split_once('{') else { continue };
        if ![PRESENT, READ, WRITTEN].contains(&metric) {
            continue;
        }
        let (key, value) = labelled(rest).ok_or_else(|| odd(line))?;
        let row = rows.entry(key).or_default();
        let place = match metric {
            PRESENT => &mut row.present,
            READ => &mut row.read,
            _ => &mut row.written,
        };
        if place.replace(value).is_some() {
            return Err(odd(line));
        }
    }
    let ((directory, name), row) = chosen(&rows, choice)?;
    let (Some(1), Some(read), Some(written)) = (row.present, row.read, row.written) else {
        let of = if directory.is_empty() { String::new() } else { format!(" of {directory}") };
        return Err(unfit(&format!("no counters of the device {name}{of}"), "a device that is there"));
    };
    Ok(Device { name: name.clone(), bytes: DeviceBytes { read, written } })
}

/// The row that counts.
fn chosen<'r>(rows: &'r Rows, choice: Option<&str>) -> Result<(&'r (String, String), &'r Row), Unfit> {
    let is_chosen = |(directory, name): &(String, String)| {
        choice.is_none_or(|choice| if choice.starts_with('/') { directory == choice } else { name == choice })
    };
    let found: Vec<_> = rows.iter().filter(|(key, _)| is_chosen(key)).collect();
    // A device that is chosen by its name may stand under two directories, of which one has moved elsewhere.
    let there = found.iter().find(|(_, row)| row.present == Some(1)).or(found.first());
    match there {
        Some(row) if choice.is_some() || found.len() == 1 => Ok(*row),
        None if rows.is_empty() => {
            Err(unfit("no block device on the page", "the metrics of weir node agent"))
        }
        _ => {
            let name = |(directory, name): &(String, String)| match directory.is_empty() {
                true => format!("#{name}"),
                false => format!("#{directory}"),
            };
            let mut names: Vec<_> = rows.keys().take(MOST_NAMED).map(name).collect();
            if rows.len() > MOST_NAMED {
                names.push("and so on".to_owned());
            }
            let found =
                choice.map_or_else(|| format!("{} devices", rows.len()), |choice| format!("no #{choice}"));
            Err(unfit(&found, &format!("a url with one of {}", names.join(", "))))
        }
    }
}

/// The directory, the device and the value of the rest of a line, behind `{`.
fn labelled(rest: &str) -> Option<((String, String), u64)> {
    let (mut directory, mut device) = (String::new(), None);
    let mut next = Some(rest);
    let mut behind = rest;
    while let Some(labels) = next {
        let (label, value) = labels.split_once("=\"")?;
        let (value, rest) = quoted(value)?;
        match label {
            "path" => directory = value,
            "device" => device = Some(value),
            _ => {}
        }
        (behind, next) = (rest, rest.strip_prefix(','));
    }
    let value = behind.strip_prefix("} ")?.trim_end().parse().ok()?;
    Some(((directory, device?), value))
}

/// A value up to its quotation mark, and what is behind that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((value, text.get(at + 1..)?)),
            (_, '\\') => value.push(match characters.next()?.1 {
                'n' => '\n',
                escaped @ ('\\' | '"') => escaped,
                _ => return None,
            }),
            (_, character) => value.push(character),
        }
    }
}

fn odd(line: &str) -> Unfit {
    let shown: String = line.chars().take(MOST_TOLD).collect();
    unfit(&format!("{shown:?}"), "each counter of a device once, as a whole number")
}

fn unfit(found: &str, accepted: &str) -> Unfit {
    Unfit { found: found.to_owned(), accepted: accepted.to_owned() }
}

#[cfg(test)]
mod tests;
