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
    /// How much the strain of both counts: by priority, if not all promises fit.
    pub(super) hindered_counts: f64,
    pub(super) waiting_counts: f64,
    /// The requests of all of them at the device, and in weir.
    pub(super) at_device: f64,
    pub(super) in_weir: f64,
}

impl Lines {
    pub(super) fn of(lines: &[Line]) -> Self {
        let mut all = Self::default();
        for line in lines {
            all.at_device += line.at_device;
            all.in_weir += line.waiting;
            let counts = line.close * line.priority.get();
            if line.part_at_device < 0.5 || !line.is_hindered(lines) {
                all.waiting = all.waiting.max(line.close);
                all.waiting_counts = all.waiting_counts.max(counts);
                all.need = all.need.max(line.need());
            } else if all.hindered.is_none() || counts > all.hindered_counts {
                (all.hindered, all.hindered_counts) = (Some(line.strain), counts);
            }
        }
        all
    }
}

impl Line {
    /// Whether less urgent requests of others are at the device. Two rates do not hinder one another: caps
    /// are for them.
    fn is_hindered(&self, lines: &[Self]) -> bool {
        let is_in_the_way = |other: &&Self| {
            let is_later = other.due * self.priority.get() > LATER * self.due * other.priority.get();
            is_later && (other.is_of_latency || self.is_of_latency)
        };
        let beside: f64 = lines.iter().filter(is_in_the_way).map(|other| other.at_device).sum();
        beside > BESIDE * self.at_device
    }

    fn need(&self) -> f64 {
        // A rate that is just reached needs nothing.
        let near = if self.is_of_latency { NEAR } else { AIM };
        ((self.close - near) / (1.0 - near)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A volume of this promised latency, in milliseconds, that waits at the device.
    pub(in super::super) fn line(serial: u64, limit: f64, strain: f64, at_device: f64) -> Line {
        let worst = Strain { window: strain, lately: strain, likely: strain, ..Strain::NONE };
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

    #[test]
    fn a_tight_promise_is_hindered_by_one_with_time_and_not_the_other_way_round() {
        let lines = [line(1, 50.0, 1.5, 10.0), line(2, 4_000.0, 0.1, 100.0)];
        assert!((Lines::of(&lines).hindered.unwrap().window - 1.5).abs() < 1e-9);
        let lines = [line(1, 50.0, 0.5, 10.0), line(2, 4_000.0, 1.5, 100.0)];
        assert!((Lines::of(&lines).hindered.unwrap().window - 0.5).abs() < 1e-9);
        assert!((Lines::of(&lines).waiting - 1.5).abs() < 1e-9);
    }

    #[test]
    fn two_that_are_alike_do_not_hinder_one_another_unless_one_counts_more() {
        let alike = [line(1, 50.0, 1.5, 10.0), line(2, 60.0, 1.5, 100.0)];
        assert_eq!(Lines::of(&alike).hindered, None);
        let first = Line { priority: Priority::new(4.0).unwrap(), ..alike[0] };
        assert!(Lines::of(&[first, alike[1]]).hindered.is_some());
    }

    #[test]
    fn a_few_requests_of_others_do_not_hinder() {
        let lines = [line(1, 50.0, 1.5, 100.0), line(2, 4_000.0, 0.1, 20.0)];
        assert_eq!(Lines::of(&lines).hindered, None);
    }

    #[test]
    fn two_rates_do_not_hinder_one_another() {
        let rate = |line: Line| Line { is_of_latency: false, ..line };
        let lines = [line(1, 50.0, 1.5, 10.0), line(2, 4_000.0, 0.1, 100.0)];
        assert_eq!(Lines::of(&lines.map(rate)).hindered, None);
        assert!(Lines::of(&[rate(lines[0]), lines[1]]).hindered.is_some());
    }

    #[test]
    fn a_latency_needs_more_before_it_is_missed_and_a_rate_only_then() {
        let waits = |line: Line| Line { part_at_device: 0.1, ..line };
        let latency = waits(line(1, 50.0, 0.8, 10.0));
        assert!((Lines::of(&[latency]).need - 0.5).abs() < 1e-9);
        assert!(Lines::of(&[Line { is_of_latency: false, ..latency }]).need.abs() < 1e-9);
    }
}
