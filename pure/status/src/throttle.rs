//! What a packet-delay agent reports: the resources that it guards, and the initiators that it delays.

use serde::{Deserialize, Serialize};

/// The state of an agent, at most a second old.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ThrottleStatus {
    /// Whether the agent only says what it would do.
    pub dry_run: bool,
    /// The resources behind LUNs, in order of name.
    pub resources: Vec<ResourceStatus>,
    /// The targets whose initiators no delay can reach.
    pub out_of_reach: Vec<TargetOutOfReach>,
    /// The interfaces on which nothing can be delayed.
    pub interfaces_out_of_reach: Vec<InterfaceOutOfReach>,
    /// Sessions, connections and devices beyond the agent's bounds, which it leaves alone.
    pub left_out: u64,
}

/// The state of a resource: a volume group, an array or a disk that LUNs share.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResourceStatus {
    /// Its name.
    pub name: String,
    /// How long its reads wait, as a moving average, in microseconds.
    pub wait_us: u64,
    /// How long they should wait at most, in microseconds.
    pub threshold_us: u64,
    /// How long the packets to its members are delayed, in microseconds.
    pub delay_us: u64,
    /// The longest delay, in microseconds.
    pub ceiling_us: u64,
    /// Whether the delay has been at its ceiling for a second.
    pub at_ceiling: bool,
    /// An initiator that writes faster than this is a member, in bytes a second.
    pub write_limit_bytes_per_s: u64,
    /// The initiators that are logged in to one of its LUNs, in order of name.
    pub initiators: Vec<InitiatorStatus>,
    /// The last control intervals, oldest first.
    pub intervals: Vec<DelayInterval>,
}

/// The state of an initiator at a resource.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InitiatorStatus {
    /// Its iSCSI name.
    pub name: String,
    /// How fast it writes there, as a moving average, in bytes a second.
    pub written_bytes_per_s: u64,
    /// Whether it is delayed while reads wait for too long, and why.
    pub standing: Standing,
    /// How many of its connections can be delayed.
    pub connections: u64,
}

/// Whether an initiator is delayed while reads wait for too long, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is delayed, because it writes faster than the limit.
    AboveLimit,
    /// It is delayed, because the operator says so.
    Forced,
    /// It is not delayed, because it writes less than the limit.
    BelowLimit,
    /// It is never delayed, because the operator says so.
    Exempt,
}

/// What was measured and decided in a control interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct DelayInterval {
    /// How long ago it ended, in milliseconds.
    pub age_ms: u64,
    /// How long its reads waited, as a moving average, in microseconds.
    pub wait_us: u64,
    /// The threshold then, in microseconds.
    pub threshold_us: u64,
    /// The delay that follows, in microseconds.
    pub delay_us: u64,
}

/// A target whose initiators no delay can reach.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TargetOutOfReach {
    /// The target.
    pub target: String,
    /// Why.
    pub why: String,
}

/// An interface on which nothing can be delayed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InterfaceOutOfReach {
    /// The interface.
    pub interface: String,
    /// Why.
    pub why: String,
}

impl Standing {
    /// Whether the initiator is delayed while reads wait for too long.
    pub const fn is_member(self) -> bool {
        matches!(self, Self::AboveLimit | Self::Forced)
    }
}
