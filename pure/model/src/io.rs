//! A request, as the scheduler and the engine see it: what it asks for, without the bytes that it carries.

use serde::{Deserialize, Serialize};

use crate::Instant;

/// A volume's number in its pool: dense, from zero. The number of a removed volume may be used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct VolumeId(pub u32);

/// A request's identity in its engine. `slot` is dense, so a driver can keep its data of the requests in a
/// `Vec`. `generation` tells two requests apart that had the same slot, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct IoId {
    /// Index of the slot.
    pub slot: u32,
    /// How often the slot was used before.
    pub generation: u32,
}

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoKind {
    /// Carries data from the device.
    Read,
    /// Carries data to the device.
    Write,
    /// Makes durable every write that was answered before.
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

    /// The way the data flows, for reads and writes: only they carry data, and only they have SLOs. `None`
    /// for all other kinds.
    pub const fn direction(self) -> Option<Direction> {
        match self {
            Self::Read => Some(Direction::Read),
            Self::Write => Some(Direction::Write),
            _ => None,
        }
    }

    /// Whether the device may have to read or write all of the range, with or without data of the client. A
    /// device that cannot make zeroes otherwise writes them, and it reads a range to be cached. A trim is
    /// advice, and no device has to write for it. The data that a flush makes a device write was charged with
    /// its writes.
    pub const fn may_move_its_length(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::WriteZeroes | Self::Cache)
    }

    /// A dense number from zero, to index a table over [`IoKind::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name of the kind at every edge: JSON, metric labels, tables, rules.
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

/// A request: what it asks for, and when it arrived.
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
