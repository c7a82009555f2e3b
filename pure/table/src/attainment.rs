//! In how many of their windows the promises of volumes were kept, over each horizon.

use comfy_table::presets;
use weir_status::{Horizon, PoolStatus, SloAttainment, WindowCounters};

use crate::{dash, length, table};

const HEADER: [&str; 8] = [
    "volume",
    "goal",
    "last minute",
    "last hour",
    "last day",
    "since start",
    "burn rate, hour",
    "budget left, day",
];

/// The columns that may go, the first of them first.
const SPARE: [usize; 4] = [5, 1, 2, 3];

/// A row for each volume whose promise is judged in windows; `None` without such a volume.
pub(crate) fn pools(pools: &[PoolStatus], width: Option<u16>) -> Option<String> {
    let volumes = pools.iter().flat_map(|pool| &pool.volumes);
    let rows = volumes.filter_map(|volume| Some(row(&volume.name, volume.attainment.as_ref()?)));
    let rows: Vec<_> = rows.collect();
    let style = presets::UTF8_HORIZONTAL_ONLY;
    (!rows.is_empty()).then(|| table(style, &HEADER, rows, |column| column == 0, &SPARE, width))
}

fn row(volume: &str, attainment: &SloAttainment) -> [String; HEADER.len()] {
    let SloAttainment { goal_percent, last_minute, last_hour, last_day, since_start } = attainment;
    let budget = last_day.budget_left_percent;
    [
        volume.to_owned(),
        format!("{} %", (goal_percent * 1e3).round() / 1e3),
        met(last_minute),
        met(last_hour),
        met(last_day),
        met(since_start),
        last_hour.burn_rate.map_or(dash(), |burn| format!("{burn:.1}")),
        budget.map_or(dash(), |left| format!("{left:.0} %")),
    ]
}

/// The share that was met, and of how many windows; and of how long, if the volume has not been served for
/// the whole horizon or a part of it was not judged; then for how long it was not, too.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, and no time is negative
pub(crate) fn met(horizon: &Horizon) -> String {
    let Horizon { windows_met: met, windows_missed: missed, .. } = *horizon;
    let counted = share(WindowCounters { met, missed, ..WindowCounters::default() });
    let over = match horizon.is_whole || met + missed == 0 {
        true => counted,
        false => format!("{counted} in {}", length((horizon.over_s * 1e3) as u64)),
    };
    match horizon.not_judged_s > 0.0 {
        true => format!("{over}, {:.0} s not judged", horizon.not_judged_s),
        false => over,
    }
}

/// The share of windows that was met, and of how many; never 100 % if one was missed.
pub(crate) fn share(windows: WindowCounters) -> String {
    let judged = windows.met + windows.missed;
    let down = |share: f64| (share * 1e4).floor() / 1e2;
    windows.attainment().map_or(dash(), |share| format!("{:.2} % of {judged}", down(share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn horizon(met: u64, missed: u64, is_whole: bool) -> Horizon {
        Horizon {
            over_s: 305.0,
            is_whole,
            not_judged_s: 0.0,
            windows_met: met,
            windows_missed: missed,
            met_percent: None,
            burn_rate: Some(1.25),
            budget_left_percent: Some(-25.4),
        }
    }

    #[test]
    fn a_horizon_that_is_longer_than_the_uptime_says_how_long_it_is() {
        assert_eq!(met(&horizon(299, 1, true)), "99.66 % of 300");
        assert_eq!(met(&horizon(299, 1, false)), "99.66 % of 300 in 5 m 5 s");
        assert_eq!(met(&horizon(0, 0, false)), "-");
        assert_eq!(met(&horizon(86_399, 1, true)), "99.99 % of 86400", "one was missed");
    }

    #[test]
    fn what_was_not_judged_is_told_in_seconds() {
        let stalled = |met| Horizon { not_judged_s: 19.2, ..horizon(met, 0, false) };
        assert_eq!(met(&stalled(41)), "100.00 % of 41 in 5 m 5 s, 19 s not judged");
        assert_eq!(met(&stalled(0)), "-, 19 s not judged");
    }

    #[test]
    fn a_row_has_each_horizon_the_burn_rate_and_the_budget() {
        let attainment = SloAttainment {
            goal_percent: 99.9,
            last_minute: horizon(60, 0, true),
            last_hour: horizon(300, 0, false),
            last_day: horizon(300, 0, false),
            since_start: horizon(300, 0, true),
        };
        let row = row("db", &attainment);
        assert_eq!(row[..3], ["db", "99.9 %", "100.00 % of 60"]);
        assert_eq!(
            row[3..6],
            ["100.00 % of 300 in 5 m 5 s", "100.00 % of 300 in 5 m 5 s", "100.00 % of 300"]
        );
        assert_eq!(row[6..], ["1.2", "-25 %"]);
    }
}
