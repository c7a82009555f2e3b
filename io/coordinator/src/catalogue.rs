//! The catalogue: objects, their replicas, and transfers, in an SQLite database.
//!
//! Each method is one transaction. An answer that a client gets about a stored or removed object is on the
//! disk before the client gets it (`synchronous = FULL`, with a write-ahead log). Notes about partial
//! replicas are not worth a flush each: without the last ones, a transfer repeats a part of its work.
//!
//! **SQLite and not redb.** An operator can read the file with `sqlite3`. A backup of a catalogue in use is
//! one statement (`VACUUM INTO`). And nobody has tested a database on full and failing disks more. Cost: a
//! library in C.

mod backup;
mod holders;
mod objects;
mod schema;
#[cfg(test)]
mod tests;
mod transfers;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Params, Row, Transaction};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use thiserror::Error;

pub(crate) use backup::backup;
pub(crate) use holders::Holder;
pub(crate) use objects::{Leftover, ObjectRow, What};
pub(crate) use transfers::{NewTransfer, Progress, State, TransferRow};

/// How many transfers that have ended are remembered.
const MOST_ENDED: u64 = 100_000;

/// The note of a client that is about to make its replica visible: what it leaves may be a complete one.
pub(crate) const FINISHING: &str = "finishing";

/// Milliseconds of Unix time. The catalogue has no other time: it outlives the machine's clock.
pub(crate) type UnixMs = u64;

/// A catalogue that is open. No other coordinator can open it meanwhile.
#[derive(Debug)]
pub(crate) struct Catalogue {
    path: PathBuf,
    db: Connection,
    /// Its lock is what keeps a second coordinator out. It is given up after the database is closed.
    _lock: File,
}

/// Why the catalogue cannot be used.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// The database refuses.
    #[error("catalogue {}: {source}", path.display())]
    Database {
        /// The database's file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// Another process has it open.
    #[error(
        "catalogue {}: found another coordinator that uses it; accepted: one at a time",
        .0.display()
    )]
    InUse(PathBuf),
    /// The file is another program's, or a later version's.
    #[error("catalogue {}: found {found}; accepted: a catalogue of version {} or earlier", path.display(), schema::VERSION)]
    Format {
        /// The database's file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// The lock that keeps a second coordinator out cannot be had.
    #[error("catalogue {}: {source}", path.display())]
    Lock {
        /// The lock's file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A backup is not on the disk.
    #[error("backup {}: {source}", path.display())]
    Backup {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The target of a backup exists.
    #[error("backup {}: found a file there; accepted: a new name", .0.display())]
    Exists(PathBuf),
}

/// How long a change waits for another connection to the file.
const BUSY: std::time::Duration = std::time::Duration::from_secs(1);

impl Catalogue {
    /// Opens the catalogue at `path`, or makes an empty one there.
    ///
    /// # Errors
    /// If it cannot be read or written, is in use, or is no catalogue.
    pub(crate) fn open(path: &Path) -> Result<Self, CatalogueError> {
        let wrong = |source| CatalogueError::of(path, source);
        let lock = lock(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).map_err(wrong)?;
        // A backup may have it for a moment, and so may an operator's own look.
        db.busy_timeout(BUSY).map_err(wrong)?;
        db.pragma_update(None, "journal_mode", "WAL").map_err(wrong)?;
        db.pragma_update(None, "synchronous", "FULL").map_err(wrong)?;
        db.pragma_update(None, "foreign_keys", true).map_err(wrong)?;
        let mut catalogue = Self { path: path.to_owned(), db, _lock: lock };
        schema::bring_up_to_date(&mut catalogue)?;
        Ok(catalogue)
    }

    /// Makes a change, whole or not at all.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, CatalogueError> {
        let done = self.db.transaction().and_then(|transaction| {
            let done = change(&transaction)?;
            transaction.commit().map(|()| done)
        });
        done.map_err(self.wrong())
    }

    /// The rows that a query finds.
    fn rows<T>(
        &self,
        query: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, CatalogueError> {
        let found = self
            .db
            .prepare(query)
            .and_then(|mut statement| statement.query_map(parameters, read)?.collect::<Result<_, _>>());
        found.map_err(self.wrong())
    }

    /// Turns a refusal of the database into an error that names the file.
    fn wrong(&self) -> impl Fn(rusqlite::Error) -> CatalogueError + Copy {
        |source| CatalogueError::of(&self.path, source)
    }
}

/// Takes the lock of a catalogue, on a file beside it. SQLite has an exclusive lock of its own; it would keep
/// a backup out, too.
fn lock(catalogue: &Path) -> Result<File, CatalogueError> {
    let mut path = catalogue.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let wrong = |source| CatalogueError::Lock { path: path.clone(), source };
    let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(wrong)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(CatalogueError::InUse(catalogue.to_owned())),
        Err(error) => Err(wrong(error.into())),
    }
}

impl CatalogueError {
    fn of(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, NotADatabase};
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked) => Self::InUse(path),
            Some(NotADatabase) => {
                Self::Format { path, found: "a file that is no SQLite database".to_owned() }
            }
            _ => Self::Database { path, source },
        }
    }
}
