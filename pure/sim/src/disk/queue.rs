//! The commands that wait at a disk, and which of them it serves next.
//!
//! **Modelled**: the three orders that matter (arrival, elevator, shortest positioning time), and what keeps
//! each from starving a command.
//!
//! **Not modelled**: SCSI's ordered and head-of-queue tags, priorities.
//!
//! **Ageing.** If the nearest request always went first, a request far away might wait for ever. So
//! positioning times are compared after 1/128 of the time that each request has waited is taken off. That is
//! 7.8 ms for each second of waiting, of the order of the 6 ms of Worthington, Ganger and Patt ("Scheduling
//! algorithms for modern disk drives", SIGMETRICS 1994, there ASPTF(6)). A move and a turn take 19 ms at
//! most. So a request is never passed by one that came 2.5 s after it, and only finitely many requests pass
//! it.
//!
//! Example: random reads of 4 KiB on a `cheetah-18lp`, 64 outstanding. Without ageing, it serves 366 a
//! second; one read in a hundred waits 0.87 s or more, and the longest wait is 2.3 s. With 1/128, these are
//! 345 a second, 0.45 s and 0.66 s. With 1/32, it serves 264 a second. The alternative is a limit after which
//! the oldest request goes first. Under overload, that limit would give the order of arrival, just when the
//! short ways are needed most.
//!
//! The elevator needs no ageing. A new request for the cylinder where the heads are waits for their return,
//! so each ride ends.

use crate::disk::mechanics::{Arm, Mechanics, Target};

/// The waiting time is divided by this power of two before it counts.
const AGEING_SHIFT: u32 = 7;

/// In which order a disk serves commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskOrder {
    /// In the order of arrival.
    Fifo,
    /// To and fro over the cylinders. The heads turn where no command lies ahead (LOOK).
    Elevator,
    /// First the command whose sector is under its head first, by seek and rotation, with ageing.
    ShortestPositioning,
}

/// A command that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) target: Target,
    pub(super) tag: u32,
    pub(super) first: u32,
    pub(super) count: u32,
    /// The zone and the sector on the track, so that the place need not be looked up again.
    pub(super) zone: u32,
    pub(super) sector: u32,
    /// When it came, in ns.
    pub(super) came: u64,
    /// How many came before it; set by the queue.
    pub(super) number: u64,
}

/// The state of the disk when it chooses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) arm: Arm,
    /// The angle of the platters.
    pub(super) phase: u32,
    /// The sector that comes next if the disk reads on. A read that begins there waits for nothing.
    pub(super) reading: Option<u32>,
}

/// The waiting commands, in no order.
#[derive(Debug)]
pub(super) struct Queue {
    order: DiskOrder,
    waiting: Vec<Waiting>,
    pushed: u64,
    inward: bool,
    /// Commands with lower numbers waited when the elevator set out for this cylinder.
    boarding: u64,
}

