//! What servers report about themselves, and the words they use.
//!
//! A gateway, a controller, a packet-delay agent and a coordinator of transfers fill these types in. The
//! `api` crate serves them as JSON and as metrics, and `weir status`, `weir top`, `weir explain` and `weir
//! why` read the JSON back. One crate holds the types because all of these have to agree: with a second copy,
//! a word could change on one side only.
//!
//! A field that takes one of a few words is an enum (`words.rs`), so a reader matches on it, and the compiler
//! finds each place that does not know a new word. The law's own enums have no place in the JSON: a law may
//! change its enums without changing what scripts read.
//!
//! **Another version.** A newer server may use a word that this crate does not know. The reader then refuses
//! the whole answer with an error. `weir` adds the name of the field.

mod array;
mod attainment;
mod background;
mod explanation;
mod gateway;
mod node_agent;
mod reason;
mod sharing;
mod throttle;
mod transfers;
mod why;
mod windows;
mod words;

pub use array::{ArrayGateway, ArrayStatus, ArrayVolume, GatewayPromises};
pub use attainment::{Horizon, SloAttainment, WindowHistory};
pub use background::{BackgroundStatus, CannotBeMet, Cause, LoweredRates, WorstOff, times};
pub use explanation::{Explanation, IntervalStatus};
pub use gateway::{
    BUCKET_BOUNDS_US, GatewayStatus, JudgedWindow, LatencyBuckets, PoolStatus, ReplyDelayStatus,
    RequestCounters, StageLatencies, VolumeStatus, WindowStatus,
};
pub use node_agent::{DeviceTotals, NodeAgentStatus, WatchedDevice};
pub use sharing::{AchievedStatus, DesiredStatus, GrantStatus, PoolSharing, TargetStatus, VolumeSharing};
pub use throttle::{
    DelayInterval, InitiatorStatus, InterfaceOutOfReach, ResourceStatus, Standing, TargetOutOfReach,
    ThrottleStatus,
};
pub use transfers::{
    DirectionStatus, EndedTransfers, NodeStatus, PeakStatus, SensorStatus, TransferKind, TransferState,
    TransferStatus, TransfersStatus,
};
pub use why::{HeldBack, HeldBy, LatencyParts, Share, Whose, Why};
pub use windows::WindowCounters;
pub use words::{BoundBy, Case, ControlKind, Fit, Metric, Unit, UnknownMetric};
