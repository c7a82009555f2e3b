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
//! | `weigh` | finds how heavy that is |
//! | `run` | one run of a cell |
//! | `bed` | the volumes of a cell on its array, with one draw |
//! | `promise` | the windows of a promise, by the arrival of requests |
//! | `outcome` | what became of the volumes in a run |
//! | `gateways` | several gateways before the array, and which load is behind which |
//! | `setting` | the laws, and the static settings of which the oracle takes the best |
//! | `oracle` | the best static setting of a cell in hindsight, and the mildest ones |
//! | `oracle_file` | what static settings do, kept in a file |
//! | `judge` | all runs of a cell, and what follows from them |
//! | `watch` | what a law saw and did over time in one cell, drawn |
//! | `scene` | cases that every operator meets, each by itself |
//! | `interval` | where a figure lies, by drawing its parts anew |
//! | `summary` | the figures over all cells |

mod bed;
mod draw;
mod gateways;
mod interval;
mod judge;
mod load;
mod matrix;
mod oracle;
mod oracle_file;
mod outcome;
mod promise;
mod run;
mod scene;
mod setting;
mod summary;
mod watch;
mod weigh;

pub use draw::{Cell, Draw, draw};
pub use gateways::Gateways;
pub use interval::Interval;
pub use judge::{Judge, Judged, Judgement};
pub use load::Loads;
pub use matrix::{ArrayCase, BurstSpec, MadeUpSpec, Matrix};
pub use oracle::{Mild, Oracle};
pub use oracle_file::OracleFile;
pub use outcome::{Got, Harm, Kept};
pub use promise::{Metric, Promise};
pub use scene::{Played, Spread, play_scenes};
pub use setting::Law;
pub use summary::{Bar, LawSummary, Worst, WorstHarm, summarise};
pub use watch::watch;
