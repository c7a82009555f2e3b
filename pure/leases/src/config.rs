//! What an operator configures for an array that several gateways serve.

use weir_control::{Limits, TotalConcurrency};
use weir_model::{Objective, Span};

/// An array and its gateways.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerConfig {
    /// How many requests all gateways together may have at the array at a time. If it is fixed, it is at
    /// least one for each volume at each gateway.
    pub total: TotalConcurrency,
    /// The control interval: how often gateways report, and the law decides. A lease is three intervals.
    pub interval: Span,
    /// The names of the gateways. No others are accepted. Each that is away keeps its static part of the
    /// array.
    pub gateways: Vec<String>,
}

/// A volume, as it is configured for all gateways together.
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
