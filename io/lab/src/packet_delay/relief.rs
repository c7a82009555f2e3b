//! §3.5, figure 11: a reader waits for less time while the packets to twelve writers are delayed.
//!
//! In the control, nobody is delayed at these times.

use crate::delay::Measured;
use crate::study::target::Time;
use crate::study::{Figure, Records};

/// How long after a change the loads have settled, in microseconds.
const SETTLING_US: u64 = 3_000_000;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let delayed = records.measured.get("delayed");
    let times = delayed.map(times).unwrap_or_default();
    let [zero, first, second] = [0, 4_600, 9_600].map(|delay_us| {
        let of_delay = times.iter().filter(|(delay, _)| *delay == delay_us);
        of_delay.map(|(_, time)| time.clone()).collect::<Vec<_>>()
    });
    let wait = |run: &str, times: &[Time]| records.measured.get(run)?.wait_ms(times);
    let written = |times: &[Time]| delayed?.write_rate(times);
    let fall = |run: &str, times: &[Time], before: &[Time]| {
        Some(100.0 * (1.0 - wait(run, times)? / wait(run, before)?))
    };
    vec![
        Figure::new("wait-0", wait("delayed", &zero)),
        Figure::new("wait-4.6", wait("delayed", &first)),
        Figure::new("wait-9.6", wait("delayed", &second)),
        Figure::new("written-0", written(&zero)),
        Figure::new("written-4.6", written(&first)),
        Figure::new("written-9.6", written(&second)),
        Figure::new("fall-4.6", fall("delayed", &first, &zero)),
        Figure::new("fall-9.6", fall("delayed", &second, &first)),
        Figure::new("fall-4.6-without", fall("none", &first, &zero)),
        Figure::new("fall-9.6-without", fall("none", &second, &first)),
    ]
}

/// Each delay with the time in which it was in force for all writers, without its beginning.
fn times(measured: &Measured) -> Vec<(u64, Time)> {
    let end = measured.whole().end;
    let mut changes: Vec<_> = measured.changes.iter().map(|change| (change.at_us, change.delay_us)).collect();
    changes.insert(0, (0, 0));
    changes.dedup();
    let next = changes.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let times = changes.iter().zip(next).map(|(&(at, delay), next)| (delay, at + SETTLING_US..next));
    times.filter(|(_, time)| !time.is_empty()).collect()
}
