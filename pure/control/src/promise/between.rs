//! How many requests may be at the device while those that are hindered by them are silent for a moment.
//!
//! As many as do not spoil the beginning of the next burst. That is learned from how bursts began.

/// How much more the next silence allows if this one had room for more.
const MORE: f64 = 1.1;

/// The bound in a silence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Between(f64);

impl Default for Between {
    fn default() -> Self {
        Self(f64::MAX)
    }
}

impl Between {
    /// How many there may be, if `bound` holds outside of silences and `room` is free. One request at least:
    /// nobody is there whom it could hinder now.
    pub(super) const fn most(self, bound: f64, room: f64) -> f64 {
        self.0.max(1.0).min(room).max(bound)
    }

    /// A silence has ended, and this was the worst strain of a second after it. It had room for more if that
    /// is below `easy`, and was too much above `spoilt`.
    pub(super) fn on_return(&mut self, strain: f64, easy: f64, spoilt: f64, bound: f64, room: f64) {
        let most = self.most(bound, room);
        if strain > spoilt {
            // Half of the way, in factors. The bound itself is known to do.
            self.0 = (most * bound).sqrt();
        } else if strain < easy {
            self.0 = most * MORE;
        }
    }
}
