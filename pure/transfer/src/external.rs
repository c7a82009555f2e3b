//! The external load of a node: what its device does beside the transfers.
//!
//! The device's own sensor counts all bytes. The coordinator counts those of the transfers. In each second
//! the difference belongs to others.
//!
//! **The average comes first, the subtraction last.** A node may keep written data in its memory, and write
//! it to the device some seconds later. Subtracted second by second and never below zero, the early second
//! would count as nothing, and the late one as another's load. Example: the transfers write 100 MB in one
//! second and nothing in the next; the device does so a second later. Second by second, that is 50 MB/s of
//! others; over both seconds it is none.
//!
//! **Stale** means that there was no good answer for [`STALE_AFTER`]. A stale sensor has no load at all: an
//! old figure may be wrong by any amount. What comes after it begins anew.

use std::collections::VecDeque;

use weir_model::{Direction, Instant, Span};

use crate::SAMPLE;

/// A sensor without a good answer for longer is stale.
pub const STALE_AFTER: Span = Span::from_secs(3);

/// How many samples are averaged, as many as for the rate of the transfers.
const COUNT: usize = 10;

/// Bytes in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DeviceBytes {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// The external load of a node, from the answers of its sensor.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ExternalLoad {
    /// When the last good answer came.
    heard: Option<Instant>,
    /// The totals from which the next sample counts.
    before: Option<Totals>,
    samples: VecDeque<Sample>,
}

/// What was counted up to an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Totals {
    at: Instant,
    device: DeviceBytes,
    ours: DeviceBytes,
}

/// What was done between two answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sample {
    passed: Span,
    device: DeviceBytes,
    ours: DeviceBytes,
}

impl DeviceBytes {
    /// In one direction.
    pub const fn get(self, direction: Direction) -> u64 {
        match direction {
            Direction::Read => self.read,
            Direction::Write => self.written,
        }
    }

    /// What has come since; `None` if a counter went backwards.
    fn since(self, before: Self) -> Option<Self> {
        let read = self.read.checked_sub(before.read)?;
        Some(Self { read, written: self.written.checked_sub(before.written)? })
    }
}

impl ExternalLoad {
    /// A good answer: the device has moved so much in all, and the transfers so much. A counter that went
    /// backwards gives no sample, and neither does the first answer after the sensor was stale: both begin
    /// anew.
    pub fn answered(&mut self, now: Instant, device: DeviceBytes, ours: DeviceBytes) {
        let was_fresh = self.age(now).is_some_and(|age| age <= STALE_AFTER);
        self.heard = Some(now);
        let totals = Totals { at: now, device, ours };
        let Some(before) = self.before.filter(|_| was_fresh) else { return self.begin(totals) };
        let (Some(device), Some(ours)) = (device.since(before.device), ours.since(before.ours)) else {
            return self.begin(totals);
        };
        let passed = now.saturating_since(before.at);
        if passed.saturating_mul(2) < SAMPLE {
            return; // the rate of so short a time says little; the next sample has its bytes
        }
        self.before = Some(totals);
        if self.samples.len() == COUNT {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { passed, device, ours });
    }

    /// What was counted so far is another device's.
    pub fn forget(&mut self) {
        (self.before, self.samples) = (None, VecDeque::new());
    }

    /// How long ago the last good answer came; `None` before the first.
    pub fn age(&self, now: Instant) -> Option<Span> {
        Some(now.saturating_since(self.heard?))
    }

    /// The external load in bytes a second; `None` while nobody knows: the sensor is stale, or has not
    /// answered twice yet.
    pub fn get(&self, now: Instant, direction: Direction) -> Option<u64> {
        let is_fresh = self.age(now)? <= STALE_AFTER;
        let passed: u128 = self.samples.iter().map(|sample| u128::from(sample.passed.as_nanos())).sum();
        let sum = |of: fn(&Sample) -> DeviceBytes| -> u128 {
            self.samples.iter().map(|sample| u128::from(of(sample).get(direction))).sum()
        };
        let external = sum(|sample| sample.device).saturating_sub(sum(|sample| sample.ours));
        let rate = (external * NANOS).checked_div(passed).filter(|_| is_fresh)?;
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    fn begin(&mut self, totals: Totals) {
        self.forget();
        self.before = Some(totals);
    }
}

/// Nanoseconds of a second.
const NANOS: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MB: u64 = 1_000_000;

    fn at(millis: u64) -> Instant {
        Instant::ORIGIN + Span::from_millis(millis)
    }

    /// So many megabytes written and none read.
    fn written(megabytes: u64) -> DeviceBytes {
        DeviceBytes { read: 0, written: megabytes * MB }
    }

