//! A real iSCSI target with its disk, its initiators and their loads, for experiments with packet delay on a
//! real kernel.
//!
//! It changes the machine that it runs on: network namespaces, block devices, a volume group, a target. So it
//! is for machines that may be messed with, such as the guest of `scripts/run-in-vm`. Everything goes again
//! at its end.

mod bed;
mod bench;
mod clients;
mod fixed;
mod gauges;
mod guarded;
mod needs;
mod scale;
#[cfg(test)]
mod scenarios;
mod shell;
mod slow_motion;
mod stop;

pub use bed::Framework;
pub use bench::RealBench;
pub use stop::Stop;
