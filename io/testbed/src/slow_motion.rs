//! Slow motion: everything that takes time takes several times as long, and what is measured is told in the
//! times of the scenario.
//!
//! The guest's processor is emulated, so a request keeps it busy for about as long as the papers' disk. Three
//! times slower, that counts for a third beside the disk: a disk of 3 ms takes 9 ms, a threshold of 15 ms is
//! 45 ms, a second of a burst is three, and the law's constants of time are longer, too. An experiment says
//! how many times slower it is (`slow_motion`, 3 if it says nothing).
//!
//! Two clocks do not slow down: TCP's timers, and the agent's. It reads the counters ten times a second and
//! looks for writers once a second, as ever.

use weir_lab::delay::{Measured, Scenario, ThrottleSpec};
use weir_lab::quantities::Text;
use weir_model::{Iops, Span};
use weir_throttle::Settings;

/// A pace at which things happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlowMotion(u32);

impl SlowMotion {
    /// The pace of an experiment.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self(scenario.slow_motion.get())
    }

    /// A time of a scenario in slow motion.
    pub(crate) fn slow(self, span: Span) -> Span {
        span.saturating_mul(self.0.into())
    }

    /// A scenario in slow motion.
    pub(crate) fn slowed(self, mut scenario: Scenario) -> Scenario {
        let slow = |span: &mut Text<Span>| span.0 = self.slow(span.0);
        slow(&mut scenario.disk.service_time);
        for spec in scenario.initiator.values_mut() {
            [&mut spec.start, &mut spec.burst, &mut spec.pause].into_iter().flatten().for_each(slow);
            if let Some(pace) = &mut spec.pace {
                pace.0 = Iops::new(pace.0.get() / f64::from(self.0)).unwrap_or(pace.0);
            }
        }
        for run in scenario.run.values_mut() {
            run.duration.iter_mut().for_each(slow);
            match &mut run.throttle {
                ThrottleSpec::None => {}
                ThrottleSpec::Fixed(changes) => {
                    changes.iter_mut().flat_map(|change| [&mut change.at, &mut change.delay]).for_each(slow);
                }
                ThrottleSpec::Curve(curve) => curve.delays.iter_mut().for_each(slow),
                ThrottleSpec::Pid(pid) => [&mut pid.threshold, &mut pid.ceiling].into_iter().for_each(slow),
            }
        }
        scenario
    }

    /// What the file of an agent says beside its threshold and its ceiling: the defaults in slow motion.
    pub(crate) fn settings(self) -> String {
        let usual = Settings::new(Span::ZERO);
        let [smoothing, integral_time] =
            [usual.law.smoothing, usual.law.integral_time].map(|span| self.slow(span));
        let limit = usual.write_limit.get() / u64::from(self.0);
        format!(
            "smoothing = \"{smoothing}\"\nintegral_time = \"{integral_time}\"\nwrite_limit = \"{limit}B/s\"\n"
        )
    }

    /// What was measured in slow motion, in the times of the scenario.
    pub(crate) fn sped_up(self, mut measured: Measured) -> Measured {
        let bursts = measured.worked.iter_mut().flat_map(|burst| [&mut burst.from_us, &mut burst.to_us]);
        let changes =
            measured.changes.iter_mut().flat_map(|change| [&mut change.at_us, &mut change.delay_us]);
        let samples = measured.samples.iter_mut().flat_map(|sample| {
            let law = [&mut sample.ewma_us, &mut sample.threshold_us, &mut sample.delay_us];
            [&mut sample.at_us, &mut sample.read_us].into_iter().chain(law)
        });
        let jobs = measured.jobs.iter_mut().flat_map(|job| [&mut job.delay_us, &mut job.took_us]);
        bursts.chain(changes).chain(samples).chain(jobs).for_each(|micros| *micros /= u64::from(self.0));
        measured
    }
}

#[cfg(test)]
mod tests {
    use weir_lab::delay::{Burst, Job, Sample};

    use super::*;
    use crate::scenarios::scenario;

    #[test]
    fn in_slow_motion_each_time_and_each_pace_is_slower_and_no_size_differs() {
        let scenario = scenario("delay-pid");
        let pace = SlowMotion::of(&scenario);
        let slow = pace.slowed(scenario.clone());
        assert_eq!(slow.disk.service_time.0, Span::from_millis(9));
        let (reader, writer) = (&slow.initiator["reader"], &slow.initiator["writer1"]);
        assert_eq!(reader.pace.map(|pace| pace.0.get()), Some(64.0 / 3.0));
        assert_eq!(writer.burst.map(|burst| burst.0), Some(Span::from_secs(45)));
        assert_eq!(writer.request, scenario.initiator["writer1"].request);
        let ThrottleSpec::Pid(pid) = &slow.run["15"].throttle else { panic!("it has a law") };
        assert_eq!((pid.threshold.0, pid.ceiling.0), (Span::from_millis(45), Span::from_millis(120)));
        let settings = "smoothing = \"600ms\"\nintegral_time = \"600ms\"\nwrite_limit = \"349525B/s\"\n";
        assert_eq!(pace.settings(), settings);
    }

    #[test]
    fn what_is_measured_in_slow_motion_is_told_in_the_times_of_the_scenario() {
        let sample = |by: u64| Sample {
            at_us: 100 * by,
            reads: 7,
            read_us: 40 * by,
            ewma_us: 5 * by,
            threshold_us: 6 * by,
            delay_us: 2 * by,
            members: vec![1],
            read: vec![8],
            written: vec![9],
        };
        let measured = |by: u64| Measured {
            worked: vec![Burst { initiator: 1, from_us: 10 * by, to_us: 20 * by }],
            samples: vec![sample(by)],
            jobs: vec![Job { delay_us: 3 * by, bytes: 4, took_us: 5 * by }],
            ..Measured::default()
        };
        assert_eq!(SlowMotion(3).sped_up(measured(3)), measured(1));
    }

    #[test]
    fn what_a_throttle_costs_is_measured_as_it_is() {
        let scenario = scenario("delay-overhead");
        assert_eq!(SlowMotion::of(&scenario).slowed(scenario.clone()), scenario);
    }
}
