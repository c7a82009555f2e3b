//! The law on a device that is a formula.

mod several;

use proptest::prelude::*;
use weir_model::{Iops, Percentile};

use super::*;

/// A promised volume of 200 reads a second, beside background volumes that always have requests waiting. Each
/// background request at the device makes a read take longer.
struct Plant {
    law: Promises,
    now: Instant,
    /// How long a read takes alone, and how much longer for each background request, in seconds.
    alone: f64,
    each: f64,
    /// How many requests background volumes would have at the device.
    wanted: u32,
    /// Until when the device does what it was given before, so that reads take ten times as long.
    in_debt_until: Instant,
    is_silent: bool,
}

const LIMIT: Span = Span::from_millis(10);
const READS: u32 = 10;

impl Plant {
    fn new(alone: f64, each: f64, wanted: u32) -> Self {
        Self {
            law: Promises::default(),
            now: Instant::ORIGIN,
            alone,
            each,
            wanted,
            in_debt_until: Instant::ORIGIN,
            is_silent: false,
        }
    }

    /// How many background requests are at the device, on average.
    fn background(&self) -> f64 {
        let wanted = f64::from(self.wanted);
        match self.law.allowance(self.now) {
            Allowance::Free => wanted,
            Allowance::Requests { most, .. } => wanted.min(f64::from(most)),
            Allowance::Share { share, .. } => wanted.min(share),
        }
    }

    /// How long a read takes, in seconds.
    fn latency(&self) -> f64 {
        let debt = if self.now < self.in_debt_until { 10.0 } else { 1.0 };
        debt * (self.alone + self.each * self.background())
    }

    /// Lets a period pass, and returns the latency in it as a part of the promised one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some requests
    fn period(&mut self) -> f64 {
        self.now = self.now + PERIOD;
        let (latency, background) = (self.latency(), self.background());
        let spent = |reads: u32| Span::from_secs_f64(f64::from(reads) * latency);
        let window = |arrived| WindowSeen { arrived, outstanding: 0, spent: spent(arrived) };
        let reads = if self.is_silent { 0 } else { READS };
        let promised = PromisedObservation {
            serial: 1,
            target: Some(Target::Latency(LIMIT)),
            spent: spent(reads),
            busy: spent(reads).min(PERIOD),
            arrived: reads,
            answered: reads,
            outstanding: reads / 10,
            current: window(reads * 10),
            previous: window(reads * 20),
            at_device_for: spent(reads),
            finished: reads,
            ended: self.now.as_nanos().is_multiple_of(1_000_000_000).then(|| window(reads * 20)),
            ..PromisedObservation::default()
        };
        let at_device = background.ceil() as u32;
        let others = PromisedObservation {
            serial: 2,
            arrived: 50,
            answered: (background * 5.0) as u32,
            outstanding: self.wanted,
            at_device,
            ..PromisedObservation::default()
        };
        let seen = PromiseObservation {
            volumes: vec![promised, others],
            background_peak: at_device,
            background_at_device: at_device,
        };
        self.law.step(self.now, &seen);
        latency / LIMIT.as_secs_f64()
    }

    fn seconds(&mut self, seconds: u32) -> Vec<f64> {
        (0..seconds * 20).map(|_| self.period()).collect()
    }
}

fn missed(strains: &[f64]) -> usize {
    strains.iter().filter(|strain| **strain > 1.0).count()
}

#[test]
fn a_promise_that_is_kept_holds_nobody_back() {
    let mut plant = Plant::new(0.004, 0.000_05, 60);
    plant.seconds(60);
    assert!(plant.background() > 59.0, "{}", plant.background());
}

#[test]
fn a_pool_without_a_promise_has_no_bound() {
    let mut law = Promises::default();
    let volumes = vec![PromisedObservation { outstanding: 9, ..PromisedObservation::default() }];
    let seen = PromiseObservation { volumes, background_peak: 9, background_at_device: 9 };
    assert_eq!(law.step(Instant::ORIGIN, &seen), Allowance::Free);
}

#[test]
fn a_promise_is_kept_again_after_a_second_and_then_stays_kept() {
    // 4 ms alone and 1 ms for each of 60: up to 6 of them are no harm.
    let mut plant = Plant::new(0.004, 0.001, 60);
    let first = plant.seconds(3);
    assert_eq!(missed(&first[20..]), 0, "{first:?}");
    assert_eq!(missed(&plant.seconds(120)), 0);
    assert!(plant.background() >= 4.0, "{} of the 6 that would do no harm", plant.background());
}

#[test]
fn a_bound_below_one_request_is_a_share_of_time() {
    // One background request all the time takes too long.
    let mut plant = Plant::new(0.008, 0.008, 4);
    plant.seconds(60);
    assert!(matches!(plant.law.allowance(plant.now), Allowance::Share { .. }), "{:?}", plant.law);
    assert!(missed(&plant.seconds(20)) == 0);
    assert!(plant.background() > 0.05, "{}", plant.background());
}

#[test]
fn a_bound_that_nobody_reaches_is_given_up() {
    let mut plant = Plant::new(0.004, 0.001, 60);
    plant.seconds(10);
    assert!(plant.law.guard.bound().is_some());
    plant.wanted = 1;
    plant.seconds(30);
    assert_eq!(plant.law.guard.bound(), None);
}

