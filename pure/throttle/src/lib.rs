//! Packet delay: what decides whose packets of an iSCSI target are delayed, and by how much.
//!
//! The agent reads facts on a host: targets, sessions, devices and their counters. This crate finds which
//! devices share a resource, which initiators write too much, which delay their packets get, and which
//! changes of the kernel's queues and sets follow from what is there now. It does no I/O itself.
//!
//! | file | what it decides |
//! |---|---|
//! | `resource.rs` | which devices share a resource |
//! | `wait.rs` | how long the reads of a resource took |
//! | `writers.rs` | how fast each initiator writes to each resource |
//! | `reachable.rs` | which connections are a session's |
//! | `members.rs` | who is delayed at each resource |
//! | `rise.rs` | how fast a delay rises |
//! | `placement.rs` | which leaf each connection's packets enter |
//! | `plan.rs` | which commands lead there |
//! | `throttle.rs` | the state machine of all these |
//! | `tuning.rs` | how a step of the delay is recorded, for other gains |

mod guards;
mod initiators;
mod kernel;
mod limits;
mod members;
mod meters;
mod notice;
mod placement;
mod plan;
#[cfg(test)]
mod pretend_kernel;
mod reachable;
mod report;
mod resource;
mod rise;
mod roster;
mod settings;
mod survey;
mod throttle;
mod tuning;
mod wait;
mod who;
mod writers;

pub use kernel::{Command, InterfaceLeaves, LeafId, MEMBER_LASTS, Present, Wanted, WantedLeaf};
pub use limits::{LeftOut, MOST_CONNECTIONS, MOST_DEVICES, MOST_NOTICES, MOST_RESOURCES, MOST_SESSIONS};
pub use members::Standing;
pub use notice::Notice;
pub use plan::{RENEW_BELOW, plan};
pub use report::{Guarded, InitiatorReport, OutOfReach, Report, ResourceReport};
pub use resource::ResourceId;
pub use rise::risen;
pub use settings::{
    HIGHEST_CEILING, Packets, ResourceSettings, SHORTEST_TIMER, Settings, SettingsError, Unknown,
};
pub use survey::{
    BlockCounters, Connection, Device, DeviceNumber, Framework, Mapper, Session, Survey, Target,
};
pub use throttle::Throttle;
pub use tuning::{CannotTune, Tuning, TuningProgress};
pub use who::{Network, NoInitiator, Who};
