//! A flash disk: dies behind channels, a write cache, and the garbage that writing leaves behind.
//!
//! **Modelled**:
//!
//! - Reads of pages take a die, and then its channel. A link leads to the host.
//! - A write cache answers at once. It is drained a programming unit at a time, round robin over the dies,
//!   while they are not reading.
//! - Once the blocks that were free have been written, garbage collection copies and erases, and takes the
//!   same dies (see [`amplification`]).
//! - A read waits for the operation that its die is in, and goes before those that its die has yet to begin.
//!
//! Each die is an instant up to which it is busy, and a count of what it still has to program. So no die
//! needs events of its own, and a request costs a few operations, whatever its length.
//!
//! **Not modelled**:
//!
//! - the place where the translation layer has put a page: the page's number decides its die, as if at
//!   random;
//! - a single-level-cell cache before the rest, suspension of programs, wear, reads from the write cache;
//! - trims: a member has reads and writes only;
//! - sequential overwriting, which leaves whole blocks empty and so needs no copies.
//!
//! **Calibrated** by data sheets: see [`SsdOptions::preset`].
//!
//! A station with a fixed service time would miss two effects of flash. Reads wait for programs and erases,
//! which take ten to a hundred times as long. And writing becomes slower for good once the spare space is
//! used up.

use std::num::NonZeroU32;

use thiserror::Error;
use weir_model::{Instant, Span};

use crate::member_io::{MemberIo, Started};

mod amplification;
mod die;

use amplification::Amplification;
use die::{Die, Times};

/// Bytes of an entry of the translation layer. The model knows in this unit what has been written.
const MAPPED: u64 = 4_096;

/// The description of a flash disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SsdOptions {
    /// Bytes that it stores for its user.
    pub capacity: u64,
    /// Bytes that its flash stores beyond those.
    pub spare: u64,
    /// Buses between controller and dies.
    pub channels: NonZeroU32,
    /// Dies on each channel.
    pub dies_per_channel: NonZeroU32,
    /// Bytes that are read at once.
    pub page_size: NonZeroU32,
    /// Bytes that are programmed at once: a page of each plane.
    pub program_size: NonZeroU32,
    /// Bytes that are erased at once, a multiple of `program_size`.
    pub block_size: NonZeroU32,
    /// The time to read a page.
    pub read: Span,
    /// The time to program, with the transfer to the die.
    pub program: Span,
    /// The time to erase a block.
    pub erase: Span,
    /// Bytes a second on a channel.
    pub channel_rate: NonZeroU32,
    /// Bytes a second between host and controller, each way.
    pub link_rate: u64,
    /// Bytes of the write cache.
    pub write_cache: u64,
    /// The time that each command costs.
    pub overhead: Span,
    /// Whether all of it has been written already, as after long use; otherwise it is fresh.
    pub full: bool,
}

/// Why a description makes no flash disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SsdError {
    /// Less than 4,096 bytes, or too little spare space to move pages.
    #[error(
        "{capacity} bytes of capacity and {spare} spare ones: there must be 4096 bytes or more, and 1 % of them spare"
    )]
    Spare {
        /// As given.
        capacity: u64,
        /// As given.
        spare: u64,
    },
    /// A block is not made of programming units.
    #[error(
        "a block of {block_size} bytes is not a multiple of the {program_size} bytes that are programmed at once"
    )]
    Block {
        /// As given.
        block_size: u32,
        /// As given.
        program_size: u32,
    },
    /// The write cache cannot hold what is programmed at once on each die.
    #[error("a write cache of {write_cache} bytes is too small; at least {needed} are needed")]
    WriteCache {
        /// As given.
        write_cache: u64,
        /// The least.
        needed: u64,
    },
    /// The link has no bandwidth.
    #[error("a link of 0 bytes a second passes nothing")]
    Link,
}

impl SsdOptions {
    /// The names of the known flash disks, for [`SsdOptions::preset`].
    pub const PRESETS: &[&str] = &["nvme-tlc-500gb"];

    /// The flash disk of this name; `None` if there is none.
    ///
    /// `nvme-tlc-500gb` is like a Samsung 970 EVO of 500 GB without its single-level-cell cache. Its data
    /// sheet of 2018 says: sequential reading 3,400 MB/s; writing 600 MB/s beyond that cache; random reads of
    /// 4 KiB 370,000 a second at a depth of 32 by 4 threads, and 15,000 at a depth of 1; PCIe 3.0 x4. From
    /// these figures follow, for 8 channels of 2 dies of 256 Gbit: 41 us for a page, 25 us of overhead and
    /// transfer, and 870 us to program two pages of 16 KiB. The spare is 512 GiB less 500 GB. A block has 2 x
    /// 768 pages. An erase takes 3.5 ms, as is usual for this kind of flash.
    pub fn preset(name: &str) -> Option<Self> {
        let count = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        (name == "nvme-tlc-500gb").then_some(Self {
            capacity: 500_000_000_000 / MAPPED * MAPPED,
            spare: (512 << 30) - 500_000_000_000,
            channels: count(8),
            dies_per_channel: count(2),
            page_size: count(16 << 10),
            program_size: count(32 << 10),
            block_size: count(24 << 20),
            read: Span::from_micros(41),
            program: Span::from_micros(870),
            erase: Span::from_micros(3_500),
            channel_rate: count(800_000_000),
            link_rate: 3_400_000_000,
            write_cache: 32 << 20,
            overhead: Span::from_micros(20),
            full: false,
        })
    }

