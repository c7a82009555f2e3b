//! Whose the device's time is, while volumes have requests there at the same time.
//!
//! Nobody but the device knows on whose request it works. So its time is shared out evenly: while `n`
//! requests are there, each is charged one part in `n` of the time that passes. Over a while, that is what a
//! device with one queue spends on each request. Example: a volume with 3 of 4 requests at the device is
//! charged 30 ms of 40.
//!
//! A clock goes at `1/n` of the speed of time. A volume is charged what the clock has advanced, times its
//! requests. So no request needs a time stamp of its own.

use weir_model::{Instant, Priority, Span};

/// Parts of a nanosecond. With the number of requests that share the device, nanoseconds would be too coarse.
const PARTS: u64 = 1 << 10;
/// Longer than this cannot be counted in parts: some 200 days.
const LONGEST: u64 = (1 << 54) - 1;
/// The least weight, in [`PARTS`]: a priority of 0.01.
const LEAST: f64 = 10.0;

/// The clock of the requests that share the device.
#[derive(Debug)]
pub(crate) struct SharedClock {
    now: u64,
    at: Instant,
    /// How many requests share the device.
    pub(crate) sharing: u32,
}

impl SharedClock {
    /// A clock that nobody shares.
    pub(crate) const fn new() -> Self {
        Self { now: 0, at: Instant::ORIGIN, sharing: 0 }
    }

    /// Begins to go: the time before does not count.
    pub(crate) const fn start(&mut self, now: Instant) {
        self.at = now;
    }

    /// What it says while turns go by requests.
    pub(crate) const fn stopped_at(&self) -> u64 {
        self.now
    }

    /// The part of a volume in the time of so many requests. `share`: what the clock has advanced, times the
    /// requests of the volume at the device.
    pub(crate) const fn part_of(share: u64, requests: u64) -> Span {
        Span::from_nanos(share.saturating_mul(requests) / PARTS)
    }

    /// Reads it while it goes. Call this before the number of requests changes.
    pub(crate) fn read(&mut self, now: Instant) -> u64 {
        let passed = now.since(self.at).as_nanos().min(LONGEST);
        self.at = now;
        if self.sharing > 0 {
            self.now = self.now.wrapping_add(passed * PARTS / u64::from(self.sharing));
        }
        self.now
    }
}

/// How much of the device's time a volume has had, by its priority.
#[derive(Debug)]
pub(crate) struct Account {
    /// What the clock said when it was charged last.
    settled: u64,
    /// In [`PARTS`].
    weight: u64,
}

impl Account {
    /// Nothing was had yet.
    pub(crate) fn new(priority: Priority) -> Self {
        Self { settled: 0, weight: weight(priority) }
    }

    /// Another priority, from now on.
    pub(crate) fn set_priority(&mut self, priority: Priority) {
        self.weight = weight(priority);
    }

    /// What is to be charged, in nanoseconds of a volume of priority 1, if the volume had so many requests at
    /// the device since it was charged last.
    pub(crate) const fn settle(&mut self, clock: u64, requests: u32) -> u64 {
        let passed = clock.wrapping_sub(self.settled);
        self.settled = clock;
        passed.saturating_mul(requests as u64) / self.weight
    }

    /// The same for a volume that had the device for itself, for so many nanoseconds.
    pub(crate) const fn charge(&self, nanos: u64) -> u64 {
        nanos.saturating_mul(PARTS) / self.weight
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // it saturates
fn weight(priority: Priority) -> u64 {
    (priority.get() * PARTS as f64).max(LEAST) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn account(priority: f64) -> Account {
        Account::new(Priority::new(priority).unwrap())
    }

    #[test]
    fn a_volume_with_three_of_four_requests_is_charged_three_quarters_of_the_time() {
        let (mut clock, mut three, mut one) = (SharedClock::new(), account(1.0), account(1.0));
        clock.sharing = 4;
        let read = clock.read(ms(40));
        assert_eq!([three.settle(read, 3), one.settle(read, 1)], [30_000_000, 10_000_000]);
        let again = clock.read(ms(40));
        assert_eq!(three.settle(again, 3), 0, "no time has passed");
    }

    #[test]
    fn four_times_the_priority_is_charged_a_quarter() {
        let (mut clock, mut account) = (SharedClock::new(), account(4.0));
        clock.sharing = 1;
        let read = clock.read(ms(40));
        assert_eq!(account.settle(read, 1), 10_000_000);
        assert_eq!(account.charge(40_000_000), 10_000_000);
    }

    #[test]
    fn while_nobody_shares_the_device_nothing_is_charged() {
        let (mut clock, mut account) = (SharedClock::new(), account(1.0));
        let read = clock.read(ms(40));
        assert_eq!(account.settle(read, 1), 0);
    }
}
