//! Which requests at the device went beyond what their volume's promise covers.
//!
//! A volume that is promised a rate sends as many requests as that covers before all others. Those beyond are
//! background: they take turns, and keep to the bound. A request is one or the other from the moment at which
//! it goes to the device, so it is remembered until it is finished.

use weir_model::IoId;

/// The requests, by slot.
#[derive(Debug)]
pub(super) struct Beyond {
    /// The number of the volume's epoch in which the request went; zero: it did not go beyond.
    epochs: Vec<u32>,
}

impl Beyond {
    /// No request.
    pub(super) const fn none() -> Self {
        Self { epochs: Vec::new() }
    }

    /// A request goes beyond, in this epoch of its volume.
    pub(super) fn put(&mut self, id: IoId, epoch: u32) {
        let slot = id.slot as usize;
        if slot >= self.epochs.len() {
            self.epochs.resize(slot + 1, 0);
        }
        if let Some(place) = self.epochs.get_mut(slot) {
            *place = epoch;
        }
    }

    /// A request is finished: whether it went beyond in this epoch of its volume.
    pub(super) fn take(&mut self, id: IoId, epoch: u32) -> bool {
        let place = self.epochs.get_mut(id.slot as usize);
        place.is_some_and(|place| std::mem::take(place) == epoch)
    }
}
