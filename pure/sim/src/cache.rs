//! The memory of a logical unit's storage controller: NVRAM for writes, and a read cache for reads.
//!
//! **Modelled**: blocks of 4 KiB.
//!
//! *Writes.* A write is acknowledged when all of its blocks are in NVRAM. It overwrites blocks that are there
//! already, and waits if there is no room. Blocks are destaged by rows (stripes): all dirty blocks of a row
//! together, and first the row that was written first.
//!
//! *Destaging* follows *linear threshold scheduling* (Varma, Jacobson: Destage algorithms for disk arrays
//! with nonvolatile caches, IEEE ToC 47(2), 1998). Up to low water, no rows are destaged. Above it, the
//! number of rows at a time grows in proportion, up to all that are allowed from high water on. While rows
//! are older than [`CacheOptions::flush_after`], all that are allowed are destaged, too. The older scheme,
//! which starts at high water and stops at low water, makes the latency of reads swing between two values.
//! Disks know no classes of priority. A host's reads go first only in this sense: a destage begins only while
//! few others are under way.
//!
//! *Reads.* The read cache is LRU. A third read in a row starts a prefetch, and a fourth keeps it ahead.
//!
//! **Not modelled**:
//!
//! - a block that is written in part is destaged as a whole;
//! - old data and parity are read from disk, even if the read cache has them;
//! - a destaged block is not kept for reads;
//! - a read that NVRAM has only a part of goes to disk as a whole;
//! - the two memories are of fixed size;
//! - mirroring between storage controllers takes no time.
//!
//! **Calibration**: HP's manual of the `FC60` gives 256 MB for each controller, of which mirroring to the
//! other controller leaves half. It also gives a cache flush threshold of 80 %, and a flush after 10 seconds.
//! The Façade paper gives 256 MB of NVRAM for each controller of `FC60` and VA-7100. A unit without a battery
//! has no NVRAM: [`CacheOptions::NONE`].

mod nvram;
mod read_cache;
mod streams;
mod table;

use weir_model::Span;

pub(crate) use nvram::{Nvram, RowId};
pub(crate) use read_cache::{Lookup, ReadCache};
pub(crate) use streams::Streams;

/// Bytes of a block, the unit of the caches.
pub(crate) const BLOCK: u64 = 4096;

/// The description of a storage controller's memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CacheOptions {
    /// Bytes of NVRAM, for writes that are acknowledged and not on disk. With zero, a write is acknowledged
    /// when it is on disk.
    pub nvram: u64,
    /// High water: the share of NVRAM, 0 to 1, from which on `destages` rows are destaged at a time.
    pub high_water: f64,
    /// Low water: the share of NVRAM, 0 to 1, up to which no row is destaged for lack of room.
    pub low_water: f64,
    /// A row that was first written this long ago is destaged in any case. `None`: it may stay for ever.
    pub flush_after: Option<Span>,
    /// The most rows that are destaged at a time.
    pub destages: u32,
    /// The share of NVRAM, 0 to 1, that holds writes at the start, as after a long time under load. They are
    /// blocks of rows of their own, evenly over the unit, and all came at the start.
    pub filled: f64,
    /// Bytes of the read cache; zero: there is none.
    pub read_cache: u64,
    /// Bytes that are read ahead of a sequential reader; zero: nothing is.
    pub prefetch: u64,
}

impl CacheOptions {
    /// No memory: writes go through, reads come from disk.
    pub const NONE: Self = Self {
        nvram: 0,
        high_water: 0.8,
        low_water: 0.6,
        flush_after: None,
        destages: 0,
        filled: 0.0,
        read_cache: 0,
        prefetch: 0,
    };
}

/// The blocks that a range of bytes touches: the first, and how many.
pub(crate) const fn blocks_of(offset: u64, length: u64) -> (u64, u64) {
    let first = offset / BLOCK;
    (first, (offset + length).div_ceil(BLOCK) - first)
}
