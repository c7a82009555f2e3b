//! The promised volumes of one period, side by side: which one is in danger, and because of what.

use weir_model::Priority;

use super::strain::{AIM, Strain};

/// A volume is hindered by others only if these have so many requests at the device for each of its own.
const BESIDE: f64 = 0.25;
/// Requests that are due so many times as long after they came are less urgent. Between two that are alike,
/// an order changes nothing.
const LATER: f64 = 1.5;
/// A latency needs more at the device from this strain on, if its requests wait in weir. The wait of those
/// that come now is known only later.
const NEAR: f64 = 0.6;
/// Requests wait at the device, and not in weir, if they are there for this part of their time.
const MOSTLY: f64 = 0.5;

/// A promised volume that had a request of late.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Line {
    /// The number of the volume.
    pub(super) serial: u64,
    /// How close it is to missing its promise.
    pub(super) strain: Strain,
    /// The same, without the distance that is kept from the limit of a percentile.
    pub(super) close: f64,
    /// Whether it is promised a latency, and not a rate.
    pub(super) is_of_latency: bool,
    /// How much its shortfall counts.
    pub(super) priority: Priority,
    /// How long after they came its requests are due, in seconds.
    pub(super) due: f64,
    /// The part of the time of its requests for which these were at the device of late.
    pub(super) part_at_device: f64,
    /// Its requests at the device, and in weir.
    pub(super) at_device: f64,
    pub(super) waiting: f64,
}

/// What all promised volumes had.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Lines {
    /// The worst strain of those that wait mostly at the device, for less urgent requests of others; `None`:
    /// there are none.
    pub(super) hindered: Option<Strain>,
    /// The worst strain of all others, and how much they need more at the device: 0 to 1.
    pub(super) waiting: f64,
    pub(super) need: f64,
    /// How much both count, by priority. Those at the device count as if they only came into danger, however
    /// much they miss: a promise that nothing can keep would break one that can be kept.
    pub(super) hindered_counts: f64,
    pub(super) waiting_counts: f64,
    /// The requests of all of them at the device, and in weir.
    pub(super) at_device: f64,
    pub(super) in_weir: f64,
}

/// The requests at the device by how urgent they are, so that a period of a thousand volumes does not compare
/// each with each. Kept from period to period, so that no period allocates.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Urgencies(Vec<Urgency>);

/// Requests that are this urgent, or less.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Urgency {
    /// The time after which they are due, less for a high priority.
    due: f64,
    /// All of them, and those that are promised a latency.
    all: f64,
    of_latencies: f64,
}

impl Urgencies {
    /// What all promised volumes had.
    pub(super) fn weigh(&mut self, lines: &[Line]) -> Lines {
        self.sort(lines);
        let mut all = Lines::default();
        for line in lines {
            all.at_device += line.at_device;
            all.in_weir += line.waiting;
            let priority = line.priority.get();
            if line.part_at_device >= MOSTLY && self.hinder(line) {
                all.hindered = Some(all.hindered.map_or(line.strain, |worst| worst.worse(line.strain)));
                all.hindered_counts = all.hindered_counts.max(NEAR * priority);
            } else {
                all.waiting = all.waiting.max(line.close);
                all.waiting_counts = all.waiting_counts.max(line.danger() * priority);
                all.need = all.need.max(line.need());
            }
        }
        all
    }

    /// Takes in what is at the device, the most urgent first.
    fn sort(&mut self, lines: &[Line]) {
        self.0.clear();
        self.0.extend(lines.iter().map(Line::urgency));
        self.0.sort_unstable_by(|one, other| one.due.total_cmp(&other.due));
        let (mut all, mut of_latencies) = (0.0, 0.0);
        for urgency in self.0.iter_mut().rev() {
            all += urgency.all;
            of_latencies += urgency.of_latencies;
            (urgency.all, urgency.of_latencies) = (all, of_latencies);
        }
    }

