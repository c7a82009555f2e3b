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
use super::super::clients::{LoadReport, Running, read_weir_load};
use super::super::cores::End;
use super::super::servers::Server;
use super::super::status::{GatewayView, Status, Volume};

/// The time until rates and depth have settled. It is not judged.
const SETTLING: Duration = Duration::from_secs(2);

/// The length of a window.
const WINDOW: Duration = Duration::from_secs(1);

/// How often to look for the end of a window.
const LOOK: Duration = Duration::from_millis(20);

const HOG_DEPTH: u32 = 128;

/// The promise in the phase that has none yet. It is easy to keep, and there because only volumes with an SLO
/// have windows.
const EASY_SLO_US: u64 = 10_000_000;

const VICTIM_IMAGE: &str = "victim.img";
const HOG_IMAGE: &str = "hog.img";

/// A phase to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) device: Device,
    pub(super) control: Control,
    /// The victim's promise, if it has one.
    pub(super) slo_us: Option<u64>,
    pub(super) victim_iops: u32,
    pub(super) hog: Option<Hog>,
    /// How many windows are judged.
    pub(super) seconds: u32,
}

/// The device that victim and hog share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Device {
    /// The disk, with a file for each.
    File,
    /// A station: 8 servers of 5 ms.
    Station,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Control {
    None,
    Facade,
    Promise,
}

/// The hog's requests. It sends them as fast as it can.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hog {
    /// Reads in a hundred requests.
    pub(super) reads: u32,
    pub(super) kib: u32,
}

/// The result of a phase.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Phase {
    /// The victim, as the gateway sees it.
    pub(super) gateway: GatewayView,
    /// The victim, as its client sees it.
    pub(super) victim: LoadReport,
    /// The hog, as its client sees it.
    pub(super) hog: Option<LoadReport>,
}

impl Phase {
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

/// Runs a phase.
///
/// # Errors
/// If the server or a client fails, or windows do not close.
pub(super) fn run(bed: &TestBed, setting: Setting) -> anyhow::Result<Phase> {
    let server = Server::weir_with(bed, "qos", &configuration(bed, setting)?, "victim")?;
    let status = server.metrics().context("weir with a status")?;
    let hog = setting.hog.map(|hog| {
        let how = [
            format!("--depth={HOG_DEPTH}"),
            format!("--reads={}", hog.reads),
            format!("--size={}KiB", hog.kib),
        ];
        start_client(bed, &server.uri_of("hog"), &how, setting.seconds)
    });
    let hog = hog.transpose()?;
    let rate = format!("--rate={}iops", setting.victim_iops);
    let victim =
        start_client(bed, &server.uri_of("victim"), &[rate, "--seed=2".to_owned()], setting.seconds)?;
    thread::sleep(SETTLING);
    let before = at_end_of_window(status)?;
    // Sleeps to the middle of the last window. So the next end is the end of this window, however late the
    // server closes it.
    thread::sleep(WINDOW * setting.seconds - WINDOW / 2);
    let after = at_end_of_window(status)?;
    let finish = |client: Running| read_weir_load(&client.finish()?);
    Ok(Phase { gateway: after.since(&before), victim: finish(victim)?, hog: hog.map(finish).transpose()? })
}

/// A client that goes on for two windows more: one to find the end of a window, and one for safety.
fn start_client(bed: &TestBed, uri: &str, how: &[String], seconds: u32) -> anyhow::Result<Running> {
    let mut command = bed.cores().command(End::Client, bed.weir());
    command.args(["load", uri, "--json"]).args(how);
    command.arg(format!("--warm-up={}s", SETTLING.as_secs()));
    command.arg(format!("--duration={}s", u64::from(seconds) + 2 * WINDOW.as_secs()));
    Running::start(&mut command)
}

/// The victim's counters just after a window closed. So no judged window began before the settling was over,
/// and each judged window has ended.
fn at_end_of_window(status: SocketAddr) -> anyhow::Result<Volume> {
    let read = || anyhow::Ok(Status::read(status)?.volume("victim")?.clone());
    let began = Instant::now();
    let first = read()?;
    loop {
        let now = read()?;
        if now.windows_closed() > first.windows_closed() {
            return Ok(now);
        }
        ensure!(began.elapsed() < 3 * WINDOW, "no window of the victim has closed for {:?}", began.elapsed());
        thread::sleep(LOOK);
    }
}

fn configuration(bed: &TestBed, setting: Setting) -> anyhow::Result<String> {
    let [victim, hog] = match setting.device {
        Device::File => {
            let backend =
                |name: &str| anyhow::Ok(format!("backend = \"file:{}\"", bed.image(name)?.display()));
            [backend(VICTIM_IMAGE)?, backend(HOG_IMAGE)?]
        }
        Device::Station => [const { "backend = \"station:disk\"\nsize = \"256MiB\"" }; 2].map(str::to_owned),
    };
    Ok(configuration_with(setting, &victim, &hog))
}

fn configuration_with(setting: Setting, victim: &str, hog: &str) -> String {
    let Setting { device, control, slo_us, victim_iops, .. } = setting;
    let latency = slo_us.unwrap_or(EASY_SLO_US);
    // The promise covers twice the victim's rate, because the arrivals of a window vary by some 5 %.
    let slo =
        format!("{{ up_to = \"{}iops\", read = \"{latency}us\", write = \"{latency}us\" }}", 2 * victim_iops);
    let station = match device {
        Device::File => "",
        Device::Station => "\n[station.disk]\nservers = 8\nservice_time = \"5ms\"\n",
    };
    let keyword = match control {
        Control::None => "none",
        Control::Facade => "facade",
        Control::Promise => "promise",
    };
    format!(
        "[pool.p]\ncontrol = \"{keyword}\"\nslo_window = \"{}s\"\n\n\
         [volume.victim]\npool = \"p\"\n{victim}\nslo = [{slo}]\n\n\
         [volume.hog]\npool = \"p\"\n{hog}\n{station}",
        WINDOW.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slo_reaches_to_twice_the_rate_of_the_victim() {
        let setting = Setting {
            device: Device::Station,
            control: Control::Facade,
            slo_us: Some(12_000),
            victim_iops: 200,
            hog: None,
            seconds: 1,
        };
        let text = configuration_with(setting, "backend = \"v\"", "backend = \"h\"");
        assert!(
            text.contains("slo = [{ up_to = \"400iops\", read = \"12000us\", write = \"12000us\" }]"),
            "{text}"
        );
        assert!(text.contains("control = \"facade\"") && text.contains("servers = 8"), "{text}");
        let file = configuration_with(Setting { device: Device::File, ..setting }, "", "");
        assert!(!file.contains("station"), "{file}");
    }
}
