//! §3.6.1, figures 14 to 16: with nothing configured but the threshold, the law does as well as with all
//! names given.
//!
//! In the control, the law finds the same writers, and may delay nobody.

use crate::delay::Measured;
use crate::study::target::Time;
use crate::study::{Figure, Records, greatest, least};

/// The thresholds in milliseconds, as in the names of the runs.
const THRESHOLDS: [&str; 3] = ["20", "15", "10"];
/// How long after the beginning of a burst its writers are members, in microseconds: two surveys.
const JOINED_US: u64 = 2_000_000;
/// The end of a pause, in microseconds, in which nobody is a member any more.
const LEFT_US: u64 = 500_000;
/// How long the delay takes to follow the beginning or the end of a burst, in microseconds.
const FOLLOWED_US: u64 = 1_500_000;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let run = |name: &str| records.measured.get(name);
    let pair =
        |threshold: &str| Some((run(&format!("found-{threshold}"))?, run(&format!("named-{threshold}"))?));
    let worst = |of: fn(&Measured) -> Option<f64>| {
        let apart = |threshold: &&str| {
            let (found, named) = pair(threshold)?;
            Some(100.0 * (of(found)? / of(named)? - 1.0).abs())
        };
        let all: Vec<_> = THRESHOLDS.iter().filter_map(apart).collect();
        (all.len() == THRESHOLDS.len()).then(|| greatest(all))?
    };
    let least_of = |of: fn(&Measured) -> Option<f64>| {
        let all: Option<Vec<_>> =
            THRESHOLDS.iter().map(|threshold| of(run(&format!("found-{threshold}"))?)).collect();
        least(all?)
    };
    let without = run("none").and_then(wait).zip(run("named-20").and_then(wait));
    let overshoot = |name: &str| run(name)?.overshoot_ms();
    let kept = |name: &str| run(name)?.kept();
    vec![
        Figure::new("wait-apart", worst(wait)),
        Figure::new("written-apart", worst(written)),
        Figure::new("wait-apart-without", without.map(|(none, named)| 100.0 * (none / named - 1.0).abs())),
        Figure::new("members-in-bursts", least_of(members_in_bursts)),
        Figure::new("members-in-pauses", least_of(members_in_pauses)),
        Figure::new("follows-load", least_of(follows_load)),
        Figure::new("follows-load-without", run("none").and_then(follows_load)),
        Figure::new("kept-20", kept("found-20")),
        Figure::new("kept-15", kept("found-15")),
        Figure::new("kept-10", kept("found-10")),
        Figure::new("kept-10-named", kept("named-10")),
        Figure::new("overshoot-named-15", overshoot("named-15")),
        Figure::new("overshoot-found-15", overshoot("found-15")),
    ]
}

fn wait(measured: &Measured) -> Option<f64> {
    measured.wait_ms(&measured.settled())
}

fn written(measured: &Measured) -> Option<f64> {
    measured.write_rate(&measured.settled())
}

/// Percent of the samples in bursts in which the members are exactly the writers.
fn members_in_bursts(measured: &Measured) -> Option<f64> {
    let writers = measured.bursty();
    let times = later(measured.bursts(), JOINED_US);
    measured.share(&times, |sample| writers.iter().eq(&sample.members))
}

/// Percent of the samples at the ends of pauses in which nobody is a member.
fn members_in_pauses(measured: &Measured) -> Option<f64> {
    let ends: Vec<_> = measured.pauses().iter().map(|pause| pause.end - LEFT_US..pause.end).collect();
    measured.share(&ends, |sample| sample.members.is_empty())
}

/// Percent of the samples with a delay in bursts and without one in pauses, the lesser of both.
fn follows_load(measured: &Measured) -> Option<f64> {
    let bursts = measured.share(&later(measured.bursts(), FOLLOWED_US), |sample| sample.delay_us > 0)?;
    let pauses = measured.share(&later(measured.pauses(), FOLLOWED_US), |sample| sample.delay_us == 0)?;
    Some(bursts.min(pauses))
}

/// The times without their first part.
fn later(times: Vec<Time>, first_us: u64) -> Vec<Time> {
    times.into_iter().map(|time| time.start + first_us..time.end).filter(|time| !time.is_empty()).collect()
}
