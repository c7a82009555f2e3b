//! Real things for experiments: an iSCSI target with its disk, its initiators and their loads, for packet
//! delay on a real kernel; and storage nodes, for bulk transfers in real time.
//!
//! The target changes the machine that it runs on: network namespaces, block devices, a volume group. So it
//! is for machines that may be messed with, such as the guest of `scripts/run-in-vm`. Everything goes again
//! at its end. The [nodes](RealNodes) change nothing but `/dev/shm`, and a mount in it.

mod bed;
mod bench;
mod clients;
mod fixed;
mod gauges;
mod guarded;
mod needs;
mod nodes;
mod scale;
#[cfg(test)]
mod scenarios;
mod shell;
mod slow_motion;
mod stop;

pub use bed::Framework;
pub use bench::RealBench;
pub use nodes::RealNodes;
pub use stop::Stop;
