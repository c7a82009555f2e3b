//! Failures of single parts: the controller is killed, then a gateway is killed, then a link is cut. Each
//! comes back.
//!
//! Meanwhile a writer on each host writes, flushes, and remembers which blocks were flushed. In the end all
//! of these must be there. The gateways' recordings show which bounds they were granted.

use std::thread;
use std::time::Duration;

use anyhow::ensure;

use super::super::bed::TestBed;
use super::super::progress::Progress;
use super::super::report::{Bar, Row};
use super::loads::{Writer, verify};
use super::network::HOSTS;
use super::observe::{Bound, INTERVAL, now, read_bounds, sum_at};
use super::site::{Site, Volume};
use super::{TOTAL, row};

const VOLUMES: [Volume; 1] = [Volume { name: "data", target: "{ latency = \"20ms\" }" }];

/// The number of control intervals after which a lease is over.
const LEASE: u32 = 3;
/// How long a failure lasts, and how long the recovery takes: a lease, and some intervals for the law.
const LASTS: Duration = Duration::from_secs(INTERVAL.as_secs() * (LEASE as u64 + 3));

/// The host whose gateway is killed, and the one whose link is cut.
const KILLED: usize = 1;
const CUT: usize = 2;

/// The number of steps.
pub(super) const STEPS: u32 = 4;

/// Makes the run.
///
/// # Errors
/// If something does not start, data is lost, or the bounds add up to more than the total.
pub(super) fn measure(bed: &TestBed, progress: &mut Progress) -> anyhow::Result<Vec<Row>> {
    let mut site = Site::start(bed, "failures", &VOLUMES, TOTAL)?;
    let uris: Vec<String> = (0..HOSTS).map(|host| site.uri(host, "data")).collect();
    let mut writers = uris
        .iter()
        .enumerate()
        .map(|(host, uri)| Writer::start(host, uri))
        .collect::<anyhow::Result<Vec<_>>>()?;
    thread::sleep(LASTS);

    site.kill_controller();
    let before = flushed(&mut writers)?;
    thread::sleep(LASTS);
    let without_controller = now();
    let went_on = went_on(&before, &flushed(&mut writers)?, &[]);
    site.start_controller()?;
    thread::sleep(LASTS);
    progress.advance(1, "failures: the controller was killed, and came back");

    site.kill_gateway(KILLED);
    let before = flushed(&mut writers)?;
    thread::sleep(LASTS);
    let without_gateway = now();
    let others_went_on = self::went_on(&before, &flushed(&mut writers)?, &[KILLED]);
    site.start_gateway(KILLED)?;
    thread::sleep(LASTS);
    progress.advance(1, "failures: a gateway was killed, and came back");

    site.network().set_link(CUT, false)?;
    thread::sleep(LASTS);
    let without_link = now();
    site.network().set_link(CUT, true)?;
    let before = flushed(&mut writers)?;
    thread::sleep(2 * LASTS);
    let at_end = now();
    let all_go_on = self::went_on(&before, &flushed(&mut writers)?, &[]);
    progress.advance(1, "failures: a link was cut, and joined again");

    let blocks = writers.into_iter().map(Writer::end).collect::<anyhow::Result<Vec<u64>>>()?;
    for (host, blocks) in blocks.iter().enumerate() {
        ensure!(*blocks > 0, "host {host} has flushed nothing");
        verify(&site.uri_at_array(), host, *blocks)?;
    }
    let (bounds, sum) = site.grants()?;
    progress.advance(
        1,
        &format!("failures: {} blocks are as they were flushed; {sum}", blocks.iter().sum::<u64>()),
    );
    Ok(rows(
        &read_bounds(&bounds),
        [without_controller, without_gateway, without_link, at_end],
        [went_on, others_went_on, all_go_on],
    ))
}

fn rows(bounds: &[Bound], [controller, gateway, link, end]: [f64; 4], went_on: [f64; 3]) -> Vec<Row> {
    let total = f64::from(TOTAL);
    let reserve = total / 2.0 / 4.0;
    let of = |host: usize| move |bound: &Bound| bound.recording.contains(&format!("recording-{host}/"));
    let share = |at: f64, of: &dyn Fn(&Bound) -> bool| f64::from(sum_at(bounds, at, of)) / total;
    // A killed gateway records nothing more, and holds no bounds.
    let is_alive = |at, bound: &Bound| at < gateway || !of(KILLED)(bound);
    let others =
        |at, host| share(at, &|bound| is_alive(at, bound) && !of(host)(bound)) / (1.0 - reserve / total);
    let is = |at| share(at, &|bound| is_alive(at, bound));
    let all = Some(Bar::AtLeast(1.0));
    vec![
        row(
            "failures",
            "controller killed: sum of bounds, of the total",
            is(controller),
            Some(Bar::AtMost(0.5)),
        ),
        row("failures", "controller killed: hosts that go on, of all", went_on[0], all),
        row(
            "failures",
            "gateway killed: sum of the others, of the total less a reserve",
            others(gateway, KILLED),
            Some(Bar::AtLeast(0.9)),
        ),
        row("failures", "gateway killed: other hosts that go on, of all", went_on[1], all),
        row(
            "failures",
            "link cut: bound of the gateway behind it, of the total",
            share(link, &of(CUT)),
            Some(Bar::AtMost(0.125)),
        ),
        row(
            "failures",
            "link cut: sum of the others, of the total less a reserve",
            others(link, CUT),
            Some(Bar::AtLeast(0.9)),
        ),
        row("failures", "all joined again: sum of bounds, of the total", is(end), Some(Bar::AtLeast(0.9))),
        row("failures", "all joined again: hosts that go on, of all", went_on[2], all),
    ]
}

fn flushed(writers: &mut [Writer]) -> anyhow::Result<Vec<u64>> {
    writers.iter_mut().map(Writer::flushed).collect()
}

/// The share of the hosts, `but` excepted, that have flushed more blocks since `before`.
#[allow(clippy::cast_precision_loss)] // four
fn went_on(before: &[u64], after: &[u64], but: &[usize]) -> f64 {
    let counted: Vec<bool> =
        (0..before.len()).filter(|host| !but.contains(host)).map(|host| after[host] > before[host]).collect();
    counted.iter().filter(|went_on| **went_on).count() as f64 / counted.len() as f64
}
