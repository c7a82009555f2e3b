//! §4.4, figure 7: two volumes that share two arrays get more than each gets from an array of its own.
//!
//! The greedy volume can use the capacity that the bursty volume leaves unused. The price is at most one late
//! window at the beginning of each burst: the queue that the greedy volume has built up must drain first.

use weir_model::Verdict;

use crate::run::Window;
use crate::study::{Figure, Records, View, greatest};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let rate = |run, volume| records.view(run, volume).map(View::rate);
    let gain = rate("shared", "vsd2").zip(rate("separate-vsd2", "vsd2")).map(|(shared, own)| shared / own);
    let bursts = records.view("shared", "vsd1").map(View::bursts);
    let missed = |windows: &[&Window]| {
        f64::from(
            u16::try_from(windows.iter().filter(|w| w.verdict == Some(Verdict::Missed)).count())
                .unwrap_or(u16::MAX),
        )
    };
    let late = bursts.as_ref().and_then(|bursts| greatest(bursts.iter().map(|burst| missed(burst))));
    let later = bursts.and_then(|bursts| greatest(bursts.iter().map(|burst| missed(&burst[1..]))));
    vec![
        Figure::new("vsd2-gain", gain),
        Figure::new("vsd2-separate", rate("separate-vsd2", "vsd2")),
        Figure::new("vsd2-shared", rate("shared", "vsd2")),
        Figure::new("vsd1-late-windows", late),
        Figure::new("vsd1-late-after-first", later),
        Figure::new("vsd1-met-without", records.view("shared-without", "vsd1").and_then(View::attainment_on)),
    ]
}
