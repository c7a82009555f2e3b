//! The description of a logical unit, as plain values, and the check that they make sense together.

use thiserror::Error;
use weir_model::{Bandwidth, Span};

use crate::cache::{BLOCK, CacheOptions};
use crate::member::{MemberError, MemberOptions};
use crate::raid::{Geometry, RaidLevel};

/// The longest stripe unit: lengths of operations have 32 bits.
const MAX_STRIPE_UNIT: u64 = 1 << 30;

/// The description of a logical unit.
#[derive(Clone, PartialEq, Debug)]
pub struct UnitOptions {
    /// The kind of its members.
    pub member: MemberOptions,
    /// How many members it has.
    pub members: u32,
    /// How its data are put on the members.
    pub raid: RaidLevel,
    /// Bytes of a row on each member; a multiple of 4 KiB. With a single member, it only says which blocks
    /// are destaged together.
    pub stripe_unit: u64,
    /// Bytes that are used, from the outer edge of its members on; a multiple of 4 KiB. `None`: all.
    pub size: Option<u64>,
    /// The memory of its storage controller.
    pub cache: CacheOptions,
    /// How long its storage controller handles each command before the unit begins with it. Commands do not
    /// wait for each other here.
    pub overhead: Span,
    /// Bytes of a member that are rebuilt in a second, if other work leaves the time.
    pub rebuild_rate: Bandwidth,
}

/// Why a description makes no logical unit.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum UnitError {
    /// See [`MemberError`].
    #[error("its disks: {0}")]
    Member(#[from] MemberError),
    /// The number of members does not go with the layout.
    #[error("found {found} disks; accepted for {raid:?}: {accepted}")]
    Members {
        /// The layout.
        raid: RaidLevel,
        /// How many there are.
        found: u32,
        /// How many there may be.
        accepted: &'static str,
    },
    /// The stripe unit is not accepted.
    #[error("found a stripe unit of {0} bytes; accepted: a multiple of 4096 up to 1073741824")]
    StripeUnit(u64),
    /// The size is not accepted, or more than the members have.
    #[error("found a size of {found} bytes; accepted: a multiple of 4096 up to {capacity}")]
    Size {
        /// What was asked for.
        found: u64,
        /// What the members have room for.
        capacity: u64,
    },
    /// No size was given, and the members have none of their own.
    #[error("found no size; accepted: a size in bytes, because stations have none of their own")]
    NoSize,
    /// NVRAM of less than a block.
    #[error("found {0} bytes of NVRAM; accepted: 0, or at least 4096")]
    Nvram(u64),
    /// Low water is above high water, or one of them is not from 0 to 1.
    #[error("found low water {low} and high water {high}; accepted: 0 <= low <= high <= 1")]
    Water {
        /// Low water.
        low: f64,
        /// High water.
        high: f64,
    },
    /// The share of NVRAM that is filled at the start is not from 0 to 1, or needs more rows than there are.
    #[error(
        "found NVRAM filled by {found}; accepted: 0 to 1, with one block for each row at most: {rows} rows"
    )]
    Filled {
        /// The share.
        found: f64,
        /// The rows of the unit.
        rows: u64,
    },
    /// Nothing would ever leave the NVRAM.
    #[error("found 0 destages at a time beside NVRAM; accepted: at least 1")]
    NoDestages,
    /// More would be read ahead than the read cache can keep.
    #[error(
        "found a prefetch of {prefetch} bytes beside a read cache of {read_cache}; accepted: at most half of it"
    )]
    Prefetch {
        /// What would be read ahead.
        prefetch: u64,
        /// The read cache.
        read_cache: u64,
    },
}

impl UnitOptions {
    /// A unit of one bare member of `size` bytes: no cache, no overhead.
    pub const fn bare(member: MemberOptions, size: u64) -> Self {
        let rebuild_rate = Bandwidth::new(10_000_000).expect("above zero");
        Self {
            member,
            members: 1,
            raid: RaidLevel::Single,
            stripe_unit: 64 * 1024,
            size: Some(size),
            cache: CacheOptions::NONE,
            overhead: Span::ZERO,
            rebuild_rate,
        }
    }

    /// Checks that such a unit is possible.
    ///
    /// # Errors
    /// If it is not: the first problem.
    pub fn check(&self) -> Result<(), UnitError> {
        self.member.build(std::iter::empty())?;
        self.check_members()?;
        if !is_in_blocks(self.stripe_unit) || self.stripe_unit > MAX_STRIPE_UNIT {
            return Err(UnitError::StripeUnit(self.stripe_unit));
        }
        self.check_cache()?;
        let capacity = self.capacity();
        match self.size {
            Some(size) if !is_in_blocks(size) || size > capacity => {
                Err(UnitError::Size { found: size, capacity })
            }
            None if self.member.capacity() == u64::MAX => Err(UnitError::NoSize),
            None if capacity == 0 => Err(UnitError::StripeUnit(self.stripe_unit)),
            _ => Ok(()),
        }
    }

    /// Bytes that the unit stores.
    pub fn bytes(&self) -> u64 {
        self.size.unwrap_or_else(|| self.capacity())
    }

    pub(crate) const fn geometry(&self) -> Geometry {
        Geometry::new(self.raid, self.members, self.stripe_unit)
    }

    /// Bytes that its members have room for, in whole rows.
    fn capacity(&self) -> u64 {
        let rows = self.member.capacity() / self.stripe_unit.max(1);
        rows.saturating_mul(self.geometry().row_bytes())
    }

    fn check_members(&self) -> Result<(), UnitError> {
        let (fits, accepted) = match self.raid {
            RaidLevel::Single => (self.members == 1, "1"),
            RaidLevel::Raid0 => ((1..=1024).contains(&self.members), "1 to 1024"),
            RaidLevel::Raid1 => (
                (2..=1024).contains(&self.members) && self.members.is_multiple_of(2),
                "an even number from 2 to 1024",
            ),
            RaidLevel::Raid5 => ((3..=1024).contains(&self.members), "3 to 1024"),
        };
        if fits { Ok(()) } else { Err(UnitError::Members { raid: self.raid, found: self.members, accepted }) }
    }

    fn check_cache(&self) -> Result<(), UnitError> {
        let CacheOptions { nvram, high_water, low_water, destages, filled, read_cache, prefetch, .. } =
            self.cache;
        if !(0.0 <= low_water && low_water <= high_water && high_water <= 1.0) {
            return Err(UnitError::Water { low: low_water, high: high_water });
        }
        if nvram != 0 && nvram < BLOCK {
            return Err(UnitError::Nvram(nvram));
        }
        if nvram != 0 && destages == 0 {
            return Err(UnitError::NoDestages);
        }
        let rows = self.bytes() / self.geometry().row_bytes().max(1);
        if !(0.0..=1.0).contains(&filled) || filled_blocks(&self.cache) > rows {
            return Err(UnitError::Filled { found: filled, rows });
        }
        if prefetch > read_cache / 2 {
            return Err(UnitError::Prefetch { prefetch, read_cache });
        }
        Ok(())
    }
}

/// How many blocks are in NVRAM at the start.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // blocks: below 2^52
pub(crate) fn filled_blocks(cache: &CacheOptions) -> u64 {
    (cache.filled * (cache.nvram / BLOCK) as f64) as u64
}

const fn is_in_blocks(bytes: u64) -> bool {
    bytes > 0 && bytes.is_multiple_of(BLOCK)
}
