//! What a packet-delay agent reports, as tables for people.

use comfy_table::presets;
use weir_status::{DelayInterval, InitiatorStatus, ResourceStatus, Standing, ThrottleStatus};

use crate::sharing::LIST;
use crate::{dash, latency, table};

const RESOURCES: [&str; 6] = ["resource", "read wait", "threshold", "delay", "ceiling", "members"];
const INITIATORS: [&str; 5] = ["resource", "initiator", "writes", "limit", "state"];
const INTERVALS: [&str; 4] = ["ended", "read wait", "threshold", "delay"];

/// A row for each resource, a row for each initiator, and a line for each target out of reach; in `width`
/// columns.
pub fn throttle(status: &ThrottleStatus, width: Option<u16>) -> String {
    let style = presets::UTF8_HORIZONTAL_ONLY;
    let mut parts = Vec::new();
    if status.dry_run {
        parts.push("dry run: nothing is delayed; the delays are those that would be in force".to_owned());
    }
    if status.resources.is_empty() {
        parts.push("no resource: no iSCSI target of this host has a LUN on a block device".to_owned());
    } else {
        let resources = status.resources.iter().map(resource);
        parts.push(table(style, &RESOURCES, resources, |column| column == 0, &[4, 2], width));
    }
    let initiators = status
        .resources
        .iter()
        .flat_map(|resource| resource.initiators.iter().map(move |initiator| row(resource, initiator)));
    let initiators: Vec<_> = initiators.collect();
    if !initiators.is_empty() {
        parts.push(table(style, &INITIATORS, initiators, |column| column != 2, &[0, 3], width));
    }
    parts.extend(
        status
            .out_of_reach
            .iter()
            .map(|target| format!("{}: its initiators cannot be delayed: {}", target.target, target.why)),
    );
    let interfaces = status.interfaces_out_of_reach.iter();
    parts.extend(interfaces.map(|found| format!("{}; nothing is delayed on {}", found.why, found.interface)));
    if status.left_out > 0 {
        parts.push(format!(
            "{} sessions, connections or devices are too many, and left alone",
            status.left_out
        ));
    }
    parts.join("\n\n")
}

/// The last control intervals of a resource, and its initiators; in `width` columns.
pub fn explained_resource(status: &ThrottleStatus, resource: &ResourceStatus, width: Option<u16>) -> String {
    let one = ThrottleStatus {
        dry_run: status.dry_run,
        resources: vec![resource.clone()],
        interfaces_out_of_reach: status.interfaces_out_of_reach.clone(),
        ..ThrottleStatus::default()
    };
    if resource.intervals.is_empty() {
        return format!("{}\n\nits first control interval has not ended yet", throttle(&one, width));
    }
    let intervals = table(LIST, &INTERVALS, resource.intervals.iter().map(interval), |_| false, &[], width);
    format!("{}\n\n{intervals}", throttle(&one, width))
}

fn resource(resource: &ResourceStatus) -> [String; RESOURCES.len()] {
    let members = resource.initiators.iter().filter(|initiator| initiator.standing.is_member()).count();
    let ceiling = time(resource.ceiling_us);
    [
        resource.name.clone(),
        time(resource.wait_us),
        time(resource.threshold_us),
        if resource.delay_us == 0 { dash() } else { time(resource.delay_us) },
        if resource.at_ceiling { format!("{ceiling} (reached)") } else { ceiling },
        format!("{members} of {}", resource.initiators.len()),
    ]
}

fn row(resource: &ResourceStatus, initiator: &InitiatorStatus) -> [String; INITIATORS.len()] {
    [
        resource.name.clone(),
        initiator.name.clone(),
        rate(initiator.written_bytes_per_s),
        rate(resource.write_limit_bytes_per_s),
        state(resource, initiator),
    ]
}

/// Whether the initiator is delayed now, and why.
fn state(resource: &ResourceStatus, initiator: &InitiatorStatus) -> String {
    let why = match initiator.standing {
        Standing::BelowLimit => return "not delayed: writes less than the limit".to_owned(),
        Standing::Exempt => return "never delayed: exempt".to_owned(),
        Standing::AboveLimit => "writes more than the limit",
        Standing::Forced => "forced",
    };
    if initiator.connections == 0 {
        format!("out of reach: {why}, but none of its connections can be delayed")
    } else if resource.delay_us == 0 {
        format!("member, not delayed now: {why}")
    } else {
        format!("delayed by {}: {why}", time(resource.delay_us))
    }
}

fn interval(interval: &DelayInterval) -> [String; INTERVALS.len()] {
    let &DelayInterval { age_ms, wait_us, threshold_us, delay_us } = interval;
    [format!("{age_ms} ms ago"), time(wait_us), time(threshold_us), time(delay_us)]
}

#[allow(clippy::cast_precision_loss)] // shown with three digits
fn time(us: u64) -> String {
    latency(us as f64)
}

#[allow(clippy::cast_precision_loss)] // shown with a tenth
fn rate(bytes_per_s: u64) -> String {
    format!("{:.1} MiB/s", bytes_per_s as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use weir_status::InterfaceOutOfReach;

    use super::*;

    fn status() -> ThrottleStatus {
        let initiator = |name: &str, written_bytes_per_s, standing, connections| InitiatorStatus {
            name: name.to_owned(),
            written_bytes_per_s,
            standing,
            connections,
        };
        let resource = ResourceStatus {
            name: "vg0".to_owned(),
            wait_us: 14_200,
            threshold_us: 15_000,
            delay_us: 3_500,
            ceiling_us: 20_000,
            at_ceiling: false,
            write_limit_bytes_per_s: 1 << 20,
            initiators: vec![
                initiator("iqn.a:backup", 12 << 20, Standing::AboveLimit, 2),
                initiator("iqn.a:db", 1 << 10, Standing::BelowLimit, 0),
                initiator("iqn.a:lost", 2 << 20, Standing::AboveLimit, 0),
            ],
            intervals: vec![DelayInterval {
                age_ms: 100,
                wait_us: 16_000,
                threshold_us: 15_000,
                delay_us: 3_500,
            }],
        };
        ThrottleStatus { resources: vec![resource], ..ThrottleStatus::default() }
    }

    #[test]
    fn a_resource_is_a_row_with_units_and_each_initiator_says_whether_it_is_delayed_and_why() {
        let text = throttle(&status(), None);
        for part in [
            "14.20 ms",
            "15.00 ms",
            "3.50 ms",
            "20.00 ms",
            "2 of 3",
            "12.0 MiB/s",
            "delayed by 3.50 ms: writes more than the limit",
            "not delayed: writes less than the limit",
            "out of reach: writes more than the limit, but none of its connections can be delayed",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }

    #[test]
    fn an_explanation_has_the_last_control_intervals() {
        let mut status = status();
        let why = "br0: somebody has set its root queue".to_owned();
        status.interfaces_out_of_reach = vec![InterfaceOutOfReach { interface: "br0".to_owned(), why }];
        let text = explained_resource(&status, &status.resources[0], None);
        assert!(text.contains("100 ms ago") && text.contains("16.00 ms"), "{text}");
        assert!(text.contains("br0: somebody has set its root queue; nothing is delayed on br0"), "{text}");
    }

    #[test]
    fn a_host_without_resources_and_a_dry_run_are_said() {
        let text = throttle(&ThrottleStatus { dry_run: true, ..ThrottleStatus::default() }, None);
        assert!(text.starts_with("dry run") && text.contains("no resource"), "{text}");
    }
}
