//! The rates that clients got over time, and the bounds that gateways were granted.

use std::thread;
use std::time::{Duration, Instant};

use super::loads::Load;
use super::site::Site;

/// The control interval.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);

/// The mean rates of volumes over a number of control intervals, in MB/s, in the order of `volumes`. All
/// `loads` must go on meanwhile.
///
/// # Errors
/// If a gateway does not answer, or a load has ended.
pub(super) fn rates(
    site: &Site<'_>,
    volumes: &[&str],
    intervals: u32,
    loads: &mut [Load],
) -> anyhow::Result<Vec<f64>> {
    let read = || volumes.iter().map(|volume| Ok(site.bytes(volume)?.iter().sum::<u64>())).collect();
    let (began, before): (_, anyhow::Result<Vec<u64>>) = (Instant::now(), read());
    thread::sleep(INTERVAL * intervals);
    let (lasted, after): (_, anyhow::Result<Vec<u64>>) = (began.elapsed(), read());
    loads.iter_mut().try_for_each(Load::check)?;
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let rate = |(before, after): (u64, u64)| (after - before) as f64 / 1e6 / lasted.as_secs_f64();
    Ok(before?.into_iter().zip(after?).map(rate).collect())
}

/// A bound of a volume at a gateway, from an instant on.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Bound {
    /// Seconds after the start of the machine.
    pub(super) at: f64,
    /// Its recording.
    pub(super) recording: String,
    pub(super) volume: u32,
    pub(super) concurrency: u32,
    pub(super) is_fallback: bool,
}

/// The bounds in the output of `weir grants`.
pub(super) fn read_bounds(csv: &str) -> Vec<Bound> {
    csv.lines().skip(1).filter_map(read_bound).collect()
}

fn read_bound(line: &str) -> Option<Bound> {
    let fields: Vec<&str> = line.split(',').collect();
    let [at, recording, volume, concurrency, _, _, by] = fields[..] else { return None };
    Some(Bound {
        at: at.parse().ok()?,
        recording: recording.to_owned(),
        volume: volume.parse().ok()?,
        concurrency: concurrency.parse().ok()?,
        is_fallback: by == "fallback",
    })
}

/// The sum of the bounds in force at an instant, over the recordings that `of` accepts.
pub(super) fn sum_at(bounds: &[Bound], at: f64, of: impl Fn(&Bound) -> bool) -> u32 {
    let mut latest = std::collections::BTreeMap::new();
    for bound in bounds.iter().take_while(|bound| bound.at <= at).filter(|bound| of(bound)) {
        latest.insert((&bound.recording, bound.volume), bound.concurrency);
    }
    latest.values().sum()
}

/// Now, in seconds after the start of the machine.
pub(super) fn now() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    #[allow(clippy::cast_precision_loss)] // to the microsecond
    let seconds = now.tv_sec as f64 + now.tv_nsec as f64 / 1e9;
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_of_the_bounds_that_are_in_force() {
        let csv = "at_s,recording,volume,concurrency,max_iops,max_bandwidth_bytes_per_s,by\n\
                   1.5,a,0,10,,,controller\n2.5,b,0,20,,,controller\n3.5,a,0,4,,,fallback\n";
        let bounds = read_bounds(csv);
        let sum = |at| sum_at(&bounds, at, |_| true);
        assert_eq!([1.0, 2.0, 3.0, 4.0].map(sum), [0, 10, 30, 24]);
        assert_eq!(sum_at(&bounds, 4.0, |bound| bound.is_fallback), 4);
    }
}
