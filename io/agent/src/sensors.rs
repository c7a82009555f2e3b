//! How the agent sees the host: its iSCSI targets, who is logged in, the devices behind the LUNs and how busy
//! these are.
//!
//! All of it is read from the kernel's files and netlink sockets, and from `tgtadm` if a tgtd runs. Nothing
//! is changed, and nothing needs a privilege but the target's own: configfs can be read by everybody, tgtd
//! answers root only. What is read has bounds, and what is odd is left out with a [`Remark`], because
//! initiators choose a part of it and administrators change targets while the agent reads.

mod backing;
mod connections;
mod counters;
mod devices;
mod interfaces;
mod lio;
mod netlink;
mod reading;
mod scst;
mod storage;
mod survey;
pub mod text;
mod tgt;
#[cfg(test)]
mod tree;
mod written;

pub use counters::{BlockSensor, Reading};
pub use reading::Remark;
pub use storage::{NotWatched, StorageSensor, Watched};
pub use survey::{Roots, Surveyor};
