//! A law is a step from an observation to a setting.
//!
//! A new law is a file or a room of this crate. These places connect it:
//!
//! | place | what is added |
//! |---|---|
//! | `pure/engine/src/config.rs` | a variant of `Control`, with the law's configuration |
//! | `pure/engine/src/loops.rs` and `loops/` | a loop that makes the observation and puts the setting in force |
//! | `pure/status/src/words.rs` | its word, `ControlKind` |
//! | `weir/src/config/pool.rs`, `weir/src/compose.rs` | its keys, and how they become the configuration |

use weir_model::Instant;

/// A law: one step for each control period.
pub trait Law {
    /// The facts about the last period that the law needs.
    type Observation;
    /// The law's decision for the next period.
    type Setting;

    /// The setting after `seen`. `now` does not go back from one call to the next.
    fn step(&mut self, now: Instant, seen: &Self::Observation) -> Self::Setting;
}
