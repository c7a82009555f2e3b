//! What holds for all gains and all waits.

use proptest::prelude::*;

use super::*;

fn configs() -> impl Strategy<Value = OneSidedPidConfig> {
    let millis = |range: std::ops::RangeInclusive<u64>| range.prop_map(Span::from_millis);
    (
        millis(1..=250),
        0.001_f64..=HIGHEST_GAIN,
        millis(1..=100_000),
        millis(0..=1_000),
        millis(0..=2_000),
        0.1_f64..=1.0,
        1_u64..=2_000,
    )
        .prop_map(
            |(
                period,
                proportional_gain,
                integral_time,
                derivative_time,
                smoothing,
                setpoint_share,
                ceiling,
            )| {
                let ceiling = ThrottleDelay::STEP.saturating_mul(ceiling);
                OneSidedPidConfig {
                    period,
                    proportional_gain,
                    integral_time,
                    derivative_time,
                    smoothing,
                    setpoint_share,
                    ceiling,
                }
            },
        )
}

/// Waits as shares of the setpoint.
fn waits(range: std::ops::Range<f64>) -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(range, 1..60)
}

fn observed(threshold: Span, share: f64, config: &OneSidedPidConfig) -> WaitObservation {
    let wait = Span::from_secs_f64(threshold.as_secs_f64() * config.setpoint_share * share);
    WaitObservation { wait: ReadWait::Finished(wait), threshold, reaches: true }
}

proptest! {
    #[test]
    fn an_error_that_lasts_takes_the_delay_to_zero_within_a_second_whatever_the_gains(
        config in configs(),
        threshold in (1_u64..=100_000).prop_map(Span::from_micros),
        before in waits(0.0..20.0),
        after in waits(0.0..0.5),
    ) {
        let mut law = OneSidedPid::new(config).expect("these gains are allowed");
        let mut now = Instant::ORIGIN;
        for share in before {
            now = now + config.period;
            law.step(now, &observed(threshold, share, &config));
        }
        // After the end of the first period of these. A long delay takes three times its length to fall.
        let within = Span::from_millis(750).max(LASTING + config.period + config.ceiling.saturating_mul(3));
        let since = now + config.period;
        for share in after.into_iter().cycle().take(10_000) {
            now = now + config.period;
            let delay = law.step(now, &observed(threshold, share, &config));
            if now.since(since) >= within {
                prop_assert!(delay.is_zero(), "{} at {now:?} since {since:?}", delay.span());
            }
        }
    }

    #[test]
    fn the_delay_is_the_papers_equation_and_within_its_bounds(
        config in configs(),
        threshold in (1_u64..=100_000).prop_map(Span::from_micros),
        shares in waits(0.6..20.0),
    ) {
        let mut law = OneSidedPid::new(OneSidedPidConfig { smoothing: Span::ZERO, ..config })
            .expect("these gains are allowed");
        let OneSidedPidConfig { proportional_gain: kp, ceiling, setpoint_share, .. } = config;
        let [period, ti, td] =
            [config.period, config.integral_time, config.derivative_time].map(Span::as_secs_f64);
        let most = in_steps(ceiling);
        let setpoint = in_steps(threshold) * setpoint_share;
        // Before the first step, nothing waited.
        let (mut u, mut e1, mut e2) = (0.0_f64, -setpoint, -setpoint);
        let mut now = Instant::ORIGIN;
        for share in shares {
            now = now + config.period;
            let seen = observed(threshold, share, &config);
            let delay = law.step(now, &seen);
            let kp = kp * in_steps(LONG) / u.max(in_steps(LONG));
            let e = in_steps(seen.wait.finished().expect("it was put there")) - setpoint;
            u = (u + kp * (e - e1) + kp * period / ti * e + kp * td / period * (e - 2.0 * e1 + e2))
                .clamp(0.0, most);
            (e2, e1) = (e1, e);
            let tolerance = 1e-6 * (1.0 + most);
            prop_assert!((law.delay - u).abs() <= tolerance, "{} and {u}", law.delay);
            // Rounding must not add up from step to step.
            u = law.delay;
            prop_assert!(delay.span() <= ceiling);
            prop_assert!((f64::from(delay.steps()) - u) >= 0.0 && f64::from(delay.steps()) - u < 1.0);
        }
    }
}
