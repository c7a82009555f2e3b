//! §3.6, figures 12 and 13: the law keeps the reader's wait below a threshold, beside twelve writers that all
//! come and go at once. A lower threshold costs the writers more.
//!
//! In the control, the law sees the same wait and may delay nobody.

use crate::delay::Measured;
use crate::float::float;
use crate::study::{Figure, Records, greatest};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let run = |name: &str| records.measured.get(name);
    let kept = |name: &str| run(name)?.kept();
    let written = |name: &str| run(name).and_then(|run| run.write_rate(&run.settled()));
    let wait = |name: &str| run(name).and_then(|run| run.wait_ms(&run.settled()));
    let less = |name: &str, than: &str| Some(100.0 * (1.0 - written(name)? / written(than)?));
    let zero = ["20", "15", "10"].iter().map(|name| zero_after_ms(run(name)?));
    let zero = zero.collect::<Option<Vec<_>>>().and_then(greatest);
    vec![
        Figure::new("kept-20", kept("20")),
        Figure::new("kept-15", kept("15")),
        Figure::new("kept-10", kept("10")),
        Figure::new("kept-without", kept("none")),
        Figure::new("wait-without", wait("none")),
        Figure::new("wait-20", wait("20")),
        Figure::new("wait-15", wait("15")),
        Figure::new("wait-10", wait("10")),
        Figure::new("written-without", written("none")),
        Figure::new("less-20", less("20", "none")),
        Figure::new("less-15", less("15", "20")),
        Figure::new("less-10", less("10", "15")),
        Figure::new("zero-after-pause", zero),
        Figure::new("kept-20-literal", kept("literal-20")),
        Figure::new("kept-15-literal", kept("literal-15")),
        Figure::new("kept-10-literal", kept("literal-10")),
    ]
}

/// How long after the beginning of a pause the delay was above zero for the last time, at the worst, in
/// milliseconds. Nothing if there was a burst at whose end nobody was delayed.
fn zero_after_ms(measured: &Measured) -> Option<f64> {
    let mut worst = 0.0_f64;
    for pause in measured.pauses() {
        let at_end = measured.during(pause.start.saturating_sub(1_000_000)..pause.start);
        at_end.filter(|sample| sample.delay_us > 0).last()?;
        // The delay of a sample is in force until the next.
        let last = measured.during(pause.clone()).filter(|sample| sample.delay_us > 0).last();
        let until = last.map_or(pause.start, |sample| sample.at_us + 100_000);
        worst = worst.max(float(until - pause.start) / 1e3);
    }
    (!measured.pauses().is_empty()).then_some(worst)
}
