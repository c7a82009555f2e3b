//! The tables of the catalogue, and how an older catalogue becomes one of today.

use super::{Catalogue, CatalogueError};

/// The version of the tables.
pub(super) const VERSION: u32 = 1;

/// Marks the file as weir's: "weir" in ASCII (SQLite's `application_id`).
const APPLICATION: u32 = 0x7765_6972;

/// Each step brings a catalogue from the version of its place to the next.
const STEPS: [&str; VERSION as usize] = ["
CREATE TABLE object (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    name     TEXT    NOT NULL UNIQUE,
    bytes    INTEGER NOT NULL,
    checksum BLOB    NOT NULL CHECK (length(checksum) = 32),
    wanted   INTEGER NOT NULL,
    run      TEXT    NOT NULL,
    stored   INTEGER NOT NULL
) STRICT;
CREATE TABLE replica (
    object   INTEGER NOT NULL REFERENCES object (id) ON DELETE CASCADE,
    node     TEXT    NOT NULL,
    is_good  INTEGER NOT NULL,
    stored   INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    PRIMARY KEY (object, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX replica_of_node ON replica (node);
CREATE TABLE transfer (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    replica    INTEGER NOT NULL,
    run        TEXT    NOT NULL,
    source     TEXT    NOT NULL,
    state      INTEGER NOT NULL,
    why        TEXT    NOT NULL,
    node       TEXT    NOT NULL,
    bytes      INTEGER,
    moved      INTEGER NOT NULL,
    rate       INTEGER NOT NULL,
    class      TEXT    NOT NULL,
    deadline   INTEGER,
    asked      INTEGER NOT NULL,
    started    INTEGER NOT NULL,
    first_byte INTEGER NOT NULL,
    ended      INTEGER NOT NULL,
    moving     INTEGER NOT NULL,
    begun      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX transfer_by_name ON transfer (name, state);
CREATE INDEX transfer_by_run ON transfer (run);
CREATE INDEX transfer_by_state ON transfer (state);
CREATE TABLE note (
    transfer INTEGER NOT NULL REFERENCES transfer (id) ON DELETE CASCADE,
    number   INTEGER NOT NULL,
    line     TEXT    NOT NULL,
    PRIMARY KEY (transfer, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE leftover (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    node  TEXT NOT NULL,
    name  TEXT NOT NULL,
    notes TEXT NOT NULL
) STRICT;
CREATE INDEX leftover_by_name ON leftover (name);
CREATE INDEX leftover_by_node ON leftover (node);
CREATE TABLE peak (
    node     TEXT    PRIMARY KEY,
    read     INTEGER NOT NULL,
    write    INTEGER NOT NULL,
    measured INTEGER NOT NULL
) STRICT;
"];

/// Makes the tables of an empty catalogue, and brings those of an older version up to date.
pub(super) fn bring_up_to_date(catalogue: &mut Catalogue) -> Result<(), CatalogueError> {
    let path = catalogue.path.clone();
    let wrong = |source| CatalogueError::of(&path, source);
    let number =
        |db: &rusqlite::Connection, pragma: &str| db.pragma_query_value(None, pragma, |row| row.get(0));
    let version: u32 = number(&catalogue.db, "user_version").map_err(wrong)?;
    let application: u32 = number(&catalogue.db, "application_id").map_err(wrong)?;
    let tables: u32 =
        catalogue.db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(wrong)?;
    let format = |found: String| CatalogueError::Format { path: path.clone(), found };
    if application != APPLICATION && (tables > 0 || version > 0) {
        return Err(format("a database of another program".to_owned()));
    }
    if version > VERSION {
        return Err(format(format!("version {version}")));
    }
    let transaction = catalogue.db.transaction().map_err(wrong)?;
    for step in &STEPS[version as usize..] {
        transaction.execute_batch(step).map_err(wrong)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(wrong)?;
    transaction.pragma_update(None, "user_version", VERSION).map_err(wrong)?;
    transaction.commit().map_err(wrong)
}
