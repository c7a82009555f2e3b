//! Objects, where their replicas are, and what is left to be removed from nodes.

use rusqlite::{OptionalExtension, Row, params};

use super::transfers::end;
use super::{Catalogue, CatalogueError, FINISHING, Holder, State, UnixMs};

/// An object of which a replica is complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ObjectRow {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) checksum: [u8; 32],
    /// How many replicas it is to have.
    pub(crate) wanted: u32,
    /// The run of the client that wrote its first replica.
    pub(crate) run: String,
    pub(crate) stored: UnixMs,
}

/// A complete replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReplicaRow {
    pub(crate) node: String,
    pub(crate) is_good: bool,
    pub(crate) stored: UnixMs,
    /// When it was last read and found good; 0: never.
    pub(crate) verified: UnixMs,
}

/// What is to be removed from a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Leftover {
    pub(crate) id: u64,
    pub(crate) what: What,
}

/// What is left on a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A complete replica of this name.
    Object(String),
    /// A partial replica, by its notes.
    Partial(Vec<String>),
    /// One of both: its client was ended while it made the partial replica a complete one.
    Either(String, Vec<String>),
}

impl Catalogue {
    /// The object of that name.
    pub(crate) fn object(&self, name: &str) -> Result<Option<ObjectRow>, CatalogueError> {
        let query = "SELECT id, name, bytes, checksum, wanted, run, stored FROM object WHERE name = ?1";
        self.db.query_row(query, [name], object).optional().map_err(self.wrong())
    }

    /// The first `most` objects whose names begin with `prefix` and are greater than `after`, rising.
    pub(crate) fn objects(
        &self,
        prefix: &str,
        after: &str,
        most: u32,
    ) -> Result<Vec<ObjectRow>, CatalogueError> {
        let query = "SELECT id, name, bytes, checksum, wanted, run, stored FROM object
                     WHERE name > ?2 AND substr(name, 1, length(?1)) = ?1 ORDER BY name LIMIT ?3";
        self.rows(query, params![prefix, after, most], object)
    }

    /// The complete replicas of an object, by node.
    pub(crate) fn replicas(&self, object: u64) -> Result<Vec<ReplicaRow>, CatalogueError> {
        let query = "SELECT node, is_good, stored, verified FROM replica WHERE object = ?1 ORDER BY node";
        self.rows(query, [object], |row| {
            Ok(ReplicaRow {
                node: row.get(0)?,
                is_good: row.get(1)?,
                stored: row.get(2)?,
                verified: row.get(3)?,
            })
        })
    }

    /// What the objects' replicas on a node are: how many, and how many bytes.
    pub(crate) fn stored_on(&self, node: &str) -> Result<(u64, u64), CatalogueError> {
        let query =
            "SELECT count(*), coalesce(sum(object.bytes), 0) FROM replica JOIN object ON object.id = object
                     WHERE node = ?1";
        self.db.query_row(query, [node], |row| Ok((row.get(0)?, row.get(1)?))).map_err(self.wrong())
    }

    /// A replica is complete: it is there from now on, its object too, and `transfer` is done.
    ///
    /// The caller has made sure that an object of that name, if there is one, has the same checksum. Whether
    /// the node had no replica of it before.
    pub(crate) fn store(
        &mut self,
        now: UnixMs,
        transfer: u64,
        object: &ObjectRow,
        node: &str,
    ) -> Result<bool, CatalogueError> {
        let ObjectRow { name, bytes, checksum, wanted, run, .. } = object;
        let is_new = self.holder(node, name, transfer)? != Holder::Replica;
        self.change(|change| {
            change.execute(
                "INSERT INTO object (name, bytes, checksum, wanted, run, stored) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (name) DO UPDATE SET wanted = max(wanted, excluded.wanted)",
                params![name, bytes, checksum, wanted, run, now],
            )?;
            change.execute(
                "INSERT OR REPLACE INTO replica (object, node, is_good, stored, verified)
                 SELECT id, ?2, 1, ?3, 0 FROM object WHERE name = ?1",
                params![name, node, now],
            )?;
            end(change, now, transfer, State::Done, "")
        })?;
        Ok(is_new)
    }

    /// A replica was read whole: it is good, or it is not.
    pub(crate) fn judge(
        &mut self,
        now: UnixMs,
        object: u64,
        node: &str,
        is_good: bool,
    ) -> Result<(), CatalogueError> {
        let query = "UPDATE replica SET is_good = ?3, verified = CASE WHEN ?3 THEN ?4 ELSE verified END
                     WHERE object = ?1 AND node = ?2";
        self.db.execute(query, params![object, node, is_good, now]).map_err(self.wrong())?;
        Ok(())
    }

    /// Forgets an object. Its replicas are left to be removed from their nodes.
    pub(crate) fn remove_object(&mut self, object: &ObjectRow) -> Result<(), CatalogueError> {
        self.change(|change| {
            change.execute(
                "INSERT INTO leftover (node, name, notes) SELECT node, ?2, '' FROM replica WHERE object = ?1",
                params![object.id, object.name],
            )?;
            change.execute("DELETE FROM object WHERE id = ?1", [object.id]).map(|_| ())
        })
    }

