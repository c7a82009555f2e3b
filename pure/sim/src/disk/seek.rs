//! How long the arm takes for a distance: the seek curve.
//!
//! **Modelled**: the time of a short seek grows with the root of the distance, because the arm only speeds up
//! and slows down. The time of a long seek grows linearly, because the arm coasts in between (Ruemmler and
//! Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994). The two parts meet with the
//! same slope.
//!
//! **Not modelled**: a difference between inward and outward seeks, recalibration.
//!
//! **Calibrated** by the three figures of every data sheet. With the two conditions at the meeting point,
//! these are five conditions for a curve of five unknowns, so there is exactly one curve. A polynomial
//! through the three figures fits as well, but is wrong in between, where most seeks of a queue in
//! shortest-positioning order are.
//!
//! The average of a data sheet is over all pairs of different cylinders, as makers define it (for example
//! Hitachi, Ultrastar 15K450 specification, table 7).

use weir_model::Span;

/// The three figures of a data sheet, for reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeekTimes {
    /// To the next cylinder.
    pub single_track: Span,
    /// Over all pairs of different cylinders.
    pub average: Span,
    /// From the first cylinder to the last.
    pub full_stroke: Span,
}

/// The curve through `times`: nanoseconds by distance in cylinders, with zero for no distance. `None` if no
/// curve of this form has these figures: the average must lie about 1/3 to 8/15 of the way from the
/// single-track time to the full-stroke time.
pub(crate) fn curve(times: SeekTimes, cylinders: u32) -> Option<Vec<f64>> {
    let farthest = f64::from(cylinders.checked_sub(1).filter(|&distance| distance > 1)?);
    let target = nanos(times.average);
    let shape = |knee: f64| Shape::new(nanos(times.single_track), nanos(times.full_stroke), knee, farthest);
    let mean = |knee: f64| {
        let shape = shape(knee);
        let weigh = |distance: u32| shape.at(f64::from(distance)) * f64::from(cylinders - distance);
        (1..cylinders).map(weigh).sum::<f64>() * 2.0 / (f64::from(cylinders) * farthest)
    };
    // The later the curve becomes straight, the higher is its middle. So the average rises with the knee.
    let (mut low, mut high) = (1.0, farthest);
    if !(times.single_track < times.full_stroke && mean(low) <= target && target <= mean(high)) {
        return None;
    }
    while high - low > 0.5 {
        let middle = f64::midpoint(low, high);
        if mean(middle) < target { low = middle } else { high = middle }
    }
    let shape = shape(high);
    Some(
        (0..cylinders)
            .map(|distance| if distance == 0 { 0.0 } else { shape.at(f64::from(distance)) })
            .collect(),
    )
}

/// `start + root * sqrt(distance)` up to the knee, and a straight line from there on.
#[derive(Clone, Copy)]
struct Shape {
    start: f64,
    root: f64,
    knee: f64,
}

impl Shape {
    /// The shape that goes through both ends, and becomes straight at `knee`.
    fn new(single_track: f64, full_stroke: f64, knee: f64, farthest: f64) -> Self {
        let slope = 0.5 / knee.sqrt();
        let root = (full_stroke - single_track) / (knee.sqrt() - 1.0 + slope * (farthest - knee));
        Self { start: single_track - root, root, knee }
    }

    fn at(&self, distance: f64) -> f64 {
        let curved = distance.min(self.knee).sqrt();
        let straight = (distance - self.knee).max(0.0) * 0.5 / self.knee.sqrt();
        self.start + self.root * (curved + straight)
    }
}

fn nanos(span: Span) -> f64 {
    span.as_secs_f64() * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(single_track: u64, average: u64, full_stroke: u64) -> SeekTimes {
        let [single_track, average, full_stroke] =
            [single_track, average, full_stroke].map(Span::from_micros);
        SeekTimes { single_track, average, full_stroke }
    }

    #[test]
    fn the_curve_goes_through_the_three_figures_and_never_falls() {
        let curve = curve(times(700, 5_200, 12_000), 9_801).unwrap();
        assert!((curve[1] - 700e3).abs() < 1.0 && (curve[9_800] - 12e6).abs() < 1.0);
        assert!(curve.is_sorted());
        let weighted = |(distance, time): (u32, &f64)| time * f64::from(9_801 - distance);
        let mean = (0..).zip(&curve).map(weighted).sum::<f64>() * 2.0 / (9_801.0 * 9_800.0);
        assert!((mean / 5.2e6 - 1.0).abs() < 0.001, "{mean} ns");
    }

    #[test]
    fn figures_that_no_such_curve_has_are_refused() {
        let fits = |times| curve(times, 10_000).is_some();
        assert!(!fits(times(700, 3_000, 12_000)), "an average below that of a straight line");
        assert!(!fits(times(700, 8_000, 12_000)), "an average above that of a root");
        assert!(!fits(times(700, 700, 700)) && !fits(times(900, 800, 700)));
        assert!(
            curve(times(700, 5_200, 12_000), 2).is_none() && curve(times(700, 5_200, 12_000), 0).is_none()
        );
    }
}
