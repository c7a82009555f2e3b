//! The order and the times of phases, once or repeated.

use weir_model::{Instant, Span};

use crate::scenario::{Phase, VolumeScenario, Workload};

/// The phases of a volume.
#[derive(Debug)]
pub(super) struct Schedule {
    phases: Vec<Phase>,
    repeat: Option<Span>,
    round: Instant,
    index: usize,
    next: Instant,
}

impl Schedule {
    pub(super) fn new(volume: &VolumeScenario) -> Self {
        let mut phases = volume.phases.clone();
        if phases.first().is_some_and(|first| !first.at.is_zero()) {
            phases.insert(0, Phase { at: Span::ZERO, workload: None });
        }
        let next = if phases.is_empty() { Instant::FAR_FUTURE } else { Instant::ORIGIN };
        Self { phases, repeat: volume.repeat, round: Instant::ORIGIN, index: 0, next }
    }

    /// When the next phase begins.
    pub(super) const fn next_at(&self) -> Instant {
        self.next
    }

    /// The phase that begins at [`Schedule::next_at`].
    pub(super) fn begin_next(&mut self) -> Option<&Workload> {
        let begins = self.index;
        self.index += 1;
        if self.index == self.phases.len()
            && let Some(repeat) = self.repeat
        {
            self.index = 0;
            self.round = self.round + repeat;
        }
        self.next = self.phases.get(self.index).map_or(Instant::FAR_FUTURE, |phase| self.round + phase.at);
        self.phases[begins].workload.as_ref()
    }
}
