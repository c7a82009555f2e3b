//! What servers report about themselves, as tables for people.
//!
//! `weir status`, `weir top`, `weir explain` and `weir why` print these tables, and so does the
//! demonstration. It is a program of its own, so the tables are a crate: the demonstration would otherwise be
//! compiled with all of weir.

mod amount;
mod array;
mod attainment;
mod background;
mod fit;
mod reply_delay;
mod sharing;
mod throttle;
mod transfers;
mod why;

use comfy_table::presets;
use weir_status::{ControlKind, GatewayStatus, PoolStatus, VolumeStatus, WindowCounters, WindowStatus};

pub use amount::{length, rate, size};
pub use array::array;
pub use fit::table;
pub use sharing::explanation;
pub use throttle::{explained_resource, throttle};
pub use transfers::transfers;
pub use why::why;

/// Clears the terminal and goes to its top left corner, where the next table replaces the last one.
pub const CLEAR: &str = "\x1b[2J\x1b[H";

const HEADER: [&str; 10] = [
    "volume",
    "pool",
    "offered IO/s",
    "IO/s",
    "MiB/s",
    "mean",
    "p99",
    "SLO",
    "SLO met, last minute",
    "depth now/peak/target",
];

/// The place of the column with how often a promise was met.
const MET: usize = 8;

/// The columns that may go if the terminal is too narrow, the first of them first.
const SPARE: [usize; 6] = [2, 4, 1, 9, 6, 3];

/// A table with a row for each volume, from its last closed window; one with how well each promise was kept
/// over each horizon; one with a row for each pool in which background volumes are held back; one with a row
/// for each pool in which replies are held; and one for each pool whose requests are shared out. They fit
/// into `width` columns; `None`: they are as wide as they are.
pub fn render(status: &GatewayStatus, width: Option<u16>) -> String {
    let (shared, others): (Vec<_>, Vec<_>) = status.pools.iter().partition(|pool| pool.sharing.is_some());
    let mut tables = Vec::new();
    if shared.is_empty() || others.iter().any(|pool| !pool.volumes.is_empty()) {
        tables.push(volumes(&others, &HEADER, minute, width));
    }
    tables.extend(attainment::pools(&status.pools, width));
    tables.extend(background::pools(&others, width));
    tables.extend(reply_delay::pools(&others, width));
    tables.extend(shared.iter().filter_map(|pool| Some(sharing::pool(pool, pool.sharing.as_ref()?, width))));
    tables.join("\n\n")
}

/// The table with a row for each volume, in which the windows of a phase are counted, and no others.
/// `counted` are a volume's windows of that phase.
pub fn of_phase(
    status: &GatewayStatus,
    phase: &str,
    counted: impl Fn(&VolumeStatus) -> WindowCounters,
    width: Option<u16>,
) -> String {
    let met = format!("SLO met, {phase}");
    let header = HEADER.map(|column| if column == HEADER[MET] { met.as_str() } else { column });
    let met = |volume: &VolumeStatus| attainment::share(counted(volume));
    volumes(&status.pools.iter().collect::<Vec<_>>(), &header, met, width)
}

fn volumes(
    pools: &[&PoolStatus],
    header: &[&str],
    met: impl Fn(&VolumeStatus) -> String,
    width: Option<u16>,
) -> String {
    let rows = pools.iter().flat_map(|pool| pool.volumes.iter().map(|volume| row(pool, volume, met(volume))));
    table(presets::UTF8_HORIZONTAL_ONLY, header, rows, |column| column < 2, &SPARE, width)
}

fn row(pool: &PoolStatus, volume: &VolumeStatus, met: String) -> [String; HEADER.len()] {
    let window = volume.last_window.as_ref();
    let rate = |of: fn(&WindowStatus) -> f64| window.map_or(dash(), |w| format!("{:.0}", of(w)));
    [
        volume.name.clone(),
        pool.name.clone(),
        rate(|window| window.offered_iops),
        rate(|window| window.iops),
        window.map_or(dash(), |window| format!("{:.1}", window.bytes_per_s / (1024.0 * 1024.0))),
        window.and_then(|window| window.mean_us).map_or(dash(), latency),
        window.and_then(|window| window.p99_us).map_or(dash(), whole_latency),
        slo(pool, volume),
        met,
        depth(pool),
    ]
}

/// The target in force; in brackets where it is measured and not enforced.
fn slo(pool: &PoolStatus, volume: &VolumeStatus) -> String {
    match volume.slo_target_us {
        Some(target) if matches!(pool.control, ControlKind::None | ControlKind::Pid) => {
            format!("({})", whole_latency(target))
        }
        Some(target) => whole_latency(target),
        None if volume.target.is_some() => volume.target.as_ref().map_or(dash(), sharing::target),
        None if volume.has_slo => "out of contract".to_owned(),
        None => dash(),
    }
}

/// How well a promise was kept in the last minute.
fn minute(volume: &VolumeStatus) -> String {
    volume.attainment.as_ref().map_or(dash(), |attainment| attainment::met(&attainment.last_minute))
}

fn depth(pool: &PoolStatus) -> String {
    let or_dash = |value: Option<u32>| value.map_or(dash(), |value| value.to_string());
    let queued = if pool.queued > 0 { format!(" (+{} queued)", pool.queued) } else { String::new() };
    format!("{}/{}/{}{queued}", pool.in_flight, or_dash(pool.in_flight_peak), or_dash(pool.depth_target))
}

#[allow(clippy::cast_precision_loss)]
fn whole_latency(us: u64) -> String {
    latency(us as f64)
}

/// Three digits and a unit.
pub fn latency(us: f64) -> String {
    if us < 1e3 {
        format!("{us:.0} us")
    } else if us < 1e6 {
        format!("{:.2} ms", us / 1e3)
    } else {
        format!("{:.2} s", us / 1e6)
    }
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use weir_status::{StageLatencies, WindowCounters};

    use super::*;

    fn status(windows: WindowCounters) -> GatewayStatus {
        let volume = VolumeStatus {
            name: "db".to_owned(),
            size_bytes: 1,
            has_slo: true,
            slo_target_us: Some(1_000),
            target: None,
            requests: Vec::new(),
            latency: [StageLatencies::default(), StageLatencies::default()],
            windows,
            attainment: None,
            last_window: None,
            last_judged: None,
            sharing: None,
            is_heavy_writer: false,
        };
        let pool = PoolStatus {
            name: "disk".to_owned(),
            control: ControlKind::None,
            depth_target: None,
            in_flight: 0,
            in_flight_peak: None,
            queued: 0,
            sharing: None,
            reply_delay: None,
            background: None,
            volumes: vec![volume],
        };
        GatewayStatus { connections: 0, pools: vec![pool] }
    }

    #[test]
    fn the_table_of_a_phase_names_it_and_counts_its_windows_alone() {
        let windows = |met, missed| WindowCounters { met, missed, ..WindowCounters::default() };
        let phase = windows(9, 1);
        let shown = of_phase(&status(windows(109, 901)), "with control", |_| phase, None);
        assert!(shown.contains(" SLO met, with control "), "{shown}");
        assert!(shown.contains(" 90.00 % of 10 ") && !shown.contains("1010"), "{shown}");
    }
}
