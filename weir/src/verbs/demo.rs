//! `weir demo`: shows the purpose of weir on this machine's own disk, in half a minute.
//!
//! Two volumes on files share a pool. A paced "database" reads at random. It is promised four times the mean
//! latency that it has alone. A greedy "backup" reads as fast as it can. The first part runs without control,
//! the second with Façade. Both clients use NBD like any other client, from threads of their own.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::sync::oneshot;
use weir_gateway::StatusProbe;
use weir_load::{Arrival, LoadSpec, Pace, Report, Until};
use weir_model::{Iops, Span};
use weir_status::{GatewayStatus, VolumeStatus, WindowCounters};

use crate::config::Config;
use crate::daemon::Daemon;
use crate::failure::Failure;
use crate::server::Server;

const VOLUME_MIB: usize = 256;
const DATABASE_IOPS: f64 = 500.0;
const BACKUP_DEPTH: u32 = 128;
/// The promise, as a multiple of the mean latency of the database alone.
const SLO_FACTOR: f64 = 4.0;
const ALONE: Duration = Duration::from_secs(3);
/// The time until rates and depth have settled. It is not judged.
const SETTLING: Duration = Duration::from_secs(2);

/// The arguments of the demo.
#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// Directory for the two files of 256 MiB while it runs [default: the system's directory for large
    /// temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Seconds for which each of the two parts is judged
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// The result of one part of the demo.
struct Part {
    windows: WindowCounters,
    database_mean_us: f64,
    backup_iops: f64,
}

/// Runs the demo. Ctrl-C ends it early. It leaves no files behind in either case.
///
/// # Errors
/// If there is no room for the files, or a client fails.
pub(crate) async fn until_interrupted(arguments: DemoArguments) -> Result<(), Failure> {
    tokio::select! {
        shown = demo(arguments) => shown,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn demo(arguments: DemoArguments) -> Result<(), Failure> {
    // The usual temporary directory is often memory. Then there would be no disk to share.
    let parent = arguments.dir.unwrap_or_else(|| "/var/tmp".into());
    let dir = tempfile::Builder::new()
        .prefix("weir-demo.")
        .tempdir_in(&parent)
        .with_context(|| format!("{}: cannot make a directory", parent.display()))?;
    println!("Two volumes of {VOLUME_MIB} MiB in {}: writing them ...", dir.path().display());
    write_volume(&dir.path().join("db.img"))?;
    write_volume(&dir.path().join("backup.img"))?;

    let mut server = Server::start(config(dir.path(), "none", None)?, None).await?;
    let probe = server.probe();
    let clients = Clients { socket: dir.path().join("nbd.sock") };
    println!("The database alone: {DATABASE_IOPS:.0} random reads of 4 KiB a second ...");
    let slo_us = SLO_FACTOR * alone(&clients, &probe).await?;
    let slo = weir_table::latency(slo_us);
    println!("It is promised {SLO_FACTOR:.0} times its mean latency: {slo}.");

    let judged = Duration::from_secs(arguments.seconds);
    server.change(config(dir.path(), "none", Some(slo_us))?).await?;
    let without = part(&clients, &probe, judged, "Without control").await?;
    server.change(config(dir.path(), "facade", Some(slo_us))?).await?;
    let with = part(&clients, &probe, judged, "With control").await?;
    server.shutdown().await;

    println!("without control: {}", verdict(&without, &slo));
    let kept = 100.0 * with.backup_iops / without.backup_iops.max(1.0);
    println!("with control:    {}, {kept:.0} % of without", verdict(&with, &slo));
    Ok(())
}

/// The configuration, as a user would write it.
fn config(dir: &Path, control: &str, slo_us: Option<f64>) -> Result<Config, Failure> {
    let at = dir.display();
    // The promise covers twice the database's rate, so that a burst does not leave the contract.
    let slo = slo_us.map_or(String::new(), |us| {
        format!(
            "slo = [ {{ up_to = \"{}iops\", read = \"{us:.0}us\", write = \"{us:.0}us\" }} ]",
            2.0 * DATABASE_IOPS
        )
    });
    let text = format!(
        "[listen]\nnbd = [\"unix:{at}/nbd.sock\"]\n\
         [pool.disk]\ncontrol = \"{control}\"\n\
         [volume.db]\npool = \"disk\"\nbackend = \"file:{at}/db.img\"\n{slo}\n\
         [volume.backup]\npool = \"disk\"\nbackend = \"file:{at}/backup.img\"\n"
    );
    Config::parse(Path::new("the demo's configuration"), &text).map_err(Failure::usage)
}

/// Writes a file full of data: reading a hole would cost the disk nothing.
fn write_volume(path: &Path) -> anyhow::Result<()> {
    let chunk: Vec<u8> = (1..=u8::MAX).cycle().take(1024 * 1024).collect();
    let write = || {
        let mut file = File::create_new(path)?;
        (0..VOLUME_MIB).try_for_each(|_| file.write_all(&chunk))?;
        file.sync_all()
    };
    write().with_context(|| format!("{}: cannot write {VOLUME_MIB} MiB", path.display()))
}

/// The mean latency of the database without the backup, in microseconds.
async fn alone(clients: &Clients, probe: &StatusProbe) -> Result<f64, Failure> {
    let database = clients.database(ALONE);
    let (stop, report) = spawn(database);
    report.await.context("the database's thread ended")??;
    drop(stop);
    let (sum_us, count) = total(volume(&probe.status().await, "db")?);
    Ok(sum_us / count.max(1.0))
}

/// Runs both clients side by side, with a table every second.
async fn part(
    clients: &Clients,
    probe: &StatusProbe,
    judged: Duration,
    title: &str,
) -> Result<Part, Failure> {
    let (stop_database, database) = spawn(clients.database(SETTLING + judged * 10));
    let (stop_backup, backup) = spawn(clients.backup(SETTLING + judged * 10));
    let mut every_second = tokio::time::interval(Duration::from_secs(1));
    every_second.tick().await;
    for _ in 0..SETTLING.as_secs() {
        every_second.tick().await;
    }
    let before = probe.status().await;
    for second in 1..=judged.as_secs() {
        every_second.tick().await;
        show(title, second, judged.as_secs(), &probe.status().await)?;
    }
    let after = probe.status().await;
    drop((stop_database, stop_backup));
    database.await.context("the database's thread ended")??;
    backup.await.context("the backup's thread ended")??;

    let (database_before, database_after) = (volume(&before, "db")?, volume(&after, "db")?);
    let (sum, count) = difference(total(database_after), total(database_before));
    let (_, backup_count) = difference(total(volume(&after, "backup")?), total(volume(&before, "backup")?));
    Ok(Part {
        windows: WindowCounters {
            met: database_after.windows.met - database_before.windows.met,
            missed: database_after.windows.missed - database_before.windows.missed,
            ..WindowCounters::default()
        },
        database_mean_us: sum / count.max(1.0),
        backup_iops: backup_count / judged.as_secs_f64(),
    })
}

fn show(title: &str, second: u64, of: u64, status: &GatewayStatus) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        write!(out, "{}", weir_table::CLEAR)?;
    }
    writeln!(out, "{title}, second {second} of {of}\n{}", weir_table::render(status))
}

