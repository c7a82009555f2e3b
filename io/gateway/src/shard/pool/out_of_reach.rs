//! A promise that is out of reach: what the pool keeps of it, and says.

use weir_engine::{Because, Shortfall};
use weir_model::VolumeId;
use weir_status::{CannotBeMet, Cause};

use super::Pool;

impl Pool {
    /// Takes in what the law says of promises that are out of reach: it names one of them. The log names a
    /// volume when the law names another than before, and says when none is out of reach any more.
    pub(super) fn note_out_of_reach(&mut self, now: Option<Shortfall<VolumeId>>) {
        let before = std::mem::replace(&mut self.out_of_reach, now);
        let volume = |shortfall: Option<Shortfall<VolumeId>>| shortfall.map(|shortfall| shortfall.volume);
        if volume(before) == volume(now) {
            return;
        }
        if let Some(name) = before.filter(|_| now.is_none()).and_then(|before| self.name_of(before.volume)) {
            // No peer: it is about the device.
            tracing::info!(volume = name, "what is promised is within reach again");
        }
        if let Some(CannotBeMet { volume, times, cause }) = self.cannot_be_met() {
            let missed = weir_status::times(times);
            // No peer: it is about the device.
            tracing::warn!(volume, "what is promised cannot be met: missed {missed}, because of {cause}");
        }
    }

    /// The promise that is missed though nobody is left to be held back.
    pub(super) fn cannot_be_met(&self) -> Option<CannotBeMet> {
        let Shortfall { volume, times, because } = self.out_of_reach?;
        let cause = match because {
            Because::OwnLimits => Cause::OwnLimits,
            Because::Volume(other) => Cause::Volume(self.name_of(other)?.to_owned()),
            Because::Background => Cause::Background,
            Because::Backlog => Cause::Backlog,
            Because::Device => Cause::Device,
        };
        Some(CannotBeMet { volume: self.name_of(volume)?.to_owned(), times, cause })
    }

    /// The name of a volume of the engine; `None` if it is gone.
    pub(super) fn name_of(&self, id: VolumeId) -> Option<&str> {
        Some(&self.volumes.get(self.first_port(id).0 as usize)?.as_ref()?.name)
    }
}
