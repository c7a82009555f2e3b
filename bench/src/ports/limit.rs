//! A limit of a volume, through four gateways: the sum of what they let through is the limit, not four times
//! the limit.

use std::thread;

use super::super::bed::TestBed;
use super::super::progress::Progress;
use super::super::report::{Bar, Row};
use super::loads::Load;
use super::network::HOSTS;
use super::observe::{INTERVAL, rates};
use super::site::{Site, Volume};
use super::{TOTAL, row};

const VOLUME: Volume =
    Volume { name: "limited", target: "{ throughput = \"30MB/s\" }\nmax_bandwidth = \"10MB/s\"" };
/// Megabytes a second, as in [`VOLUME`].
const LIMIT: f64 = 10.0;
/// Requests outstanding at each host: uneven, so that equal parts of the limit would not do.
const THREADS: [u32; HOSTS] = [24, 12, 6, 3];

/// Control intervals until the parts have settled, and over which the sum is judged.
const SETTLING: u32 = 5;
const JUDGED: u32 = 15;

/// The number of steps.
pub(super) const STEPS: u32 = 1;

/// Makes the run.
///
/// # Errors
/// If something does not start, or fails.
pub(super) fn measure(bed: &TestBed, progress: &mut Progress) -> anyhow::Result<Vec<Row>> {
    let site = Site::start(bed, "limit", &[VOLUME], TOTAL)?;
    let loads = THREADS.iter().enumerate();
    let mut loads = loads
        .map(|(host, threads)| Load::start(host, &site.uri(host, VOLUME.name), *threads))
        .collect::<anyhow::Result<Vec<_>>>()?;
    thread::sleep(INTERVAL * SETTLING);
    let rate = rates(&site, &[VOLUME.name], JUDGED, &mut loads)?[0];
    progress.advance(1, &format!("limit: {rate:.2} MB/s through four gateways, of {LIMIT} MB/s"));
    Ok(vec![
        row("limit", "rate through all gateways, of the limit", rate / LIMIT, Some(Bar::AtMost(1.05))),
        row("limit", "the same: the limit can be used", rate / LIMIT, Some(Bar::AtLeast(0.9))),
    ])
}
