//! Checks that each request is answered exactly once, and reported exactly once, with the times that were
//! seen from outside the engine.

use std::collections::VecDeque;

use weir_engine::Event;
use weir_model::{Instant, Io, IoId, IoKind, Span, VolumeId};

use super::{Breach, Verified};

/// Every request that is submitted and neither answered nor aborted, by slot.
#[derive(Default, Debug)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    /// The events that the engine has to report next, in order.
    expected: VecDeque<(IoId, Event)>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    arrived: Instant,
    issued: Instant,
    volume: VolumeId,
    generation: u32,
    length: u32,
    kind: IoKind,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Free,
    Queued,
    AtArray,
    /// The array has answered, and its reply has not been handed over.
    Answered {
        at: Instant,
        ok: bool,
    },
}

const FREE: Entry = Entry {
    arrived: Instant::ORIGIN,
    issued: Instant::ORIGIN,
    volume: VolumeId(0),
    generation: 0,
    length: 0,
    kind: IoKind::Read,
    stage: Stage::Free,
};

impl Ledger {
    pub(super) fn on_submit(&mut self, io: &Io) -> Verified {
        let Io { id, volume, kind, length, arrived, .. } = *io;
        let slot = id.slot as usize;
        if slot >= self.entries.len() {
            self.entries.resize(slot + 1, FREE);
        }
        let entry = &mut self.entries[slot];
        if entry.stage != Stage::Free {
            return Err(entry.out_of_turn(id, "given a number that is taken"));
        }
        let generation = id.generation;
        *entry = Entry { arrived, issued: arrived, volume, generation, length, kind, stage: Stage::Queued };
        Ok(())
    }

    pub(super) fn on_issue(&mut self, now: Instant, io: &Io) -> Verified {
        let entry = self.known(io.id, Stage::Queued, "issued")?;
        entry.stage = Stage::AtArray;
        entry.issued = now;
        Ok(())
    }

    /// The array has answered the request in `slot`. Returns the request, and its volume.
    pub(super) fn on_answer(
        &mut self,
        now: Instant,
        slot: u32,
        ok: bool,
    ) -> Result<(VolumeId, IoId), Box<Breach>> {
        let generation = self.entries.get(slot as usize).map_or(0, |entry| entry.generation);
        let id = IoId { slot, generation };
        let entry = self.known(id, Stage::AtArray, "answered")?;
        entry.stage = Stage::Answered { at: now, ok };
        Ok((entry.volume, id))
    }

    /// The reply to the request in `slot` is handed over. Returns the request's volume, and how long the
    /// reply was held.
    pub(super) fn on_reply(&mut self, now: Instant, slot: u32) -> Result<(VolumeId, Span), Box<Breach>> {
        let entry = self.entries.get(slot as usize).copied().unwrap_or(FREE);
        let Entry { arrived, issued, volume, length, kind, .. } = entry;
        let Stage::Answered { at, ok } = entry.stage else {
            return Err(entry.out_of_turn(IoId { slot, generation: entry.generation }, "replied to"));
        };
        self.entries[slot as usize].stage = Stage::Free;
        let (queued, device, total) = (issued.since(arrived), at.since(issued), now.since(arrived));
        let id = IoId { slot, generation: entry.generation };
        self.expected.push_back((id, Event::Finished { volume, kind, length, ok, queued, device, total }));
        Ok((volume, now.since(at)))
    }

    /// The request that was replied to last, its volume, and its times in the queue, at the array, and of the
    /// reply.
    pub(super) fn last_replied(&self) -> Option<(IoId, VolumeId, [Span; 3])> {
        let Some((id, Event::Finished { volume, queued, device, total, .. })) = self.expected.back() else {
            return None;
        };
        let reply = Span::from_nanos(total.as_nanos() - queued.as_nanos() - device.as_nanos());
        Some((*id, *volume, [*queued, *device, reply]))
    }

    /// The volume of the reply that has been held the longest until now, and for how long.
    pub(super) fn longest_held(&self, now: Instant) -> Option<(VolumeId, Span)> {
        let held = self.entries.iter().filter_map(|entry| match entry.stage {
            Stage::Answered { at, .. } => Some((entry.volume, now.since(at))),
            _ => None,
        });
        held.max_by_key(|(_, held)| *held)
    }

    /// A request was aborted. Returns its volume.
    pub(super) fn on_abort(&mut self, id: IoId) -> Result<VolumeId, Box<Breach>> {
        let entry = self.known(id, Stage::Queued, "aborted")?;
        let Entry { volume, kind, .. } = *entry;
        entry.stage = Stage::Free;
        self.expected.push_back((id, Event::Aborted { volume, kind }));
        Ok(volume)
    }

    /// The engine reports the end of a request. Returns which one has ended.
    pub(super) fn on_report(&mut self, reported: &Event) -> Result<IoId, Box<Breach>> {
        match self.expected.pop_front() {
            Some((id, seen)) if seen == *reported => Ok(id),
            other => Err(Box::new(Breach::Report { reported: *reported, seen: other.map(|(_, seen)| seen) })),
        }
    }

    pub(super) fn at_rest(&self) -> Verified {
        self.expected.front().map_or(Ok(()), |(_, seen)| Err(Box::new(Breach::Unreported { seen: *seen })))
    }

    pub(super) fn at_end(&self, volume: VolumeId, engine: u32) -> Verified {
        let ours = |entry: &&Entry| entry.volume == volume && entry.stage != Stage::Free;
        let counted = u32::try_from(self.entries.iter().filter(ours).count()).unwrap_or(u32::MAX);
        if counted == engine { Ok(()) } else { Err(Box::new(Breach::Lost { volume, engine, counted })) }
    }

    /// When the oldest unanswered read or write of a volume arrived.
    pub(super) fn oldest_transfer(&self, volume: VolumeId) -> Option<Instant> {
        let ours = self.entries.iter().filter(|entry| entry.volume == volume && entry.stage != Stage::Free);
        ours.filter(|entry| entry.kind.direction().is_some()).map(|entry| entry.arrived).min()
    }

    /// Whether a request waits in the engine.
    pub(super) fn is_queued(&self, id: IoId) -> bool {
        let entry = self.entries.get(id.slot as usize);
        entry.is_some_and(|entry| entry.generation == id.generation && entry.stage == Stage::Queued)
    }

    fn known(&mut self, id: IoId, stage: Stage, happened: &'static str) -> Result<&mut Entry, Box<Breach>> {
        match self.entries.get_mut(id.slot as usize) {
            Some(entry) if entry.stage == stage && entry.generation == id.generation => Ok(entry),
            Some(entry) => Err(entry.out_of_turn(id, happened)),
            None => Err(FREE.out_of_turn(id, happened)),
        }
    }
}

impl Entry {
    fn out_of_turn(&self, id: IoId, happened: &'static str) -> Box<Breach> {
        let found = match self.stage {
            _ if self.generation != id.generation => "is another request by now",
            Stage::Free => "is not outstanding",
            Stage::Queued => "is queued",
            Stage::AtArray => "is at the array",
            Stage::Answered { .. } => "is answered",
        };
        Box::new(Breach::OutOfTurn { id, happened, found })
    }
}

#[cfg(test)]
mod tests;