impl Queue {
    pub(super) fn new(order: DiskOrder, capacity: usize) -> Self {
        Self { order, waiting: Vec::with_capacity(capacity), pushed: 0, inward: true, boarding: 0 }
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.push(Waiting { number: self.pushed, ..waiting });
        self.pushed += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes the next command out.
    pub(super) fn pop(&mut self, mechanics: &Mechanics, position: Position) -> Option<Waiting> {
        let chosen = match (self.waiting.len(), self.order) {
            (0, _) => return None,
            (1, _) => 0,
            (_, DiskOrder::Fifo) => self.lowest(|waiting| Some(waiting.number))?,
            (_, DiskOrder::ShortestPositioning) => self.nearest(mechanics, position),
            (_, DiskOrder::Elevator) => self.on_the_way(position.arm.cylinder)?,
        };
        Some(self.waiting.swap_remove(chosen))
    }

    /// This is called for each disk operation, and looks at each waiting command. So it is a plain loop over
    /// plain numbers.
    fn nearest(&self, mechanics: &Mechanics, position: Position) -> usize {
        let reading = position.reading.unwrap_or(u32::MAX);
        let (mut lowest, mut chosen) = (u64::MAX, 0);
        for (place, waiting) in self.waiting.iter().enumerate() {
            let mut key = waiting.came >> AGEING_SHIFT;
            if waiting.target.write || waiting.first != reading {
                key += mechanics.positioning(position.arm, position.phase, waiting.target);
            }
            if key < lowest {
                (lowest, chosen) = (key, place);
            }
        }
        chosen
    }

    fn on_the_way(&mut self, here: u32) -> Option<usize> {
        let chosen = self.ahead(here).or_else(|| {
            self.inward = !self.inward;
            self.boarding = self.pushed;
            self.ahead(here)
        })?;
        if self.waiting[chosen].target.cylinder != here {
            self.boarding = self.pushed;
        }
        Some(chosen)
    }

    /// The oldest command of the nearest cylinder in the direction of the ride.
    fn ahead(&self, here: u32) -> Option<usize> {
        self.lowest(|waiting| {
            let there = waiting.target.cylinder;
            let distance = if self.inward { there.checked_sub(here)? } else { here.checked_sub(there)? };
            (distance > 0 || waiting.number < self.boarding).then_some((distance, waiting.number))
        })
    }

    /// The index of the command with the lowest key, among the commands that have a key.
    fn lowest<K: Ord>(&self, key: impl Fn(&Waiting) -> Option<K>) -> Option<usize> {
        let keys =
            self.waiting.iter().enumerate().filter_map(|(place, waiting)| Some((key(waiting)?, place)));
        keys.min().map(|(_, place)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskOptions;

    fn waiting(number: u64, cylinder: u32, angle: u32) -> Waiting {
        let target = Target { cylinder, angle, head: 0, write: false };
        let tag = u32::try_from(number).unwrap();
        Waiting { target, tag, first: 0, count: 8, zone: 0, sector: 0, came: 0, number }
    }

    fn mechanics() -> Mechanics {
        Mechanics::new(&DiskOptions::preset("cheetah-18lp").unwrap()).unwrap()
    }

    /// The order in which they are served, if the disk is at angle zero each time.
    fn served(order: DiskOrder, from: u32, all: &[Waiting]) -> Vec<u32> {
        let mechanics = mechanics();
        let mut queue = Queue::new(order, 8);
        all.iter().for_each(|&one| queue.push(one));
        let mut arm = Arm { cylinder: from, head: 0 };
        let mut tags = Vec::new();
        while let Some(next) = queue.pop(&mechanics, Position { arm, phase: 0, reading: None }) {
            arm.cylinder = next.target.cylinder;
            tags.push(next.tag);
        }
        tags
    }

    #[test]
    fn each_order_serves_as_its_name_says() {
        let all = [
            waiting(0, 900, 0),
            waiting(1, 400, 5_000_000),
            waiting(2, 600, 2_000_000),
            waiting(3, 510, 400_000),
        ];
        assert_eq!(served(DiskOrder::Fifo, 500, &all), [0, 1, 2, 3]);
        assert_eq!(served(DiskOrder::Elevator, 500, &all), [3, 2, 0, 1]);
        // The heads reach the next cylinder after its sector has passed, so the sector comes a turn later.
        assert_eq!(served(DiskOrder::ShortestPositioning, 500, &all)[0], 2);
    }

    #[test]
    fn a_read_that_goes_on_where_the_last_one_ended_is_the_nearest() {
        let mut queue = Queue::new(DiskOrder::ShortestPositioning, 8);
        queue.push(waiting(0, 500, 1_000));
        queue.push(Waiting { first: 77, ..waiting(1, 501, 0) });
        let position = Position { arm: Arm { cylinder: 500, head: 0 }, phase: 0, reading: Some(77) };
        assert_eq!(queue.pop(&mechanics(), position).unwrap().tag, 1);
    }

    #[test]
    fn shortest_positioning_serves_a_far_request_though_near_ones_keep_coming() {
        let mechanics = mechanics();
        let mut queue = Queue::new(DiskOrder::ShortestPositioning, 8);
        queue.push(waiting(0, 9_000, 1_000));
        let position = Position { arm: Arm { cylinder: 0, head: 0 }, phase: 0, reading: None };
        let passed = (1..10_000).take_while(|&number| {
            queue.push(Waiting { came: number * 1_000_000, ..waiting(number, 0, 5) });
            queue.pop(&mechanics, position).unwrap().tag != 0
        });
        let passed = passed.count();
        assert!((1_000..2_400).contains(&passed), "passed by {passed}, one a millisecond");
    }

    #[test]
    fn the_elevator_leaves_a_cylinder_though_new_requests_for_it_keep_coming() {
        let mechanics = mechanics();
        let mut queue = Queue::new(DiskOrder::Elevator, 8);
        let mut arm = Arm { cylinder: 100, head: 0 };
        queue.push(waiting(0, 9_000, 0));
        queue.push(waiting(1, 50, 0));
        let mut tags = Vec::new();
        for number in 2..7 {
            queue.push(waiting(number, arm.cylinder, 0));
            let next = queue.pop(&mechanics, Position { arm, phase: 0, reading: None }).unwrap();
            arm.cylinder = next.target.cylinder;
            tags.push(next.tag);
        }
        assert!(tags.contains(&0) && tags.contains(&1), "{tags:?}");
    }
}
