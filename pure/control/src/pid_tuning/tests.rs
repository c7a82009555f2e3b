//! The fit on recordings that a formula made, and the gains on the plants that were fitted.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;

const PERIOD: Span = Span::from_millis(100);
const STEP: Span = Span::from_millis(10);

fn plant(gain: f64, dead_time: u64, lag: u64) -> Plant {
    let [dead_time, lag] = [dead_time, lag].map(Span::from_millis);
    Plant { before: Span::from_millis(36), gain, dead_time, lag, explained: 1.0 }
}

/// What is recorded of that plant, with waits that vary by up to such a share of themselves.
fn recording(plant: &Plant, noise: f64) -> StepResponse {
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let mut noisy = |wait: Span| {
        let factor = 1.0 + noise * random.random_range(-1.0..=1.0);
        Some(Span::from_secs_f64(wait.as_secs_f64() * factor))
    };
    let before = (0..50).map(|_| noisy(plant.before)).collect();
    let ends = (1..=100).map(|number| PERIOD.saturating_mul(number));
    let after = ends.map(|end| noisy(plant.mean_wait(STEP, PERIOD, end))).collect();
    StepResponse { period: PERIOD, step: STEP, before, after }
}

#[test]
fn the_plant_that_made_a_recording_is_found_again() {
    for (gain, dead_time, lag) in [(1.0, 0, 0), (1.0, 130, 0), (0.5, 50, 400), (2.0, 300, 1_000)] {
        let made = plant(gain, dead_time, lag);
        let fitted = Plant::fit(&recording(&made, 0.0)).expect("it answers the step");
        let off = |one: Span, other: Span| (one.as_secs_f64() - other.as_secs_f64()).abs();
        assert!((fitted.gain - gain).abs() < 0.01, "{fitted:?}");
        assert!(off(fitted.before, made.before) < 1e-4, "{fitted:?}");
        // Two short times within a period can only be told apart by their sum.
        let [one, other] = [fitted, made].map(|plant| plant.dead_time + plant.lag);
        assert!(off(one, other) < 0.02, "{fitted:?}");
        assert!(fitted.explained > 0.999);
    }
}

#[test]
fn noise_moves_a_fitted_plant_little() {
    let fitted = Plant::fit(&recording(&plant(1.0, 100, 300), 0.15)).expect("it answers the step");
    assert!((0.85..=1.15).contains(&fitted.gain), "{fitted:?}");
    let both = (fitted.dead_time + fitted.lag).as_secs_f64();
    assert!((0.2..=0.65).contains(&both), "{fitted:?}");
}

#[test]
fn a_recording_that_says_nothing_is_refused() {
    let recorded = recording(&plant(1.0, 100, 300), 0.0);
    let no_reads = StepResponse { after: vec![None; 100], ..recorded.clone() };
    assert_eq!(Plant::fit(&no_reads), Err(NoPlant::TooFew { before: 50, after: 0 }));
    let no_step = StepResponse { step: Span::ZERO, ..recorded.clone() };
    assert_eq!(Plant::fit(&no_step), Err(NoPlant::NoStep));
    let rises = StepResponse { before: recorded.after.clone(), after: recorded.before.clone(), ..recorded };
    let rises = StepResponse { after: rises.after.repeat(2), ..rises };
    assert!(matches!(Plant::fit(&rises), Err(NoPlant::NoAnswer { .. })), "{:?}", Plant::fit(&rises));
    let still = StepResponse {
        period: PERIOD,
        step: STEP,
        before: vec![Some(STEP); 50],
        after: vec![Some(STEP); 100],
    };
    assert!(matches!(Plant::fit(&still), Err(NoPlant::NoAnswer { .. })), "{:?}", Plant::fit(&still));
    let noise = recording(&plant(0.01, 0, 0), 0.5);
    assert!(matches!(Plant::fit(&noise), Err(NoPlant::NoAnswer { .. })), "{:?}", Plant::fit(&noise));
}

#[test]
fn the_default_gains_are_the_rules_for_writers_that_answer_within_the_period() {
    let default = OneSidedPidConfig::default();
    let proposed = plant(1.0, 25, 0).gains(&default).expect("such gains can be");
    assert!((proposed.proportional_gain - default.proportional_gain).abs() < 1e-9, "{proposed:?}");
    assert_eq!(proposed, OneSidedPidConfig { proportional_gain: proposed.proportional_gain, ..default });
}

#[test]
fn with_the_proposed_gains_a_loop_settles_at_the_setpoint_even_if_the_plant_has_twice_the_gain() {
    let threshold = Span::from_millis(15);
    let config = OneSidedPidConfig { ceiling: Span::from_millis(100), ..OneSidedPidConfig::default() };
    for (gain, dead_time, lag) in [(1.0, 0, 0), (0.5, 50, 400), (1.0, 300, 1_000), (0.3, 500, 100)] {
        let fitted = plant(gain, dead_time, lag);
        let gains = fitted.gains(&config).expect("such gains can be");
        for real in [fitted, Plant { gain: 2.0 * gain, ..fitted }] {
            let predicted = real.predict(gains, threshold, 400).expect("such gains can be");
            for period in &predicted[300..] {
                let off = period.smoothed.as_secs_f64() - 0.0135;
                assert!(off.abs() < 0.0015, "{real:?}: {off} s off");
            }
        }
    }
}

#[test]
fn with_gains_that_are_too_high_the_prediction_shows_that_the_loop_hunts() {
    let gains = OneSidedPidConfig { ceiling: Span::from_millis(100), ..OneSidedPidConfig::default() };
    let slow = plant(1.0, 500, 100);
    let predicted = slow.predict(gains, Span::from_millis(15), 400).expect("such gains can be");
    let late = predicted[300..].iter().map(|period| period.delay.steps());
    let (least, most) = (late.clone().min(), late.max());
    assert!(most > least.map(|least| least + 20), "{least:?} {most:?}");
}

#[test]
fn a_plant_that_hardly_answers_gets_no_gains() {
    assert!(matches!(
        plant(0.001, 0, 0).gains(&OneSidedPidConfig::default()),
        Err(PidProblem::ProportionalGain(_))
    ));
}