    /// Forgets a replica, which is left to be removed from its node.
    pub(crate) fn drop_replica(&mut self, object: &ObjectRow, node: &str) -> Result<(), CatalogueError> {
        self.change(|change| {
            let query = "DELETE FROM replica WHERE object = ?1 AND node = ?2";
            if change.execute(query, params![object.id, node])? > 0 {
                let query = "INSERT INTO leftover (node, name, notes) VALUES (?1, ?2, '')";
                change.execute(query, params![node, object.name])?;
            }
            Ok(())
        })
    }

    /// A complete replica that is none of its object is left to be removed from a node.
    pub(crate) fn leave_object(&mut self, node: &str, name: &str) -> Result<(), CatalogueError> {
        let query = "INSERT INTO leftover (node, name, notes) VALUES (?1, ?2, '')";
        self.db.execute(query, [node, name]).map_err(self.wrong())?;
        Ok(())
    }

    /// The first `most` things that are to be removed from a node, the oldest first.
    pub(crate) fn leftovers(&self, node: &str, most: usize) -> Result<Vec<Leftover>, CatalogueError> {
        let query = "SELECT id, name, notes FROM leftover WHERE node = ?1 ORDER BY id LIMIT ?2";
        self.rows(query, params![node, most], |row| {
            let (name, notes): (String, String) = (row.get(1)?, row.get(2)?);
            let lines = notes.lines().filter(|line| *line != FINISHING).map(str::to_owned).collect();
            let what = match (name.is_empty(), notes.is_empty()) {
                (true, _) => What::Partial(lines),
                (false, true) => What::Object(name),
                (false, false) => What::Either(name, lines),
            };
            Ok(Leftover { id: row.get(0)?, what })
        })
    }

    /// A name that cannot be beside this one, because one would have to be a folder and a file: that of an
    /// object, of one that is written, or of one that is yet to be removed.
    pub(crate) fn conflict(&self, name: &str) -> Result<Option<String>, CatalogueError> {
        // What begins with "a/" is above "a/" and below "a0", the next character.
        let (from, below) = (format!("{name}/"), format!("{name}0"));
        let mut names: Vec<String> = name.match_indices('/').map(|(at, _)| name[..at].to_owned()).collect();
        let within = "SELECT name FROM (SELECT name FROM object UNION SELECT name FROM leftover
                      UNION SELECT name FROM transfer WHERE kind = 1 AND state IN (1, 2, 6))";
        let found =
            self.rows(&format!("{within} WHERE name > ?1 AND name < ?2 LIMIT 1"), [&from, &below], |row| {
                row.get(0)
            })?;
        if let Some(found) = found.into_iter().next() {
            return Ok(Some(found));
        }
        while let Some(folder) = names.pop() {
            if !self
                .rows(&format!("{within} WHERE name = ?1"), [&folder], |row| row.get::<_, String>(0))?
                .is_empty()
            {
                return Ok(Some(folder));
            }
        }
        Ok(None)
    }

    /// The nodes from which a replica of that name is yet to be removed.
    pub(crate) fn left_on(&self, name: &str) -> Result<Vec<String>, CatalogueError> {
        self.rows("SELECT node FROM leftover WHERE name = ?1 ORDER BY id", [name], |row| row.get(0))
    }

    /// It is removed. The node and the name that it had, if it may have been visible.
    pub(crate) fn removed(&mut self, leftover: u64) -> Result<Option<(String, String)>, CatalogueError> {
        let query = "DELETE FROM leftover WHERE id = ?1 RETURNING node, name";
        let gone = self.db.query_row(query, [leftover], |row| Ok((row.get(0)?, row.get(1)?))).optional();
        let gone: Option<(String, String)> = gone.map_err(self.wrong())?;
        Ok(gone.filter(|(_, name)| !name.is_empty()))
    }

    /// The peaks that were measured: node, and bytes a second of reads and of writes.
    pub(crate) fn peaks(&self) -> Result<Vec<(String, u64, u64)>, CatalogueError> {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        self.rows("SELECT node, read, write FROM peak", [], read)
    }

    /// A node's peaks were measured.
    pub(crate) fn set_peak(
        &mut self,
        now: UnixMs,
        node: &str,
        read: u64,
        write: u64,
    ) -> Result<(), CatalogueError> {
        let query = "INSERT OR REPLACE INTO peak (node, read, write, measured) VALUES (?1, ?2, ?3, ?4)";
        self.db.execute(query, params![node, read, write, now]).map_err(self.wrong())?;
        Ok(())
    }
}

fn object(row: &Row<'_>) -> rusqlite::Result<ObjectRow> {
    Ok(ObjectRow {
        id: row.get(0)?,
        name: row.get(1)?,
        bytes: row.get(2)?,
        checksum: row.get(3)?,
        wanted: row.get(4)?,
        run: row.get(5)?,
        stored: row.get(6)?,
    })
}
