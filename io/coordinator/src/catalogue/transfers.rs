//! Transfers: those that go on, those that can go on later, and those that have ended.

use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{Catalogue, CatalogueError, FINISHING, MOST_ENDED, UnixMs};

/// How a transfer stands. The numbers are those of the file, and of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Waiting = 1,
    Active = 2,
    Done = 3,
    Failed = 4,
    Cancelled = 5,
    /// Its client has gone; its partial replica is kept.
    Interrupted = 6,
}

/// A transfer that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NewTransfer {
    /// As in the protocol.
    pub(crate) kind: i32,
    pub(crate) name: String,
    /// Which replica of its object it writes, from 0.
    pub(crate) replica: u32,
    pub(crate) run: String,
    pub(crate) source: String,
    pub(crate) bytes: Option<u64>,
    /// In bytes a second.
    pub(crate) rate: u64,
    pub(crate) class: String,
    pub(crate) deadline: Option<UnixMs>,
}

/// A transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TransferRow {
    pub(crate) id: u64,
    pub(crate) new: NewTransfer,
    pub(crate) state: State,
    /// Why it has ended as it has.
    pub(crate) why: String,
    /// Where it goes on, or went last; empty: nowhere yet.
    pub(crate) node: String,
    pub(crate) progress: Progress,
    pub(crate) asked: UnixMs,
    /// 0: not yet, here and below.
    pub(crate) started: UnixMs,
    pub(crate) ended: UnixMs,
    /// How often it has left a partial replica behind, and begun anew.
    pub(crate) begun: u32,
}

/// How far a transfer is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Progress {
    /// In bytes, on its node.
    pub(crate) moved: u64,
    /// 0: not yet.
    pub(crate) first_byte: UnixMs,
    /// For how many milliseconds it has moved data.
    pub(crate) moving: u64,
}

const COLUMNS: &str = "id, kind, name, replica, run, source, bytes, rate, class, deadline, state, why, node, moved, \
                       asked, started, first_byte, ended, moving, begun";

impl Catalogue {
    /// A transfer is asked for, and waits. Returns its number.
    pub(crate) fn ask(&mut self, now: UnixMs, new: &NewTransfer) -> Result<u64, CatalogueError> {
        let NewTransfer { kind, name, replica, run, source, bytes, rate, class, deadline } = new;
        self.change(|change| {
            change.execute(
                "INSERT INTO transfer (kind, name, replica, run, source, bytes, rate, class, deadline, state, why, \
                 node, moved, asked, started, first_byte, ended, moving)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, '', '', 0, ?10, 0, 0, 0, 0)",
                params![kind, name, replica, run, source, bytes, rate, class, deadline, now],
            )?;
            let id = change.last_insert_rowid().cast_unsigned();
            // The history is bounded. Those that can go on have an end of their own.
            let query = "DELETE FROM transfer WHERE id <= ?1 AND state IN (3, 4, 5)";
            change.execute(query, [id.saturating_sub(MOST_ENDED)])?;
            Ok(id)
        })
    }

    /// A transfer that was interrupted is asked for again, by another run of its client.
    pub(crate) fn ask_again(&mut self, id: u64, new: &NewTransfer) -> Result<(), CatalogueError> {
        let query = "UPDATE transfer SET run = ?2, rate = ?3, class = ?4, deadline = ?5, state = 1, why = ''
                     WHERE id = ?1";
        self.db
            .execute(query, params![id, new.run, new.rate, new.class, new.deadline])
            .map_err(self.wrong())?;
        Ok(())
    }

    /// A transfer starts on a node. A transfer that starts elsewhere has moved nothing there yet.
    pub(crate) fn start(&mut self, now: UnixMs, id: u64, node: &str) -> Result<(), CatalogueError> {
        let query = "UPDATE transfer SET state = 2, started = CASE started WHEN 0 THEN ?3 ELSE started END,
                     moved = CASE node WHEN ?2 THEN moved ELSE 0 END, node = ?2 WHERE id = ?1";
        self.db.execute(query, params![id, node, now]).map_err(self.wrong())?;
        Ok(())
    }

    /// A transfer waits again, and what it had written is none of its own any more.
    pub(crate) fn wait_again(&mut self, id: u64, why: &str) -> Result<(), CatalogueError> {
        self.change(|change| {
            leave_partial(change, id)?;
            let query = "UPDATE transfer SET state = 1, moved = 0, why = ?2, begun = begun + 1 WHERE id = ?1";
            change.execute(query, params![id, why]).map(|_| ())
        })
    }

