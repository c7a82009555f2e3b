//! The law on observations made up by hand, and on a plant that is one formula.

mod literal;

use weir_model::{Iops, Offered, SloPoint};

use super::*;

/// What the law aims at for [`TARGET`], with a growth of 0.1.
const AIM: Span = Span::from_millis(10);
/// With a nanosecond for rounding.
const TARGET: Span = Span::from_nanos(11_000_001);

fn slo(up_to: f64, latency: Span) -> Arc<Slo> {
    let up_to = Iops::new(up_to).unwrap();
    Arc::new(Slo::new(vec![SloPoint { up_to, read: latency, write: latency }]).unwrap())
}

/// A volume within its promise whose answers took `latency`, all of it at the device.
fn promised(latency: Option<Span>) -> VolumeObservation {
    VolumeObservation {
        slo: Some(slo(200.0, TARGET)),
        offered: Offered { reads: 100, writes: 0, over: Span::from_secs(1) }.into(),
        arrived: Offered { reads: 5, writes: 0, over: Span::from_millis(50) },
        read_fraction: Some(1.0),
        answered: latency.map(at_device),
        oldest: None,
        at_device: latency,
        is_active: true,
    }
}

const fn at_device(total: Span) -> Latency {
    Latency { total, at_device: total }
}

fn pool(peak: u32, volumes: Vec<VolumeObservation>) -> PoolObservation {
    PoolObservation { peak, beside_finished: f64::from(peak), volumes: with_another(volumes) }
}

/// Adds a volume without a promise, because the law cuts for no volume that is alone.
fn with_another(mut volumes: Vec<VolumeObservation>) -> Vec<VolumeObservation> {
    let spent = volumes.iter().filter_map(|volume| volume.answered).map(|latency| latency.at_device).min();
    let background = VolumeObservation { slo: None, ..promised(Some(spent.unwrap_or_default())) };
    volumes.push(background);
    volumes
}

/// The end of a control period.
const fn tick(number: u64) -> Instant {
    Instant::from_nanos(number * 50_000_000)
}

fn law_at(depth: u32) -> DepthFeedback {
    let initial_depth = QueueDepth::new(depth);
    DepthFeedback::new(DepthFeedbackConfig { initial_depth, ..DepthFeedbackConfig::default() })
}

fn depth_after(depth: u32, seen: &PoolObservation) -> u32 {
    law_at(depth).step(Instant::ORIGIN, seen).depth.get()
}

#[test]
fn a_latency_of_twice_the_target_halves_the_depth() {
    assert_eq!(depth_after(200, &pool(200, vec![promised(Some(Span::from_millis(20)))])), 100);
}

#[test]
fn the_volume_that_is_worst_off_decides() {
    let late = |ms| promised(Some(Span::from_millis(ms)));
    assert_eq!(depth_after(200, &pool(200, vec![late(5), late(40), late(20)])), 50);
}

#[test]
fn a_depth_that_was_reached_and_did_no_harm_grows_by_a_tenth() {
    assert_eq!(depth_after(100, &pool(100, vec![promised(Some(Span::from_millis(5)))])), 110);
    assert_eq!(depth_after(100, &pool(130, vec![promised(Some(Span::from_millis(5)))])), 110, "past due");
}

#[test]
fn a_depth_that_was_not_reached_stays() {
    assert_eq!(depth_after(100, &pool(99, vec![promised(Some(Span::from_millis(5)))])), 100);
}

#[test]
fn a_depth_rests_where_growth_would_break_the_target() {
    assert_eq!(depth_after(100, &pool(100, vec![promised(Some(Span::from_micros(9_500)))])), 100);
}

#[test]
fn a_volume_that_completes_nothing_counts_with_the_age_of_its_oldest_request() {
    let hanging = VolumeObservation { oldest: Some(at_device(Span::from_millis(100))), ..promised(None) };
    assert_eq!(depth_after(200, &pool(200, vec![hanging])), 20);
    let just_begun = VolumeObservation { oldest: Some(at_device(Span::from_millis(1))), ..promised(None) };
    assert_eq!(depth_after(200, &pool(200, vec![just_begun])), 220);
}

