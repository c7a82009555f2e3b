//! What an operator says about an array that several gateways serve.

use weir_control::{Limits, TotalConcurrency};
use weir_model::{Objective, Span};

/// An array and its gateways.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerConfig {
    /// How many requests the gateways may have at the array at a time, together; if fixed, at least one for
    /// each volume at each gateway.
    pub total: TotalConcurrency,
    /// How often. A lease is three of these.
    pub interval: Span,
    /// The names of the gateways: no others are accepted, and a part of the array is left for each that is
    /// away.
    pub gateways: Vec<String>,
}

/// A volume, whatever gateways it is reached through.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct VolumeConfig {
    /// What it is to get.
    pub objective: Objective,
    /// What it is never to exceed.
    pub limits: Limits,
}

/// In control intervals, how long a gateway may do what it was granted.
const LEASE: u64 = 3;

impl ControllerConfig {
    /// How long a gateway may do what it was granted.
    pub const fn lease(&self) -> Span {
        self.interval.saturating_mul(LEASE)
    }
}
