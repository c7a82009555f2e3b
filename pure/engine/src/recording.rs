//! A recording: what an engine was told, when, and what it decided. It is enough to live the engine through
//! once more.
//!
//! An engine that has a [`Recorder`] gives it an [`Entry`] for each input with its outcome, and for each
//! event. The engine reads no clock and draws no random numbers. So a [`Replay`](crate::Replay) of the
//! entries through another engine of the same code must decide the same, to the last entry. A problem in the
//! field becomes a test, and a change of the code shows where it changes a decision.
//!
//! **A recording begins with its engine** ([`Engine::with_recorder`](crate::Engine::with_recorder)). To begin
//! later, the recorder would have to write down the engine's state, with every heap and window in it. Then
//! each change of that state would change the format. Entries speak only of the interface.
//!
//! **Outcomes stand beside the inputs.** With the inputs alone, a replay would show what the engine does now.
//! Nobody could say whether it did the same then.

mod stored;

use std::fmt;

use weir_model::Instant;

use crate::config::EngineConfig;
use crate::event::Event;
use crate::input::{Input, Outcome};

/// Takes what an engine is told and decides. The engine calls it on the path of every request: a recorder
/// must not wait.
pub trait Recorder: fmt::Debug {
    /// Takes an entry. `now` never goes back. The first entry is [`Entry::Made`].
    fn record(&mut self, now: Instant, entry: &Entry);
}

/// One step of an engine's life.
#[derive(Clone, PartialEq, Debug)]
pub enum Entry {
    /// The engine was made.
    Made {
        /// The configuration of its pool.
        config: EngineConfig,
        /// What `poll_timeout` says from now on.
        timeout: Option<Instant>,
    },
    /// The engine applied an input.
    Applied {
        /// What it was told.
        input: Input,
        /// What it decided.
        outcome: Outcome,
    },
    /// The engine reported an event. It follows the input that caused it.
    Reported(Event),
}
