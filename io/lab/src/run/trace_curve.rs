//! What an array gives a recorded load, as a curve: the promise that the array keeps to this load in 99 of
//! 100 windows.
//!
//! A curve that is measured with synthetic loads says nothing about a recorded one. Example: a VA-7100
//! keeps the curve of its synthetic loads in 8 % of the windows of a database's load, because that load
//! writes more and comes in bursts. So the load itself is replayed on the array, alone and without control.
//! Each window of a second belongs to the rate in the window before it, as in an SLO, and has the requests
//! that came in it. The point of a rate is the latency that 99 % of its windows are within, for reads and
//! for writes.

use weir_engine::Event;
use weir_model::{Direction, Instant, Iops, Span};
use weir_sim::Observer;

use crate::curve::CurvePoint;
use crate::float::float;

/// The share of windows whose latency is within the point of their rate.
const WITHIN: f64 = 0.99;

/// The window of the SLOs.
const WINDOW: Span = Span::from_secs(1);

/// Counts the requests of each window, by the second in which they came.
#[derive(Default)]
pub(super) struct WindowMeter {
    windows: Vec<Window>,
}

#[derive(Clone, Copy, Default)]
struct Window {
    reads: u64,
    reads_us: u64,
    writes: u64,
    writes_us: u64,
}

impl Observer for WindowMeter {
    fn on_event(&mut self, now: Instant, event: &Event) {
        let Event::Finished { kind, ok: true, total, .. } = event else { return };
        let came = now.since(Instant::ORIGIN).as_micros().saturating_sub(total.as_micros());
        let second = usize::try_from(came / WINDOW.as_micros()).expect("a run has few windows");
        if second >= self.windows.len() {
            self.windows.resize(second + 1, Window::default());
        }
        let window = &mut self.windows[second];
        match kind.direction() {
            Some(Direction::Read) => {
                window.reads += 1;
                window.reads_us += total.as_micros();
            }
            Some(Direction::Write) => {
                window.writes += 1;
                window.writes_us += total.as_micros();
            }
            None => {}
        }
    }
}

impl WindowMeter {
    /// The points of the curve, by rising rate. A rate before which no window is has none.
    pub(super) fn points(&self, rates: impl Iterator<Item = Iops>) -> Vec<CurvePoint> {
        let mut least = 0.0;
        let mut points = Vec::new();
        for rate in rates {
            let of_rate = |pair: &&[Window]| {
                let before = float(pair[0].count());
                least < before && before <= rate.get()
            };
            let pairs: Vec<_> = self.windows.windows(2).filter(of_rate).collect();
            least = rate.get();
            if !pairs.is_empty() {
                points.push(point(rate, &pairs));
            }
        }
        points
    }
}

impl Window {
    const fn count(&self) -> u64 {
        self.reads + self.writes
    }
}

/// The point of the windows that followed a second of about this rate.
fn point(rate: Iops, pairs: &[&[Window]]) -> CurvePoint {
    let means = |of: fn(&Window) -> (u64, u64)| {
        let windows = pairs.iter().map(|pair| of(&pair[1])).filter(|(count, _)| *count > 0);
        let mut means: Vec<f64> = windows.map(|(count, us)| float(us) / float(count)).collect();
        means.sort_by(f64::total_cmp);
        means
    };
    let arrived = pairs.iter().map(|pair| float(pair[0].count())).sum::<f64>() / float(pairs.len() as u64);
    let all = means(|window| (window.count(), window.reads_us + window.writes_us));
    CurvePoint {
        offered_iops: rate.get(),
        arrived_iops: arrived,
        answered_iops: arrived,
        read_us: within(&means(|window| (window.reads, window.reads_us))),
        write_us: within(&means(|window| (window.writes, window.writes_us))),
        mean_us: all.iter().sum::<f64>() / float(all.len().max(1) as u64),
    }
}

/// The value that [`WITHIN`] of these rising values do not exceed; zero if there is none.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // counts of windows
fn within(values: &[f64]) -> f64 {
    let place = (WITHIN * values.len() as f64).ceil() as usize;
    values.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_belongs_to_the_rate_in_the_second_before_it() {
        let second = |reads: u64, read_us: u64, writes: u64| Window {
            reads,
            reads_us: reads * read_us,
            writes,
            writes_us: writes * 100,
        };
        // 10, 40, 10 and 40 requests a second.
        let windows =
            vec![second(10, 5_000, 0), second(40, 9_000, 0), second(5, 3_000, 5), second(40, 8_000, 0)];
        let rates = [10.0, 30.0, 50.0].map(|rate| Iops::new(rate).unwrap());
        let points = WindowMeter { windows }.points(rates.into_iter());
        let seen: Vec<_> = points.iter().map(|p| (p.offered_iops, p.read_us, p.write_us)).collect();
        assert_eq!(seen, [(10.0, 9_000.0, 0.0), (50.0, 3_000.0, 100.0)]);
    }
}
