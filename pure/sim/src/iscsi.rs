//! An iSCSI target in simulated time: disks, initiators, and packets that are delayed on their way back.
//!
//! The paper of packet delay was measured on a target whose hardware is gone. This model keeps what its
//! results rest on: requests that wait for one another at a disk, and packets that come back later. The
//! throttle that decides is the one that works on a real host: the model gives it surveys and counters, and
//! applies its plans.
//!
//! # What is modelled
//!
//! - **A disk** for each volume group. It works on one request at a time, in the order of their coming. The
//!   time for one is uniformly distributed, and does not depend on the request.
//! - **An initiator** has a number of requests outstanding, perhaps at a pace, perhaps in bursts. It is the
//!   only user of its logical volume.
//! - **A read** is a command to the target, the disk's time, and the data back.
//! - **A write** is a command with its data, the disk's time, and a response. If the target has to ask for
//!   the data first (R2T), there is one more packet back, and the data come after it.
//! - **A leaf** is a queue: a packet stays in it for the delay of its coming, and leaves it after all that
//!   came before it. That is the kernel's netem with a rate.
//! - **TCP** sends nothing again by itself, because nothing is lost. The model counts what would make it do
//!   so: an answer later than its timer (RFC 6298, at least 200 ms above the mean, as in Linux), and a packet
//!   that three segments have overtaken.
//!
//! # What is not modelled
//!
//! Congestion windows, lost packets, the caches of initiator and target, the schedulers of block devices, and
//! any difference between sequential and random requests.

mod agent;
mod disk;
mod initiator;
mod network;
mod options;
pub mod swarm;
mod tcp;
#[cfg(test)]
mod tests;
mod world;

pub use options::{Delays, FixedDelay, Initiator, Misfortune, Mishap, TargetOptions};
pub use tcp::TcpCounts;
pub use world::{TargetSample, TargetWorld};
