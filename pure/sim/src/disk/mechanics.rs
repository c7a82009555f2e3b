//! The moving parts: how long it takes until the heads are where they must be, and the platters at the right
//! angle.
//!
//! **Modelled**: the seek by its distance, the settling that a write needs in addition, the switch between
//! heads of a cylinder, and the wait until the sector comes round.
//!
//! **Not modelled**: positioning errors, and the variation from seek to seek that they cause.
//!
//! Each time that a request ends, the positioning time of each waiting request is computed. So the table of
//! moves has 32 bits for each distance, and all disks of a kind share it: then it stays in the processor's
//! cache.

use crate::disk::geometry::Geometry;
use crate::disk::seek;
use crate::disk::{DiskError, DiskOptions};

/// Bits of a [`Move`] that hold the part below a turn. At more than 3,576 rpm, a turn is shorter than 2^24
/// ns.
const TURN_BITS: u32 = 24;

/// The most cylinders, because the table of moves has an entry for each. The densest disks have a tenth.
const MOST_CYLINDERS: u32 = 4_000_000;

/// The tables that disks of a kind have in common.
#[derive(Debug)]
pub(crate) struct Mechanics {
    pub(crate) geometry: Geometry,
    /// One turn, in ns.
    pub(crate) period: u32,
    read_moves: Box<[Move]>,
    write_moves: Box<[Move]>,
}

/// A time to move: whole turns, and in the lower [`TURN_BITS`] the nanoseconds beyond them. With both, the
/// wait for the sector takes a comparison. From the sum alone, it would take a division.
#[derive(Clone, Copy, Debug)]
struct Move(u32);

/// Where the heads are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arm {
    pub(crate) cylinder: u32,
    pub(crate) head: u32,
}

/// Where they must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub(crate) cylinder: u32,
    pub(crate) angle: u32,
    pub(crate) head: u32,
    pub(crate) write: bool,
}

impl Mechanics {
    pub(crate) fn new(options: &DiskOptions) -> Result<Self, DiskError> {
        let period = u32::try_from(60_000_000_000 / u64::from(options.rpm.max(1))).unwrap_or(u32::MAX);
        if !(1_000..1 << TURN_BITS).contains(&period) {
            return Err(DiskError::Rotation { rpm: options.rpm });
        }
        let settle = options.write_settle.as_nanos();
        let switch = options.head_switch.as_nanos();
        if settle + switch >= u64::from(period) {
            return Err(DiskError::HeadSwitch {
                head_switch: options.head_switch,
                write_settle: options.write_settle,
            });
        }
        let cylinders: u64 = options.zones.iter().map(|zone| u64::from(zone.cylinders)).sum();
        let cylinders = u32::try_from(cylinders).ok().filter(|&cylinders| cylinders <= MOST_CYLINDERS);
        let cylinders = cylinders.ok_or(DiskError::Geometry)?;
        let curve = seek::curve(options.seek, cylinders).ok_or(DiskError::Seek(options.seek))?;
        // A move to another cylinder takes at least as long as one to another head: the servo has to settle
        // in both.
        let moves = |settle: u64| -> Option<Box<[Move]>> {
            curve.iter().map(|&seek| Move::new(whole(seek).max(switch) + settle, period)).collect()
        };
        let [read_moves, write_moves] = [moves(0), moves(settle)];
        let read_moves = read_moves.ok_or(DiskError::Seek(options.seek))?;
        let write_moves = write_moves.ok_or(DiskError::Seek(options.seek))?;
        let track_skew = u32::try_from(switch + settle).map_err(|_| DiskError::Geometry)?;
        let cylinder_skew = u32::try_from(write_moves[1].nanos(period)).map_err(|_| DiskError::Geometry)?;
        let geometry = Geometry::new(&options.zones, options.heads.get(), period, track_skew, cylinder_skew);
        let geometry = geometry.ok_or(DiskError::Geometry)?;
        Ok(Self { geometry, period, read_moves, write_moves })
    }

    /// Nanoseconds until the heads are over the target and it begins to pass. The heads are at `arm` now, and
    /// the disk is at the angle `phase`.
    pub(crate) fn positioning(&self, arm: Arm, phase: u32, target: Target) -> u64 {
        let moves = if target.write { &self.write_moves } else { &self.read_moves };
        let distance = target.cylinder.abs_diff(arm.cylinder);
        let stays = distance == 0 && target.head == arm.head;
        let needed = if stays { Move(0) } else { moves[distance as usize] };
        let ahead = if target.angle >= phase { 0 } else { self.period };
        let passes = target.angle + ahead - phase;
        let turns = needed.turns() + u32::from(passes < needed.rest());
        u64::from(passes) + u64::from(turns) * u64::from(self.period)
    }

