//! QEMU's storage daemon, which serves both files, the hog's in a throttle group.
//!
//! It has no windows. So a cap is chosen by the seconds in which the client's mean latency was within four
//! times what it is alone.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::super::bed::TestBed;
use super::super::super::clients::Second;
use super::super::super::cores::End;
use super::super::super::servers::Server;
use super::super::super::status::GatewayView;
use super::super::configuration::{HOG_IMAGE, VICTIM_IMAGE};
use super::super::loads::{Clients, SETTLING};
use super::super::phase::Phase;
use super::Case;
use super::choice::{self, Tried};

const PROGRAM: &str = "qemu-storage-daemon";

/// The seconds in which a cap is tried. The first does not count.
const TRIED_SECONDS: usize = 4;

/// As many as there are seconds: a second may be anybody's fault.
const TOLERANCE: f64 = 0.0;

/// The daemon.
struct Qemu {
    server: Server,
    monitor: PathBuf,
}

/// A phase with the hog capped.
///
/// # Errors
/// If the daemon or a client fails.
pub(super) fn phase(bed: &TestBed, case: &Case, cap_iops: u32, seconds: u32) -> anyhow::Result<Phase> {
    let qemu = Qemu::start(bed, cap_iops)?;
    let reports = qemu.load(bed, case, Duration::from_secs(seconds.into()))?.finish()?;
    Ok(Phase::new(GatewayView::NONE, reports))
}

/// The best of these caps.
///
/// # Errors
/// If the daemon or a client fails.
pub(super) fn best(bed: &TestBed, case: &Case, caps: &[u32], slo_us: f64) -> anyhow::Result<u32> {
    let qemu = Qemu::start(bed, *caps.first().context("caps to try")?)?;
    let each = Duration::from_secs(TRIED_SECONDS as u64);
    let clients = qemu.load(bed, case, each * u32::try_from(caps.len())?)?;
    thread::sleep(SETTLING);
    for cap in caps {
        qemu.set(*cap)?;
        thread::sleep(each);
    }
    let reports = clients.finish()?;
    let tried = caps.iter().enumerate().map(|(number, cap)| {
        let of = |seconds: &[Second]| {
            let seconds = seconds.iter().skip(number * TRIED_SECONDS + 1).take(TRIED_SECONDS - 1);
            seconds.copied().collect::<Vec<_>>()
        };
        let hog = reports.hog_seconds.iter().flat_map(|seconds| of(seconds)).map(|second| second.completed);
        #[allow(clippy::cast_precision_loss)] // exact up to 2^53 requests
        let hog_iops = hog.sum::<u64>() as f64 / (TRIED_SECONDS - 1) as f64;
        Tried { setting: *cap, met_percent: kept_percent(&of(&reports.victim_seconds), slo_us), hog_iops }
    });
    let best = choice::best(&tried.collect::<Vec<_>>(), TOLERANCE);
    Ok(best.context("the sweep with QEMU: the victim got no answer")?.setting)
}

/// The seconds with answers whose mean latency was within this, in percent; NaN if there were none.
#[allow(clippy::cast_precision_loss)] // some seconds
pub(super) fn kept_percent(seconds: &[Second], slo_us: f64) -> f64 {
    let means: Vec<f64> = seconds.iter().filter_map(|second| second.mean_us).collect();
    means.iter().filter(|mean| **mean <= slo_us).count() as f64 * 100.0 / means.len() as f64
}

impl Qemu {
    fn start(bed: &TestBed, cap_iops: u32) -> anyhow::Result<Self> {
        let (socket, monitor) = (bed.scratch("qemu.sock"), bed.scratch("qemu.monitor"));
        let mut command = bed.cores().command(End::Server, PROGRAM);
        let blocks = [("victim", bed.image(VICTIM_IMAGE)?), ("hog-file", bed.image(HOG_IMAGE)?)];
        command.arg("--object").arg(format!("throttle-group,id=group,x-iops-total={cap_iops}"));
        for (node, file) in blocks {
            command.arg("--blockdev").arg(format!(
                "driver=file,node-name={node},filename={},cache.direct=on,aio=io_uring",
                file.display()
            ));
        }
        command.args(["--blockdev", "driver=throttle,node-name=hog,throttle-group=group,file=hog-file"]);
        command.arg("--nbd-server").arg(format!("addr.type=unix,addr.path={}", socket.display()));
        for node in ["victim", "hog"] {
            command.arg("--export").arg(format!("nbd,id={node},node-name={node},name={node},writable=on"));
        }
        command
            .arg("--chardev")
            .arg(format!("socket,id=monitor,path={},server=on,wait=off", monitor.display()));
        command.args(["--monitor", "chardev=monitor"]);
        Ok(Self { server: Server::of_socket(bed, "qemu", command, &socket)?, monitor })
    }

    fn load(&self, bed: &TestBed, case: &Case, duration: Duration) -> anyhow::Result<Clients> {
        let (victim, hog) = (self.server.uri_of("victim"), self.server.uri_of("hog"));
        Clients::start(bed, (case.victim, &victim), Some((case.hog, &hog)), duration)
    }

    /// Changes the cap.
    fn set(&self, cap_iops: u32) -> anyhow::Result<()> {
        let limits = json!({ "path": "group", "property": "limits", "value": { "iops-total": cap_iops } });
        ask(&self.monitor, &json!({ "execute": "qom-set", "arguments": limits }))
    }
}

/// Sends one command to QEMU's monitor, which speaks JSON in lines and greets first.
fn ask(monitor: &Path, command: &Value) -> anyhow::Result<()> {
    let stream = UnixStream::connect(monitor).with_context(|| monitor.display().to_string())?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    lines.next().context("QEMU's monitor: no greeting")??;
    for command in [&json!({ "execute": "qmp_capabilities" }), command] {
        writeln!(&stream, "{command}")?;
        let answer = lines.next().context("QEMU's monitor: no answer")??;
        ensure!(answer.contains("\"return\""), "QEMU's monitor: {command}: {answer}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_without_an_answer_say_nothing() {
        let second = |mean_us| Second { completed: 1, mean_us };
        let seconds = [second(Some(100.0)), second(Some(500.0)), second(None), second(Some(400.0))];
        assert!((kept_percent(&seconds, 400.0) - 66.7).abs() < 0.1);
        assert!(kept_percent(&[], 400.0).is_nan());
    }
}
