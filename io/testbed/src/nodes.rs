//! Real storage nodes on this machine, for experiments with bulk transfers in real time.
//!
//! The servers, the directory, the coordinator, its catalogue, its clients and what they measure are real.
//! How fast a node is comes from the experiment: [`shaper`] imposes it on each connection and each file.
//!
//! | file | what it has |
//! |---|---|
//! | `bed` | the nodes |
//! | `bench` | a run of an experiment on them |
//! | `shaper` | what each connection and each file may move now |
//! | `relay`, `directory` | where that is imposed |
//! | `network` | a network for all of it |

mod bed;
mod bench;
mod directory;
mod network;
mod relay;
mod shaper;

pub use bench::RealNodes;