    /// A transfer waits again, and goes on with what it had written if it comes to the same node.
    pub(crate) fn wait(&mut self, id: u64, why: &str) -> Result<(), CatalogueError> {
        let query = "UPDATE transfer SET state = 1, why = ?2 WHERE id = ?1";
        self.db.execute(query, params![id, why]).map_err(self.wrong())?;
        Ok(())
    }

    /// Keeps what is needed to go on with a partial replica later. It is on the disk at the return if it says
    /// that the client is about to finish, together with all notes before it; otherwise it is not flushed.
    pub(crate) fn keep_notes(&mut self, id: u64, lines: &[String]) -> Result<(), CatalogueError> {
        if lines.iter().any(|line| line == FINISHING) {
            return self.insert_notes(id, lines).map_err(self.wrong());
        }
        self.unflushed(|catalogue| catalogue.insert_notes(id, lines))
    }

    /// Changes something without a flush. The change survives the end of this process, but not that of the
    /// machine.
    fn unflushed(
        &mut self,
        change: impl FnOnce(&mut Self) -> rusqlite::Result<()>,
    ) -> Result<(), CatalogueError> {
        let set = |catalogue: &Self, to: &str| catalogue.db.pragma_update(None, "synchronous", to);
        let done = set(self, "NORMAL").and_then(|()| change(self));
        let back = set(self, "FULL");
        done.and(back).map_err(self.wrong())
    }

    fn insert_notes(&mut self, id: u64, lines: &[String]) -> rusqlite::Result<()> {
        let transaction = self.db.transaction()?;
        for line in lines {
            transaction.execute(
                "INSERT INTO note (transfer, number, line)
                 SELECT ?1, coalesce(max(number), 0) + 1, ?2 FROM note WHERE transfer = ?1",
                params![id, line],
            )?;
        }
        transaction.commit()
    }

    /// A transfer was not about to finish after all: something else has its name on the node, and stays.
    pub(crate) fn forget_finishing(&mut self, id: u64) -> Result<(), CatalogueError> {
        let query = "DELETE FROM note WHERE transfer = ?1 AND line = ?2";
        self.db.execute(query, params![id, FINISHING]).map_err(self.wrong())?;
        Ok(())
    }

    /// What was kept, in its order.
    pub(crate) fn notes(&self, id: u64) -> Result<Vec<String>, CatalogueError> {
        let query = "SELECT line FROM note WHERE transfer = ?1 ORDER BY number";
        self.rows(query, [id], |row| row.get(0))
    }

    /// A transfer's client has gone: it may go on later.
    pub(crate) fn interrupt(&mut self, now: UnixMs, id: u64) -> Result<(), CatalogueError> {
        let query = "UPDATE transfer SET state = 6, ended = ?2, why = 'its client has gone' WHERE id = ?1";
        self.db.execute(query, params![id, now]).map_err(self.wrong())?;
        Ok(())
    }

    /// How far a transfer is. Not flushed to the disk at once.
    pub(crate) fn keep_progress(&mut self, id: u64, progress: Progress) -> Result<(), CatalogueError> {
        let Progress { moved, first_byte, moving } = progress;
        let query = "UPDATE transfer SET moved = ?2, first_byte = ?3, moving = ?4 WHERE id = ?1";
        self.unflushed(|catalogue| {
            catalogue.db.execute(query, params![id, moved, first_byte, moving]).map(|_| ())
        })
    }

    /// A transfer ends. A partial replica of it is left to be removed, unless it is done.
    pub(crate) fn end_transfer(
        &mut self,
        now: UnixMs,
        id: u64,
        state: State,
        why: &str,
    ) -> Result<(), CatalogueError> {
        self.change(|change| {
            if state != State::Done {
                leave_partial(change, id)?;
            }
            end(change, now, id, state, why)
        })
    }

    /// The coordinator begins: no client is there yet. All that was interrupted counts from now on, as the
    /// clock may have been set meanwhile, and no client could come back.
    pub(crate) fn interrupt_all(&mut self, now: UnixMs) -> Result<(), CatalogueError> {
        let query = "UPDATE transfer SET state = 6, ended = ?1,
                     why = CASE state WHEN 6 THEN why ELSE 'the coordinator was stopped' END
                     WHERE state IN (1, 2, 6)";
        self.db.execute(query, [now]).map_err(self.wrong())?;
        Ok(())
    }

    /// A transfer by its number.
    pub(crate) fn transfer(&self, id: u64) -> Result<Option<TransferRow>, CatalogueError> {
        let query = format!("SELECT {COLUMNS} FROM transfer WHERE id = ?1");
        self.db.query_row(&query, [id], transfer).optional().map_err(self.wrong())
    }

