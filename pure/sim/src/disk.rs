//! A disk: arms that seek, platters that turn, a buffer that reads ahead, and a queue of commands.
//!
//! **Modelled**, each in its part: [`geometry`] (zones, skew), [`seek`] (the seek curve), [`mechanics`]
//! (settling, head switch, rotation), [`queue`] (order of service, ageing), [`cache`] (segments, read-ahead).
//! A command costs a fixed overhead; if it waited for the command before it, that hides the overhead. The
//! disk sees a bounded number of commands. The rest wait before it, in the order of their arrival. Reads from
//! the medium reach the host as they are read; only reads from the buffer take the interface's time.
//!
//! **Not modelled**: a write cache, recalibration, defects, errors that are retried, the bus that disks share
//! (a link of the array).
//!
//! **Calibrated** by published figures: see [`presets`].
//!
//! A queueing station with the disk's mean service time has the same throughput at a depth of one. But it
//! misses the two effects that a scheduler above it lives from: a deeper queue makes the disk faster, and
//! makes each request wait longer. Random reads of 4 KiB a second on one `cheetah-18lp`, by the number
//! outstanding:
//!
//! | outstanding | shortest positioning | elevator | in order of arrival | shortest positioning, outermost quarter of the cylinders |
//! |---:|---:|---:|---:|---:|
//! | 1 | 116 | 116 | 116 | 169 |
//! | 2 | 120 | 120 | 120 | 178 |
//! | 4 | 163 | 150 | 120 | 240 |
//! | 8 | 206 | 177 | 120 | 306 |
//! | 16 | 255 | 198 | 120 | 369 |
//! | 32 | 305 | 215 | 120 | 427 |
//! | 64 | 345 | 226 | 120 | 469 |

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;

use rand::RngExt;
use thiserror::Error;
use weir_model::{Instant, Span};

use crate::member_io::{MemberIo, Started};
use crate::random::Prng;

mod cache;
mod geometry;
mod mechanics;
mod presets;
mod queue;
mod seek;

pub use geometry::Zone;
pub use queue::DiskOrder;
pub use seek::SeekTimes;

use cache::ReadCache;
use geometry::{Place, SECTOR};
use mechanics::{Arm, Mechanics, Target};
use queue::{Position, Queue, Waiting};

/// The description of a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskOptions {
    /// Turns a minute, above 3,576.
    pub rpm: u32,
    /// Surfaces with a head.
    pub heads: NonZeroU32,
    /// Its cylinders, from the outermost, where the first byte is, to the innermost.
    pub zones: Vec<Zone>,
    /// How long seeks for reading take.
    pub seek: SeekTimes,
    /// How much longer the heads settle before a write, after a seek or a head switch.
    pub write_settle: Span,
    /// The time to change to another head of the same cylinder.
    pub head_switch: Span,
    /// The time that each command costs before anything moves.
    pub overhead: Span,
    /// Bytes a second from the buffer to the host.
    pub interface: u64,
    /// Into how many segments the read buffer is divided.
    pub segments: NonZeroU32,
    /// Bytes of each segment, at least a sector.
    pub segment_size: u32,
    /// Which of the commands that it sees the disk serves next.
    pub order: DiskOrder,
    /// How many commands it sees at once.
    pub tags: NonZeroU32,
}

/// Why a description makes no disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DiskError {
    /// The disk is too slow or too fast.
    #[error("a disk of {rpm} rpm is not modelled; 3,577 to 60,000,000 rpm are")]
    Rotation {
        /// Turns a minute.
        rpm: u32,
    },
    /// Head switch and write settling together take a turn or more.
    #[error(
        "head switch ({head_switch}) and write settling ({write_settle}) together must take less than a turn"
    )]
    HeadSwitch {
        /// As given.
        head_switch: Span,
        /// As given.
        write_settle: Span,
    },
    /// No curve has these seek times.
    #[error(
        "no seek curve takes {} to the next track, {} on average and {} for the full stroke; the average must be 1/3 to \
         8/15 of the way from the first to the last, and there must be 3 cylinders or more",
        .0.single_track, .0.average, .0.full_stroke
    )]
    Seek(SeekTimes),
    /// There are no sectors, or too many.
    #[error(
        "the zones must hold between 1 and 2^32 - 1 sectors of 512 bytes, on at most 4,000,000 cylinders"
    )]
    Geometry,
    /// The buffer cannot hold a sector.
    #[error("a segment of the buffer has {size} bytes; at least 512 are needed")]
    Segment {
        /// As given.
        size: u32,
    },
    /// The interface has no bandwidth.
    #[error("an interface of 0 bytes a second passes nothing")]
    Interface,
}

