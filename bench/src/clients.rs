//! Runs the clients, fio and `weir load`, and reads what they report.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use serde::{Deserialize, Serialize};

use super::bed::{TestBed, output_of};
use super::cases::{Access, Client, Load};
use super::cores::End;
use super::cpu::CpuTimes;
use super::servers::Server;

/// How long a load runs before it counts.
const RAMP: Duration = Duration::from_millis(300);

/// The time of fio's own start-up, in which there is no load. If it takes longer, the CPU measurement reaches
/// a little into the ramp, which has the same load.
const CLIENT_START: Duration = Duration::from_millis(300);

/// The CPU is read this long before the client ends: nbdkit's threads end with the connection, and their
/// times disappear with them.
const CLIENT_END: Duration = Duration::from_millis(100);

/// One measurement of one server.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Sample {
    /// Requests answered a second.
    pub(super) iops: f64,
    /// The median latency, as the client sees it.
    pub(super) p50_us: f64,
    /// The server's time on a core for each request, user and system.
    pub(super) cpu_us: f64,
}

/// The report of `weir load` about a run, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct LoadReport {
    pub(super) iops: f64,
    pub(super) mean_us: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

/// One second of a run of `weir load`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Second {
    /// Requests answered in it.
    pub(super) completed: u64,
    /// Their mean latency; `None` if there were none.
    pub(super) mean_us: Option<f64>,
}

/// Puts `load` on `server` for `seconds`.
///
/// # Errors
/// If the client fails, or requests do.
pub(super) fn measure(bed: &TestBed, server: &Server, load: Load, seconds: u32) -> anyhow::Result<Sample> {
    let seconds = Duration::from_secs(seconds.into());
    let mut command = match load.client {
        Client::Fio => fio(bed, &server.uri(), load, seconds),
        Client::WeirLoad => weir_load(bed, &server.uri(), load, seconds),
    };
    let client = Running::start(&mut command)?;
    thread::sleep(CLIENT_START + RAMP);
    let before = CpuTimes::read(server.pid())?;
    thread::sleep(seconds.saturating_sub(CLIENT_START + CLIENT_END));
    let after = CpuTimes::read(server.pid())?;
    let output = client.finish()?;
    let (iops, p50_us) = match load.client {
        Client::Fio => read_fio(&output, load.access)?,
        Client::WeirLoad => read_weir_load(&output).map(|report| (report.iops, report.p50_us))?,
    };
    Ok(Sample { iops, p50_us, cpu_us: after.cores_since(&before) * 1e6 / iops })
}

/// Writes a volume in memory once, in order, so that no server answers from holes.
///
/// # Errors
/// If the client fails, or requests do.
pub(super) fn fill(bed: &TestBed, server: &Server, mib: u64) -> anyhow::Result<()> {
    let mut command = bed.cores().command(End::Client, bed.weir());
    command.args([
        "load",
        &server.uri(),
        "--json",
        "--reads=0",
        "--pattern=sequential",
        "--size=1MiB",
        "--depth=4",
    ]);
    command.arg(format!("--requests={mib}"));
    let line = format!("{command:?}");
    read_weir_load(&output_of(&mut command, &line)?)?;
    Ok(())
}

/// A client that is running.
#[derive(Debug)]
pub(super) struct Running {
    child: Option<Child>,
    line: String,
}

impl Running {
    /// Starts `command`.
    ///
    /// # Errors
    /// If there is no such program.
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let line = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("{line}: cannot be run"))?;
        Ok(Self { child: Some(child), line })
    }

    /// Waits for its end, and returns its output.
    ///
    /// # Errors
    /// If it fails; the error quotes its standard error.
    pub(super) fn finish(mut self) -> anyhow::Result<String> {
        let child = self.child.take().context("a client is waited for once")?;
        let output = child.wait_with_output().with_context(|| self.line.clone())?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}: {}", self.line, output.status, said.trim());
        String::from_utf8(output.stdout).with_context(|| format!("{}: its output is no UTF-8", self.line))
    }
}

impl Running {
    /// As [`Running::finish`], but `None` if it fails, or does not end in this time and is killed.
    ///
    /// # Errors
    /// If the kernel does not report its end.
    pub(super) fn finish_within(mut self, patience: Duration) -> anyhow::Result<Option<String>> {
        let began = Instant::now();
        let child = self.child.as_mut().context("a client is waited for once")?;
        while child.try_wait().with_context(|| self.line.clone())?.is_none() {
            if began.elapsed() > patience {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(self.finish().inspect_err(|error| eprintln!("{error:#}")).ok())
    }
}

/// Ends the client if its measurement has failed elsewhere, so that it does not load the next measurement.
impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill().and_then(|()| child.wait()); // it has ended by itself
        }
    }
}

fn fio(bed: &TestBed, uri: &str, load: Load, seconds: Duration) -> Command {
    let Load { access, kib, depth, .. } = load;
    let mut command = bed.cores().command(End::Client, "fio");
    command.args(["--name=bench", "--ioengine=nbd", "--norandommap", "--randrepeat=0", "--time_based"]);
    command.args(["--eta=never", "--output-format=json"]);
    command.arg(format!("--uri={uri}")).arg(format!("--rw=rand{access}"));
    command.arg(format!("--bs={kib}k")).arg(format!("--iodepth={depth}"));
    command
        .arg(format!("--runtime={}", seconds.as_secs()))
        .arg(format!("--ramp_time={}ms", RAMP.as_millis()));
    command
}