fn verdict(part: &Part, slo: &str) -> String {
    let WindowCounters { met, missed, .. } = part.windows;
    format!(
        "the database met its {slo} in {met} of {} s (mean {}); the backup got {:.0} IO/s",
        met + missed,
        weir_table::latency(part.database_mean_us),
        part.backup_iops
    )
}

fn volume<'a>(status: &'a GatewayStatus, name: &str) -> anyhow::Result<&'a VolumeStatus> {
    let mut volumes = status.pools.iter().flat_map(|pool| &pool.volumes);
    volumes.find(|volume| volume.name == name).with_context(|| format!("volume {name} is not served"))
}

/// The sum of the latencies of a volume's reads, in microseconds, and their number.
#[allow(clippy::cast_precision_loss)]
fn total(volume: &VolumeStatus) -> (f64, f64) {
    let reads = &volume.latency[0].total;
    (reads.sum_s * 1e6, reads.counts.iter().sum::<u64>() as f64)
}

fn difference(after: (f64, f64), before: (f64, f64)) -> (f64, f64) {
    (after.0 - before.0, after.1 - before.1)
}

struct Clients {
    socket: PathBuf,
}

impl Clients {
    fn database(&self, duration: Duration) -> LoadSpec {
        let rate = Iops::new(DATABASE_IOPS).expect("a constant above zero");
        let pace = Pace::Open { rate, arrivals: Arrival::Poisson };
        LoadSpec { pace, depth: 1024, until: Until::Elapsed(duration.into()), ..self.load("db") }
    }

    fn backup(&self, duration: Duration) -> LoadSpec {
        LoadSpec { depth: BACKUP_DEPTH, until: Until::Elapsed(duration.into()), ..self.load("backup") }
    }

    fn load(&self, export: &str) -> LoadSpec {
        let uri = format!("nbd+unix:///{export}?socket={}", self.socket.display());
        LoadSpec {
            drain_limit: Span::from_secs(10),
            ..LoadSpec::new(uri.parse().expect("a URI made here is one"))
        }
    }
}

type Outcome = anyhow::Result<Report>;

/// Runs a load on a thread of its own until it ends, or until the sender is dropped.
fn spawn(spec: LoadSpec) -> (oneshot::Sender<()>, oneshot::Receiver<Outcome>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let (report, reported) = oneshot::channel();
    thread::spawn(move || {
        let run = || -> Outcome {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let stopped = async {
                let _ = stopped.await;
            };
            Ok(runtime.block_on(weir_load::run(&spec, stopped, |_| {}))?)
        };
        let _ = report.send(run()); // nobody waits if the demo failed
    });
    (stop, reported)
}
