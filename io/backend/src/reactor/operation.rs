//! A request to a file as steps for the kernel. The result of each step decides the next one.
//!
//! Most requests are one step. A short transfer takes another step for the rest. Zeroes that the file system
//! cannot make are written. Trims and zeroes that must be durable are followed by `fdatasync`. Nothing here
//! talks to the kernel, so that tests can check each step without one.
//!
//! **A file that is cut off while it is served** has lost the data beyond its new end. The kernel answers a
//! read there with no bytes and no error. The read fails, because zeroes would tell the client that all is
//! well. The file's [`Abilities`] record the new end. From then on, every request that reaches beyond the end
//! fails. Every flush fails too, because the lost part may have held data that were answered and not flushed.
//! Writes beyond the end fail as well: otherwise the file would grow again, with a hole before the write that
//! reads as zeroes. The operator must repair the file, and then serve it again.

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use weir_model::IoKind;

use crate::{DeviceRequest, Extent, Finished};

/// Direct I/O is used for requests whose offset and length are multiples of this many bytes.
pub(crate) const DIRECT_BLOCK: u64 = 4096;
/// The most zeroes written in one step, in bytes.
pub(super) const ZEROES: u32 = 1 << 20;
/// How often in a row a step is tried again, at the kernel's request, before it fails. The kernel asks for
/// that if a signal came or if it is short of something, and both pass. Without this limit, a device that
/// always asks again would keep the driver busy for ever.
const TRIES: u32 = 64;

/// The abilities of a file. An ability that fails in use is struck off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Abilities {
    /// Whether it has a descriptor for direct I/O.
    pub(crate) direct: bool,
    /// Whether it is a block device. All of a block device is allocated, and ranges to zero must be aligned
    /// to its blocks.
    pub(crate) block_device: bool,
    /// Whether it can make holes.
    pub(crate) punch_hole: bool,
    /// Whether it can zero a range and keep the range allocated.
    pub(crate) zero_range: bool,
    /// How many bytes of the file are served.
    pub(crate) size: u64,
    /// Where the file ends: at `size`, unless it was found to be cut off.
    pub(crate) end: u64,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) request: DeviceRequest,
    stage: Stage,
    /// Bytes transferred or zeroed so far.
    done: u32,
    /// How often in a row the kernel asked to try the step again.
    tries: u32,
    /// Whether no client waits for the request any more.
    abandoned: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Reads or writes the request's buffer.
    Transfer,
    /// Makes a hole or zeroes, in one step.
    Allocate,
    /// Writes zeroes.
    Fill,
    /// Makes the changes durable.
    Sync,
    /// Has the range read into the page cache.
    Advise,
}

/// The first place that a request goes to.
#[derive(Debug)]
pub(super) enum Beginning {
    /// None: there is nothing to do, or the request cannot be done.
    AtOnce(Finished),
    /// A thread, because the ring has no operation for it.
    AskExtents(DeviceRequest),
    /// The ring.
    Kernel(Operation),
}

/// One step, in the kernel's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Read to the request's buffer, from byte `skip` of it on.
    Read { skip: u32, offset: u64, length: u32, direct: bool },
    /// Write from the request's buffer, from byte `skip` of it on.
    Write { skip: u32, offset: u64, length: u32, direct: bool, durable: bool },
    /// Write zeroes, `ZEROES` at most.
    WriteZeroes { offset: u64, length: u32, direct: bool },
    /// `fallocate`.
    Allocate { offset: u64, length: u64, mode: FallocateFlags },
    /// `fdatasync`.
    Sync,
    /// `posix_fadvise(POSIX_FADV_WILLNEED)`.
    WillNeed { offset: u64, length: u32 },
}

