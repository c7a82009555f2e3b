//! What servers report about themselves, as tables for people.
//!
//! `weir status`, `weir top`, `weir explain` and `weir why` print these tables, and so does the
//! demonstration. It is a program of its own, so the tables are a crate: the demonstration would otherwise be
//! compiled with all of weir.

mod amount;
mod array;
mod background;
mod fit;
mod reply_delay;
mod sharing;
mod throttle;
mod transfers;
mod why;

use comfy_table::presets;
use weir_status::{ControlKind, GatewayStatus, PoolStatus, VolumeStatus, WindowStatus};

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
    "SLO met",
    "depth now/peak/target",
];

/// The columns that may go if the terminal is too narrow, the first of them first.
const SPARE: [usize; 6] = [2, 4, 1, 9, 6, 3];

/// A table with a row for each volume, from its last closed window; one with a row for each pool in which
/// background volumes are held back; one with a row for each pool in which replies are held; and one for each
/// pool whose requests are shared out. They fit into `width` columns; `None`: they are as wide as they are.
pub fn render(status: &GatewayStatus, width: Option<u16>) -> String {
    let (shared, others): (Vec<_>, Vec<_>) = status.pools.iter().partition(|pool| pool.sharing.is_some());
    let mut tables = Vec::new();
    if shared.is_empty() || others.iter().any(|pool| !pool.volumes.is_empty()) {
        tables.push(volumes(&others, width));
    }
    tables.extend(background::pools(&others, width));
    tables.extend(reply_delay::pools(&others, width));
    tables.extend(shared.iter().filter_map(|pool| Some(sharing::pool(pool, pool.sharing.as_ref()?, width))));
    tables.join("\n\n")
}

fn volumes(pools: &[&PoolStatus], width: Option<u16>) -> String {
    let rows = pools.iter().flat_map(|pool| pool.volumes.iter().map(|volume| row(pool, volume)));
    table(presets::UTF8_HORIZONTAL_ONLY, &HEADER, rows, |column| column < 2, &SPARE, width)
}

fn row(pool: &PoolStatus, volume: &VolumeStatus) -> [String; HEADER.len()] {
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
        attainment(volume),
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

fn attainment(volume: &VolumeStatus) -> String {
    let windows = volume.windows;
    windows
        .attainment()
        .map_or(dash(), |share| format!("{:.1} % of {}", share * 100.0, windows.met + windows.missed))
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
