//! The catalogue: objects, their replicas, and transfers, in an SQLite database.
//!
//! Each method is one transaction. An answer that a client gets about a stored or removed object is on the
//! disk before the client gets it (`synchronous = FULL`, with a write-ahead log). Notes about partial
//! replicas are not worth a flush each: without the last ones, a transfer repeats a part of its work.
//!
//! **SQLite and not redb.** An operator can read the file with `sqlite3`. A backup of a catalogue in use is
//! one statement (`VACUUM INTO`). And nobody has tested a database on full and failing disks more. Cost: a
//! library in C.

mod holders;
mod objects;
mod schema;
#[cfg(test)]
mod tests;
mod transfers;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Params, Row, Transaction};
use thiserror::Error;

pub(crate) use holders::Holder;
pub(crate) use objects::{Leftover, ObjectRow, What};
pub(crate) use transfers::{NewTransfer, Progress, State, TransferRow};

/// How many transfers that have ended are remembered.
const MOST_ENDED: u64 = 100_000;

/// The note of a client that is about to make its replica visible: what it leaves may be a complete one.
pub(crate) const FINISHING: &str = "finishing";

/// Milliseconds of Unix time. The catalogue has no other time: it outlives the machine's clock.
pub(crate) type UnixMs = u64;

/// A catalogue that is open. No other process can open it meanwhile.
#[derive(Debug)]
pub(crate) struct Catalogue {
    path: PathBuf,
    db: Connection,
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
    /// A backup is not on the disk.
    #[error("backup {}: {source}", path.display())]
    Backup {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The target of a backup exists.
    #[error("backup {}: found a file there; accepted: a new name", .0.display())]
    Exists(PathBuf),
}

impl Catalogue {
    /// Opens the catalogue at `path`, or makes an empty one there.
    ///
    /// # Errors
    /// If it cannot be read or written, is in use, or is no catalogue.
    pub(crate) fn open(path: &Path) -> Result<Self, CatalogueError> {
        let wrong = |source| CatalogueError::of(path, source);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).map_err(wrong)?;
        // Nobody who has it gives it up soon.
        db.busy_timeout(std::time::Duration::ZERO).map_err(wrong)?;
        // The lock is taken with the first statement, and kept: it is what keeps a second coordinator out.
        db.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(wrong)?;
        db.pragma_update(None, "journal_mode", "WAL").map_err(wrong)?;
        db.pragma_update(None, "synchronous", "FULL").map_err(wrong)?;
        db.pragma_update(None, "foreign_keys", true).map_err(wrong)?;
        let mut catalogue = Self { path: path.to_owned(), db };
        schema::bring_up_to_date(&mut catalogue)?;
        Ok(catalogue)
    }

    /// Writes a copy of the catalogue as it is now to a new file, and returns its size in bytes.
    ///
    /// # Errors
    /// If there is a file of that name, or it cannot be written.
    pub(crate) fn backup(&self, to: &Path) -> Result<u64, CatalogueError> {
        if to.symlink_metadata().is_ok() {
            return Err(CatalogueError::Exists(to.to_owned()));
        }
        let name = to.to_string_lossy().into_owned();
        let wrong = |source| CatalogueError::of(to, source);
        let written = self.db.execute("VACUUM INTO ?1", [name]);
        if written.is_err() {
            let _ = std::fs::remove_file(to); // a part of a backup is none
        }
        written.map_err(wrong)?;
        // Whoever restores it must not have the coordinator remove what has come since under an old name.
        let copy = Connection::open(to).and_then(|copy| copy.execute("DELETE FROM leftover", []));
        copy.map_err(wrong)?;
        let unwritten = |source| CatalogueError::Backup { path: to.to_owned(), source };
        let file = std::fs::File::open(to).map_err(unwritten)?;
        file.sync_all().map_err(unwritten)?;
        if let Some(folder) = to.parent() {
            std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(unwritten)?;
        }
        let bytes = file.metadata().map_err(unwritten)?.len();
        Ok(bytes)
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
