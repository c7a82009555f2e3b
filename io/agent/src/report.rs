//! The state of the part that decides, in the words of the status.

use weir_model::{Instant, Span};
use weir_status::{InitiatorStatus, ResourceStatus, Standing, TargetOutOfReach, ThrottleStatus};
use weir_throttle::{LeftOut, Report, ResourceReport};

use crate::history::History;

/// The status that the API tells.
pub(crate) fn status(
    now: Instant,
    dry_run: bool,
    ceiling: Span,
    report: &Report,
    history: &History,
) -> ThrottleStatus {
    let LeftOut { sessions, connections, devices } = report.left_out;
    let mut resources: Vec<_> =
        report.resources.iter().map(|found| resource(now, ceiling, found, history)).collect();
    resources.sort_by(|one, other| one.name.cmp(&other.name));
    let out_of_reach = report.out_of_reach.iter();
    let out_of_reach =
        out_of_reach.map(|found| TargetOutOfReach { target: found.target.clone(), why: found.why.clone() });
    ThrottleStatus {
        dry_run,
        resources,
        out_of_reach: out_of_reach.collect(),
        interfaces_out_of_reach: Vec::new(),
        left_out: (sessions + connections + devices) as u64,
    }
}

fn resource(now: Instant, ceiling: Span, found: &ResourceReport, history: &History) -> ResourceStatus {
    let initiators = found.initiators.iter().map(|initiator| InitiatorStatus {
        name: initiator.name.clone(),
        written_bytes_per_s: initiator.rate,
        standing: standing(initiator.standing),
        connections: initiator.connections as u64,
    });
    let mut initiators: Vec<_> = initiators.collect();
    initiators.sort_by(|one, other| one.name.cmp(&other.name));
    ResourceStatus {
        name: found.name.clone(),
        wait_us: found.wait.as_micros(),
        threshold_us: found.threshold.as_micros(),
        delay_us: found.delay.as_micros(),
        ceiling_us: ceiling.as_micros(),
        at_ceiling: found.ceiling_reached,
        write_limit_bytes_per_s: found.write_limit,
        initiators,
        intervals: history.of(now, &found.id),
    }
}

/// The part that decides has an enum of its own: it may change without changing what scripts read.
const fn standing(found: weir_throttle::Standing) -> Standing {
    match found {
        weir_throttle::Standing::Above => Standing::AboveLimit,
        weir_throttle::Standing::Forced => Standing::Forced,
        weir_throttle::Standing::Below => Standing::BelowLimit,
        weir_throttle::Standing::Exempt => Standing::Exempt,
    }
}
