//! maestro-ports (Maestro §5.2, figure 8), through four gateways: two volumes have equal load at each port.
//! First `light2` moves its load from two of the ports to the other two, then `light1` does.

use std::thread;

use super::super::bed::TestBed;
use super::super::progress::Progress;
use super::super::report::{Bar, Row};
use super::loads::Load;
use super::network::HOSTS;
use super::observe::{INTERVAL, now, rates, read_bounds, sum_at};
use super::site::{Site, Volume};
use super::{TOTAL, row};

const VOLUMES: [Volume; 2] = [
    Volume { name: "light1", target: "{ throughput = \"30MB/s\" }" },
    Volume { name: "light2", target: "{ throughput = \"30MB/s\" }" },
];
const NAMES: [&str; 2] = ["light1", "light2"];
/// Requests outstanding of each volume at each host, while the volume has load at all hosts.
const THREADS: u32 = 12;
/// The hosts to which the load moves. They then have twice as much.
const STAYING: [usize; 2] = [0, 2];

/// Control intervals: until the first phase has settled, within which the shares must follow, and over which
/// a phase is judged.
const SETTLING: u32 = 20;
const FOLLOWING: u32 = 5;
const JUDGED: u32 = 15;

/// The number of steps.
pub(super) const STEPS: u32 = 3;

/// The result of a phase.
struct Phase {
    rates: Vec<f64>,
    /// When the phase was judged, in seconds after the start of the machine.
    judged: (f64, f64),
}

/// Makes the run.
///
/// # Errors
/// If something does not start, or fails.
pub(super) fn measure(bed: &TestBed, progress: &mut Progress) -> anyhow::Result<Vec<Row>> {
    let site = Site::start(bed, "moving", &VOLUMES, TOTAL)?;
    let mut loads = [everywhere(&site, NAMES[0])?, everywhere(&site, NAMES[1])?];
    thread::sleep(INTERVAL * SETTLING);
    let mut phases = vec![phase(&site, &mut loads)?];
    progress.advance(1, "ports, equal load at four ports");
    for (volume, what) in [(1, "light2 at two ports"), (0, "both at two ports")] {
        loads[volume].clear();
        loads[volume] = at_two(&site, NAMES[volume])?;
        thread::sleep(INTERVAL * FOLLOWING);
        phases.push(phase(&site, &mut loads)?);
        progress.advance(1, &format!("ports, {what}"));
    }
    drop(loads);
    let (bounds, sum) = site.grants()?;
    eprintln!("{sum}");
    let bounds = read_bounds(&bounds);
    let mut rows = Vec::new();
    for (number, (phase, share)) in phases.iter().zip([0.5, 0.75, 1.0]).enumerate() {
        let (from, to) = phase.judged;
        let at = |at: f64| {
            let staying =
                |name: &str| STAYING.iter().any(|host| name.contains(&format!("recording-{host}/")));
            f64::from(sum_at(&bounds, at, |bound| staying(&bound.recording)))
                / f64::from(sum_at(&bounds, at, |_| true))
        };
        let mean = f64::midpoint(at(from + 0.1), at(to));
        let what = format!("phase {}: share of the two ports, less {share}", number + 1);
        rows.push(row("ports", &what, (mean - share).abs(), Some(Bar::AtMost(0.1))));
    }
    for (volume, name) in NAMES.iter().enumerate() {
        let moved = phases.iter().map(|phase| (phase.rates[volume] / phases[0].rates[volume] - 1.0).abs());
        let what = format!("{name}: most that its rate moves");
        rows.push(row("ports", &what, moved.fold(0.0, f64::max), Some(Bar::AtMost(0.1))));
    }
    Ok(rows)
}

fn everywhere(site: &Site<'_>, volume: &str) -> anyhow::Result<Vec<Load>> {
    (0..HOSTS).map(|host| Load::start(host, &site.uri(host, volume), THREADS)).collect()
}

fn at_two(site: &Site<'_>, volume: &str) -> anyhow::Result<Vec<Load>> {
    STAYING.iter().map(|host| Load::start(*host, &site.uri(*host, volume), 2 * THREADS)).collect()
}

fn phase(site: &Site<'_>, loads: &mut [Vec<Load>; 2]) -> anyhow::Result<Phase> {
    let from = now();
    let rates = rates(site, &NAMES, JUDGED, &mut [])?;
    loads.iter_mut().flatten().try_for_each(Load::check)?;
    Ok(Phase { rates, judged: (from, now()) })
}
