//! `weir node agent`: what the block devices of a storage node's host do, for the coordinator of transfers.
//!
//! Each scrape reads the devices. So no answer is older than its question, and nothing is read for nobody. A
//! reading has a thread of its own: a directory on a device that hangs holds up the answers, and not the end
//! of the process. The coordinator then finds the sensor stale, as it should.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use clap::{Args, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{spawn_blocking, spawn_local};
use weir_agent::sensors::{NotWatched, Roots, StorageSensor, Watched};
use weir_api::ApiListener;

use crate::compose::socket_address;
use crate::config::tcp_address_argument;
use crate::failure::Failure;
use crate::say;
use crate::terminal::printable;

/// The kind of service.
#[derive(Args, Debug)]
pub(crate) struct NodeArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Serve the counters of the block devices behind directories at /metrics, until stopped (SIGTERM)
    Agent(AgentArguments),
}

/// What is watched, and where that is told.
#[derive(Args, Debug)]
struct AgentArguments {
    /// A directory of a storage node: the device on which it stands is watched; may be repeated
    #[arg(long = "path", value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// A block device by the kernel's name, such as sda; may be repeated
    #[arg(long = "device", value_name = "NAME")]
    devices: Vec<String>,
    /// The address of /metrics; anybody who reaches it may ask
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9813")]
    listen: String,
}

/// The refusal of a start without anything to watch.
const NOTHING: &str = "node agent: found neither a directory nor a device; accepted: --path DIR of a directory of the node, or \
     --device NAME such as sda (weir node agent --help)";

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// If something cannot be watched, or the address cannot be used.
pub(crate) async fn node(
    NodeArguments { what: What::Agent(arguments) }: NodeArguments,
) -> Result<(), Failure> {
    // This comes first, so that a signal during the start is not lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let watched = watched(&arguments)?;
    let names: Vec<_> = watched.iter().map(ToString::to_string).collect();
    let sensor = StorageSensor::open(Roots::default(), watched).map_err(|error| refused(&error))?;
    let listener = listen(&arguments.listen).await?;
    let address = listener.local_address()?;
    let sensor = Arc::new(Mutex::new(sensor));
    let read = async move || {
        let sensor = Arc::clone(&sensor);
        spawn_blocking(move || sensor.lock().ok().map(|mut sensor| sensor.read())).await.ok().flatten()
    };
    let told = spawn_local(listener.serve_node_agent(read));
    let names = printable(&names.join(", "));
    say::on_stdout(format_args!(
        "weir: reading the block devices of {names}; state on http://{address}/metrics"
    ));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    told.abort();
    say::on_stdout("weir: stopped");
    Ok(())
}

fn watched(arguments: &AgentArguments) -> Result<Vec<Watched>, Failure> {
    let directories = arguments.paths.iter().map(|path| Watched::directory(path));
    let devices = arguments.devices.iter().map(|device| Watched::device(device));
    let watched: Vec<_> =
        directories.chain(devices).collect::<Result<_, _>>().map_err(|error| refused(&error))?;
    if watched.is_empty() { Err(Failure::usage(NOTHING)) } else { Ok(watched) }
}

fn refused(error: &NotWatched) -> Failure {
    Failure::usage(printable(&format!("node agent: {error}")))
}

async fn listen(text: &str) -> Result<ApiListener, Failure> {
    let wrong = |error: String| Failure::usage(printable(&format!("node agent: --listen: {error}")));
    let address = tcp_address_argument(text, "127.0.0.1:9813").map_err(wrong)?;
    let address = socket_address(&address).map_err(|error| wrong(error.to_string()))?;
    ApiListener::bind(address).await.map_err(|error| wrong(error.to_string()))
}
