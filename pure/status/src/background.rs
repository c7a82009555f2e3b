//! What the law of promises allows the volumes of a pool to which nothing is promised, and which promised
//! volume that is for.

use serde::{Deserialize, Serialize};

/// What background volumes may have of the device, all of them together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BackgroundStatus {
    /// How many of their requests may be at the device; 0: one at a time, for `share` of the device's time;
    /// `None`: no bound.
    pub most: Option<u32>,
    /// The share of the device's time for requests beyond that number, one at a time.
    pub share: f64,
    /// The promised volume that is closest to missing its promise; `None`: no promised volume has requests.
    pub worst_off: Option<WorstOff>,
}

/// The promised volume that is closest to missing its promise.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorstOff {
    /// Its name.
    pub volume: String,
    /// How close it is: at 100 it is at the limit of what it is promised, whatever the metric.
    pub percent: f64,
}
