//! Grants as amounts that can be summed and compared: no limit is infinity.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use weir_control::{Grant, Limits};
use weir_model::{Bandwidth, Iops};

/// What a volume may do at a gateway, or all gateways together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Amounts {
    /// Requests at the device at a time, a whole number.
    pub requests: f64,
    /// Requests a second.
    pub iops: f64,
    /// Bytes a second.
    pub bandwidth: f64,
}

/// A volume, by the place of its name among the controller's.
pub(crate) type VolumeKey = u64;

/// What a gateway may do, by volume.
pub(crate) type Holding = BTreeMap<VolumeKey, Amounts>;

impl Amounts {
    pub(crate) const NONE: Self = Self { requests: 0.0, iops: 0.0, bandwidth: 0.0 };
    pub(crate) const UNLIMITED: Self =
        Self { requests: f64::INFINITY, iops: f64::INFINITY, bandwidth: f64::INFINITY };
    /// What an engine does with a volume that it was told nothing about.
    pub(crate) const UNTOLD: Self = Self { requests: 1.0, ..Self::UNLIMITED };

    /// Of each amount what `of` makes of the two.
    pub(crate) fn zip(self, other: Self, of: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            requests: of(self.requests, other.requests),
            iops: of(self.iops, other.iops),
            bandwidth: of(self.bandwidth, other.bandwidth),
        }
    }

    pub(crate) fn min(self, other: Self) -> Self {
        self.zip(other, f64::min)
    }

    pub(crate) fn max(self, other: Self) -> Self {
        self.zip(other, f64::max)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    /// Whether this is more of anything, by more than the noise of sums.
    pub(crate) fn is_more_than(self, other: Self) -> bool {
        let more = |a: f64, b: f64| a > b * (1.0 + NOISE); // never of infinity
        more(self.requests, other.requests)
            || more(self.iops, other.iops)
            || more(self.bandwidth, other.bandwidth)
    }
}

/// Sums of rates are exact to this share.
pub(crate) const NOISE: f64 = 1e-9;

impl From<Grant> for Amounts {
    fn from(grant: Grant) -> Self {
        Self {
            requests: f64::from(grant.concurrency.get()),
            iops: grant.max_iops.map_or(f64::INFINITY, Iops::get),
            bandwidth: grant.max_bandwidth.map_or(f64::INFINITY, bytes),
        }
    }
}

impl From<Limits> for Amounts {
    fn from(limits: Limits) -> Self {
        Self {
            requests: limits.concurrency.map_or(f64::INFINITY, |n| f64::from(n.get())),
            iops: limits.max_iops.map_or(f64::INFINITY, Iops::get),
            bandwidth: limits.max_bandwidth.map_or(f64::INFINITY, bytes),
        }
    }
}

impl From<Amounts> for Grant {
    /// At least one request, and one byte a second.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, which is what is meant
    fn from(amounts: Amounts) -> Self {
        let finite = |amount: f64| amount.is_finite().then_some(amount);
        Self {
            concurrency: NonZeroU32::new(amounts.requests as u32).unwrap_or(NonZeroU32::MIN),
            max_iops: finite(amounts.iops).and_then(Iops::new),
            max_bandwidth: finite(amounts.bandwidth).and_then(|rate| Bandwidth::new((rate as u64).max(1))),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // rates far below 2^53
fn bytes(rate: Bandwidth) -> f64 {
    rate.get() as f64
}