#[test]
fn while_a_device_does_what_it_was_given_before_almost_nothing_is_added() {
    let mut plant = Plant::new(0.004, 0.000_1, 60);
    plant.seconds(5);
    plant.in_debt_until = plant.now + Span::from_secs(40);
    plant.seconds(10);
    assert!(plant.background() < 0.01, "{}", plant.background());
    plant.seconds(40);
    assert!(missed(&plant.seconds(1)) == 0 && plant.background() > 0.01, "{}", plant.background());
}

#[test]
fn once_a_cache_was_full_the_bound_may_be_far_below_a_sixteenth() {
    let mut plant = Plant::new(0.004, 0.000_1, 60);
    plant.seconds(5);
    plant.in_debt_until = plant.now + Span::from_secs(20);
    plant.seconds(30);
    // A sixteenth of the time would take 15 ms.
    plant.each = 0.24;
    plant.seconds(60);
    assert_eq!(missed(&plant.seconds(20)), 0);
    assert!(plant.background() < 0.03, "{}", plant.background());
}

#[test]
fn in_a_short_silence_one_request_is_at_the_device_whatever_came_after_the_last_ones() {
    let mut plant = Plant::new(0.008, 0.008, 4);
    plant.seconds(60);
    assert!(plant.background() < 1.0, "{}", plant.background());
    for _ in 0..20 {
        plant.is_silent = true;
        plant.seconds(2);
        plant.is_silent = false;
        plant.in_debt_until = plant.now + Span::from_secs(3);
        plant.seconds(4);
    }
    plant.is_silent = true;
    plant.seconds(2);
    assert!((1.0..2.0).contains(&plant.background()), "{}", plant.background());
}

#[test]
fn in_a_long_silence_the_device_is_there_for_all_others() {
    let mut plant = Plant::new(0.004, 0.001, 60);
    plant.seconds(20);
    plant.is_silent = true;
    plant.seconds(2);
    assert!(plant.background() > 59.0, "{}", plant.background());
    plant.law.on_request(plant.now, 1);
    assert!(plant.background() < 10.0, "the bound is back before the first request is dispatched");
}

#[test]
fn the_volume_that_is_worst_off_is_named() {
    let mut law = Promises::default();
    let volume = |serial, limit| PromisedObservation {
        serial,
        target: Some(Target::Latency(limit)),
        arrived: 10,
        answered: 10,
        spent: Span::from_millis(50),
        busy: PERIOD,
        ..PromisedObservation::default()
    };
    let volumes = vec![volume(7, Span::from_millis(20)), volume(8, Span::from_millis(10))];
    law.step(Instant::ORIGIN, &PromiseObservation { volumes, background_peak: 0, background_at_device: 0 });
    assert_eq!(law.worst().and_then(|worst| worst.serial), Some(8));
}

/// A volume of a random target, of which random things were seen.
fn volume() -> impl Strategy<Value = PromisedObservation> {
    let percentile = Percentile::from_tenths(990).unwrap();
    let target = prop_oneof![
        Just(None),
        (1_u64..1_000_000_000).prop_map(|limit| Some(Target::Latency(Span::from_nanos(limit)))),
        (1_u64..1_000_000_000)
            .prop_map(move |limit| Some(Target::Percentile(percentile, Span::from_nanos(limit)))),
        (0.001..1e6).prop_map(|rate| Iops::new(rate).map(Target::Rate)),
    ];
    let window =
        (any::<u16>(), any::<u16>(), any::<u32>()).prop_map(|(arrived, outstanding, spent)| WindowSeen {
            arrived: u32::from(arrived),
            outstanding: u32::from(outstanding.min(arrived)),
            spent: Span::from_micros(u64::from(spent)),
        });
    let counts = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), any::<i16>(), any::<u16>());
    (0_u64..3, target, counts, window).prop_map(|(serial, target, counts, window)| {
        let (spent, busy, arrived, answered, late, outstanding) = counts;
        PromisedObservation {
            serial,
            target,
            spent: Span::from_nanos(u64::from(spent)),
            busy: Span::from_nanos(u64::from(busy)).min(PERIOD),
            arrived: u32::from(arrived),
            answered: u32::from(answered),
            late: i32::from(late),
            outstanding: u32::from(outstanding),
            at_device: u32::from(outstanding / 2),
            current: window,
            previous: window,
            ended: (late > 0).then_some(window),
            finished: u32::from(answered),
            ..PromisedObservation::default()
        }
    })
}

proptest! {
    #[test]
    fn whatever_is_seen_background_volumes_may_do_something(
        seen in prop::collection::vec((prop::collection::vec(volume(), 0..4), any::<u16>()), 1..60),
    ) {
        let (mut law, mut now) = (Promises::default(), Instant::ORIGIN);
        for (volumes, peak) in seen {
            now = now + PERIOD;
            let is_promised = volumes.iter().any(|volume| volume.target.is_some());
            let seen = PromiseObservation { volumes, background_peak: u32::from(peak), background_at_device: u32::from(peak) };
            match law.step(now, &seen) {
                Allowance::Free => prop_assert!(!is_promised),
                Allowance::Requests { most, .. } => prop_assert!(most >= 1),
                Allowance::Share { share, .. } => prop_assert!(share > 1e-9 && share <= 0.5),
            }
            prop_assert!(law.covered().all(|(_, times)| times.is_none_or(|times| times > 0.0)));
        }
    }
}
