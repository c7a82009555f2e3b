//! A copy of a catalogue that is in use.
//!
//! It is written over a connection of its own, on any thread: the coordinator goes on to change its
//! catalogue, and no client waits. The copy is the catalogue as it is when the backup begins.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{CatalogueError, FINISHING};

/// How long the coordinator may hold the catalogue's locks, which it does for moments.
const LOCKED: Duration = Duration::from_secs(5);

/// Writes a copy of the catalogue `from` to the new file `to`, and returns its size in bytes. Only one backup
/// to a file may be under way.
///
/// # Errors
/// If there is a file of that name, it cannot be written, or the catalogue cannot be read.
pub(crate) fn backup(from: &Path, to: &Path) -> Result<u64, CatalogueError> {
    if to.symlink_metadata().is_ok() {
        return Err(CatalogueError::Exists(to.to_owned()));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(from, flags);
    let source = source.and_then(|source| source.busy_timeout(LOCKED).map(|()| source));
    let source = source.map_err(|source| CatalogueError::of(from, source))?;
    let wrong = |source| CatalogueError::of(to, source);
    let written = source.execute("VACUUM INTO ?1", [to.to_string_lossy()]);
    if written.is_err() {
        let _ = std::fs::remove_file(to); // a part of a backup is none
    }
    written.map_err(wrong)?;
    // Whoever restores it must not have the coordinator remove what has come since under an old name.
    // What was about to finish then may be somebody else's by now, too.
    let clean = |copy: Connection| {
        copy.execute("DELETE FROM leftover", [])?;
        copy.execute("DELETE FROM note WHERE line = ?1", [FINISHING])
    };
    Connection::open(to).and_then(clean).map_err(wrong)?;
    let unwritten = |source| CatalogueError::Backup { path: to.to_owned(), source };
    let file = File::open(to).map_err(unwritten)?;
    file.sync_all().map_err(unwritten)?;
    if let Some(folder) = to.parent() {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(unwritten)?;
    }
    let bytes = file.metadata().map_err(unwritten)?.len();
    Ok(bytes)
}
