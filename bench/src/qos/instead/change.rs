//! How long a change takes that an operator makes: from `weir set` until the promise is kept.
//!
//! With the law, the victim is promised something while the hog is at work. With a static setting, the hog is
//! limited. Both are watched in steps far below a window, because either is in force within a window or two.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::super::super::bed::TestBed;
use super::super::super::status::Status;
use super::super::configuration::{Control, Limit, Promised};
use super::super::loads::SETTLING;
use super::super::phase;
use super::Case;

/// How long to watch after the change.
const WATCH: Duration = Duration::from_millis(2500);

/// How often to look.
const STEP: Duration = Duration::from_millis(50);

/// The promise counts as kept from a step on if it is kept on average from there for so many steps: 400 ms,
/// two bursts of a victim that bursts.
const STEPS: usize = 8;

/// The requests answered in a step, and the sum of their latencies in seconds.
type Step = (u64, f64);

/// The milliseconds from the change until the victim's promise was kept; `None`: not while it was watched.
///
/// # Errors
/// If a server or a client fails.
pub(super) fn milliseconds(
    bed: &TestBed,
    case: &Case,
    control: Control,
    slo_us: u64,
) -> anyhow::Result<Option<f64>> {
    let (before, volume, change) = match control {
        Control::Static(limit) => {
            let (key, value) = limit.assignment().context("a limit to set")?;
            (Control::Static(Limit::Free), "hog", format!("{key}={}", value.trim_matches('"')))
        }
        _ => (control, "victim", format!("target.latency={slo_us}us")),
    };
    let setting = case.setting(before, None, 0);
    let promised = if matches!(control, Control::Static(_)) { Promised::Easy } else { Promised::EasyTarget };
    let server = phase::serve(bed, setting, promised)?;
    let status = server.metrics().context("weir with a status")?;
    let _clients = phase::load(bed, &server, setting, SETTLING + 2 * WATCH)?;
    thread::sleep(SETTLING);
    let began = Instant::now();
    server.set(bed, volume, &change)?;
    #[allow(clippy::cast_precision_loss)] // an SLO is below 2^53 us
    let slo_s = slo_us as f64 / 1e6;
    Ok(in_force(&watch(status, began)?, slo_s).map(|step| step * STEP.as_secs_f64() * 1e3))
}

/// What happened in each step since then.
fn watch(status: SocketAddr, began: Instant) -> anyhow::Result<Vec<Step>> {
    let mut readings = Vec::new();
    let mut due = Duration::ZERO;
    while due <= WATCH {
        thread::sleep(due.saturating_sub(began.elapsed()));
        readings.push(Status::read(status)?.volume("victim")?.answered());
        due += STEP;
    }
    Ok(readings.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1)).collect())
}

/// The first step from which on the promise is kept.
#[allow(clippy::cast_precision_loss)] // some steps, some requests
fn in_force(steps: &[Step], slo_s: f64) -> Option<f64> {
    let kept = |(count, sum_s): Step| sum_s <= count as f64 * slo_s;
    let all = |steps: &[Step]| steps.iter().fold((0, 0.0), |sum, step| (sum.0 + step.0, sum.1 + step.1));
    let from = steps.windows(STEPS).position(|steps| kept(steps[0]) && kept(all(steps)) && all(steps).0 > 0);
    from.map(|step| step as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_in_force_from_the_first_step_that_keeps_the_promise_on_average() {
        let (late, good, none) = ((10, 0.1), (10, 0.01), (0, 0.0));
        let mut steps = vec![late, late, none, late];
        steps.extend([good; 4]);
        steps.push((10, 0.03)); // one step above the promise, made up for by the others
        steps.extend([good; 4]);
        assert_eq!(in_force(&steps, 0.002), Some(4.0));
        assert_eq!(in_force(&[late; 20], 0.002), None);
        assert_eq!(in_force(&[none; 20], 0.002), None);
    }
}