impl Operation {
    /// Decides the first step of a request that lies inside the served part of the file.
    pub(super) fn begin(request: DeviceRequest, file: &Abilities) -> Beginning {
        let is_lost = match request.kind {
            IoKind::Flush => file.is_cut_off(),
            _ => request.end().is_none_or(|end| end > file.end),
        };
        if is_lost {
            return Beginning::AtOnce(request.fail(Errno::IO));
        }
        let aligned = is_aligned(request.offset, request.length);
        let stage = match request.kind {
            IoKind::Read | IoKind::Write => Stage::Transfer,
            IoKind::Flush => Stage::Sync,
            // Direct reads do not use the page cache, so there is nothing to read into it.
            IoKind::Cache if file.direct => return Beginning::AtOnce(request.succeed()),
            IoKind::Cache => Stage::Advise,
            IoKind::BlockStatus if file.block_device => {
                let all = Extent::allocated(u64::from(request.length));
                return Beginning::AtOnce(request.answer(vec![all]));
            }
            IoKind::BlockStatus => return Beginning::AskExtents(request),
            // A trim is advice: if it cannot be done, it still succeeds.
            IoKind::Trim if !file.punch_hole || trim_range(&request, file).1 == 0 => {
                return Beginning::AtOnce(request.succeed());
            }
            IoKind::Trim => Stage::Allocate,
            IoKind::WriteZeroes if file.zeroes_fast(request.no_hole) && (aligned || !file.block_device) => {
                Stage::Allocate
            }
            IoKind::WriteZeroes if request.fast_zero => {
                return Beginning::AtOnce(request.fail(Errno::OPNOTSUPP));
            }
            IoKind::WriteZeroes => Stage::Fill,
        };
        Beginning::Kernel(Self { request, stage, done: 0, tries: 0, abandoned: false })
    }

    /// Whether the request writes more zeroes than one step can.
    pub(super) fn is_long(&self) -> bool {
        self.stage == Stage::Fill && self.request.length > ZEROES
    }

    /// Notes that no client waits for the request: no further zeroes are written.
    pub(super) fn abandon(&mut self) {
        self.abandoned = true;
    }

    /// Whether this outcome of a step is a reason to look whether the file was cut off.
    pub(super) fn raises_doubt(&self, result: Result<u32, Errno>) -> bool {
        match (self.request.kind, result) {
            (IoKind::Read, Ok(bytes)) => bytes == 0,
            (IoKind::Flush, Ok(_)) => true,
            _ => false,
        }
    }

    /// The next step.
    pub(super) fn step(&self, file: &Abilities) -> Step {
        let request = &self.request;
        let offset = request.offset + u64::from(self.done);
        let left = request.length - self.done;
        let direct =
            file.direct && is_aligned(offset, left) && u64::from(self.done).is_multiple_of(DIRECT_BLOCK);
        match self.stage {
            Stage::Transfer if request.kind == IoKind::Read => {
                Step::Read { skip: self.done, offset, length: left, direct }
            }
            Stage::Transfer => {
                Step::Write { skip: self.done, offset, length: left, direct, durable: request.fua }
            }
            Stage::Fill => {
                let length = fill_length(offset, left);
                Step::WriteZeroes { offset, length, direct: file.direct && is_aligned(offset, length) }
            }
            Stage::Allocate if request.kind == IoKind::Trim => {
                let (offset, length) = trim_range(request, file);
                Step::Allocate {
                    offset,
                    length,
                    mode: FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                }
            }
            Stage::Allocate => {
                let how =
                    if request.no_hole { FallocateFlags::ZERO_RANGE } else { FallocateFlags::PUNCH_HOLE };
                Step::Allocate { offset, length: u64::from(left), mode: how | FallocateFlags::KEEP_SIZE }
            }
            Stage::Sync => Step::Sync,
            Stage::Advise => Step::WillNeed { offset, length: left },
        }
    }

