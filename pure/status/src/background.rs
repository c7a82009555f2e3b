//! What the law of promises allows the volumes of a pool to which nothing is promised, and which promised
//! volume that is for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What background volumes may have of the device, all of them together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BackgroundStatus {
    /// How many of their requests may be at the device; 0: one at a time, for `share` of the device's time;
    /// `None`: no bound.
    pub most: Option<u32>,
    /// The share of the device's time for requests beyond that number, one at a time.
    pub share: f64,
    /// How many requests of promised volumes may be at the device, the most urgent first; `None`: no bound.
    #[serde(default)]
    pub promised_most: Option<u32>,
    /// What promised rates are lowered to; `None`: no rate is lowered.
    #[serde(default)]
    pub lowered_rates: Option<LoweredRates>,
    /// The promised volume that is closest to missing its promise; `None`: no promised volume has requests.
    pub worst_off: Option<WorstOff>,
    /// The promise that is missed though nobody is left to be held back; `None`: all are within reach.
    #[serde(default)]
    pub cannot_be_met: Option<CannotBeMet>,
    /// Whether nothing is heard of the other gateways before the device, so that the bound stays as it is.
    #[serde(default)]
    pub has_lost_others: bool,
}

/// What promised rates are lowered to while not all of them fit, in percent of what is promised.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LoweredRates {
    /// The rate that is lowered most.
    pub least_percent: f64,
    /// The one that is lowered least.
    pub most_percent: f64,
}

/// The promised volume that is closest to missing its promise.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorstOff {
    /// Its name; `None`: it is behind another gateway.
    pub volume: Option<String>,
    /// How close it is: at 100 it is at the limit of what it is promised, whatever the metric.
    pub percent: f64,
}

/// A promise that is missed though nobody is left to be held back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CannotBeMet {
    /// The name of the volume.
    pub volume: String,
    /// By how much it is missed: 2 is twice the latency, twice the late requests, or half the rate. 10 stands
    /// for all that is above.
    pub times: f64,
    /// Because of what.
    pub cause: Cause,
}

/// Because of what a promise cannot be met.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its requests wait for the volume's own caps.
    OwnLimits,
    /// This volume, to which something is promised too, has the device for longer.
    Volume(String),
    /// The volumes without a promise have the device for longer, by the share that they get in any case.
    Background,
    /// The device still does what it was given before, such as emptying a full write cache.
    Backlog,
    /// The device, or what the volume itself asks of it.
    Device,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnLimits => f.write_str("its own limits"),
            Self::Volume(name) => write!(f, "volume {name}, to which something is promised too"),
            Self::Background => f.write_str("background_share, which the others get in any case"),
            Self::Backlog => f.write_str("what the device was given before, such as a full write cache"),
            Self::Device => f.write_str("the device, or what the volume asks of it"),
        }
    }
}

/// By how much a promise is missed, in words.
pub fn times(times: f64) -> String {
    if times < 10.0 { format!("{times:.1} times") } else { "10 times or more".to_owned() }
}
