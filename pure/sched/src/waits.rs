//! What made requests wait, in sums over a period: what a scheduler tells about it.
//!
//! The scheduler only adds up. Who is charged for the waiting is decided by its caller, at the end of a
//! period ([`Scheduler::take_waits`](crate::Scheduler::take_waits)).

use weir_model::{Span, VolumeId};

/// What keeps a request from the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Knob {
    /// The volume's own rate: of requests, or of bytes.
    Rate,
    /// The volume's own bound on its requests at the device.
    Concurrency,
    /// The depth: as many requests are at the device as may be.
    Depth,
    /// The bound of all promised volumes together, while these go in order.
    PromisedBound,
    /// A turn: a background volume has the device for itself, or is about to.
    Turn,
    /// The bound of all background volumes together, or its pace.
    BackgroundBound,
    /// Nothing: the request may go, and the driver has not asked yet.
    Driver,
}

impl Knob {
    /// All of them, in the order of [`Knob::index`].
    pub const ALL: [Self; 7] = [
        Self::Rate,
        Self::Concurrency,
        Self::Depth,
        Self::PromisedBound,
        Self::Turn,
        Self::BackgroundBound,
        Self::Driver,
    ];

    /// Its place in [`Knob::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether it is set for the volume alone, so that no other volume is in the way.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Rate | Self::Concurrency)
    }
}

/// What the requests of one volume waited for in a period, and what the volume had of the device meanwhile.
/// Times are summed over requests: two requests that wait for 3 ms at the same time have waited for 6 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VolumeWaits {
    /// The volume.
    pub volume: VolumeId,
    /// How long its requests waited, in the order of [`Knob::ALL`].
    pub waited: [Span; Knob::ALL.len()],
    /// How long its requests were at the device.
    pub at_device: Span,
    /// What it had of the device's time, while that is shared out evenly among the requests there. The unit
    /// is the same for all volumes of a period, and means nothing by itself.
    pub share: u64,
    /// The same, only of the time in which the depth was shut or a volume had the device for itself.
    pub shut_share: u64,
    /// The same, only of the time in which the bound of promised volumes was reached, and shared out among
    /// their requests only. Zero for a background volume.
    pub promised_share: u64,
    /// How many of its requests went to the device.
    pub issued: u32,
    /// What of [`Self::at_device`] is the part of its own requests, while the time of each request there is
    /// shared out evenly among all that are there.
    pub own_at_device: Span,
    /// What of the wait for the depth and for a turn is the part of its own requests, in the same way.
    pub own_while_shut: Span,
    /// What of the wait for the bound of promised volumes is the part of its own requests.
    pub own_at_promised: Span,
}

impl VolumeWaits {
    /// Nothing of a volume.
    pub const fn none(volume: VolumeId) -> Self {
        let waited = [Span::ZERO; Knob::ALL.len()];
        Self {
            volume,
            waited,
            at_device: Span::ZERO,
            share: 0,
            shut_share: 0,
            promised_share: 0,
            issued: 0,
            own_at_device: Span::ZERO,
            own_while_shut: Span::ZERO,
            own_at_promised: Span::ZERO,
        }
    }

    /// How long its requests waited for this.
    pub fn waited_for(&self, knob: Knob) -> Span {
        self.waited.get(knob.index()).copied().unwrap_or_default()
    }

    /// They waited for this, for so long.
    pub(crate) fn wait_for(&mut self, knob: Knob, time: Span) {
        if let Some(waited) = self.waited.get_mut(knob.index()) {
            *waited += time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_stands_at_its_index() {
        assert!(Knob::ALL.iter().enumerate().all(|(index, knob)| knob.index() == index));
    }
}
