//! Packet delay: what decides whose packets of an iSCSI target are delayed, and by how much.
//!
//! The agent reads facts on a host: targets, sessions, devices and their counters. This crate finds which
//! devices share a resource, which initiators write too much, which delay their packets get, and which
//! changes of the kernel's queues and sets follow from what is there now. It does no I/O itself.

mod kernel;
mod plan;
#[cfg(test)]
mod pretend_kernel;
mod survey;

pub use kernel::{Command, InterfaceLeaves, LeafId, Present, Wanted, WantedLeaf};
pub use plan::{MEMBER_LASTS, RENEW_BELOW, plan};
pub use survey::{
    BlockCounters, Connection, Device, DeviceNumber, Framework, Mapper, Session, Survey, Target,
};
