//! The counters of the bytes that a session has written, and where they are.

use std::path::PathBuf;

use rustix::io::Errno;
use weir_throttle::Target;

use super::reading::contents;

/// The most sessions, of all targets together.
pub(super) const MOST_SESSIONS: usize = 4096;

/// The most counters that are read. With more, the sessions behind them have none, and the writes of their
/// LUNs' devices count for them.
pub(super) const MOST_COUNTERS: usize = 8192;

/// A file that says how much a session has written to a LUN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Counter {
    /// The target, by its place in the list.
    pub(super) target: usize,
    /// The session, by its place in the target's list.
    pub(super) session: usize,
    /// The LUN.
    pub(super) lun: u64,
    /// The file.
    pub(super) path: PathBuf,
    /// What the file counts, as a power of two: 20 if it counts MiB.
    pub(super) unit: u32,
}

/// Targets, and the counters of their sessions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Found {
    pub(super) targets: Vec<Target>,
    pub(super) counters: Vec<Counter>,
}

impl Found {
    /// Adds what was found elsewhere.
    pub(super) fn append(&mut self, mut other: Self) {
        let before = self.targets.len();
        other.counters.iter_mut().for_each(|counter| counter.target += before);
        self.targets.append(&mut other.targets);
        self.counters.append(&mut other.counters);
        self.counters.truncate(MOST_COUNTERS);
    }
}

/// Reads all counters into the sessions. Forgets those that are not there, and says whether there were such.
///
/// A file of configfs that stays open says for ever what it said first (`configfs_read_iter` fills its buffer
/// once), so each is opened anew.
pub(super) fn read_counters(counters: &mut Vec<Counter>, targets: &mut [Target]) -> bool {
    let before = counters.len();
    counters.retain(|counter| {
        let session = targets.get_mut(counter.target).and_then(|t| t.sessions.get_mut(counter.session));
        let (Some(session), Ok(Some(bytes))) = (session, bytes(counter)) else { return false };
        session.written.insert(counter.lun, bytes);
        true
    });
    counters.len() < before
}

/// The bytes that a counter tells, if it is a number.
fn bytes(counter: &Counter) -> Result<Option<u64>, Errno> {
    let mut buffer = [0; 32];
    let length = contents(&counter.path, &mut buffer)?;
    let text = buffer.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
    let number = text.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    Ok(number.map(|number| number.saturating_mul(1 << counter.unit)))
}