fn weir_load(bed: &TestBed, uri: &str, load: Load, seconds: Duration) -> Command {
    let reads = match load.access {
        Access::Read => 100,
        Access::Write => 0,
    };
    let mut command = bed.cores().command(End::Client, bed.weir());
    command.args(["load", uri, "--json"]);
    command.arg(format!("--reads={reads}")).arg(format!("--size={}KiB", load.kib));
    command.arg(format!("--depth={}", load.depth));
    command
        .arg(format!("--duration={}s", seconds.as_secs()))
        .arg(format!("--warm-up={}ms", RAMP.as_millis()));
    command
}

/// Requests a second, and the median latency in microseconds.
fn read_fio(output: &str, access: Access) -> anyhow::Result<(f64, f64)> {
    #[derive(Deserialize)]
    struct Output {
        jobs: Vec<Job>,
    }
    #[derive(Deserialize)]
    struct Job {
        error: i32,
        read: Direction,
        write: Direction,
    }
    #[derive(Deserialize)]
    struct Direction {
        iops: f64,
        clat_ns: Latency,
    }
    #[derive(Deserialize)]
    struct Latency {
        percentile: Option<serde_json::Map<String, serde_json::Value>>,
    }
    // fio's nbd engine prints a line of its own first.
    let json = output.find('{').map_or("", |start| &output[start..]);
    let output: Output = serde_json::from_str(json).context("fio: its report")?;
    let job = output.jobs.first().context("fio: a report without a job")?;
    ensure!(job.error == 0, "fio: error {}", job.error);
    let direction = match access {
        Access::Read => &job.read,
        Access::Write => &job.write,
    };
    ensure!(direction.iops > 0.0, "fio: no {access} was answered");
    let percentiles = direction.clat_ns.percentile.as_ref();
    let p50 = percentiles.and_then(|all| all.get("50.000000")?.as_f64()).context("fio: no median latency")?;
    Ok((direction.iops, p50 / 1e3))
}

/// The report of `weir load`, read from its JSON: about reads, or about writes if there were no reads.
pub(super) fn read_weir_load(output: &str) -> anyhow::Result<LoadReport> {
    #[derive(Deserialize)]
    struct Output {
        errors: u64,
        rate_iops: f64,
        read: Option<Direction>,
        write: Option<Direction>,
    }
    #[derive(Deserialize)]
    struct Direction {
        latency: Latency,
    }
    #[derive(Deserialize)]
    struct Latency {
        mean_us: f64,
        p50_us: f64,
        p99_us: f64,
    }
    let output: Output = serde_json::from_str(output).context("weir load: its report")?;
    ensure!(output.errors == 0, "weir load: {} requests failed", output.errors);
    let direction =
        output.read.or(output.write).ok_or_else(|| anyhow!("weir load: no request was answered"))?;
    let Latency { mean_us, p50_us, p99_us } = direction.latency;
    Ok(LoadReport { iops: output.rate_iops, mean_us, p50_us, p99_us })
}

/// The seconds in a report of `weir load`, one after the other.
pub(super) fn read_seconds(output: &str) -> anyhow::Result<Vec<Second>> {
    #[derive(Deserialize)]
    struct Output {
        intervals: Vec<Second>,
    }
    let output: Output = serde_json::from_str(output).context("weir load: its report")?;
    Ok(output.intervals)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIO: &str = r#"fio: connected to NBD server
{ "fio version": "fio-3.33", "jobs": [ { "jobname": "b", "error": 0,
  "read": { "iops": 32886.113886, "clat_ns": { "min": 1, "percentile": { "1.000000": 2, "50.000000": 905216 } } },
  "write": { "iops": 0.0, "clat_ns": { "min": 0 } } } ] }"#;

    #[test]
    fn a_report_of_fio_is_read_past_what_its_engine_says() {
        let (iops, p50_us) = read_fio(FIO, Access::Read).unwrap();
        assert!((iops - 32_886.113_886).abs() < 1e-6 && (p50_us - 905.216).abs() < 1e-6);
    }

    #[test]
    fn a_report_of_fio_without_what_was_asked_for_is_an_error() {
        assert!(read_fio(FIO, Access::Write).is_err());
        assert!(read_fio(&FIO.replace("\"error\": 0", "\"error\": 5"), Access::Read).is_err());
        assert!(read_fio("fio: no such engine", Access::Read).is_err());
    }

    #[test]
    fn the_seconds_of_a_report_are_read() {
        let text = r#"{ "intervals": [ { "t_s": 1.0, "completed": 7, "mean_us": 5.5 },
            { "t_s": 2.0, "completed": 0, "mean_us": null } ] }"#;
        let expected = [Second { completed: 7, mean_us: Some(5.5) }, Second { completed: 0, mean_us: None }];
        assert_eq!(read_seconds(text).unwrap(), expected);
    }

    #[test]
    fn a_report_of_weir_load_is_read() {
        let latency = r#"{ "latency": { "mean_us": 5.5, "p50_us": 5, "p90_us": 8, "p99_us": 9.25 } }"#;
        let report = |errors, read: &str, write: &str| {
            let text =
                format!(r#"{{ "errors": {errors}, "rate_iops": 100.5, "read": {read}, "write": {write} }}"#);
            read_weir_load(&text)
        };
        let expected = LoadReport { iops: 100.5, mean_us: 5.5, p50_us: 5.0, p99_us: 9.25 };
        assert_eq!(report(0, latency, "null").unwrap(), expected);
        assert_eq!(report(0, "null", latency).unwrap(), expected);
        assert!(report(1, latency, "null").is_err());
        assert!(report(0, "null", "null").is_err());
    }
}
