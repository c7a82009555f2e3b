//! The demonstration: shows the purpose of weir on this machine's own disk, in half a minute.
//!
//! Two volumes on files share a pool. A paced "database" reads at random. It is promised four times the mean
//! latency that it has alone. A greedy "backup" reads as fast as it can. The first part runs without control,
//! the second with Façade. Both clients use NBD like any other client, from threads of their own.
//!
//! `weir demo` shows it, and so does `make run`, with the small program of this crate. A newcomer waits for
//! the compiler, so this crate uses no more of weir than it needs. It reads no configuration file, because
//! the code that reads such files uses all parts of weir. A test in `weir/src/verbs/demo.rs` compares what
//! this crate serves with such a file.

#![warn(clippy::print_stdout, clippy::print_stderr)] // both panic if nobody reads them

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rustix::termios::tcgetwinsize;
use tokio::sync::oneshot;
use weir_backend::BackendSpec;
use weir_engine::{Control, EngineConfig, VolumeConfig};
use weir_gateway::{Address, Gateway, GatewaySpec, Limits, Listener, PoolSpec, StatusProbe, VolumeSpec};
use weir_load::{Arrival, LoadSpec, Pace, Report, Until};
use weir_model::{Iops, Slo, SloError, SloGoal, SloPoint, Span};
use weir_status::{GatewayStatus, VolumeStatus, WindowCounters};

/// The seconds for which `make run` judges each of the two parts.
pub const SECONDS: u64 = 10;

const DATABASE: &str = "db";
const DATABASE_FILE: &str = "db.img";
const BACKUP: &str = "backup";
const BACKUP_FILE: &str = "backup.img";
const VOLUME_MIB: usize = 256;
const DATABASE_IOPS: f64 = 500.0;
const BACKUP_DEPTH: u32 = 128;
/// The promise, as a multiple of the mean latency of the database alone.
const SLO_FACTOR: f64 = 4.0;
const ALONE: Duration = Duration::from_secs(3);
/// The time until rates and depth have settled. It is not judged.
const SETTLING: Duration = Duration::from_secs(2);

/// The result of one part of the demo.
struct Part {
    windows: WindowCounters,
    database_mean_us: f64,
    backup_iops: f64,
}

