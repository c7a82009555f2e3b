//! What follows from the messages of a transfer that runs, and from its end.

use weir_model::Instant;
use weir_transfer::{NodeIndex, TransferId};

use super::{Desk, direction, message, passed_ms};
use crate::catalogue::{CatalogueError, FINISHING, Holder, ObjectRow, State, UnixMs};
use crate::proto::from_client::Message as Said;
use crate::proto::to_client::Message;
use crate::proto::{Done, Failed, Fault, Finish, Finished, Kind, Refusal};

/// How often a transfer waits for a node that was not reachable, or begins anew on one that has lost its
/// partial replica, before it does without that node.
const MOST_UNREACHABLE: u32 = 20;

/// The most notes that a client leaves in a stream, and the longest, in bytes. An upload to S3 has one for
/// each of its parts, which are 10,000 at most.
pub(crate) const MOST_NOTES: usize = 10_100;
const LONGEST_NOTE: usize = 2_048;

/// The most bytes that a client moves between two of its messages: four a second, over the fastest network.
const MOST_AT_ONCE: u64 = 1 << 36;

/// The longest text of a failure that is kept, in bytes.
const LONGEST_WHY: usize = 400;

impl Desk {
    /// A client says something about its transfer.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn said(
        &mut self,
        now: Instant,
        unix: UnixMs,
        id: u64,
        said: Said,
    ) -> Result<(), CatalogueError> {
        let Some(node) = self.live.get(&id).and_then(|live| live.node) else {
            return match said {
                // Its client gives up while it waits.
                Said::Failed(failed)
                    if matches!(failed.fault(), Fault::Client | Fault::PassedOn)
                        && self.live.contains_key(&id) =>
                {
                    self.end(now, unix, id, State::Failed, Refusal::Failed, &failed.why)
                }
                _ => Ok(()), // it crossed a message that ended the transfer, or moved it elsewhere
            };
        };
        match said {
            Said::Ask(_) => self.end(now, unix, id, State::Failed, Refusal::Wrong, "asked a second time"),
            Said::Notes(notes) => {
                let is_odd = |line: &String| line.len() > LONGEST_NOTE || line.contains('\n');
                let live = self.live.get_mut(&id).expect("it runs");
                let left = live.notes_left.checked_sub(notes.lines.len());
                let Some(left) = left.filter(|_| !notes.lines.iter().any(is_odd)) else {
                    let why = format!("accepted: {MOST_NOTES} notes of {LONGEST_NOTE} bytes, in a line each");
                    return self.end(now, unix, id, State::Failed, Refusal::Wrong, &why);
                };
                live.notes_left = left;
                self.catalogue.keep_notes(id, &notes.lines)?;
                let live = self.live.get_mut(&id).expect("it runs");
                live.partial = Some(node);
                let finishes = notes.lines.iter().any(|line| line == FINISHING);
                if finishes && live.outbox.try_send(message(Message::Finish(Finish {}))).is_err() {
                    self.gone(now, unix, id)?; // it waits for this message; its next stream says so again
                }
                Ok(())
            }
            Said::Moved(moved) => {
                let live = self.live.get_mut(&id).expect("it runs");
                // Nobody moves more than there is, so no client can spoil what is known of a node.
                let left = live.new.bytes.map_or(MOST_AT_ONCE, |all| all.saturating_sub(live.progress.moved));
                let bytes = moved.bytes.min(left).min(MOST_AT_ONCE);
                live.progress.moved = live.progress.moved.saturating_add(bytes).min(MOST_MOVED);
                if live.progress.first_byte == 0 && bytes > 0 {
                    live.progress.first_byte = unix;
                }
                self.nodes[node.0].moved.add(direction(live.kind), bytes);
                self.scheduler.moved(TransferId(id), bytes);
                Ok(())
            }
            Said::Finished(finished) => self.finished(now, unix, id, node, &finished),
            Said::Failed(failed) => self.failed(now, unix, id, node, failed),
        }
    }

    /// A client's stream has ended. A transfer that has not ended may go on later.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn gone(&mut self, now: Instant, unix: UnixMs, id: u64) -> Result<(), CatalogueError> {
        self.lose(now, unix, id)?;
        self.start_all(now, unix)
    }

    /// Takes out a transfer whose stream has ended. The caller starts others in its place.
    pub(super) fn lose(&mut self, now: Instant, unix: UnixMs, id: u64) -> Result<(), CatalogueError> {
        self.keep_progress(now, id)?;
        if self.leave(id).is_some() {
            self.scheduler.give_up(TransferId(id));
            self.abandoned.insert(id); // unless the catalogue remembers it now
            self.catalogue.interrupt(unix, id)?;
            self.abandoned.remove(&id);
            self.count(State::Interrupted);
        }
        Ok(())
    }

    /// Somebody cancels a transfer. Whether it had not ended yet; `None` if there is no such transfer.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn cancel(
        &mut self,
        now: Instant,
        unix: UnixMs,
        id: u64,
    ) -> Result<Option<bool>, CatalogueError> {
        let Some(row) = self.catalogue.transfer(id)? else { return Ok(None) };
        if matches!(row.state, State::Done | State::Failed | State::Cancelled) {
            return Ok(Some(false));
        }
        self.end(now, unix, id, State::Cancelled, Refusal::Cancelled, "cancelled by weir transfers cancel")?;
        Ok(Some(true))
    }

    /// Ends a transfer before it is done.
    pub(super) fn end(
        &mut self,
        now: Instant,
        unix: UnixMs,
        id: u64,
        state: State,
        refusal: Refusal,
        why: &str,
    ) -> Result<(), CatalogueError> {
        self.keep_progress(now, id)?;
        self.scheduler.give_up(TransferId(id));
        self.catalogue.end_transfer(unix, id, state, why)?;
        self.count(state);
        self.refuse(id, refusal, why);
        self.start_all(now, unix)
    }

    /// A client has moved everything.
    fn finished(
        &mut self,
        now: Instant,
        unix: UnixMs,
        id: u64,
        node: NodeIndex,
        finished: &Finished,
    ) -> Result<(), CatalogueError> {
        let live = self.live.get(&id).expect("it runs");
        let Ok(checksum) = <[u8; 32]>::try_from(finished.checksum.as_slice()) else {
            let why = "its checksum is not 32 bytes long";
            return self.end(now, unix, id, State::Failed, Refusal::Wrong, why);
        };
        let (kind, name, read) = (live.kind, live.new.name.clone(), live.object);
        let here = self.config.nodes[node.0].name.clone();
        let object = self.catalogue.object(&name)?;
        let holder = self.catalogue.holder(&here, &name, id)?;
        let is_same = |object: &ObjectRow| object.checksum == checksum && object.bytes == finished.bytes;
        match (kind, object) {
            (Kind::Get | Kind::Check, Some(object)) if read != Some(object.id) => {
                let why = "the object was replaced by another one meanwhile";
                return self.end(now, unix, id, State::Failed, Refusal::Failed, why);
            }
            (Kind::Get, Some(object)) if !is_same(&object) => {
                let why = "what was read is not what was stored".to_owned();
                return self.failed(now, unix, id, node, Failed { fault: Fault::Corrupt.into(), why });
            }
            (Kind::Check, Some(object)) => {
                self.judged(now, unix, id, &object, &here, is_same(&object))?;
            }
            (Kind::Put | Kind::Replicate, Some(object)) if !is_same(&object) => {
                if holder != Holder::Replica {
                    self.catalogue.leave_object(&here, &name)?;
                }
                let why = "its data differs from the other replica's: it changed while it was read";
                return self.end(now, unix, id, State::Failed, Refusal::Failed, why);
            }
            (Kind::Import, Some(object)) if !is_same(&object) => {
                let why = "another object of that name was stored meanwhile";
                return self.end(now, unix, id, State::Failed, Refusal::Failed, why);
            }
            (Kind::Replicate | Kind::Get, None) => {
                if kind == Kind::Replicate {
                    self.catalogue.leave_object(&here, &name)?;
                }
                let why = "the object was removed meanwhile";
                return self.end(now, unix, id, State::Failed, Refusal::Failed, why);
            }
            (Kind::Put | Kind::Replicate, Some(object)) if self.has_replica_beside(&object, node)? => {
                let why = "its failure domain has a replica by now".to_owned();
                self.refuse_finished(id, node);
                return self.failed(now, unix, id, node, Failed { fault: Fault::Other.into(), why });
            }
            (Kind::Put | Kind::Replicate | Kind::Import, _) if holder == Holder::Leftover => {
                // Somebody may be removing it at this moment.
                let why = "an earlier object of that name is being removed there".to_owned();
                self.refuse_finished(id, node);
                return self.failed(now, unix, id, node, Failed { fault: Fault::Gone.into(), why });
            }
            (Kind::Put | Kind::Replicate | Kind::Import, object) => {
                let wanted = object.map_or(0, |object| object.wanted);
                self.store(now, unix, id, node, ObjectRow { wanted, ..row(name, finished.bytes, checksum) })?;
            }
            _ => {
                self.keep_progress(now, id)?;
                self.catalogue.end_transfer(unix, id, State::Done, "")?;
            }
        }
        self.scheduler.done(TransferId(id));
        if let Some(live) = self.leave(id) {
            self.count_done(live.is_below(now));
            let done = message(Message::Done(Done { bytes: finished.bytes }));
            let _ = live.outbox.try_send(done); // a client that lost it asks again, and hears it then
        }
        self.start_all(now, unix)
    }

    /// A replica was read whole: it is good, or it is not.
    fn judged(
        &mut self,
        now: Instant,
        unix: UnixMs,
        id: u64,
        object: &ObjectRow,
        here: &str,
        is_good: bool,
    ) -> Result<(), CatalogueError> {
        if !is_good {
            tracing::warn!(object = object.name, node = here, "a replica is not what was stored");
        }
        self.catalogue.judge(unix, object.id, here, is_good)?;
        self.keep_progress(now, id)?;
        let why = if is_good { "" } else { "the replica is not what was stored" };
        self.catalogue.end_transfer(unix, id, State::Done, why)
    }

    /// What a transfer has finished does not count: it begins anew, also if it has left nothing behind, as an
    /// import. Otherwise its client would tell the next start that it has finished.
    fn refuse_finished(&mut self, id: u64, node: NodeIndex) {
        if let Some(live) = self.live.get_mut(&id) {
            live.partial = Some(node);
        }
    }

    /// Whether an object has a replica in the failure domain of a node, as its transfers may have come back
    /// in another order.
    fn has_replica_beside(&self, object: &ObjectRow, node: NodeIndex) -> Result<bool, CatalogueError> {
        let domain = self.nodes[node.0].domain;
        let replicas = self.catalogue.replicas(object.id)?;
        let others = replicas.iter().filter_map(|replica| self.node(&replica.node));
        Ok(others.into_iter().any(|other| self.nodes[other.0].domain == domain))
    }

    /// A transfer has written, or found, a replica of an object.
    fn store(
        &mut self,
        now: Instant,
        unix: UnixMs,
        id: u64,
        node: NodeIndex,
        object: ObjectRow,
    ) -> Result<(), CatalogueError> {
        self.keep_progress(now, id)?;
        let live = self.live.get(&id).expect("it runs");
        let wanted = object.wanted.max(live.wanted);
        let stored = ObjectRow { wanted, run: live.new.run.clone(), stored: unix, ..object };
        let is_new = self.catalogue.store(unix, id, &stored, &self.config.nodes[node.0].name)?;
        let known = &mut self.nodes[node.0];
        if is_new {
            known.objects += 1;
            known.stored = known.stored.saturating_add(stored.bytes);
        }
        Ok(())
    }

    /// A transfer failed on a node. It goes on elsewhere if it may.
    fn failed(
        &mut self,
        now: Instant,
        unix: UnixMs,
        id: u64,
        node: NodeIndex,
        Failed { fault, mut why }: Failed,
    ) -> Result<(), CatalogueError> {
        while why.len() > LONGEST_WHY {
            why.pop();
        }
        let fault = Fault::try_from(fault).unwrap_or(Fault::Unspecified);
        let live = self.live.get(&id).expect("it runs");
        let (kind, name, read) = (live.kind, live.new.name.clone(), live.object);
        if kind == Kind::Import && fault == Fault::Missing {
            return self.end(now, unix, id, State::Failed, Refusal::Wrong, &why);
        }
        if matches!(fault, Fault::Client | Fault::Unspecified) {
            return self.end(now, unix, id, State::Failed, Refusal::Failed, &why);
        }
        let here = self.config.nodes[node.0].name.clone();
        tracing::warn!(transfer = id, node = here, why, "a transfer failed on its node");
        if matches!(fault, Fault::Missing | Fault::Corrupt | Fault::PassedOn)
            && matches!(kind, Kind::Get | Kind::Check)
            && let Some(object) = self.catalogue.object(&name)?.filter(|object| read == Some(object.id))
        {
            self.catalogue.judge(unix, object.id, &here, false)?;
        }
        if fault == Fault::PassedOn {
            return self.end(now, unix, id, State::Failed, Refusal::Failed, &why);
        }
        self.keep_progress(now, id)?;
        self.scheduler.give_up(TransferId(id));
        self.move_to(id, None);
        let live = self.live.get_mut(&id).expect("it runs");
        let mut is_out = true;
        match fault {
            Fault::Unreachable => {
                live.unreachable += 1;
                is_out = live.unreachable > MOST_UNREACHABLE;
            }
            // It begins anew there. A node that loses each partial is out at last.
            Fault::Gone => {
                live.gone += 1;
                is_out = live.gone > MOST_UNREACHABLE;
            }
            _ => {}
        }
        if is_out {
            live.failed.insert(node, (fault, why.clone()));
        } else if fault == Fault::Unreachable {
            // Only this client says so. The node may be up for all others, so the next probe is waited for.
            live.doubted = Some(node);
        }
        if fault == Fault::Exists {
            // What has the name there is somebody else's.
            self.catalogue.forget_finishing(id)?;
        }
        let keeps_partial = fault == Fault::Unreachable && !is_out;
        if live.partial == Some(node) && !keeps_partial {
            live.partial = None;
            live.progress.moved = 0;
            self.catalogue.wait_again(id, &why)?;
        } else {
            self.catalogue.wait(id, &why)?;
        }
        self.submit(now, unix, id)?;
        self.start_all(now, unix)
    }

    /// Keeps how far a transfer is.
    pub(super) fn keep_progress(&mut self, now: Instant, id: u64) -> Result<(), CatalogueError> {
        let Some(live) = self.live.get_mut(&id) else { return Ok(()) };
        if live.node.is_some() {
            live.progress.moving += passed_ms(now, live.since);
            live.since = now;
        }
        self.catalogue.keep_progress(id, live.progress)
    }
}

/// An object that is new to the catalogue, without what its transfer says of it.
const fn row(name: String, bytes: u64, checksum: [u8; 32]) -> ObjectRow {
    ObjectRow { id: 0, name, bytes, checksum, wanted: 0, run: String::new(), stored: 0 }
}

/// What the catalogue can keep.
const MOST_MOVED: u64 = i64::MAX.cast_unsigned();
