//! Which gates of a pool are shut, for the sums of what its requests wait for ([`waiting`](crate::waiting)).

use weir_model::{Instant, VolumeId};

use super::{Edf, known};
use crate::VolumeWaits;
use crate::waiting::{AtDevice, PoolGates};

impl Edf {
    /// Lets the pool's clocks go on to `now`. Called before anything that they depend on changes: the
    /// requests at the device, the knobs of the pool, and whose turn it is.
    pub(super) fn advance(&mut self, now: Instant) {
        if self.gate_clocks.is_at(now) {
            return;
        }
        let promised = self.in_flight - self.bound.in_flight;
        let pool = PoolGates {
            in_flight: self.in_flight,
            promised,
            depth_is_shut: self.in_flight >= self.depth.get(),
            promised_is_shut: promised >= self.promised.get(),
            turn_is_taken: self.turns.is_used(),
            bound_is_set: self.bound.is_set(),
        };
        self.gate_clocks.advance(now, pool);
    }

    /// Adds up what the requests of a volume have waited for. Called before its state or the number of its
    /// requests changes.
    pub(super) fn count_waits(&mut self, now: Instant, id: VolumeId) {
        self.advance(now);
        let volume = known(&mut self.volumes, id);
        let requests = AtDevice { all: volume.in_flight, promised: volume.in_flight - volume.background() };
        let is_background = volume.is_background() || volume.is_beyond;
        volume.clock.settle(id, &mut self.gate_clocks, is_background, requests);
    }

    /// Hands over what was added up since the last call, and begins anew.
    pub(super) fn hand_over_waits(&mut self, now: Instant, into: &mut Vec<VolumeWaits>) {
        let mut listed = self.gate_clocks.take_listed();
        listed.retain(|id| {
            self.count_waits(now, *id);
            let volume = known(&mut self.volumes, *id);
            let goes_on = !volume.is_empty() || volume.in_flight > 0;
            into.push(volume.clock.hand_over(*id, goes_on));
            goes_on
        });
        self.gate_clocks.keep_listed(listed);
    }
}