    /// Whether less urgent requests of others are at the device. Two rates do not hinder one another: caps
    /// are for them.
    fn hinder(&self, line: &Line) -> bool {
        let later = LATER * line.urgency().due;
        let least = self.0.partition_point(|urgency| urgency.due <= later);
        let in_the_way = |beside: &Urgency| if line.is_of_latency { beside.all } else { beside.of_latencies };
        self.0.get(least).map_or(0.0, in_the_way) > BESIDE * line.at_device
    }
}

impl Line {
    fn urgency(&self) -> Urgency {
        Urgency {
            due: self.due / self.priority.get(),
            all: self.at_device,
            of_latencies: if self.is_of_latency { self.at_device } else { 0.0 },
        }
    }

    /// How much it needs more at the device, if its requests wait in weir: 0 to 1.
    fn need(&self) -> f64 {
        ((self.danger() - NEAR) / (1.0 - NEAR)).clamp(0.0, 1.0)
    }

    /// How close it is to missing its promise, if its requests wait in weir. A rate that is just reached is
    /// in no danger.
    fn danger(&self) -> f64 {
        if self.is_of_latency || self.close > 1.0 {
            return self.close;
        }
        if self.close < AIM {
            return self.close * NEAR / AIM;
        }
        NEAR + (1.0 - NEAR) * (self.close - AIM) / (1.0 - AIM)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A volume of this promised latency, in milliseconds, that waits at the device.
    pub(in super::super) fn line(serial: u64, limit: f64, strain: f64, at_device: f64) -> Line {
        let worst = Strain { window: strain, lately: strain, likely: strain, latency: 0.0, service: 0.0 };
        Line {
            serial,
            strain: worst,
            close: strain,
            is_of_latency: true,
            priority: Priority::ONE,
            due: limit / 1e3,
            part_at_device: 1.0,
            at_device,
            waiting: 0.0,
        }
    }

    fn weigh(lines: &[Line]) -> Lines {
        Urgencies::default().weigh(lines)
    }

    #[test]
    fn a_tight_promise_is_hindered_by_one_with_time_and_not_the_other_way_round() {
        let lines = [line(1, 50.0, 1.5, 10.0), line(2, 4_000.0, 0.1, 100.0)];
        assert!((weigh(&lines).hindered.unwrap().window - 1.5).abs() < 1e-9);
        let lines = [line(1, 50.0, 0.5, 10.0), line(2, 4_000.0, 1.5, 100.0)];
        assert!((weigh(&lines).hindered.unwrap().window - 0.5).abs() < 1e-9);
        assert!((weigh(&lines).waiting - 1.5).abs() < 1e-9);
    }

    #[test]
    fn two_that_are_alike_do_not_hinder_one_another_unless_one_counts_more() {
        let alike = [line(1, 50.0, 1.5, 10.0), line(2, 60.0, 1.5, 100.0)];
        assert_eq!(weigh(&alike).hindered, None);
        let first = Line { priority: Priority::new(4.0).unwrap(), ..alike[0] };
        assert!(weigh(&[first, alike[1]]).hindered.is_some());
    }

    #[test]
    fn a_few_requests_of_others_do_not_hinder() {
        let lines = [line(1, 50.0, 1.5, 100.0), line(2, 4_000.0, 0.1, 20.0)];
        assert_eq!(weigh(&lines).hindered, None);
    }

    #[test]
    fn two_rates_do_not_hinder_one_another() {
        let rate = |line: Line| Line { is_of_latency: false, ..line };
        let lines = [line(1, 50.0, 1.5, 10.0), line(2, 4_000.0, 0.1, 100.0)];
        assert_eq!(weigh(&lines.map(rate)).hindered, None);
        assert!(weigh(&[rate(lines[0]), lines[1]]).hindered.is_some());
    }

    #[test]
    fn a_latency_needs_more_before_it_is_missed_and_a_rate_only_then() {
        let waits = |line: Line| Line { part_at_device: 0.1, ..line };
        let latency = waits(line(1, 50.0, 0.8, 10.0));
        assert!((weigh(&[latency]).need - 0.5).abs() < 1e-9);
        assert!(weigh(&[Line { is_of_latency: false, ..latency }]).need.abs() < 1e-9);
    }
}