    /// Checks that such a flash disk is possible.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), SsdError> {
        let Self { capacity, spare, write_cache, .. } = *self;
        let (block_size, program_size) = (self.block_size.get(), self.program_size.get());
        if capacity < MAPPED || spare < capacity / 100 {
            return Err(SsdError::Spare { capacity, spare });
        }
        if block_size % program_size != 0 {
            return Err(SsdError::Block { block_size, program_size });
        }
        let needed = u64::from(program_size) * u64::from(self.dies());
        if write_cache < needed {
            return Err(SsdError::WriteCache { write_cache, needed });
        }
        if self.link_rate == 0 {
            return Err(SsdError::Link);
        }
        Ok(())
    }

    fn dies(&self) -> u32 {
        self.channels.get().saturating_mul(self.dies_per_channel.get())
    }
}

/// A flash disk.
#[derive(Debug)]
pub struct Ssd {
    options: SsdOptions,
    times: Times,
    dies: Vec<Die>,
    /// Up to when each channel is booked, in ns; below, the link to and from the host.
    channels: Vec<u64>,
    links: [u64; 2],
    amplification: Amplification,
    /// Bytes in the cache that do not fill a programming unit yet.
    open: u64,
    /// The die that programs next.
    turn: usize,
    outstanding: usize,
}

impl Ssd {
    /// A flash disk that is idle.
    ///
    /// # Panics
    /// If [`SsdOptions::check`] refuses it.
    pub fn new(options: &SsdOptions) -> Self {
        assert!(options.check().is_ok(), "{options:?}");
        let dies = options.dies();
        let units_per_die = options.write_cache / u64::from(options.program_size.get()) / u64::from(dies);
        Self {
            options: *options,
            times: Times {
                read: options.read.as_nanos(),
                program: options.program.as_nanos(),
                erase: options.erase.as_nanos(),
                units_per_block: options.block_size.get() / options.program_size.get(),
                cached_units: units_per_die,
            },
            dies: vec![Die::default(); dies as usize],
            channels: vec![0; options.channels.get() as usize],
            links: [0; 2],
            amplification: Amplification::new(options),
            open: 0,
            turn: 0,
            outstanding: 0,
        }
    }

    /// Bytes that it stores.
    pub(crate) fn capacity(&self) -> u64 {
        self.options.capacity
    }

    pub(crate) fn push(&mut self, now: Instant, io: MemberIo, started: &mut Vec<Started>) {
        let MemberIo { tag, write, offset, length } = io;
        let end = offset + u64::from(length);
        assert!(length > 0 && end <= self.options.capacity, "{io:?} is not on the flash disk");
        let begins = (now + self.options.overhead).as_nanos();
        let sending = u64::from(length) * 1_000_000_000 / self.options.link_rate;
        let link = &mut self.links[usize::from(write)];
        *link = (*link).max(now.as_nanos()) + sending;
        let sent = *link + self.options.overhead.as_nanos();
        let ready =
            if write { self.write(now.as_nanos(), offset, end) } else { self.read(begins, offset, end) };
        let ends = ready.max(sent);
        self.outstanding += 1;
        started.push(Started { tag, ends: Instant::from_nanos(ends) });
    }

    pub(crate) fn finish(&mut self) {
        self.outstanding -= 1;
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// When the last of the pages has come over its channel.
    fn read(&mut self, begins: u64, offset: u64, end: u64) -> u64 {
        let page_size = u64::from(self.options.page_size.get());
        let dies = self.dies.len() as u64;
        let channels = self.channels.len();
        let mut last = 0;
        for page in offset / page_size..end.div_ceil(page_size) {
            #[allow(clippy::cast_possible_truncation)] // below the number of dies
            let die = (page % dies) as usize;
            let read = self.dies[die].read(begins, &self.times);
            let bytes = end.min((page + 1) * page_size) - offset.max(page * page_size);
            let sending = bytes * 1_000_000_000 / u64::from(self.options.channel_rate.get());
            let channel = &mut self.channels[die % channels];
            *channel = (*channel).max(begins) + sending;
            last = last.max(read + sending).max(*channel);
        }
        last
    }

    /// When the last of the bytes is in the cache.
    fn write(&mut self, now: u64, offset: u64, end: u64) -> u64 {
        self.amplification.written(offset, end);
        self.open += end - offset;
        let unit = u64::from(self.options.program_size.get());
        let mut room = now;
        while self.open >= unit {
            self.open -= unit;
            let copies = self.amplification.programmed(unit);
            let die = &mut self.dies[self.turn];
            room = room.max(die.program(now, copies, self.amplification.collects(), &self.times));
            self.turn = (self.turn + 1) % self.dies.len();
        }
        room
    }
}

#[cfg(test)]
mod tests;
