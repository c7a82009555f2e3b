//! The members of a unit: their operations, and their health.

use weir_model::{Instant, Span};

use crate::array::event::{Event, Turn};
use crate::array::slots::Slots;
use crate::array::utilisation::Stopwatch;
use crate::member::{Member, MemberOptions};
use crate::member_io::{MemberIo, Started};
use crate::raid::Extent;
use crate::random::Seed;

/// How many operations a disk has done since it was put in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DiskOperations {
    /// Reads from the disk.
    pub reads: u64,
    /// Writes to the disk.
    pub writes: u64,
}

/// The health of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Health {
    Works,
    Failed,
    /// It replaced a failed member, and is rebuilt up to this byte.
    Rebuilding {
        up_to: u64,
    },
}

/// An operation that was not done, because its member failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LostOperation {
    pub(super) job: u32,
    pub(super) extent: Extent,
    pub(super) write: bool,
}

#[derive(Debug)]
struct Slot {
    member: Member,
    health: Health,
    /// Rises with each failure and each replacement in this place.
    generation: u16,
    done: DiskOperations,
    /// Runs while the member in this place has something to do.
    busy: Stopwatch,
}

#[derive(Clone, Copy, Default, Debug)]
struct Operation {
    job: u32,
    extent: Extent,
    write: bool,
    under_way: bool,
}

/// The members of a unit.
#[derive(Debug)]
pub(super) struct Members {
    unit: u16,
    slots: Vec<Slot>,
    operations: Slots<Operation>,
    /// How many members have failed or are being rebuilt.
    ailing: u32,
    options: MemberOptions,
    seed: Seed,
    started: Vec<Started>,
}

impl Members {
    /// `count` members that all work.
    ///
    /// # Panics
    /// If such a member is impossible.
    pub(super) fn new(unit: u16, options: &MemberOptions, count: u32, seed: Seed) -> Self {
        let streams = (0..count).map(|disk| seed.stream(&format!("unit {unit} disk {disk}")));
        let members = options.build(streams).expect("options that were checked");
        let new = |member| Slot {
            member,
            health: Health::Works,
            generation: 0,
            done: DiskOperations::default(),
            busy: Stopwatch::default(),
        };
        Self {
            unit,
            slots: members.into_iter().map(new).collect(),
            operations: Slots::new(),
            ailing: 0,
            options: options.clone(),
            seed,
            started: Vec::new(),
        }
    }

    /// Begins an operation for `job`.
    pub(super) fn issue(&mut self, turn: &mut Turn<'_>, job: u32, extent: Extent, write: bool) {
        let operation = self.operations.take();
        self.operations[operation] = Operation { job, extent, write, under_way: true };
        let slot = &mut self.slots[extent.member as usize];
        let io = MemberIo { tag: operation, write, offset: extent.offset, length: extent.length };
        slot.member.push(turn.now, io, &mut self.started);
        slot.busy.set(turn.now, true);
        self.schedule(turn, extent.member);
    }

    /// An operation ends. Returns its job, unless its member has failed before.
    pub(super) fn finish(
        &mut self,
        turn: &mut Turn<'_>,
        member: u32,
        generation: u16,
        operation: u32,
    ) -> Option<u32> {
        let slot = &mut self.slots[member as usize];
        if slot.generation != generation {
            return None;
        }
        let Operation { job, write, .. } = self.operations[operation];
        *(if write { &mut slot.done.writes } else { &mut slot.done.reads }) += 1;
        slot.member.finish(turn.now, operation, &mut self.started);
        slot.busy.set(turn.now, slot.member.outstanding() > 0);
        self.end(operation);
        self.schedule(turn, member);
        Some(job)
    }

    /// Whether an extent can be read, and is worth writing.
    pub(super) fn works(&self, extent: Extent) -> bool {
        self.ailing == 0 || self.works_up_to(extent.member, extent.offset + u64::from(extent.length))
    }

    pub(super) fn works_up_to(&self, member: u32, end: u64) -> bool {
        match self.slots[member as usize].health {
            Health::Works => true,
            Health::Failed => false,
            Health::Rebuilding { up_to } => end <= up_to,
        }
    }

    pub(super) fn health(&self, member: u32) -> Health {
        self.slots[member as usize].health
    }

    pub(super) fn generation(&self, member: u32) -> u16 {
        self.slots[member as usize].generation
    }

    pub(super) fn done(&self, member: u32) -> DiskOperations {
        self.slots[member as usize].done
    }

    /// For how long the busiest member had something to do.
    pub(super) fn busiest(&self, now: Instant) -> Span {
        self.slots.iter().map(|slot| slot.busy.total(now)).max().unwrap_or(Span::ZERO)
    }

    /// The one of two members with the shorter queue; if the queues are equal, the one that has done less.
    pub(super) fn less_busy(&self, first: u32, second: u32) -> u32 {
        let work = |member: u32| {
            let Slot { member, done, .. } = &self.slots[member as usize];
            (member.outstanding(), done.reads + done.writes)
        };
        if work(second) < work(first) { second } else { first }
    }

    pub(super) fn set_health(&mut self, member: u32, health: Health) {
        let was = std::mem::replace(&mut self.slots[member as usize].health, health);
        self.ailing += u32::from(health != Health::Works);
        self.ailing -= u32::from(was != Health::Works);
    }

    /// A member fails. Returns the operations that it had not done.
    pub(super) fn fail(&mut self, now: Instant, member: u32) -> Vec<LostOperation> {
        self.set_health(member, Health::Failed);
        let slot = &mut self.slots[member as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.busy.set(now, false);
        let mut lost = Vec::new();
        for operation in 0..self.operations.places() {
            let Operation { job, extent, write, under_way } = self.operations[operation];
            if under_way && extent.member == member {
                lost.push(LostOperation { job, extent, write });
                self.end(operation);
            }
        }
        lost
    }

    /// Puts in a new member for one that failed.
    pub(super) fn replace(&mut self, disk: u32) {
        let (unit, slot) = (self.unit, &mut self.slots[disk as usize]);
        slot.generation = slot.generation.wrapping_add(1);
        let stream = self.seed.stream(&format!("unit {unit} disk {disk} generation {}", slot.generation));
        let mut built = self.options.build([stream]).expect("options that were checked");
        slot.member = built.pop().expect("one stream makes one member");
        slot.done = DiskOperations::default();
        self.set_health(disk, Health::Rebuilding { up_to: 0 });
    }

    /// The first failed member, if there is one.
    pub(super) fn first_failed(&self) -> Option<u32> {
        (0..).zip(&self.slots).find_map(|(disk, slot)| (slot.health == Health::Failed).then_some(disk))
    }

    fn end(&mut self, operation: u32) {
        self.operations[operation].under_way = false;
        self.operations.give_back(operation);
    }

    fn schedule(&mut self, turn: &mut Turn<'_>, member: u32) {
        let (unit, generation) = (self.unit, self.slots[member as usize].generation);
        for Started { tag, ends } in self.started.drain(..) {
            turn.events.push(ends, Event::Operation { unit, generation, member, operation: tag });
        }
    }
}
