//! The quick look for the best static settings of a case.
//!
//! All settings of weir are tried one after the other at one gateway, by `weir set`: a gateway for each would
//! take three times as long.

use std::fmt;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use super::super::super::bed::TestBed;
use super::super::super::status::{GatewayView, Status, Volume, Windows};
use super::super::configuration::{Control, Limit, Promised};
use super::super::loads::SETTLING;
use super::super::phase;
use super::choice::{self, Tried};
use super::{Case, WINDOW, qemu};

/// How long a setting is in force before it counts, and how long it counts then.
const TAKES_HOLD: Duration = Duration::from_secs(1);
const COUNTS: Duration = Duration::from_secs(4);

/// Requests of the hog at the device.
const DEPTHS: [u32; 5] = [2, 8, 16, 32, 64];

/// The hog's rate, as a share of what it has without control.
const SHARES: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.85];

/// One window: a single one may be anybody's fault.
#[allow(clippy::cast_precision_loss)] // some milliseconds
const TOLERANCE: f64 = 100.0 * WINDOW.as_millis() as f64 / COUNTS.as_millis() as f64;

/// The best setting of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Best {
    pub(super) depth: u32,
    pub(super) cap_iops: u32,
    pub(super) qemu_iops: u32,
}

/// Looks for them.
///
/// # Errors
/// If a server or a client fails.
pub(super) fn best(bed: &TestBed, case: &Case) -> anyhow::Result<Best> {
    let (alone, slo_us) = case.alone(bed)?;
    let setting = case.setting(Control::Static(Limit::Free), Some(slo_us), 0);
    let server = phase::serve(bed, setting, Promised::Slo(slo_us))?;
    let status = server.metrics().context("weir with a status")?;
    let tries = u32::try_from(1 + DEPTHS.len() + SHARES.len())?;
    let _clients = phase::load(bed, &server, setting, SETTLING + tries * (TAKES_HOLD + 2 * COUNTS))?;
    thread::sleep(SETTLING);
    let attempt = |limit: Limit| {
        for free in ["max_concurrency=none", "max_iops=none"] {
            server.set(bed, "hog", free)?;
        }
        if let Some((key, value)) = limit.assignment() {
            server.set(bed, "hog", &format!("{key}={}", value.trim_matches('"')))?;
        }
        thread::sleep(TAKES_HOLD);
        let before = Status::read(status)?;
        thread::sleep(COUNTS);
        tried(limit, &before, &Status::read(status)?)
    };
    let free = attempt(Limit::Free)?.hog_iops;
    let caps = SHARES.map(|share| whole(share * free));
    let choose = |limits: &mut dyn Iterator<Item = Limit>| {
        let tried = limits.map(attempt).collect::<anyhow::Result<Vec<_>>>()?;
        choice::best(&tried, TOLERANCE).context("the sweep: no window of the victim had a promise")
    };
    let depth = choose(&mut DEPTHS.into_iter().map(Limit::Depth))?;
    let cap = choose(&mut caps.into_iter().map(Limit::Iops))?;
    drop(server);
    let client_slo_us = super::SLO_FACTOR * alone.victim.mean_us;
    Ok(Best {
        depth: if let Limit::Depth(depth) = depth.setting { depth } else { 1 },
        cap_iops: if let Limit::Iops(iops) = cap.setting { iops } else { 1 },
        qemu_iops: qemu::best(bed, case, &caps, client_slo_us)?,
    })
}

fn tried(limit: Limit, before: &Status, after: &Status) -> anyhow::Result<Tried<Limit>> {
    let of = |status: &Status, name| anyhow::Ok(status.volume(name)?.clone());
    let GatewayView { windows, .. } = of(after, "victim")?.since(&of(before, "victim")?);
    let hog = |status| anyhow::Ok(Volume::answered(&of(status, "hog")?).0);
    #[allow(clippy::cast_precision_loss)] // exact up to 2^53 requests
    let answered = (hog(after)? - hog(before)?) as f64;
    let met_percent = Windows::attainment_percent(windows);
    Ok(Tried { setting: limit, met_percent, hog_iops: answered / COUNTS.as_secs_f64() })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rate of requests; saturates
fn whole(iops: f64) -> u32 {
    iops.max(1.0) as u32
}

impl fmt::Display for Best {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { depth, cap_iops, qemu_iops } = self;
        write!(f, "best depth {depth}, best cap {cap_iops} IO/s, with QEMU {qemu_iops} IO/s")
    }
}
