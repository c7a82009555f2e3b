//! §3.4, figure 10: a reader that hardly uses the disk waits for longer the more machines write.
//!
//! In the control, the machines write to another volume group, with a disk of its own.

use crate::study::{Figure, Records};

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let wait = |run: &str| records.measured.get(run).and_then(|run| run.wait_ms(&run.settled()));
    let alone = records.measured.get("alone").and_then(|run| run.wait_ms(std::slice::from_ref(&run.whole())));
    let (one, three, elsewhere) = (wait("one"), wait("three"), wait("elsewhere"));
    let ratio = |now: Option<f64>, before: Option<f64>| Some(now? / before?);
    vec![
        Figure::new("wait-alone", alone),
        Figure::new("wait-one", one),
        Figure::new("wait-three", three),
        Figure::new("rise-one", ratio(one, alone)),
        Figure::new("rise-three", ratio(three, one)),
        Figure::new("rise-elsewhere", ratio(elsewhere, alone)),
    ]
}
