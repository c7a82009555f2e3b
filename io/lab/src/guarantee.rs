//! The judge of a promise: how much of it a law gives back, and what that costs the others.
//!
//! A law is judged on cells that nobody chose: [`draw()`] makes them from a seed. A cell has an array, a
//! volume with a promise, another volume beside it, and the promise, which follows from the latency of the
//! volume alone by a rule. `docs/guarantee.md` defines every word.
//!
//! | file | what it has |
//! |---|---|
//! | `matrix` | the arrays and the loads of which cells are made |
//! | `draw` | the cells of a seed |
//! | `load` | a load, made as heavy as a cell wants it |
//! | `run` | one run of a cell |
//! | `promise` | the windows of a promise, by the arrival of requests |
//! | `setting` | the laws, and the static settings of which the oracle takes the best |
//! | `judge` | all runs of a cell, and what follows from them |
//! | `summary` | the figures over all cells |

mod draw;
mod judge;
mod load;
mod matrix;
mod promise;
mod run;
mod setting;
mod summary;

pub use draw::{Cell, Draw, draw};
pub use judge::{Harm, Judge, Judged, Judgement, Kept, Oracle};
pub use load::Loads;
pub use matrix::{ArrayCase, BurstSpec, MadeUpSpec, Matrix};
pub use promise::{Metric, Promise};
pub use setting::Law;
pub use summary::{Interval, LawSummary, summarise};
