//! §4.2, figure 5 and table 1: three volumes whose targets change their order during the run.
//!
//! With control, each volume meets its own target. The latency of the two volumes with tight targets varies
//! less than without control.

use crate::study::{Figure, Records, View};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let met = |run, volume| records.view(run, volume).and_then(View::attainment);
    let steadier = |volume| {
        let deviation = |run| records.view(run, volume).and_then(View::deviation_ms);
        Some(deviation("none")? / deviation("facade")?)
    };
    vec![
        Figure::new("vsd1-met", met("facade", "vsd1")),
        Figure::new("vsd2-met", met("facade", "vsd2")),
        Figure::new("vsd3-met", met("facade", "vsd3")),
        Figure::new("vsd1-steadier", steadier("vsd1")),
        Figure::new("vsd2-steadier", steadier("vsd2")),
        Figure::new("vsd1-met-without", met("none", "vsd1")),
        Figure::new("vsd2-met-without", met("none", "vsd2")),
    ]
}