#[test]
fn a_volume_that_has_just_begun_counts_with_what_others_spend_at_the_device() {
    let begun = VolumeObservation { oldest: Some(at_device(Span::from_millis(1))), ..promised(None) };
    let other = |spent| VolumeObservation { slo: None, ..promised(Some(spent)) };
    assert_eq!(depth_after(200, &pool(200, vec![begun.clone(), other(Span::from_millis(100))])), 20);
    assert_eq!(depth_after(200, &pool(200, vec![begun, other(Span::from_millis(2))])), 220);
}

#[test]
fn a_volume_that_waits_mostly_elsewhere_asks_for_no_cut() {
    let waited = |at_device| VolumeObservation {
        answered: Some(Latency { total: Span::from_millis(40), at_device: Span::from_millis(at_device) }),
        ..promised(None)
    };
    assert_eq!(depth_after(200, &pool(200, vec![waited(20)])), 50);
    assert_eq!(depth_after(200, &pool(200, vec![waited(19)])), 220);
    let held = Latency { total: Span::from_secs(1), at_device: Span::ZERO };
    let held = VolumeObservation { oldest: Some(held), ..promised(None) };
    assert_eq!(depth_after(200, &pool(200, vec![held])), 220);
}

#[test]
fn a_latency_is_held_against_what_was_at_the_device_with_it_and_not_against_what_is_there_now() {
    let took = |ms, beside_finished, peak| PoolObservation {
        beside_finished,
        ..pool(peak, vec![promised(Some(Span::from_millis(ms)))])
    };
    let mut law = law_at(4096);
    // The depth was not felt: the first cut starts from what was at the device, and lands at the aim.
    assert_eq!(law.step(tick(0), &took(20, 50.0, 90)).depth.get(), 25);
    // The device drains, and the requests that are answered came when it was full: no cut is made twice.
    for (number, (ms, beside, peak)) in (1..).zip([(40, 100.0, 90), (30, 75.0, 70), (20, 50.0, 50)]) {
        assert_eq!(law.step(tick(number), &took(ms, beside, peak)).depth.get(), 25);
    }
}

#[test]
fn a_depth_that_is_passed_by_what_is_past_due_is_cut_until_the_promise_is_met() {
    let mut law = law_at(5);
    // 25 requests of the promise passed the depth. A cut of all 30 in proportion would leave a depth of 12,
    // which the 5 others would not feel.
    let missed =
        PoolObservation { beside_finished: 30.0, ..pool(30, vec![promised(Some(Span::from_millis(25)))]) };
    let depths: Vec<u32> = (0..5).map(|number| law.step(tick(number), &missed).depth.get()).collect();
    assert_eq!(depths, [2, 2, 1, 1, 1], "again when what is answered has met the cut before");
}

#[test]
fn a_depth_grows_no_more_until_what_the_growth_let_in_is_answered() {
    let mut law = law_at(10);
    let slow = VolumeObservation { slo: None, ..promised(Some(Span::from_millis(130))) };
    let seen = |peak| PoolObservation {
        peak,
        beside_finished: f64::from(peak),
        volumes: vec![promised(Some(Span::from_millis(1))), slow.clone()],
    };
    let depths: Vec<u32> = (0..7).map(|number| law.step(tick(number), &seen(20)).depth.get()).collect();
    assert_eq!(depths, [11, 11, 11, 12, 12, 12, 13]);
}

#[test]
fn a_device_that_finishes_nothing_is_judged_by_what_it_has() {
    let hanging = VolumeObservation { oldest: Some(at_device(Span::from_millis(20))), ..promised(None) };
    let seen = PoolObservation { beside_finished: 0.0, ..pool(200, vec![hanging]) };
    assert_eq!(depth_after(200, &seen), 100);
}

