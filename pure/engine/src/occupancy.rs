//! How many requests are at the device, and how many there were at most in a control period.
//!
//! Counted twice: all of them, and without those that passed the depth gate because they were due. The law asks the
//! first number whether its depth was felt, and the second what it has to cut from, as a smaller depth holds
//! back only what it governs.

use weir_control::Peak;

/// The sensor.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Occupancy {
    now: Peak,
    peak: Peak,
}

impl Occupancy {
    /// Requests at the device now.
    pub(crate) const fn count(&self) -> u32 {
        self.now.all
    }

    pub(crate) fn on_issue(&mut self, past_gate: bool) {
        self.now.all += 1;
        self.now.through_gate += u32::from(!past_gate);
        self.peak.all = self.peak.all.max(self.now.all);
        self.peak.through_gate = self.peak.through_gate.max(self.now.through_gate);
    }

    pub(crate) fn on_complete(&mut self, past_gate: bool) {
        self.now.all -= 1;
        self.now.through_gate -= u32::from(!past_gate);
    }

    /// The peak of the period that ends now.
    pub(crate) fn take_peak(&mut self) -> Peak {
        std::mem::replace(&mut self.peak, self.now)
    }
}
