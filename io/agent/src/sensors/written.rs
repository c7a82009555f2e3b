//! The counters of the bytes that a session has written, and where they are.
//!
//! A file of configfs that stays open says for ever what it said first (`configfs_read_iter` fills its buffer
//! once), so each counter is opened anew, once a second. Its folder stays open instead. With the whole path,
//! the kernel would look up a dozen names for each counter, most of which are in no cache of the processor.
//!
//! A folder that was removed has no file any more, even if another one is at its path. So the counter of a
//! new session is never taken for that of the one before.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags, open, openat};
use rustix::io::{Errno, read};
use rustix::process::{Resource, getrlimit};
use weir_throttle::Target;

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

/// The counters that are read once a second, each with its folder if that is open.
#[derive(Default, Debug)]
pub(super) struct Counters {
    counters: Vec<(Counter, Option<OwnedFd>)>,
    most_folders: usize,
}

impl Counters {
    /// Half of the process's descriptors may be folders; the other half is for all else.
    pub(super) fn new(counters: Vec<Counter>) -> Self {
        let limit = getrlimit(Resource::Nofile).current;
        let half = limit.map_or(MOST_COUNTERS, |most| usize::try_from(most / 2).unwrap_or(usize::MAX));
        Self::with_folders(counters, half)
    }

    fn with_folders(counters: Vec<Counter>, most_folders: usize) -> Self {
        Self { counters: counters.into_iter().map(|counter| (counter, None)).collect(), most_folders }
    }

    /// Reads all counters into the sessions. Forgets those that are not there, and says whether there were
    /// such.
    pub(super) fn read(&mut self, targets: &mut [Target]) -> bool {
        let before = self.counters.len();
        let mut places = self.most_folders;
        self.counters.retain_mut(|(counter, folder)| {
            let session = targets.get_mut(counter.target).and_then(|t| t.sessions.get_mut(counter.session));
            if folder.is_none() && places > 0 {
                *folder = counter.open_folder();
            }
            places = places.saturating_sub(1);
            let (Some(session), Ok(Some(bytes))) = (session, counter.bytes(folder.as_ref())) else {
                return false;
            };
            session.written.insert(counter.lun, bytes);
            true
        });
        self.counters.len() < before
    }
}

impl Counter {
    fn open_folder(&self) -> Option<OwnedFd> {
        open(self.path.parent()?, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
    }

    /// The bytes that it tells, if it is a number. Without its folder, it is found by its path.
    fn bytes(&self, folder: Option<&OwnedFd>) -> Result<Option<u64>, Errno> {
        let (folder, file) = match (folder, self.path.file_name()) {
            (Some(folder), Some(file)) => (folder.as_fd(), file),
            _ => (CWD, self.path.as_os_str()),
        };
        let file = openat(folder, file, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
        let mut buffer = [0; 32];
        let length = read(&file, &mut buffer)?; // all of it at once: a file of configfs is a page
        let text = buffer.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        let number = text.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        Ok(number.map(|number| number.saturating_mul(1 << self.unit)))
    }
}

#[cfg(test)]
mod tests {
    use weir_throttle::{Framework, Session};

    use super::super::tree::Tree;
    use super::*;

    /// Sessions with a counter each, which says 1 KiB.
    fn sessions(tree: &Tree, count: usize) -> (Counters, [Target; 1]) {
        let counter = |session| {
            tree.write(&format!("{session}/bytes"), "1\n");
            Counter { target: 0, session, lun: 0, path: tree.at(&format!("{session}/bytes")), unit: 10 }
        };
        let counters = Counters::with_folders((0..count).map(counter).collect(), 2);
        let session =
            Session { initiator: "i".to_owned(), addresses: Default::default(), written: Default::default() };
        let target = Target {
            framework: Framework::Lio,
            name: "t".to_owned(),
            portals: Default::default(),
            luns: Default::default(),
            sessions: vec![session; count],
            out_of_reach: None,
        };
        (counters, [target])
    }

    #[test]
    fn a_counter_in_a_folder_that_was_made_anew_is_another_one() {
        let tree = Tree::new();
        let (mut counters, mut targets) = sessions(&tree, 2);
        assert!(!counters.read(&mut targets));
        tree.write("0/bytes", "7\n");
        tree.remove("1");
        tree.write("1/bytes", "7\n");
        assert!(counters.read(&mut targets));
        let written = targets[0].sessions.iter().map(|session| session.written[&0]);
        assert_eq!(written.collect::<Vec<_>>(), [7 << 10, 1 << 10]);
        assert_eq!(counters.counters.len(), 1);
    }

    #[test]
    fn no_more_folders_stay_open_than_the_bound_and_all_counters_are_read() {
        let tree = Tree::new();
        let (mut counters, mut targets) = sessions(&tree, 3);
        assert!(!counters.read(&mut targets) && !counters.read(&mut targets));
        assert!(targets[0].sessions.iter().all(|session| session.written[&0] == 1 << 10));
        let open: Vec<_> = counters.counters.iter().map(|(_, folder)| folder.is_some()).collect();
        assert_eq!(open, [true, true, false]);
    }
}
