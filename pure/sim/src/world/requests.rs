//! The driver's table of the requests that the engine holds.

use weir_model::IoId;

/// A request that is not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) id: IoId,
    pub(super) volume: u32,
    /// Whether a thread waits for its answer.
    pub(super) by_thread: bool,
}

/// All requests, by the engine's slot, which is also the request's tag at the array.
#[derive(Default, Debug)]
pub(super) struct Requests {
    by_slot: Vec<Option<Held>>,
}

impl Requests {
    pub(super) fn insert(&mut self, held: Held) {
        let slot = held.id.slot as usize;
        if slot >= self.by_slot.len() {
            self.by_slot.resize(slot + 1, None);
        }
        self.by_slot[slot] = Some(held);
    }

    /// The id of the request in this slot.
    pub(super) fn id(&self, slot: u32) -> Option<IoId> {
        Some(self.by_slot.get(slot as usize)?.as_ref()?.id)
    }

    pub(super) fn take(&mut self, slot: u32) -> Option<Held> {
        self.by_slot.get_mut(slot as usize)?.take()
    }

    /// The requests of a volume.
    pub(super) fn of(&self, volume: u32) -> Vec<IoId> {
        let ours = self.by_slot.iter().flatten().filter(|held| held.volume == volume);
        ours.map(|held| held.id).collect()
    }
}
