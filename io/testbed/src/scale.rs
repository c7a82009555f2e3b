//! Scenarios made smaller and slower, for a machine that is slower than the papers'.
//!
//! The guest's processor is emulated, so requests of 64 KiB would make it the bottleneck instead of the disk.
//! And a run takes as long as it takes: the paper's runs of minutes would be hours in all. Everything that a
//! claim is about stays: the disk, the initiators and their depths, the delays, the law, and the pauses.
//!
//! What the throttle costs is measured without slow motion, which would hide it.

use weir_lab::delay::{CurveSpec, Scenario, ThrottleSpec};
use weir_lab::quantities::{Bytes, Size, Text};
use weir_model::Span;

/// What is smaller, for people.
pub(crate) const SCALE: &str = "three times slower (delay-curve and delay-selective six times, delay-overhead not at all); requests \
                                of at most 16 KiB, and 32 KiB before a law; two bursts; other runs squeezed to 45 s; curves \
                                with 6 delays, 3 repeats and jobs of 100 requests";

const REQUEST: u32 = 16 << 10;
/// With a law: a writer that is delayed must still write more than half of the law's limit of 1 MiB/s, or it
/// would leave the members, which no writer of the paper's size does.
const REQUEST_WITH_LAW: u32 = 32 << 10;
const BURSTS: u64 = 2;
const LONGEST: Span = Span::from_secs(45);
const DELAYS: usize = 6;
const REPEATS: u32 = 3;
const REQUESTS: u64 = 100;

/// The scenario on a slower machine.
pub(crate) fn scaled(scenario: &Scenario) -> Scenario {
    let mut scaled = scenario.clone();
    let has_law = scaled.initiator.values().any(|spec| spec.burst.is_some());
    let request = if has_law { REQUEST_WITH_LAW } else { REQUEST };
    for spec in scaled.initiator.values_mut() {
        spec.request = Text(Bytes(spec.request.0.0.min(request)));
    }
    if has_law {
        fewer_bursts(&mut scaled);
    } else {
        squeezed(&mut scaled);
    }
    let requests: Vec<_> =
        scaled.initiator.iter().map(|(name, spec)| (name.clone(), spec.request.0.0)).collect();
    for run in scaled.run.values_mut() {
        if let ThrottleSpec::Curve(curve) = &mut run.throttle {
            let takes_part = |name: &String| run.initiators.as_ref().is_none_or(|names| names.contains(name));
            let request =
                requests.iter().find(|(name, _)| takes_part(name)).map_or(REQUEST, |(_, request)| *request);
            smaller(curve, request);
        }
    }
    scaled
}

fn fewer_bursts(scenario: &mut Scenario) {
    let mut end = Span::ZERO;
    for spec in scenario.initiator.values() {
        if let (Some(burst), Some(pause)) = (spec.burst, spec.pause) {
            let start = spec.start.map_or(Span::ZERO, |start| start.0);
            end = end.max(start + (burst.0 + pause.0).saturating_mul(BURSTS));
        }
    }
    for duration in scenario.run.values_mut().filter_map(|run| run.duration.as_mut()) {
        duration.0 = duration.0.min(end);
    }
}

fn squeezed(scenario: &mut Scenario) {
    let longest = scenario.run.values().filter_map(|run| run.duration).map(|duration| duration.0).max();
    let share = longest.map_or(1.0, |longest| (LONGEST.as_secs_f64() / longest.as_secs_f64()).min(1.0));
    let squeeze = |span: &mut Text<Span>| span.0 = Span::from_secs_f64(span.0.as_secs_f64() * share);
    scenario.initiator.values_mut().filter_map(|spec| spec.start.as_mut()).for_each(squeeze);
    for run in scenario.run.values_mut() {
        run.duration.iter_mut().for_each(squeeze);
        if let ThrottleSpec::Fixed(changes) = &mut run.throttle {
            changes.iter_mut().for_each(|change| squeeze(&mut change.at));
        }
    }
}

fn smaller(curve: &mut CurveSpec, request: u32) {
    let last = curve.delays.len().saturating_sub(1);
    if last >= DELAYS {
        let delays = (0..DELAYS).map(|place| curve.delays[place * last / (DELAYS - 1)]);
        curve.delays = delays.collect();
    }
    curve.repeats = curve.repeats.min(REPEATS);
    curve.job = Text(Size(curve.job.0.0.min(u64::from(request) * REQUESTS)));
}

#[cfg(test)]
mod tests {
    use weir_lab::library::Library;

    use super::*;
    use crate::scenarios::scenario;

    #[test]
    fn every_scenario_of_the_paper_becomes_one_that_a_slow_machine_can_do() {
        let library = Library::embedded().expect("the experiments are good");
        for scenario in library.all().iter().filter_map(|experiment| experiment.delay.as_ref()) {
            let small = scaled(scenario);
            assert!(small.initiator.values().all(|spec| spec.request.0.0 <= REQUEST_WITH_LAW));
            assert!(small.run.values().filter_map(|run| run.duration).all(|duration| duration.0 <= LONGEST));
            assert_eq!((small.disk.clone(), small.run.len()), (scenario.disk.clone(), scenario.run.len()));
        }
    }

    #[test]
    fn delays_come_at_the_same_part_of_a_shorter_run() {
        let small = scaled(&scenario("delay-selective"));
        let ThrottleSpec::Fixed(changes) = &small.run["read"].throttle else {
            panic!("its delays are fixed")
        };
        let at: Vec<_> = changes.iter().map(|change| change.at.0).collect();
        assert_eq!(at, [6, 12, 18, 27, 33, 39].map(Span::from_secs));
        assert_eq!(changes[0].delay.0, Span::from_millis(40));
    }

    #[test]
    fn a_curve_keeps_its_first_and_its_last_delay() {
        let small = scaled(&scenario("delay-curve"));
        let ThrottleSpec::Curve(curve) = &small.run["write"].throttle else { panic!("it is a curve") };
        let delays: Vec<_> = curve.delays.iter().map(|delay| delay.0.as_micros()).collect();
        assert_eq!((delays.len(), delays[0], delays[5]), (DELAYS, 0, 9_500));
        assert!(delays.is_sorted());
        assert_eq!(curve.job.0.0, 1_638_400);
    }

    #[test]
    fn a_law_has_two_bursts_with_their_pauses() {
        let small = scaled(&scenario("delay-pid"));
        let duration = small.run["15"].duration.expect("it has one").0;
        let bursts = small.initiator["writer1"].bursts(duration);
        assert_eq!(
            bursts,
            [(5, 20), (25, 40)].map(|(from, to)| (Span::from_secs(from), Span::from_secs(to)))
        );
        assert_eq!(duration, Span::from_secs(45));
    }
}
