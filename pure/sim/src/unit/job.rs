//! The jobs of a unit. A job is a set of operations on members, in one or two phases.

use crate::cache::RowId;
use crate::raid::row_write::RowWrite;

/// A job. Its place is used again, with the memory of its vectors.
#[derive(Default, Debug)]
pub(super) struct Job {
    pub(super) kind: Kind,
    /// How many operations and other jobs it waits for.
    pub(super) pending: u32,
    /// Whether all of its operations have succeeded so far.
    pub(super) ok: bool,
    /// Whether a member failed during its reads, so that it has to be planned anew.
    pub(super) again: bool,
    /// The operations of a row's write.
    pub(super) plan: RowWrite,
    /// Jobs that wait for blocks that this job reads.
    pub(super) waiters: Vec<u32>,
}

/// The purpose of a job.
#[derive(Clone, Copy, Default, Debug)]
pub(super) enum Kind {
    /// None: the place is free.
    #[default]
    Free,
    /// To read blocks: for a request, or with `None` ahead of one.
    Read { request: Option<u32>, first: u64, count: u64 },
    /// To write a row, or parts of it.
    Write { source: Source, phase: Phase },
    /// To rebuild a part of a member.
    Rebuild { part: RebuildPart, phase: Phase },
}

/// Where the data of a row's write are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// At the client of a request: these bytes of the unit, all in one row.
    Request { request: u32, offset: u64, length: u64 },
    /// In NVRAM.
    Nvram(RowId),
}

/// First all reads, then all writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Reads,
    Writes,
}

/// Part of a member that is rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RebuildPart {
    pub(super) member: u32,
    pub(super) generation: u16,
    pub(super) offset: u64,
    pub(super) length: u32,
}