#[test]
fn a_request_that_waited_for_nobody_asks_for_no_cut() {
    assert_eq!(depth_after(200, &pool(1, vec![promised(Some(Span::from_millis(30)))])), 200);
}

#[test]
fn a_volume_that_is_alone_is_not_held_back_for_its_own_sake() {
    let alone = PoolObservation {
        peak: 200,
        beside_finished: 200.0,
        volumes: vec![promised(Some(Span::from_secs(1))), VolumeObservation::default()],
    };
    assert_eq!(depth_after(200, &alone), 220);
}

#[test]
fn a_volume_beside_one_that_neither_reads_nor_writes_is_not_alone() {
    let flushes = VolumeObservation { is_active: true, ..VolumeObservation::default() };
    let seen = PoolObservation {
        peak: 200,
        beside_finished: 200.0,
        volumes: vec![promised(Some(Span::from_millis(20))), flushes],
    };
    assert_eq!(depth_after(200, &seen), 100);
}

#[test]
fn volumes_without_a_promise_or_beyond_it_or_silent_take_no_part() {
    let slow = Some(Span::from_secs(1));
    let unpromised = VolumeObservation { slo: None, ..promised(slow) };
    let beyond = VolumeObservation {
        offered: Offered { reads: 400, writes: 0, over: Span::from_secs(1) }.into(),
        ..promised(slow)
    };
    let seen = pool(200, vec![unpromised, beyond, promised(None)]);
    let setting = law_at(200).step(Instant::ORIGIN, &seen);
    assert_eq!(setting.depth.get(), 220);
    assert_eq!(setting.latency_targets, [None, None, Some(TARGET), None]);
}

#[test]
fn a_request_is_due_at_the_device_in_time_to_be_answered_within_its_target() {
    let due = |took: Option<Span>| {
        law_at(10).step(Instant::ORIGIN, &pool(1, vec![promised(took)])).due_at_device[0]
    };
    assert_eq!(due(None), Some(TARGET), "before anything is known: the paper's deadline");
    assert_eq!(due(Some(Span::from_millis(2))), Some(Span::from_nanos(7_000_001)), "11 ms less twice 2 ms");
    assert_eq!(due(Some(TARGET)), Some(Span::ZERO), "no time to lose");
}

#[test]
fn the_depth_leaves_its_floor_again() {
    let mut law = law_at(1);
    let fine = pool(1, vec![promised(Some(Span::from_millis(1)))]);
    let depths: Vec<u32> = (0..9).map(|number| law.step(tick(number), &fine).depth.get()).collect();
    assert_eq!(depths, [1, 1, 1, 1, 1, 1, 1, 2, 2]);
}

#[test]
fn before_the_first_arrival_the_tighter_promise_holds() {
    let up_to = Iops::new(100.0).unwrap();
    let (read, write) = (Span::from_millis(20), Span::from_millis(5));
    let slo = Some(Arc::new(Slo::new(vec![SloPoint { up_to, read, write }]).unwrap()));
    assert_eq!(VolumeObservation { slo, ..VolumeObservation::default() }.latency_target(), Some(write));
}

/// The latency at a station of 8 servers of 5 ms that is kept busy with `depth` requests.
fn station_latency(depth: u32) -> Span {
    Span::from_micros(5_000 * u64::from(depth.max(8)) / 8)
}

#[test]
fn a_steady_plant_comes_to_rest_below_the_target_from_above_and_from_below() {
    for start in [1, 8, 200, 4096] {
        let mut law = law_at(start);
        let mut depths = Vec::new();
        for number in 0..100 {
            let depth = law.depth().get();
            law.step(tick(number), &pool(depth, vec![promised(Some(station_latency(depth)))]));
            depths.push(law.depth().get());
        }
        let rest = depths[99];
        assert!(depths[90..].iter().all(|depth| *depth == rest), "does not rest: {depths:?}");
        assert!(station_latency(rest) <= AIM && rest >= 13, "rests at {rest}");
    }
}

