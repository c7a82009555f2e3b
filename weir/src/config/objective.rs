//! `target` and `priority` of a volume: its objective under Maestro's law, and how much that objective
//! counts.

use weir_model::{Priority, Span, Target};
use weir_status::Metric;

use super::accepts;
use super::origin::{Origin, Resolved};
use super::reader::{Element, Section};
use super::units;

const TARGETS: &str = "a table with one metric: { latency = \"10ms\" }, { p95 = \"20ms\" } or another percentile, \
                       { throughput = \"20MiB/s\" } or { iops = 900 }";

/// The target: one metric, and its value.
pub(super) fn resolve_target(section: &Section<'_>) -> Resolved<Option<Target>> {
    let none = Resolved {
        value: None,
        origin: Origin::Default("nothing is promised: it gets what the others leave"),
    };
    let Some(metrics) = section.entries("target", TARGETS) else { return none };
    let metrics: Vec<_> = metrics.into_iter().map(unfold).collect();
    match metrics.as_slice() {
        [(name, element)] => resolve_metric(name, element).unwrap_or(none),
        several => {
            let names: Vec<_> = several.iter().map(|(name, _)| name.as_str()).collect();
            let found = if names.is_empty() { "no metric".to_owned() } else { names.join(" and ") };
            section.refuse_found("target", found, "exactly one metric");
            none
        }
    }
}

/// The priority: how much the target counts.
pub(super) fn resolve_priority(section: &Section<'_>) -> Resolved<Priority> {
    section.or_default("priority", &accepts::priority(), Priority::default(), "as everybody")
}

/// Joins the key of a percentile again: in TOML, `p99.9 = "20ms"` without quotes is a table `p99` with a key
/// `9`.
fn unfold((name, element): (String, Element<'_>)) -> (String, Element<'_>) {
    let mut inner = element.entries().unwrap_or_default();
    match inner.pop() {
        Some((tenths, element)) if inner.is_empty() => (format!("{name}.{tenths}"), element),
        _ => (name, element),
    }
}

fn resolve_metric(name: &str, element: &Element<'_>) -> Option<Resolved<Option<Target>>> {
    let Ok(metric) = name.parse() else {
        element.refuse_found("an unknown metric", Metric::ACCEPTED);
        return None;
    };
    let latency = accepts::duration(Span::from_micros(1)..=Span::from_secs(3600));
    let target = match metric {
        Metric::Latency => latency.then(|span| Some(Target::Latency(span))),
        Metric::Percentile(percentile) => {
            latency.then(move |span| Some(Target::Percentile(percentile, span)))
        }
        Metric::Throughput => accepts::bandwidth().then(|rate| Some(Target::Throughput(rate))),
        Metric::Iops => accepts::rate().then(|rate| Some(Target::Rate(rate))),
    };
    let Resolved { value, origin } = element.read(&target)?;
    Some(Resolved { value: Some(value), origin })
}

/// The target in the form of the file.
pub(super) fn show_target(target: Target) -> String {
    let value = match target {
        Target::Latency(span) | Target::Percentile(_, span) => units::show_span(span),
        Target::Throughput(rate) => units::show_bandwidth(rate),
        Target::Rate(rate) => rate.get().to_string(),
    };
    format!("{} {value}", Metric::from(target))
}
