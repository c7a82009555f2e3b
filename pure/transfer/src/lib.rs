//! Transfers: which one goes to which storage node, and when.
//!
//! A transfer asks for an average rate. A node that has too many transfers gives each less than it asks for.
//! So a policy starts a transfer on the node that can serve it now, and lets it wait if there is none. This
//! crate decides; it moves no byte, and reads no clock.
//!
//! | file | what it decides |
//! |---|---|
//! | `policy/round_robin.rs` | RR: the next node, whatever it can serve |
//! | `policy/static_qos.rs` | StaticQoS: a fixed number of transfers for each node |
//! | `policy/sm_r1.rs` | SM-R1: what the node's peak leaves beside the reserved rates |
//! | `policy/sm_r2.rs` | SM-R2: what the node's peak leaves beside its measured rate, in both printed forms |
//! | `policy/sm_r3.rs` | SM-R3: the measured rate, shared by one more |
//! | `policy/deadline.rs` | beyond the paper: as many as serve all in time and raise the node's rate |
//! | `pace.rs` | which transfers are held back so that others keep their rate |
//! | `external.rs` | what others than the transfers do at a node, by the counters of its device |
//! | `queue.rs` | which waiting transfer is the next |
//! | `share.rs` | what a transfer of a node has, as a sign of how full the node is |
//! | `scheduler.rs` | the state machine of all these |
//!
//! The five policies are those of Nikolow, Słota and Kitowski, *Storage QoS Aspects in Distributed
//! Virtualized Environments*, Cloud Computing 2010, §III-B.

mod external;
mod moving_average;
mod node;
mod pace;
mod policy;
mod queue;
mod request;
mod scheduler;
mod share;

pub use external::{DeviceBytes, ExternalLoad, STALE_AFTER};
pub use moving_average::MovingAverage;
pub use node::{Domain, NodeIndex, NodeSet, NodeSpec, NodeView};
pub use policy::{
    Deadline, Policy, PolicyName, RoundRobin, SmR1, SmR2, SmR2Form, SmR3, StaticQos, UnknownPolicy,
};
pub use queue::PROMOTED_AFTER;
pub use request::{Class, ObjectId, Request, TransferId};
pub use scheduler::{Refused, SAMPLE, Scheduler, Start};
