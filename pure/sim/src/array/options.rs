//! The description of an array, as plain values.

use thiserror::Error;

use crate::cache::BLOCK;
use crate::link::LinkOptions;
use crate::member::MemberOptions;
use crate::unit::{UnitError, UnitOptions};

/// The description of an array.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayOptions {
    /// Its logical units; at least one.
    pub units: Vec<UnitOptions>,
    /// How the units make one range of bytes.
    pub layout: Layout,
    /// The ports through which requests come. Without ports, data take no time on their way.
    pub ports: Vec<LinkOptions>,
}

/// How logical units make one range of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One after the other.
    Concatenated,
    /// In turn, `unit_bytes` of each. As much of each unit is used as the smallest unit has.
    Striped {
        /// Bytes on a unit before the next one follows; a multiple of 4 KiB.
        unit_bytes: u64,
    },
}

/// Why a description makes no array.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ArrayError {
    /// There are no units, or too many.
    #[error("found {0} logical units; accepted: 1 to 65535")]
    Units(usize),
    /// A unit that is impossible.
    #[error("logical unit {unit}: {cause}")]
    Unit {
        /// The unit, counted from zero.
        unit: usize,
        /// Why.
        cause: UnitError,
    },
    /// The stripe over the units is impossible.
    #[error(
        "found {0} bytes of each unit in turn; accepted: a multiple of 4096, at most what the smallest unit stores"
    )]
    Layout(u64),
}

impl ArrayOptions {
    /// An array of one bare member of `size` bytes: no port, no cache, no redundancy.
    pub fn bare(member: MemberOptions, size: u64) -> Self {
        Self { units: vec![UnitOptions::bare(member, size)], layout: Layout::Concatenated, ports: Vec::new() }
    }

    /// Checks that such an array is possible.
    ///
    /// # Errors
    /// If it is not: the first problem.
    pub fn check(&self) -> Result<(), ArrayError> {
        if self.units.is_empty() || self.units.len() > usize::from(u16::MAX) {
            return Err(ArrayError::Units(self.units.len()));
        }
        for (unit, options) in self.units.iter().enumerate() {
            options.check().map_err(|cause| ArrayError::Unit { unit, cause })?;
        }
        match self.layout {
            Layout::Striped { unit_bytes }
                if unit_bytes == 0 || !unit_bytes.is_multiple_of(BLOCK) || self.size() == 0 =>
            {
                Err(ArrayError::Layout(unit_bytes))
            }
            _ => Ok(()),
        }
    }

    /// Bytes that the array stores.
    pub fn size(&self) -> u64 {
        let sizes = self.units.iter().map(UnitOptions::bytes);
        match self.layout {
            Layout::Concatenated => sizes.sum(),
            Layout::Striped { unit_bytes } => {
                let stripes = sizes.min().unwrap_or(0) / unit_bytes.max(1);
                stripes * unit_bytes * self.units.len() as u64
            }
        }
    }
}
