//! What gateways hold, as whole numbers that add up exactly: requests, thousandths of a request a second, and
//! bytes a second.
//!
//! The law calculates with fractions, and makes its grants whole. So a grant is counted exactly as it was
//! sent, and the ledger compares a sum with its limit without a tolerance.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use weir_control::{Grant, Limits};
use weir_model::{Bandwidth, MilliIops};

use crate::bound::Bound;

/// What a volume may do at a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Amounts {
    /// Requests at the device at a time.
    pub requests: u32,
    /// Thousandths of a request a second.
    pub iops: Bound,
    /// Bytes a second.
    pub bandwidth: Bound,
}

/// What a volume may do at all gateways together: the sum of what they hold, or a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    /// Requests at the device at a time.
    pub requests: Bound,
    /// Thousandths of a request a second.
    pub iops: Bound,
    /// Bytes a second.
    pub bandwidth: Bound,
}

/// A volume, by the place of its name among the controller's.
pub(crate) type VolumeKey = u64;

/// What a gateway may do, by volume.
pub(crate) type Holding = BTreeMap<VolumeKey, Amounts>;

impl Amounts {
    pub(crate) const NONE: Self = Self { requests: 0, iops: Bound::AtMost(0), bandwidth: Bound::AtMost(0) };
    /// What an engine lets a volume do when nothing was granted for it.
    pub(crate) const UNTOLD: Self = Self { requests: 1, iops: Bound::Unlimited, bandwidth: Bound::Unlimited };

    pub(crate) fn min(self, other: Self) -> Self {
        self.within(other.into())
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            requests: self.requests.max(other.requests),
            iops: self.iops.max(other.iops),
            bandwidth: self.bandwidth.max(other.bandwidth),
        }
    }

    /// The part of this that `limits` allow.
    pub(crate) fn within(self, limits: Bounds) -> Self {
        Self {
            requests: limits.requests.of(self.requests),
            iops: self.iops.min(limits.iops),
            bandwidth: self.bandwidth.min(limits.bandwidth),
        }
    }

    /// Whether this is more of anything.
    pub(crate) fn is_more_than(self, other: Self) -> bool {
        self.requests > other.requests || self.iops > other.iops || self.bandwidth > other.bandwidth
    }
}

impl Bounds {
    pub(crate) const NONE: Self =
        Self { requests: Bound::AtMost(0), iops: Bound::AtMost(0), bandwidth: Bound::AtMost(0) };
    pub(crate) const UNLIMITED: Self =
        Self { requests: Bound::Unlimited, iops: Bound::Unlimited, bandwidth: Bound::Unlimited };

    /// Combines each amount of the two with `of`.
    pub(crate) fn zip(self, other: Self, of: impl Fn(Bound, Bound) -> Bound) -> Self {
        Self {
            requests: of(self.requests, other.requests),
            iops: of(self.iops, other.iops),
            bandwidth: of(self.bandwidth, other.bandwidth),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip(other, Bound::plus)
    }
}

impl From<Amounts> for Bounds {
    fn from(amounts: Amounts) -> Self {
        let Amounts { requests, iops, bandwidth } = amounts;
        Self { requests: Bound::AtMost(requests.into()), iops, bandwidth }
    }
}

impl From<Grant> for Amounts {
    fn from(grant: Grant) -> Self {
        Self {
            requests: grant.concurrency.get(),
            iops: grant.max_iops.map(MilliIops::get).into(),
            bandwidth: grant.max_bandwidth.map(Bandwidth::get).into(),
        }
    }
}

impl From<Limits> for Bounds {
    /// A limit is rounded down to whole thousandths of a request a second.
    fn from(limits: Limits) -> Self {
        Self {
            requests: limits.concurrency.map(|limit| limit.get().into()).into(),
            iops: limits.max_iops.map(|limit| MilliIops::at_most(limit).get()).into(),
            bandwidth: limits.max_bandwidth.map(Bandwidth::get).into(),
        }
    }
}

impl From<Amounts> for Grant {
    /// At least one of each: no grant can say none.
    fn from(amounts: Amounts) -> Self {
        Self {
            concurrency: NonZeroU32::new(amounts.requests).unwrap_or(NonZeroU32::MIN),
            max_iops: amounts.iops.limit().map(MilliIops::at_least_one),
            max_bandwidth: amounts.bandwidth.limit().and_then(|rate| Bandwidth::new(rate.max(1))),
        }
    }
}