#[test]
fn the_trace_of_a_cut_and_a_recovery_reads_as_the_equations_say() {
    let mut law = law_at(200);
    let latencies = (0..).zip([50_000, 12_000, 9_900, 8_000, 8_000, 9_500]);
    let trace: Vec<u32> = latencies
        .map(|(number, micros)| {
            let seen = pool(law.depth().get(), vec![promised(Some(Span::from_micros(micros)))]);
            law.step(tick(number), &seen).depth.get()
        })
        .collect();
    assert_eq!(trace, [40, 33, 33, 36, 40, 40]);
}

mod conformance {
    //! The properties that every law must have.

    use proptest::prelude::*;

    use super::*;

    fn anything() -> impl Strategy<Value = PoolObservation> {
        let span = || (0u64..2_000_000_000).prop_map(Span::from_nanos);
        let latency = || {
            prop::option::of(
                (span(), span()).prop_map(|(a, b)| Latency { total: a.max(b), at_device: a.min(b) }),
            )
        };
        let volume = (latency(), latency(), 0u64..400).prop_map(|(answered, oldest, reads)| {
            let offered = Offered { reads, writes: 0, over: Span::from_secs(1) }.into();
            VolumeObservation { offered, answered, oldest, ..promised(None) }
        });
        (0u32..10_000, prop::collection::vec(volume, 0..4)).prop_map(|(peak, volumes)| pool(peak, volumes))
    }

    proptest! {
        #[test]
        fn the_output_is_bounded_whatever_was_seen(seen in prop::collection::vec(anything(), 1..200)) {
            let mut law = law_at(200);
            for (number, observation) in (0..).zip(&seen) {
                let setting = law.step(tick(number), observation);
                prop_assert!(setting.depth <= DepthFeedbackConfig::default().max_depth);
                prop_assert_eq!(setting.latency_targets.len(), observation.volumes.len());
            }
        }

        #[test]
        fn a_law_that_was_pinned_to_a_bound_is_as_quick_as_one_that_has_just_come_there(pinned in 100u64..1_000) {
            let fine = pool(4096, vec![promised(Some(Span::from_millis(1)))]);
            let bad = pool(4096, vec![promised(Some(Span::from_millis(20)))]);
            let mut law = law_at(200);
            let _ = (0..pinned).map(|number| law.step(tick(number), &fine)).last();
            prop_assert_eq!(law.step(tick(pinned), &bad).depth.get(), 2048);
            let hopeless = pool(2, vec![promised(Some(Span::from_secs(1)))]);
            let _ = (pinned..2 * pinned).map(|number| law.step(tick(number), &hopeless)).last();
            let at_the_floor = DepthFeedback { depth: 1.0, ..law.clone() };
            prop_assert_eq!(law, at_the_floor);
        }

        #[test]
        fn equal_inputs_give_equal_outputs_and_a_new_law_is_a_fresh_one(
            seen in prop::collection::vec(anything(), 1..50),
        ) {
            let (mut one, mut other) = (law_at(200), law_at(200));
            for (number, observation) in (0..).zip(&seen) {
                prop_assert_eq!(one.step(tick(number), observation), other.step(tick(number), observation));
            }
            prop_assert_eq!(DepthFeedback::new(one.config), law_at(200));
        }

        #[test]
        fn steady_input_converges(latency in 1u64..100_000_000, start in 1u32..4096) {
            let seen = |peak| pool(peak, vec![promised(Some(Span::from_nanos(latency)))]);
            let mut law = law_at(start);
            for number in 0..3_000 {
                law.step(tick(number), &seen(law.depth().get()));
            }
            let settled = law.depth();
            prop_assert_eq!(law.step(tick(3_000), &seen(settled.get())).depth, settled);
        }
    }
}
