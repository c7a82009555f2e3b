//! Whether a volume's device may hold something that no flush has covered.
//!
//! A volume that ends is flushed, and a device that does not answer keeps it from ending. If nothing was
//! changed since a flush that covered everything, there is nothing to flush. A change counts as covered only
//! if that is certain.

/// The changes of one volume, and the flushes that cover them.
#[derive(Default, Debug)]
pub(super) struct Unflushed {
    /// Requests sent to the device that may have changed something.
    changes: u64,
    /// How many of these changes a flush has covered.
    flushed: u64,
    /// Of a flush at the device that was sent when all earlier requests were answered: its slot, and how many
    /// changes there were by then.
    covering: Option<(u32, u64)>,
}

impl Unflushed {
    /// Notes that a request that may change something is sent to the device.
    pub(super) fn note_change(&mut self) {
        self.changes += 1;
    }

    /// Notes that a flush is sent to the device. A flush covers the changes that were answered before: all
    /// changes, if no other request of the volume is outstanding.
    pub(super) fn note_flush(&mut self, slot: u32, is_alone: bool) {
        self.covering = is_alone.then_some((slot, self.changes));
    }

    /// Notes that the flush in this slot has succeeded.
    pub(super) fn note_flushed(&mut self, slot: u32) {
        if let Some((_, changes)) = self.covering.take_if(|(covering, _)| *covering == slot) {
            self.flushed = changes;
        }
    }

    /// Whether a flush has covered every change.
    pub(super) const fn is_clean(&self) -> bool {
        self.changes == self.flushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_flush_that_was_alone_and_has_succeeded_covers_what_came_before_it() {
        let mut volume = Unflushed::default();
        assert!(volume.is_clean(), "nothing was changed");
        volume.note_change();
        volume.note_flush(3, false);
        volume.note_flushed(3);
        assert!(!volume.is_clean(), "something else was outstanding");
        volume.note_flush(4, true);
        assert!(!volume.is_clean(), "it has not succeeded");
        volume.note_flushed(5);
        assert!(!volume.is_clean(), "that was another");
        volume.note_flushed(4);
        assert!(volume.is_clean());
    }

    #[test]
    fn what_is_changed_while_a_flush_is_at_the_device_is_not_covered() {
        let mut volume = Unflushed::default();
        volume.note_change();
        volume.note_flush(1, true);
        volume.note_change();
        volume.note_flushed(1);
        assert!(!volume.is_clean());
    }
}
