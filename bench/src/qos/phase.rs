//! One phase: a server, a victim, perhaps a hog, and the gateway's counts while both were at work.
//!
//! Every phase has a server of its own, instead of a reload. So each phase begins from the same state, with
//! the law at its initial depth. Nothing that one phase leaves behind, such as queues or learnt depths,
//! counts for the next.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;

use super::super::bed::TestBed;
use super::super::clients::{LoadReport, Second};
use super::super::servers::Server;
use super::super::status::{GatewayView, Status, Volume};
use super::configuration::{Device, HOG_IMAGE, Promised, Setting, VICTIM_IMAGE, configuration};
use super::loads::{Clients, Reports, SETTLING};

/// How often to look for the end of a window.
const LOOK: Duration = Duration::from_millis(20);

/// The result of a phase.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Phase {
    /// The victim, as the gateway sees it; nothing if there was no gateway.
    pub(super) gateway: GatewayView,
    /// The victim, as its client sees it.
    pub(super) victim: LoadReport,
    /// The same, in each second.
    pub(super) victim_seconds: Vec<Second>,
    /// The hog, as its client sees it.
    pub(super) hog: Option<LoadReport>,
}

impl Phase {
    /// A phase of these reports.
    pub(super) fn new(gateway: GatewayView, reports: Reports) -> Self {
        let Reports { victim, victim_seconds, hog, .. } = reports;
        Self { gateway, victim, victim_seconds, hog }
    }

    /// The hog's rate; NaN if there was no hog.
    pub(super) fn hog_iops(&self) -> f64 {
        self.hog.map_or(f64::NAN, |hog| hog.iops)
    }
}

/// Writes the missing files. Do this before any measurement, because the disk is busy for a while afterwards.
///
/// # Errors
/// If there is no room.
pub(super) fn write_images(bed: &TestBed, device: Device) -> anyhow::Result<()> {
    if device == Device::File {
        bed.image(VICTIM_IMAGE)?;
        bed.image(HOG_IMAGE)?;
    }
    Ok(())
}

/// Starts the gateway of a phase.
///
/// # Errors
/// If it does not start.
pub(super) fn serve(bed: &TestBed, setting: Setting, promised: Promised) -> anyhow::Result<Server> {
    Server::weir_with(bed, "qos", &configuration(bed, setting, promised)?, "victim")
}

/// Starts the clients of a phase at its gateway, for this time.
///
/// # Errors
/// If there is no such program.
pub(super) fn load(
    bed: &TestBed,
    server: &Server,
    setting: Setting,
    duration: Duration,
) -> anyhow::Result<Clients> {
    let (victim_uri, hog_uri) = (server.uri_of("victim"), server.uri_of("hog"));
    let hog = setting.hog.map(|hog| (hog, hog_uri.as_str()));
    Clients::start(bed, (setting.victim, &victim_uri), hog, duration)
}

/// Runs a phase.
///
/// # Errors
/// If the server or a client fails, or windows do not close.
pub(super) fn run(bed: &TestBed, setting: Setting) -> anyhow::Result<Phase> {
    let server = serve(bed, setting, setting.slo_us.map_or(Promised::Easy, Promised::Slo))?;
    let status = server.metrics().context("weir with a status")?;
    // They go on for two windows more: one to find the end of a window, and one for safety.
    let judged = Duration::from_secs(setting.seconds.into());
    let clients = load(bed, &server, setting, judged + 2 * setting.window)?;
    thread::sleep(SETTLING);
    let before = at_end_of_window(status, setting.window)?;
    // Sleeps to the middle of the last window. So the next end is the end of this window, however late the
    // server closes it.
    thread::sleep(judged - setting.window / 2);
    let after = at_end_of_window(status, setting.window)?;
    Ok(Phase::new(after.since(&before), clients.finish()?))
}

/// The victim's counters just after a window closed. So no judged window began before the settling was over,
/// and each judged window has ended.
fn at_end_of_window(status: SocketAddr, window: Duration) -> anyhow::Result<Volume> {
    let read = || anyhow::Ok(Status::read(status)?.volume("victim")?.clone());
    let (began, patience) = (Instant::now(), 3 * window.max(Duration::from_secs(1)));
    let first = read()?;
    loop {
        let now = read()?;
        if now.windows_closed() > first.windows_closed() {
            return Ok(now);
        }
        ensure!(began.elapsed() < patience, "no window of the victim has closed for {:?}", began.elapsed());
        thread::sleep(LOOK);
    }
}
