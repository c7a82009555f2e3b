//! maestro-priority (Maestro §5.1, figure 5), through four gateways: `light` wants 15 MB/s and `heavy` 45
//! MB/s. First their priorities are equal, then `heavy` has four times the priority of `light`.

use super::super::bed::TestBed;
use super::super::progress::Progress;
use super::super::report::{Bar, Row};
use super::loads::Load;
use super::network::HOSTS;
use super::observe::rates;
use super::site::{Site, Volume};
use super::{TOTAL, row};

const VOLUMES: [Volume; 2] = [
    Volume { name: "light", target: "{ throughput = \"15MB/s\" }" },
    Volume { name: "heavy", target: "{ throughput = \"45MB/s\" }" },
];
/// Megabytes a second, as in [`VOLUMES`].
const TARGETS: [f64; 2] = [15.0, 45.0];
/// Requests outstanding at each host. The paper has 25 and 100 threads in all; here it is 24, because 25
/// cannot be divided by four.
const THREADS: [u32; 2] = [6, 25];

/// Control intervals until a phase has settled, and over which it is judged.
const SETTLING: u32 = 20;
const JUDGED: u32 = 15;

/// The number of steps.
pub(super) const STEPS: u32 = 2;

/// Makes the run.
///
/// # Errors
/// If something does not start, or fails.
pub(super) fn measure(bed: &TestBed, progress: &mut Progress) -> anyhow::Result<Vec<Row>> {
    let site = Site::start(bed, "priority", &VOLUMES, TOTAL)?;
    let mut loads = Vec::new();
    for host in 0..HOSTS {
        for (volume, threads) in VOLUMES.iter().zip(THREADS) {
            loads.push(Load::start(host, &site.uri(host, volume.name), threads)?);
        }
    }
    let mut phase = |name: &str| {
        let names = VOLUMES.map(|volume| volume.name);
        rates(&site, &names, SETTLING, &mut loads)?;
        let rates = rates(&site, &names, JUDGED, &mut loads)?;
        progress.advance(1, &format!("priority, {name}: {:.1} and {:.1} MB/s", rates[0], rates[1]));
        anyhow::Ok([rates[0] / TARGETS[0], rates[1] / TARGETS[1]])
    };
    let [light, heavy] = phase("equal priorities")?;
    let difference = (light - heavy).abs();
    site.set("heavy", "priority=4")?;
    let [light, heavy] = phase("heavy before light")?;
    let ratio = (1.0 - light) / (1.0 - heavy);
    drop(loads);
    let (_, sum) = site.grants()?;
    eprintln!("{sum}");
    Ok(vec![
        row("priority", "equal: difference of performance", difference, Some(Bar::AtMost(0.1))),
        row("priority", "4 to 1: ratio of shortfalls, from below", ratio, Some(Bar::AtLeast(3.0))),
        row("priority", "4 to 1: ratio of shortfalls, from above", ratio, Some(Bar::AtMost(5.0))),
    ])
}
