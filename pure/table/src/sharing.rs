//! How a law shares out an array, as tables for people: what is desired, in force and achieved for each
//! volume, and how the law came to that.

use comfy_table::{LineStyle, TableStyle, presets};
use weir_status::{
    ControlKind, Explanation, Fit, GrantStatus, IntervalStatus, PoolSharing, PoolStatus, TargetStatus, Unit,
    VolumeSharing, VolumeStatus,
};

use crate::{background, dash, latency, table};

const VOLUMES: [&str; 11] = [
    "volume",
    "IO/s",
    "MiB/s",
    "mean",
    "p99",
    "desired",
    "priority",
    "effective",
    "achieved",
    "of target",
    "why",
];

const INTERVALS: [&str; 13] = [
    "ended",
    "target",
    "priority",
    "measured",
    "of target",
    "slope",
    "fit",
    "had",
    "asked",
    "case",
    "share",
    "granted",
    "bound by",
];

/// The columns that may go, the first of them first.
const SPARE_OF_VOLUMES: [usize; 6] = [2, 4, 6, 8, 3, 1];
const SPARE_OF_INTERVALS: [usize; 7] = [6, 5, 2, 10, 7, 9, 3];

/// A pool in one line, and a row for each volume.
pub(super) fn pool(pool: &PoolStatus, sharing: &PoolSharing, width: Option<u16>) -> String {
    let rows = pool.volumes.iter().filter_map(|volume| Some(row(volume, volume.sharing.as_ref()?)));
    let last = VOLUMES.len() - 1;
    let style = presets::UTF8_HORIZONTAL_ONLY;
    let is_text = |column| column == 0 || column == last;
    let table = table(style, &VOLUMES, rows, is_text, &SPARE_OF_VOLUMES, width);
    format!("{}\n{table}", headline(pool, sharing))
}

/// A row for each of the last control intervals of a volume, or why there is none; in `width` columns.
pub fn explanation(explained: &Explanation, width: Option<u16>) -> String {
    let Explanation { volume, pool, control, intervals, background } = explained;
    let which = format!("volume {volume} in pool {pool}");
    if let Some(background) = background {
        return format!("{which}: {}", background::sentence(background));
    }
    if *control != ControlKind::Maestro {
        return format!(
            "{which}: there are no shares to explain where control = \"{control}\"; `weir status` shows what it gets"
        );
    }
    if intervals.is_empty() {
        return format!("{which}: its first control interval has not ended yet");
    }
    let has_ports = intervals.iter().any(|interval| interval.grants.len() > 1);
    let ports = if has_ports { "; its share is dealt out to its ports" } else { "" };
    let last = INTERVALS.len() - 1;
    let is_text = |column| [1, 6, 9, last].contains(&column);
    let rows = intervals.iter().map(interval);
    let table = table(LIST, &INTERVALS, rows, is_text, &SPARE_OF_INTERVALS, width);
    format!("{which}, requests at a time at the device{ports}:\n{table}")
}

/// Without lines between the rows, of which there are many.
pub(super) const LIST: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('═').junction('═'));

fn headline(pool: &PoolStatus, sharing: &PoolSharing) -> String {
    let total = match (sharing.total_concurrency, sharing.is_probed) {
        (Some(total), true) => format!("at most {total} at the device (auto, found by probing)"),
        (Some(total), false) => format!("at most {total} at the device"),
        (None, _) => "at the device what its controller grants".to_owned(),
    };
    let case = sharing.case.map(|case| format!("; {case}")).unwrap_or_default();
    format!("pool {}: {total}, now {}, {} queued{case}", pool.name, pool.in_flight, pool.queued)
}

fn row(volume: &VolumeStatus, sharing: &VolumeSharing) -> [String; VOLUMES.len()] {
    let window = volume.last_window.as_ref();
    let VolumeSharing { desired, effective, achieved, reason } = sharing;
    [
        volume.name.clone(),
        window.map_or(dash(), |window| format!("{:.0}", window.iops)),
        window.map_or(dash(), |window| format!("{:.1}", mebibytes(window.bytes_per_s))),
        window.and_then(|window| window.mean_us).map_or(dash(), latency),
        window.and_then(|window| window.p99_us).map_or(dash(), crate::whole_latency),
        desired.target.as_ref().map_or(dash(), target),
        desired.priority.to_string(),
        grants(effective),
        measured(desired.target.as_ref(), achieved.as_ref().map(|achieved| achieved.value)),
        achieved.as_ref().map_or(dash(), |achieved| percent(achieved.percent)),
        reason.clone().unwrap_or_default(),
    ]
}

