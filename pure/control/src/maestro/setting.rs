//! What Maestro's law decides, and why.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use weir_model::{Bandwidth, MilliIops};

/// The law's decision for the next control interval, in the order of the observation's applications.
#[derive(Clone, PartialEq, Debug)]
pub struct ArraySetting {
    /// One for each application.
    pub applications: Vec<ApplicationSetting>,
}

/// The setting of an application.
#[derive(Clone, PartialEq, Debug)]
pub struct ApplicationSetting {
    /// The grant at each port, in the order of the observation.
    pub ports: Vec<Grant>,
    /// How the law came to that.
    pub reasoning: Reasoning,
}

/// What a volume may do at one port. Whole numbers, which a ledger can add up and compare without rounding.
/// The law calculates with fractions, which `rate_split.rs` and `port_allocator.rs` make whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// Requests at the device at a time.
    pub concurrency: NonZeroU32,
    /// Thousandths of a request a second, if the volume has a limit: this port's part of it.
    pub max_iops: Option<MilliIops>,
    /// Bytes a second, if the volume has a limit: this port's part of it.
    pub max_bandwidth: Option<Bandwidth>,
}

/// How the law came to what an application gets.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reasoning {
    /// `y`: how much of its target it got in the interval that ended; `None`: no target, or it asked for
    /// nothing.
    pub performance: Option<f64>,
    /// The slope of its model: by how much `y` would grow with all of the total.
    pub slope: f64,
    /// Whether the slope was found in the data.
    pub fit: Fit,
    /// `U`: what it had, in requests.
    pub had: f64,
    /// `Û`: what it requires of the arbiter, in requests.
    pub required: f64,
    /// How the arbiter found the array.
    pub case: Case,
    /// `U(t+1)`: what it gets, in requests, before it is dealt to the ports as whole numbers.
    pub allotted: f64,
    /// What kept it from more, or from less.
    pub bound_by: BoundBy,
}

/// Where a slope comes from.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Fit {
    /// The data: R², the share of the changes in performance that it explains, 0 to 1.
    Regression(f64),
    /// The default: the allocation did not change enough to learn from.
    NoInformation,
    /// The default: the data do not lie on a line. The number is the R² of the fit, 0 to 1.
    Poor(f64),
    /// The default: no device has the slope that was found, which is given here.
    OutOfBounds(f64),
}

/// How an arbiter finds an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Case {
    /// All requirements fit.
    Underload,
    /// Not all requirements fit, or an application is hindered.
    Overload,
}

/// What decided an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BoundBy {
    /// Its own requirement was met, and what was left was shared out by priority.
    Requirement,
    /// The program in overload: its priority against those of the others.
    Priority,
    /// The step limit: no more than 5 % of the total is moved at a time.
    StepLimit,
    /// It does not use what it has.
    Use,
    /// The limit that its operator set.
    Limit,
    /// The least that every application keeps: one request at each port.
    Minimum,
}