impl DiskOptions {
    /// The names of the known disks, for [`DiskOptions::preset`].
    pub const PRESETS: &[&str] = &presets::NAMES;

    /// The disk of this name; `None` if there is none.
    pub fn preset(name: &str) -> Option<Self> {
        presets::preset(name)
    }

    /// Checks that such a disk is possible.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), DiskError> {
        DiskKind::new(self).map(|_| ())
    }

    /// Bytes that it stores.
    pub fn capacity(&self) -> u64 {
        let sectors = |zone: &Zone| u64::from(zone.cylinders) * u64::from(zone.sectors_per_track);
        let on_a_surface = self.zones.iter().map(sectors).fold(0, u64::saturating_add);
        on_a_surface.saturating_mul(u64::from(self.heads.get()) * SECTOR)
    }
}

/// The tables that all disks of a kind share, so that they are computed once, and are in the processor's
/// cache once.
#[derive(Clone, Debug)]
pub struct DiskKind {
    mechanics: Arc<Mechanics>,
    options: Arc<DiskOptions>,
}

impl DiskKind {
    /// The kind of disk that has these options.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(options: &DiskOptions) -> Result<Self, DiskError> {
        if u64::from(options.segment_size) < SECTOR {
            return Err(DiskError::Segment { size: options.segment_size });
        }
        if options.interface == 0 {
            return Err(DiskError::Interface);
        }
        Ok(Self { mechanics: Arc::new(Mechanics::new(options)?), options: Arc::new(options.clone()) })
    }
}

/// A disk.
#[derive(Debug)]
pub struct Disk {
    kind: DiskKind,
    /// The angle of the platters at [`Instant::ORIGIN`], in nanoseconds of rotation.
    start_angle: u64,
    arm: Arm,
    cache: ReadCache,
    queue: Queue,
    /// The command that the heads work on.
    active: Option<Active>,
    /// How many commands are being sent from the buffer.
    from_buffer: usize,
    /// Commands that the disk does not see yet, and when they came.
    before: VecDeque<(MemberIo, Instant)>,
}

/// The command that has the heads.
#[derive(Clone, Copy, Debug)]
struct Active {
    tag: u32,
    write: bool,
    first: u32,
    end: u32,
    /// Where the heads are when it ends.
    arm: Arm,
}

impl Disk {
    /// A disk that is idle, with its heads over the first cylinder, at a random angle.
    pub fn new(kind: DiskKind, mut random: Prng) -> Self {
        let tags = kind.options.tags.get() as usize;
        Self {
            start_angle: random.random_range(0..u64::from(kind.mechanics.period)),
            arm: Arm { cylinder: 0, head: 0 },
            cache: ReadCache::new(kind.options.segments.get() as usize, kind.options.segment_size / 512),
            queue: Queue::new(kind.options.order, tags),
            active: None,
            from_buffer: 0,
            before: VecDeque::new(),
            kind,
        }
    }

    /// Bytes that it stores.
    pub(crate) fn capacity(&self) -> u64 {
        u64::from(self.kind.mechanics.geometry.sectors()) * SECTOR
    }

    pub(crate) fn push(&mut self, now: Instant, io: MemberIo, started: &mut Vec<Started>) {
        assert!(
            io.length > 0 && io.offset + u64::from(io.length) <= self.capacity(),
            "{io:?} is not on the disk"
        );
        if self.seen() >= self.kind.options.tags.get() as usize {
            self.before.push_back((io, now));
            return;
        }
        self.admit(now, io, now, started);
        if self.active.is_none() {
            self.begin(now, self.kind.options.overhead, started);
        }
    }