    /// The last `most` transfers with a number below `before`, falling; only those that have not ended,
    /// unless `all`.
    pub(crate) fn transfers(
        &self,
        all: bool,
        before: u64,
        most: u32,
    ) -> Result<Vec<TransferRow>, CatalogueError> {
        let which = if all { "" } else { "AND state IN (1, 2, 6)" };
        let query = format!("SELECT {COLUMNS} FROM transfer WHERE id < ?1 {which} ORDER BY id DESC LIMIT ?2");
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        self.rows(&query, params![before, most], transfer)
    }

    /// The transfers of a name and a kind that have not ended.
    pub(crate) fn open_transfers(&self, name: &str, kind: i32) -> Result<Vec<TransferRow>, CatalogueError> {
        let query = format!(
            "SELECT {COLUMNS} FROM transfer WHERE name = ?1 AND kind = ?2 AND state IN (1, 2, 6) ORDER BY id"
        );
        self.rows(&query, params![name, kind], transfer)
    }

    /// The transfer of a run of a client for a replica of a name, however it stands.
    pub(crate) fn transfer_of_run(&self, new: &NewTransfer) -> Result<Option<TransferRow>, CatalogueError> {
        let query = format!(
            "SELECT {COLUMNS} FROM transfer WHERE run = ?1 AND name = ?2 AND kind = ?3 AND replica = ?4
             ORDER BY id DESC LIMIT 1"
        );
        let found = self.db.query_row(&query, params![new.run, new.name, new.kind, new.replica], transfer);
        found.optional().map_err(self.wrong())
    }

    /// The interrupted transfers beyond the last `most`.
    pub(crate) fn interrupted_beyond(&self, most: u32) -> Result<Vec<u64>, CatalogueError> {
        let query = "SELECT id FROM transfer WHERE state = 6 ORDER BY id DESC LIMIT -1 OFFSET ?1";
        self.rows(query, [most], |row| row.get(0))
    }

    /// The interrupted transfers whose client went before `since`: those that only the same run could
    /// continue if `is_run_bound`, else those that another run can.
    pub(crate) fn interrupted_before(
        &self,
        since: UnixMs,
        is_run_bound: bool,
    ) -> Result<Vec<u64>, CatalogueError> {
        let query = "SELECT id FROM transfer WHERE state = 6 AND ended < ?1 AND (source = '') = ?2";
        self.rows(query, params![since, is_run_bound], |row| row.get(0))
    }
}

/// Ends a transfer: it has no notes any more.
pub(super) fn end(
    transaction: &Transaction<'_>,
    now: UnixMs,
    id: u64,
    state: State,
    why: &str,
) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM note WHERE transfer = ?1", [id])?;
    transaction.execute(
        "UPDATE transfer SET state = ?2, why = ?3, ended = ?4 WHERE id = ?1",
        params![id, state as i32, why, now],
    )?;
    Ok(())
}

/// Leaves the partial replica of a transfer, if it has one, to be removed from its node.
fn leave_partial(transaction: &Transaction<'_>, id: u64) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO leftover (node, name, notes)
         SELECT transfer.node, CASE WHEN max(line = ?2) THEN transfer.name ELSE '' END,
                group_concat(line, char(10) ORDER BY number)
         FROM transfer JOIN note ON note.transfer = transfer.id WHERE transfer.id = ?1 GROUP BY transfer.id",
        params![id, FINISHING],
    )?;
    transaction.execute("DELETE FROM note WHERE transfer = ?1", [id])?;
    Ok(())
}

fn transfer(row: &Row<'_>) -> rusqlite::Result<TransferRow> {
    let new = NewTransfer {
        kind: row.get(1)?,
        name: row.get(2)?,
        replica: row.get(3)?,
        run: row.get(4)?,
        source: row.get(5)?,
        bytes: row.get(6)?,
        rate: row.get(7)?,
        class: row.get(8)?,
        deadline: row.get(9)?,
    };
    let state = match row.get(10)? {
        1 => State::Waiting,
        2 => State::Active,
        3 => State::Done,
        5 => State::Cancelled,
        6 => State::Interrupted,
        _ => State::Failed,
    };
    Ok(TransferRow {
        id: row.get(0)?,
        new,
        state,
        why: row.get(11)?,
        node: row.get(12)?,
        progress: Progress { moved: row.get(13)?, first_byte: row.get(16)?, moving: row.get(18)? },
        asked: row.get(14)?,
        started: row.get(15)?,
        ended: row.get(17)?,
        begun: row.get(19)?,
    })
}