    /// What is known after these answers: milliseconds, and megabytes written by the device and by transfers.
    fn after(answers: &[(u64, u64, u64)]) -> ExternalLoad {
        let mut load = ExternalLoad::default();
        for (millis, device, ours) in answers {
            load.answered(at(*millis), written(*device), written(*ours));
        }
        load
    }

    fn megabytes(load: &ExternalLoad, millis: u64) -> Option<u64> {
        load.get(at(millis), Direction::Write).map(|rate| rate / MB)
    }

    #[test]
    fn what_the_device_does_beside_the_transfers_is_external_and_each_direction_has_its_own() {
        let load = after(&[(0, 1000, 50), (1000, 1170, 70), (2000, 1340, 90)]);
        assert_eq!(megabytes(&load, 2000), Some(150));
        assert_eq!(load.get(at(2000), Direction::Read), Some(0));
        let faster = after(&[(0, 0, 0), (1000, 20, 100)]);
        assert_eq!(megabytes(&faster, 1000), Some(0), "some of it is in the node's memory yet");
    }

    #[test]
    fn what_the_device_writes_a_second_later_than_the_transfers_is_nobody_elses() {
        let load = after(&[(0, 0, 0), (1000, 0, 100), (2000, 100, 100)]);
        assert_eq!(megabytes(&load, 2000), Some(0));
    }

    #[test]
    fn the_load_is_the_average_of_the_last_ten_samples() {
        let mut answers: Vec<_> = (0..=10).map(|second| (second * 1000, second * 100, 0)).collect();
        assert_eq!(megabytes(&after(&answers), 10_000), Some(100));
        answers.extend((11..=15).map(|second| (second * 1000, 1000, 0)));
        assert_eq!(megabytes(&after(&answers), 15_000), Some(50));
        answers.extend((16..=20).map(|second| (second * 1000, 1000, 0)));
        assert_eq!(megabytes(&after(&answers), 20_000), Some(0));
    }

    #[test]
    fn nothing_is_known_before_the_second_answer_nor_more_than_three_seconds_after_the_last() {
        let mut load = ExternalLoad::default();
        assert_eq!((load.age(at(5)), megabytes(&load, 5)), (None, None));
        load.answered(at(1000), written(10), written(0));
        assert_eq!(megabytes(&load, 1000), None);
        load.answered(at(2000), written(20), written(0));
        assert_eq!((megabytes(&load, 5000), load.age(at(5000))), (Some(10), Some(Span::from_secs(3))));
        assert_eq!(megabytes(&load, 5001), None);
        load.answered(at(9000), written(900), written(0));
        assert_eq!(megabytes(&load, 9000), None, "it begins anew");
        load.answered(at(10_000), written(905), written(0));
        assert_eq!(megabytes(&load, 10_000), Some(5));
    }

    #[test]
    fn a_counter_that_goes_backwards_and_another_device_give_no_sample() {
        let mut load = after(&[(0, 1000, 0), (1000, 1010, 0), (2000, 5, 0)]);
        assert_eq!(megabytes(&load, 2000), None);
        load.answered(at(3000), written(12), written(0));
        assert_eq!(megabytes(&load, 3000), Some(7));
        load.forget();
        load.answered(at(4000), written(900_000), written(0));
        assert_eq!(megabytes(&load, 4000), None);
    }

    #[test]
    fn an_answer_just_after_another_waits_for_the_next_sample_and_loses_no_byte() {
        let load = after(&[(0, 0, 0), (1000, 10, 0), (1100, 15, 0)]);
        assert_eq!((megabytes(&load, 1100), load.age(at(1100))), (Some(10), Some(Span::ZERO)));
        let load = after(&[(0, 0, 0), (1000, 10, 0), (1100, 15, 0), (2000, 20, 0)]);
        assert_eq!(megabytes(&load, 2000), Some(10));
    }

    proptest! {
        #[test]
        fn whatever_a_sensor_says_the_load_is_never_more_than_the_device_moved(
            answers in prop::collection::vec((0_u64..5_000, any::<u64>(), any::<u64>(), 0_u64..1 << 40), 0..40),
        ) {
            let (mut load, mut now, mut ours) = (ExternalLoad::default(), Instant::ORIGIN, 0_u64);
            for (millis, read, written, moved) in answers {
                now = now + Span::from_millis(millis);
                ours += moved;
                load.answered(now, DeviceBytes { read, written }, DeviceBytes { read: ours, written: ours });
                for direction in [Direction::Read, Direction::Write] {
                    if let Some(rate) = load.get(now, direction) {
                        let device: u128 =
                            load.samples.iter().map(|sample| u128::from(sample.device.get(direction))).sum();
                        // A sample has at least half a second.
                        prop_assert!(u128::from(rate) <= 2 * device);
                        prop_assert!(load.samples.len() <= COUNT);
                    }
                }
            }
        }
    }
}
