//! The replay in real time, through the NBD client of `weir load`: to a gateway of its own, or to a running
//! server.

use std::num::NonZeroU32;
use std::path::Path;
use std::thread;

use anyhow::Context;
use tokio::sync::oneshot;
use weir_lab::replay::{DRAIN, Outcome, Windows};
use weir_load::{ReplayRequest, ReplaySpec, Replayed, Target};
use weir_model::{Direction, Span};
use weir_sim::Utilisation;
use weir_status::{GatewayStatus, WindowCounters};

use super::Plan;
use crate::config::{Address, BackendConfig, Config};
use crate::daemon::Daemon;
use crate::failure::Failure;
use crate::server::Server;
use crate::verbs::status;

/// The most requests outstanding on the connection. Requests that a gateway does not take wait in its socket.
const DEPTH: u32 = 65_536;

/// Replays through a gateway in this process, which has the pool of the volume on fresh files.
///
/// # Errors
/// If the gateway does not start, or the trace or the connection breaks off.
pub(super) async fn against_own_gateway(plan: &Plan) -> Result<Outcome, Failure> {
    // The usual temporary directory is often memory, and a trace may write more than fits there.
    let directory = tempfile::Builder::new().prefix("weir-replay.").tempdir_in("/var/tmp")?;
    let server = Server::start(own_config(plan, directory.path()), None).await?;
    let socket = directory.path().join("nbd.sock");
    let target = format!("nbd+unix:///{}?socket={}", plan.volume, socket.display());
    let target = target.parse().expect("a URI made here is one");
    let probe = server.probe();
    let replayed = load(plan, target).await;
    let windows = windows(&probe.status().await, &plan.volume);
    server.shutdown().await;
    Ok(outcome(replayed?, windows.unwrap_or_default(), WindowCounters::default()))
}

/// Replays through a server that serves the configuration in `file`.
///
/// # Errors
/// If the server cannot be reached, or the trace or the connection breaks off.
pub(super) async fn against_server(plan: &Plan, server: &Target, file: &Path) -> Result<Outcome, Failure> {
    // Without an address to ask, the report says nothing about the volume's SLO.
    let listen = &plan.config.listen;
    let asks = listen.metrics.value.is_some() || listen.control.value.is_some();
    let source = file.display().to_string();
    let ask = async || -> Result<WindowCounters, Failure> {
        let status = if asks { status::ask_once(&source).await? } else { GatewayStatus::default() };
        Ok(windows(&status, &plan.volume).unwrap_or_default())
    };
    let before = ask().await?;
    let replayed = load(plan, server.clone()).await?;
    Ok(outcome(replayed, ask().await?, before))
}

/// The configuration with only the pool of the volume, on a socket and on files in `directory`. The replay
/// writes, and must not overwrite existing data.
fn own_config(plan: &Plan, directory: &Path) -> Config {
    let mut config = plan.config.clone();
    let pool = config.volumes[&plan.volume].pool.value.clone();
    config.volumes.retain(|_, volume| volume.pool.value == pool);
    config.pools.retain(|name, _| *name == pool);
    for (name, volume) in &mut config.volumes {
        if let BackendConfig::Array(_, path) = &mut volume.backend.value {
            *path = directory.join(format!("{name}.img"));
        }
    }
    config.listen.nbd.truncate(1);
    for address in &mut config.listen.nbd {
        address.value = Address::Unix(directory.join("nbd.sock"));
    }
    config.listen.metrics.value = None;
    config.listen.control.value = None;
    // These limits must not hold requests back, because in simulated time none stand between the trace and
    // the engine.
    config.limits.requests_per_connection.value = NonZeroU32::new(DEPTH).expect("above zero");
    config.limits.bytes_per_connection.value = config.limits.bytes_in_flight.value;
    config
}

/// Loads the server from a thread of its own, until the replay is over or Ctrl-C.
async fn load(plan: &Plan, target: Target) -> Result<Replayed, Failure> {
    let (trace, account) = plan.recording.requests(plan.size).map_err(Failure::usage)?;
    let bar = plan.bar();
    let watched = bar.clone();
    let requests = trace.filter_map(move |request| {
        watched.set_position(request.at.as_micros() / 1_000);
        let direction: Direction = request.kind.direction()?; // a trace has nothing but reads and writes
        let (at, offset, length) = (request.at, request.offset, request.length);
        Some(ReplayRequest { at, direction, offset, length })
    });
    let duration = plan.survey.duration;
    let spec = ReplaySpec { target, depth: DEPTH, duration, drain_limit: DRAIN };
    let (stop, stopped) = oneshot::channel::<()>();
    let (report, reported) = oneshot::channel();
    thread::spawn(move || {
        let run = || -> anyhow::Result<Replayed> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let stopped = async {
                let _ = stopped.await;
            };
            Ok(runtime.block_on(weir_load::replay(&spec, requests, stopped, |_| {}))?)
        };
        let _ = report.send(run()); // nobody waits if the program ends
    });
    tokio::pin!(reported);
    let replayed = tokio::select! {
        replayed = &mut reported => replayed,
        Ok(()) = tokio::signal::ctrl_c() => {
            drop(stop);
            reported.await
        }
    };
    bar.finish_and_clear();
    let replayed = replayed.context("the thread of the replay ended")?;
    match account.remarks().failure {
        Some(failure) => Err(Failure::usage(failure)),
        None => Ok(replayed?),
    }
}

fn windows(status: &GatewayStatus, volume: &str) -> Option<WindowCounters> {
    let mut volumes = status.pools.iter().flat_map(|pool| &pool.volumes);
    volumes.find(|candidate| candidate.name == volume).map(|volume| volume.windows)
}

fn outcome(replayed: Replayed, after: WindowCounters, before: WindowCounters) -> Outcome {
    Outcome {
        offered: replayed.offered,
        errors: replayed.errors.values().sum(),
        unanswered: replayed.unsent + replayed.unanswered,
        late: replayed.late,
        late_max: replayed.late_max,
        elapsed: replayed.elapsed,
        read_ns: replayed.read_ns,
        write_ns: replayed.write_ns,
        queued_time: Span::ZERO,
        device_time: Span::ZERO,
        utilisation: Utilisation::default(),
        windows: Windows {
            met: after.met.saturating_sub(before.met),
            missed: after.missed.saturating_sub(before.missed),
            out_of_contract: after.out_of_contract.saturating_sub(before.out_of_contract),
        },
    }
}
