//! The memory of a logical unit's controller: NVRAM for what is written, a read cache for what is read.
//!
//! **Modelled**: blocks of 4 KiB. A write is acknowledged when all of its blocks are in NVRAM, overwrites
//! what is there already, and waits when there is no room. Blocks are destaged by rows (stripes), the row
//! that was first written longest ago first, all dirty blocks of a row together. How many rows at a time
//! follows *linear threshold scheduling* (Varma, Jacobson: Destage algorithms for disk arrays with
//! nonvolatile caches, IEEE ToC 47(2), 1998): none up to low water, then in proportion to what is above it,
//! and all that are allowed from high water on; and all that are allowed for rows older than
//! [`CacheOptions::flush_after`]. Disks know no classes of priority, so that a host's reads go before
//! destages in this sense: a destage begins only if so few others are under way. The older scheme, which
//! starts at high water and stops at low water, makes the latency of reads swing between two values. The read
//! cache is LRU; a third read that follows on its two forerunners starts a prefetch, a fourth keeps it ahead.
//!
//! **Not modelled**: a block that is written in part is destaged as a whole; old data and parity are read
//! from disk even where the read cache has them; a destaged block is not kept for reads; a read that NVRAM
//! has a part of goes to disk as a whole; the two memories are of fixed size; mirroring between controllers
//! takes no time.
//!
//! **Calibration**: HP's manual of the `FC60` gives 256 MB for each controller, of which mirroring to the
//! other leaves half, a cache flush threshold of 80 %, and a flush after 10 seconds; the paper gives 256 MB
//! of NVRAM for each controller of `FC60` and VA-7100. A unit without a battery has no NVRAM:
//! [`CacheOptions::NONE`].

mod nvram;
mod read_cache;
mod streams;
mod table;

use weir_model::Span;

pub(crate) use nvram::{Nvram, RowId};
pub(crate) use read_cache::{Lookup, ReadCache};
pub(crate) use streams::Streams;

/// Bytes of a block, in which the caches count.
pub(crate) const BLOCK: u64 = 4096;

/// What a controller's memory is like.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CacheOptions {
    /// Bytes for writes that are acknowledged and not on disk; zero: a write is acknowledged when it is on
    /// disk.
    pub nvram: u64,
    /// The share of NVRAM, 0 to 1, from which as many rows as are allowed are destaged at a time.
    pub high_water: f64,
    /// The share of NVRAM, 0 to 1, up to which none is destaged for lack of room.
    pub low_water: f64,
    /// What was written so long ago is destaged in any case; `None`: it may stay for ever.
    pub flush_after: Option<Span>,
    /// How many rows are destaged at a time at most.
    pub destages: u32,
    /// Bytes for what was read; zero: none.
    pub read_cache: u64,
    /// Bytes that are read ahead of a sequential reader; zero: none.
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
        read_cache: 0,
        prefetch: 0,
    };
}

/// The blocks that a range of bytes touches: the first, and how many.
pub(crate) const fn blocks_of(offset: u64, length: u64) -> (u64, u64) {
    let first = offset / BLOCK;
    (first, (offset + length).div_ceil(BLOCK) - first)
}