    /// Takes in the outcome of a step: a number of bytes, or an error. `Some` when the request is done;
    /// `None` if there is another step. `file` loses the abilities that turn out to be missing.
    pub(super) fn advance(
        &mut self,
        result: Result<u32, Errno>,
        file: &mut Abilities,
    ) -> Option<Result<(), Errno>> {
        if let Err(Errno::INTR | Errno::AGAIN) = result
            && self.tries < TRIES
        {
            self.tries += 1;
            return None;
        }
        self.tries = 0;
        match (self.stage, result) {
            (Stage::Advise, _) => Some(Ok(())),
            (Stage::Allocate, Err(Errno::OPNOTSUPP | Errno::NOSYS)) => self.do_without(file),
            (_, Err(errno)) => Some(Err(errno)),
            (Stage::Transfer | Stage::Fill, Ok(0)) => Some(Err(self.end_of_file(file))),
            (Stage::Transfer | Stage::Fill, Ok(bytes)) => {
                self.done += bytes;
                if self.done < self.request.length {
                    (self.stage == Stage::Fill && self.abandoned).then_some(Err(Errno::CANCELED))
                } else if self.stage == Stage::Fill {
                    self.make_durable()
                } else {
                    Some(Ok(())) // a write that must be durable was written as such
                }
            }
            (Stage::Allocate, Ok(_)) => self.make_durable(),
            (Stage::Sync, Ok(_)) if self.request.kind == IoKind::Flush && file.is_cut_off() => {
                Some(Err(Errno::IO))
            }
            (Stage::Sync, Ok(_)) => Some(Ok(())),
        }
    }

    fn make_durable(&mut self) -> Option<Result<(), Errno>> {
        self.stage = Stage::Sync;
        (!self.request.fua).then_some(Ok(()))
    }

    /// Goes on without the kernel's holes or zeroes, which this file cannot make. The kernel is not asked
    /// again.
    fn do_without(&mut self, file: &mut Abilities) -> Option<Result<(), Errno>> {
        if self.request.no_hole && self.request.kind == IoKind::WriteZeroes {
            file.zero_range = false;
        } else {
            file.punch_hole = false;
        }
        match self.request.kind {
            IoKind::Trim => Some(Ok(())),
            _ if self.request.fast_zero => Some(Err(Errno::OPNOTSUPP)),
            _ => {
                self.stage = Stage::Fill;
                None
            }
        }
    }

    /// Handles a step that transferred nothing. If that was a read, the file was cut off, there or before.
    fn end_of_file(&self, file: &mut Abilities) -> Errno {
        if self.request.kind == IoKind::Read {
            file.end = file.end.min(self.request.offset + u64::from(self.done));
        }
        Errno::IO
    }
}

impl Abilities {
    /// Whether the file was found to be shorter than its served part.
    pub(super) fn is_cut_off(&self) -> bool {
        self.end < self.size
    }

    fn zeroes_fast(&self, no_hole: bool) -> bool {
        if no_hole { self.zero_range } else { self.punch_hole }
    }
}

fn is_aligned(offset: u64, length: u32) -> bool {
    offset.is_multiple_of(DIRECT_BLOCK) && u64::from(length).is_multiple_of(DIRECT_BLOCK)
}

/// The offset and length to punch. A block device refuses parts of its blocks, so on it only the aligned part
/// of the request is punched.
fn trim_range(request: &DeviceRequest, file: &Abilities) -> (u64, u64) {
    let end = request.offset + u64::from(request.length);
    if !file.block_device {
        return (request.offset, end - request.offset);
    }
    let first = request.offset.next_multiple_of(DIRECT_BLOCK);
    let last = end - end % DIRECT_BLOCK;
    (first, last.saturating_sub(first))
}

/// How many zeroes to write at `offset` when `left` are left. The first write goes up to the next aligned
/// byte, so that direct I/O can write the bulk. The rest at the end is a write of its own.
#[allow(clippy::cast_possible_truncation)] // the block fits, and the remainder is smaller
fn fill_length(offset: u64, left: u32) -> u32 {
    let block = DIRECT_BLOCK as u32;
    let past = (offset % DIRECT_BLOCK) as u32;
    match left {
        _ if past > 0 => left.min(block - past),
        _ if left < block => left,
        _ => (left - left % block).min(ZEROES),
    }
}

#[cfg(test)]
mod tests;