    /// Nanoseconds to another cylinder, without the wait for the sector.
    #[cfg(test)]
    pub(crate) fn seek(&self, distance: u32, write: bool) -> u64 {
        let moves = if write { &self.write_moves } else { &self.read_moves };
        if distance == 0 { 0 } else { moves[distance as usize].nanos(self.period) }
    }
}

impl Move {
    /// `None` if it takes 2^8 turns or more.
    fn new(nanos: u64, period: u32) -> Option<Self> {
        let turns =
            u32::try_from(nanos / u64::from(period)).ok().filter(|&turns| turns < 1 << (32 - TURN_BITS))?;
        let rest = u32::try_from(nanos % u64::from(period)).ok()?;
        Some(Self(turns << TURN_BITS | rest))
    }

    fn turns(self) -> u32 {
        self.0 >> TURN_BITS
    }

    fn rest(self) -> u32 {
        self.0 & ((1 << TURN_BITS) - 1)
    }

    fn nanos(self, period: u32) -> u64 {
        u64::from(self.turns()) * u64::from(period) + u64::from(self.rest())
    }
}

/// Whole nanoseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, and a seek is neither long nor negative
fn whole(nanos: f64) -> u64 {
    nanos.round() as u64
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use weir_model::Span;

    use super::*;
    use crate::random::Seed;

    fn mechanics() -> (Mechanics, DiskOptions) {
        let options = DiskOptions::preset("cheetah-18lp").unwrap();
        (Mechanics::new(&options).unwrap(), options)
    }

    #[test]
    fn positioning_ends_when_the_angle_is_right_and_not_before_the_move_has_ended() {
        let (mechanics, _) = mechanics();
        let period = u64::from(mechanics.period);
        let arm = Arm { cylinder: 4_000, head: 3 };
        for cylinder in (0..9_000).step_by(37) {
            for (phase, angle, write) in
                [(0, 0, false), (5_999_999, 0, true), (1_234_567, 1_234_566, false), (7, 8, true)]
            {
                let target = Target { cylinder, angle, head: 3, write };
                let nanos = mechanics.positioning(arm, phase, target);
                let seek = mechanics.seek(cylinder.abs_diff(4_000), write);
                assert_eq!((u64::from(phase) + nanos) % period, u64::from(angle));
                assert!(
                    (seek..seek + period).contains(&nanos),
                    "{target:?} takes {nanos} ns, seek {seek} ns"
                );
            }
        }
    }

    #[test]
    fn a_head_that_stays_on_its_track_needs_no_switch_and_no_settling() {
        let (mechanics, options) = mechanics();
        let arm = Arm { cylinder: 10, head: 1 };
        let target = |head, angle, write| Target { cylinder: 10, angle, head, write };
        assert_eq!(mechanics.positioning(arm, 500, target(1, 500, true)), 0);
        let switch = options.head_switch.as_nanos();
        let just = u32::try_from(500 + switch).unwrap();
        assert_eq!(mechanics.positioning(arm, 500, target(2, just, false)), switch);
        assert_eq!(
            mechanics.positioning(arm, 500, target(2, just, true)),
            switch + u64::from(mechanics.period)
        );
    }

    #[test]
    fn seeks_between_random_cylinders_take_the_average_of_the_data_sheet() {
        for &name in DiskOptions::PRESETS {
            let options = DiskOptions::preset(name).unwrap();
            let mechanics = Mechanics::new(&options).unwrap();
            let cylinders: u32 = options.zones.iter().map(|zone| zone.cylinders).sum();
            let mut random = Seed(1).stream("cylinders");
            let mut mean = |write| {
                let mut seek = || {
                    let [from, to] = [(); 2].map(|()| random.random_range(0..cylinders));
                    mechanics.seek(from.abs_diff(to), write)
                };
                (0..100_000).map(|_| seek()).sum::<u64>() / 100_000
            };
            let near = |found: u64, expected: Span| {
                found.abs_diff(expected.as_nanos()) * 100 / expected.as_nanos() < 1
            };
            assert!(near(mean(false), options.seek.average), "{name}: {} ns", mean(false));
            assert!(
                near(mean(true), options.seek.average + options.write_settle),
                "{name}: {} ns",
                mean(true)
            );
        }
    }
}
