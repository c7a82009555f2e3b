//! A request, as the scheduler and the engine see it: what it asks for, not the bytes that it carries.

use serde::{Deserialize, Serialize};

use crate::Instant;

/// A volume's place in its pool: dense, from zero; the number of a removed volume may be used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct VolumeId(pub u32);

/// A request's place in its engine. `slot` is dense, so that a driver can keep what belongs to the request in
/// a `Vec`; `generation` tells two requests apart that had the same slot one after the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct IoId {
    /// Index of the slot.
    pub slot: u32,
    /// How often the slot was used before.
    pub generation: u32,
}

/// What a request does.
///
/// It is eight bytes wide, so that an [`Io`] has no padding. A copy of padding beside a byte that was just
/// written waits for that write, some 5 ns each time, and a request is copied several times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[repr(u64)]
pub enum IoKind {
    /// Carries data from the device.
    Read,
    /// Carries data to the device.
    Write,
    /// Makes every write that was answered before durable.
    Flush,
    /// Says that a range holds nothing of value any more.
    Trim,
    /// Makes a range read as zeroes.
    WriteZeroes,
    /// Says that a range will be read soon.
    Cache,
    /// Asks which parts of a range are allocated.
    BlockStatus,
}

/// The way that a request's data flows; an SLO has a target for each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From the device to the client.
    Read,
    /// From the client to the device.
    Write,
}

impl IoKind {
    /// Every kind, in the order of [`IoKind::index`].
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Write, Self::Flush, Self::Trim, Self::WriteZeroes, Self::Cache, Self::BlockStatus];

    /// The way the data flows, for the two kinds that carry data and that an SLO speaks of; `None` for all
    /// others.
    pub const fn direction(self) -> Option<Direction> {
        match self {
            Self::Read => Some(Direction::Read),
            Self::Write => Some(Direction::Write),
            _ => None,
        }
    }

    /// Whether the device may have to read or write all of the range, with data from the client or without:
    /// zeroes that it cannot make otherwise are written, and what is to be cached is read. A trim is advice,
    /// and no device has to write for it; a flush writes what was charged when it was written.
    pub const fn may_move_its_length(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::WriteZeroes | Self::Cache)
    }

    /// A dense number from zero, to index a table of [`IoKind::ALL`] with.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The kind as it is written at every edge: metric labels, tables, rules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
            Self::WriteZeroes => "write_zeroes",
            Self::Cache => "cache",
            Self::BlockStatus => "block_status",
        }
    }
}

/// A request that waits for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// Its place in the engine.
    pub id: IoId,
    /// The volume it is for.
    pub volume: VolumeId,
    /// What it does.
    pub kind: IoKind,
    /// First byte.
    pub offset: u64,
    /// Number of bytes; zero for a flush.
    pub length: u32,
    /// When it was parsed: its latency counts from here.
    pub arrived: Instant,
}

/// A request that the device has finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Which request.
    pub id: IoId,
    /// The volume it was for.
    pub volume: VolumeId,
    /// Whether the device did what was asked.
    pub ok: bool,
}
