//! Records how the reads of a resource answer a step of the delay, for gains that suit it.
//!
//! The delay is held at zero, then at the step; the law of the resource decides nothing meanwhile. A plant is
//! fitted to the recording by [`weir_control::Plant`].

use thiserror::Error;
use weir_control::StepResponse;
use weir_model::{Instant, Span};

use crate::throttle::Throttle;

/// How many intervals are waited for the first survey, and for an initiator that can be delayed.
const LONGEST_SURVEY: usize = 20;
const LONGEST_WAIT: usize = 100;
/// How many intervals are recorded before the step. At a tenth of a second each, 10 s.
const BEFORE: usize = 100;
/// How many intervals are recorded after it. The slowest answer takes some seconds.
const AFTER: usize = 150;

/// A recording that is under way.
#[derive(Debug)]
pub struct Tuning {
    resource: String,
    waited: usize,
    recorded: StepResponse,
}

/// How far a recording has come.
#[derive(Clone, PartialEq, Debug)]
pub enum TuningProgress {
    /// No initiator writes enough yet.
    Waiting,
    /// So many intervals of so many are recorded.
    Recording {
        /// Recorded.
        done: usize,
        /// In all.
        of: usize,
    },
    /// All of them.
    Done(StepResponse),
}

/// Why nothing can be recorded.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CannotTune {
    /// The name is wrong, or the resource has gone; with the names of those that are there.
    #[error("there is no resource {0:?}; accepted: {1}")]
    NoResource(String, String),
    /// A delay would reach nobody.
    #[error(
        "{0}: no initiator that a delay reaches writes more than the write limit; needed: writers at work"
    )]
    NobodyWrites(String),
}

impl Tuning {
    /// A recording at the resource of that name, with a step of so much delay.
    pub const fn new(resource: String, step: Span, period: Span) -> Self {
        let recorded = StepResponse { period, step, before: Vec::new(), after: Vec::new() };
        Self { resource, waited: 0, recorded }
    }

    /// Takes what the last interval showed, and holds the delay of the next one. To be called after each
    /// [`Throttle::handle_counters`], until it is done.
    ///
    /// # Errors
    /// If there is no such resource, or nobody can be delayed.
    pub fn handle_interval(
        &mut self,
        now: Instant,
        throttle: &mut Throttle,
    ) -> Result<TuningProgress, CannotTune> {
        let resources = throttle.report().resources;
        let Some(found) = resources.iter().find(|found| found.name == self.resource) else {
            let names: Vec<_> = resources.iter().map(|found| found.name.as_str()).collect();
            let names =
                if names.is_empty() { "none, as no target here has a LUN" } else { &names.join(", ") };
            let refused = CannotTune::NoResource(self.resource.clone(), names.to_owned());
            return self.wait(LONGEST_SURVEY, refused);
        };
        if !found.members().any(|member| member.connections > 0) {
            throttle.hold(now, &self.resource, Span::ZERO);
            return self.wait(LONGEST_WAIT, CannotTune::NobodyWrites(self.resource.clone()));
        }
        let StepResponse { step, before, after, .. } = &mut self.recorded;
        if before.len() < BEFORE {
            before.push(found.last_wait);
        } else {
            after.push(found.last_wait);
        }
        let delay = if before.len() < BEFORE { Span::ZERO } else { *step };
        throttle.hold(now, &self.resource, delay);
        if after.len() == AFTER {
            return Ok(TuningProgress::Done(self.recorded.clone()));
        }
        Ok(TuningProgress::Recording { done: before.len() + after.len(), of: BEFORE + AFTER })
    }

    /// Waits on, up to so many intervals in all.
    fn wait(&mut self, longest: usize, in_vain: CannotTune) -> Result<TuningProgress, CannotTune> {
        self.waited += 1;
        if self.waited > longest { Err(in_vain) } else { Ok(TuningProgress::Waiting) }
    }
}