fn interval(interval: &IntervalStatus) -> [String; INTERVALS.len()] {
    let achieved = interval.achieved.as_ref();
    [
        format!("{:.1} s ago", interval.age_s),
        interval.target.as_ref().map_or(dash(), target),
        interval.priority.to_string(),
        measured(interval.target.as_ref(), achieved.map(|achieved| achieved.value)),
        achieved.map_or(dash(), |achieved| percent(achieved.percent)),
        format!("{:.2}", interval.slope),
        fit(interval.fit, interval.fit_value),
        format!("{:.1}", interval.had),
        format!("{:.1}", interval.requested),
        interval.case.to_string(),
        format!("{:.1}", interval.allotted),
        grants(&interval.grants),
        interval.bound_by.to_string(),
    ]
}

/// What each port gets, the only one without its name.
pub(super) fn grants(grants: &[GrantStatus]) -> String {
    let of = |grant: &GrantStatus| {
        let port = grant.port.as_ref().map(|port| format!("{port} ")).unwrap_or_default();
        let rate = grant.max_iops.map(|rate| format!(", {rate:.0} IO/s")).unwrap_or_default();
        #[allow(clippy::cast_precision_loss)] // rates far below 2^53
        let bytes = |rate: u64| format!(", {:.1} MiB/s", mebibytes(rate as f64));
        format!("{port}{}{rate}{}", grant.concurrency, grant.max_bytes_per_s.map(bytes).unwrap_or_default())
    };
    grants.iter().map(of).collect::<Vec<_>>().join(" + ")
}

pub(super) fn target(target: &TargetStatus) -> String {
    format!("{} {}", target.metric, quantity(target.unit, target.value))
}

pub(super) fn measured(target: Option<&TargetStatus>, value: Option<f64>) -> String {
    target.zip(value).map_or(dash(), |(target, value)| quantity(target.unit, value))
}

fn quantity(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Microseconds => latency(value),
        Unit::BytesPerSecond => format!("{:.1} MiB/s", mebibytes(value)),
        Unit::RequestsPerSecond => format!("{value:.0} IO/s"),
    }
}

/// Whether a slope was found in the data, or why it is the default.
fn fit(fit: Fit, figure: Option<f64>) -> String {
    let figure = figure.map_or(dash(), |figure| format!("{figure:.2}"));
    match fit {
        Fit::Regression => format!("R² {figure}"),
        Fit::NoInformation => "default: no change".to_owned(),
        Fit::Poor => format!("default: R² {figure}"),
        Fit::OutOfBounds => format!("default: found {figure}"),
    }
}

pub(super) fn percent(percent: f64) -> String {
    format!("{percent:.0} %")
}

fn mebibytes(bytes: f64) -> f64 {
    bytes / (1024.0 * 1024.0)
}

#[cfg(test)]
mod tests {
    use weir_model::Percentile;
    use weir_status::{AchievedStatus, BackgroundStatus, BoundBy, Case, Metric};

    use super::*;

    fn interval_of(target: Option<TargetStatus>) -> IntervalStatus {
        IntervalStatus {
            age_s: 2.04,
            target,
            priority: 4.0,
            achieved: Some(AchievedStatus { value: 12_500.0, percent: 80.0 }),
            slope: 0.75,
            fit: Fit::Regression,
            fit_value: Some(0.934),
            had: 10.0,
            requested: 12.5,
            case: Case::Overload,
            allotted: 11.0,
            bound_by: BoundBy::StepLimit,
            grants: vec![
                GrantStatus {
                    port: Some("a".to_owned()),
                    concurrency: 8,
                    max_iops: Some(450.0),
                    max_bytes_per_s: None,
                },
                GrantStatus {
                    port: Some("b".to_owned()),
                    concurrency: 3,
                    max_iops: None,
                    max_bytes_per_s: None,
                },
            ],
        }
    }

    #[test]
    fn an_interval_is_a_row_with_units() {
        let metric = Metric::Percentile(Percentile::from_tenths(950).unwrap());
        let target = TargetStatus { metric, value: 10_000.0, unit: metric.unit() };
        assert_eq!(
            interval(&interval_of(Some(target))),
            [
                "2.0 s ago",
                "p95 10.00 ms",
                "4",
                "12.50 ms",
                "80 %",
                "0.75",
                "R² 0.93",
                "10.0",
                "12.5",
                "overload",
                "11.0",
                "a 8, 450 IO/s + b 3",
                "step limit",
            ]
        );
    }

    #[test]
    fn where_nothing_is_shared_out_one_line_says_so() {
        let none = Explanation {
            volume: "db".to_owned(),
            pool: "p".to_owned(),
            control: ControlKind::Facade,
            intervals: Vec::new(),
            background: None,
        };
        let line = explanation(&none, None);
        assert!(line.starts_with("volume db in pool p: ") && line.lines().count() == 1, "{line}");
        let background = Some(BackgroundStatus {
            most: Some(4),
            share: 0.01,
            promised_most: None,
            lowered_rates: None,
            worst_off: None,
            cannot_be_met: None,
            has_lost_others: false,
        });
        let line = explanation(&Explanation { control: ControlKind::Promise, background, ..none }, None);
        let said = "volume db in pool p: background volumes: at most 4 requests at the device; worst off: -";
        assert_eq!(line, said);
    }
}