    pub(crate) fn finish(&mut self, now: Instant, tag: u32, started: &mut Vec<Started>) {
        match self.active.take_if(|active| active.tag == tag) {
            Some(ended) => {
                self.arm = ended.arm;
                if !ended.write {
                    self.cache.keep(now.as_nanos(), ended.first, ended.end, &self.kind.mechanics.geometry);
                }
            }
            None => self.from_buffer -= 1,
        }
        let overhead = if self.queue.len() == 0 { self.kind.options.overhead } else { Span::ZERO };
        while self.seen() < self.kind.options.tags.get() as usize {
            let Some((io, came)) = self.before.pop_front() else { break };
            self.admit(now, io, came, started);
        }
        if self.active.is_none() {
            self.begin(now, overhead, started);
        }
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.seen() + self.before.len()
    }

    fn seen(&self) -> usize {
        usize::from(self.active.is_some()) + self.from_buffer + self.queue.len()
    }

    /// The disk sees a command. If the command needs no heads, it begins at once; otherwise it is put in the
    /// queue.
    fn admit(&mut self, now: Instant, io: MemberIo, came: Instant, started: &mut Vec<Started>) {
        let MemberIo { tag, write, offset, length } = io;
        let (first, end) = (sector(offset), sector(offset + u64::from(length) + SECTOR - 1));
        let geometry = &self.kind.mechanics.geometry;
        if !write && self.cache.holds(now.as_nanos(), first, end, geometry) {
            self.from_buffer += 1;
            let sending = u64::from(length) * 1_000_000_000 / self.kind.options.interface;
            started.push(Started { tag, ends: now + self.kind.options.overhead + Span::from_nanos(sending) });
            return;
        }
        let Place { cylinder, head, zone, sector, angle } = geometry.locate(first);
        let target = Target { cylinder, angle, head, write };
        let (count, came) = (end - first, came.as_nanos());
        self.queue.push(Waiting { target, tag, first, count, zone, sector, came, number: 0 });
    }

    /// The heads are free: the next waiting command gets them, `lead` from now on.
    fn begin(&mut self, now: Instant, lead: Span, started: &mut Vec<Started>) {
        let mechanics = &*self.kind.mechanics;
        let geometry = &mechanics.geometry;
        let start = (now + lead).as_nanos();
        let phase = (start + self.start_angle) % u64::from(mechanics.period);
        #[allow(clippy::cast_possible_truncation)] // below a turn
        let phase = phase as u32;
        let reading = self.cache.next(now.as_nanos());
        let Some(next) = self.queue.pop(mechanics, Position { arm: self.arm, phase, reading }) else {
            return;
        };
        let Waiting { target, tag, first, count, zone, sector, .. } = next;
        let end = first + count;
        let Target { cylinder, angle, head, write } = target;
        let passes = if write { None } else { self.cache.passes(now.as_nanos(), first, end, geometry) };
        let ends = passes.map(|nanos| nanos.max(start));
        let transfer = geometry.transfer(Place { cylinder, head, zone, sector, angle }, count);
        let ends = ends.unwrap_or_else(|| {
            self.cache.interrupt(now.as_nanos(), geometry);
            start + mechanics.positioning(self.arm, phase, target) + transfer.nanos
        });
        if write {
            self.cache.forget(first, end);
        }
        let arm = Arm { cylinder: transfer.cylinder, head: transfer.head };
        self.active = Some(Active { tag, write, first, end, arm });
        started.push(Started { tag, ends: Instant::from_nanos(ends) });
    }
}

/// The number of the sector that has a byte.
#[allow(clippy::cast_possible_truncation)] // the disk has at most 2^32 sectors, and the byte is on it
fn sector(offset: u64) -> u32 {
    (offset / SECTOR) as u32
}

#[cfg(test)]
mod tests;