/// Runs the demo, with its files in a directory of its own below `parent`. Each of the two parts is judged
/// for `seconds`. Ctrl-C ends it early. It leaves no files behind in either case. Must be called on a
/// `LocalSet`.
///
/// # Errors
/// If there is no room for the files, or a client fails.
pub async fn until_interrupted(parent: Option<&Path>, seconds: u64) -> anyhow::Result<()> {
    tokio::select! {
        shown = demo(parent, seconds) => shown,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn demo(parent: Option<&Path>, seconds: u64) -> anyhow::Result<()> {
    // The usual temporary directory is often memory. Then there would be no disk to share.
    let parent = parent.unwrap_or(Path::new("/var/tmp"));
    let dir = tempfile::Builder::new()
        .prefix("weir-demo.")
        .tempdir_in(parent)
        .with_context(|| format!("{}: cannot make a directory", parent.display()))?;
    let dir = dir.path();
    writeln!(std::io::stdout(), "Two volumes of {VOLUME_MIB} MiB in {}: writing them ...", dir.display())?;
    write_volume(&dir.join(DATABASE_FILE))?;
    write_volume(&dir.join(BACKUP_FILE))?;

    let clients = Clients { socket: dir.join("nbd.sock") };
    let listener = Listener::bind(Address::Unix(clients.socket.clone()))?;
    let mut gateway =
        Gateway::start(gateway_spec(dir, Control::None, None)?, vec![listener], 1, None).await?;
    let probe = gateway.probe();
    writeln!(std::io::stdout(), "The database alone: {DATABASE_IOPS:.0} random reads of 4 KiB a second ...")?;
    let promise_us = SLO_FACTOR * alone(&clients, &probe).await?;
    let slo = weir_table::latency(promise_us);
    writeln!(std::io::stdout(), "It is promised {SLO_FACTOR:.0} times its mean latency: {slo}.")?;

    let promise = Some(Span::from_secs_f64(promise_us / 1e6));
    let judged = Duration::from_secs(seconds);
    change(&mut gateway, gateway_spec(dir, Control::None, promise)?).await?;
    let without = part(&clients, &probe, judged, "without control").await?;
    change(&mut gateway, gateway_spec(dir, Control::Promise, promise)?).await?;
    let with = part(&clients, &probe, judged, "with control").await?;
    gateway.shutdown().await;

    writeln!(std::io::stdout(), "without control: {}", verdict(&without, &slo))?;
    let kept = 100.0 * with.backup_iops / without.backup_iops.max(1.0);
    writeln!(std::io::stdout(), "with control:    {}, {kept:.0} % of without", verdict(&with, &slo))?;
    Ok(())
}

/// The spec of the demo's gateway: two files in `dir`, under this control, with a promise to the database or
/// none.
///
/// # Errors
/// If the promise is a span of zero.
pub fn gateway_spec(dir: &Path, control: Control, promise: Option<Span>) -> Result<GatewaySpec, SloError> {
    // The promise covers twice the database's rate, so that a burst does not leave the contract.
    let up_to = Iops::new(2.0 * DATABASE_IOPS).expect("a constant above zero");
    let slo = promise.map(|mean| Slo::new(vec![SloPoint { up_to, read: mean, write: mean }])).transpose()?;
    let volume = |file, slo| VolumeSpec {
        description: String::new(),
        backend: BackendSpec::File { path: dir.join(file) },
        size: None,
        config: VolumeConfig { slo, ..VolumeConfig::default() },
        goal: SloGoal::default(),
        faults: Vec::new(),
    };
    let volumes = [(DATABASE, volume(DATABASE_FILE, slo)), (BACKUP, volume(BACKUP_FILE, None))];
    let pool = PoolSpec {
        engine: EngineConfig { control, ..EngineConfig::default() },
        ports: Vec::new(),
        volumes: volumes.map(|(name, volume)| (name.to_owned(), volume)).into(),
    };
    Ok(GatewaySpec { pools: [("disk".to_owned(), pool)].into(), limits: Limits::DEFAULT })
}

async fn change(gateway: &mut Gateway, spec: GatewaySpec) -> anyhow::Result<()> {
    let mut reload = gateway.begin_reload(spec, None)?;
    reload.opened().await?;
    gateway.finish_reload(reload).await;
    Ok(())
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
async fn alone(clients: &Clients, probe: &StatusProbe) -> anyhow::Result<f64> {
    let database = clients.database(ALONE);
    let (stop, report) = spawn(database);
    report.await.context("the database's thread ended")??;
    drop(stop);
    let (sum_us, count) = total(volume(&probe.status().await, DATABASE)?);
    Ok(sum_us / count.max(1.0))
}

/// Runs both clients side by side, with a table every second.
async fn part(clients: &Clients, probe: &StatusProbe, judged: Duration, phase: &str) -> anyhow::Result<Part> {
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
        show(phase, second, judged.as_secs(), &before, &probe.status().await)?;
    }
    let after = probe.status().await;
    drop((stop_database, stop_backup));
    database.await.context("the database's thread ended")??;
    backup.await.context("the backup's thread ended")??;

    let (database_before, database_after) = (volume(&before, DATABASE)?, volume(&after, DATABASE)?);
    let (sum, count) = difference(total(database_after), total(database_before));
    let (_, backup_count) = difference(total(volume(&after, BACKUP)?), total(volume(&before, BACKUP)?));
    Ok(Part {
        windows: windows_since(database_before, database_after),
        database_mean_us: sum / count.max(1.0),
        backup_iops: backup_count / judged.as_secs_f64(),
    })
}

/// Prints a table of this second, whose windows are those since `before`, when the phase began.
fn show(
    phase: &str,
    second: u64,
    of: u64,
    before: &GatewayStatus,
    status: &GatewayStatus,
) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        write!(out, "{}", weir_table::CLEAR)?;
    }
    let counted = |now: &VolumeStatus| {
        volume(before, &now.name).map_or(WindowCounters::default(), |before| windows_since(before, now))
    };
    let table = weir_table::of_phase(status, phase, counted, width());
    writeln!(out, "{phase}, second {second} of {of}; windows count from the beginning of this phase\n{table}")
}

/// The windows of a volume that were judged between two looks at it.
fn windows_since(before: &VolumeStatus, after: &VolumeStatus) -> WindowCounters {
    WindowCounters {
        met: after.windows.met - before.windows.met,
        missed: after.windows.missed - before.windows.missed,
        ..WindowCounters::default()
    }
}

/// The columns of the terminal, if standard output is one.
fn width() -> Option<u16> {
    let stdout = std::io::stdout();
    let size = stdout.is_terminal().then(|| tcgetwinsize(&stdout).ok()).flatten();
    size.map(|size| size.ws_col).filter(|columns| *columns > 0)
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
        LoadSpec { pace, depth: 1024, until: Until::Elapsed(duration.into()), ..self.load(DATABASE) }
    }

    fn backup(&self, duration: Duration) -> LoadSpec {
        LoadSpec { depth: BACKUP_DEPTH, until: Until::Elapsed(duration.into()), ..self.load(BACKUP) }
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
