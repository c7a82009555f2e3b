//! `weir replay --decisions PATH`: gives the events in recordings of `weir record` to an engine again, and
//! compares every decision.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde::Serialize;
use weir_engine::{Deviation, Entry, Input, Outcome, Replay};
use weir_model::{Instant, Span};
use weir_recording::{Ending, ReadError, Reader};

use crate::answer::{Form, json_line};
use crate::failure::Failure;
use crate::say;
use crate::verbs::record::SUFFIX;

/// The most volumes, and the most requests that an engine has at a time. A file with more is forged, and must
/// not take all memory.
const MOST: u64 = 1 << 22;

/// Replays the recording at `path`, or all recordings of a directory, and prints a line for each.
///
/// # Errors
/// If a file is no recording, or the engine decides differently from the recording. The error then says the
/// first difference.
pub(crate) fn replay_decisions(path: &Path, form: Form) -> Result<(), Failure> {
    for file in recordings("--decisions", path)? {
        replay(&file, form)?;
    }
    Ok(())
}

/// The recordings at `path`, which is the argument `name`, in the order of their names.
///
/// # Errors
/// If there is none.
pub(crate) fn recordings(name: &str, path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let refused = |found: String| {
        let accepted = "a recording of `weir record`, or the directory of its --out";
        Failure::usage(format!("{name} {}: found {found}; accepted: {accepted}", path.display()))
    };
    let metadata = fs::metadata(path).map_err(|error| refused(error.to_string()))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| refused(error.to_string()))?;
    let paths = entries.collect::<Result<Vec<_>, _>>()?.into_iter().map(|entry| entry.path());
    let is_recording = |path: &PathBuf| path.to_string_lossy().ends_with(SUFFIX);
    let mut files: Vec<PathBuf> = paths.filter(is_recording).collect();
    files.sort();
    if files.is_empty() {
        return Err(refused(format!("no file *{SUFFIX} in it")));
    }
    Ok(files)
}

fn replay(path: &Path, form: Form) -> Result<(), Failure> {
    let mut reader = Reader::open(path).map_err(unreadable)?;
    let mut replay = Replay::new();
    let (mut first, mut alive) = (None, 0_u64);
    while let Some((now, entry)) = reader.next_entry().map_err(unreadable)? {
        first.get_or_insert(now);
        if let Entry::Applied { input, outcome } = &entry {
            alive = match (input, outcome) {
                (Input::Submit(_) | Input::AddVolume(_), _) => alive + 1,
                (Input::Reply { .. } | Input::RemoveVolume { .. }, _) | (_, Outcome::Aborted(true)) => {
                    alive.saturating_sub(1)
                }
                _ => alive,
            };
        }
        if alive > MOST {
            return Err(Failure::Runtime(anyhow!(
                "{}: the recording makes no sense: found more than {MOST} requests and volumes at a time; accepted: no more",
                path.display()
            )));
        }
        if let Err(deviation) = replay.step(now, &entry) {
            return Err(differs(path, reader, &deviation));
        }
    }
    let lasted = replay.now().since(first.unwrap_or(Instant::ORIGIN));
    let entries = replay.entries();
    let mut line = summary(path, &reader, entries, lasted);
    let ending = reader.ending();
    match ending {
        Some(Ending::Overrun) => line.push_str("; the disk could not keep up, and the rest was not recorded"),
        Some(Ending::CutOff) => {
            line.push_str("; the recording is cut off there, as if its writer was killed")
        }
        Some(Ending::Complete) | None => {
            if let Err(deviation) = replay.finish() {
                return Err(differs(path, reader, &deviation));
            }
        }
    }
    if form.json {
        line = json_line(&Replayed {
            recording: path.display().to_string(),
            pool: reader.pool(),
            weir: reader.weir(),
            entries,
            lasted_s: lasted.as_secs_f64(),
            ending: match ending {
                Some(Ending::Overrun) => "overrun",
                Some(Ending::CutOff) => "cut_off",
                Some(Ending::Complete) | None => "complete",
            },
        })?;
    }
    Ok(writeln!(say::out(), "{line}")?)
}

/// A recording whose decisions were all made again, as a line of JSON.
#[derive(Serialize)]
struct Replayed<'a> {
    recording: String,
    pool: &'a str,
    /// The version that recorded it.
    weir: &'a str,
    entries: u64,
    lasted_s: f64,
    ending: &'static str,
}

fn summary(path: &Path, reader: &Reader, entries: u64, lasted: Span) -> String {
    let (path, pool) = (path.display(), reader.pool());
    let by = match reader.weir() {
        env!("CARGO_PKG_VERSION") => String::new(),
        other => format!(", recorded by weir {other}"),
    };
    format!("{path}: pool {pool}{by}: {entries} entries over {lasted}, all decided identically")
}

/// The failure if the engine decided differently. If the file is damaged, the failure says that instead.
fn differs(path: &Path, reader: Reader, deviation: &Deviation) -> Failure {
    let (pool, weir) = (reader.pool().to_owned(), reader.weir().to_owned());
    match reader.check_rest() {
        Err(damaged) => unreadable(damaged),
        Ok(()) => Failure::Runtime(anyhow!(
            "{}: pool {pool}, recorded by weir {weir}: the first difference is {deviation}",
            path.display()
        )),
    }
}

/// The failure of a damaged file. It is no usage error: the command's task is to find out whether the file is
/// good.
fn unreadable(error: ReadError) -> Failure {
    Failure::Runtime(error.into())
}
