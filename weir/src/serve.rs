//! `weir serve FILE`: serves until it is told to stop; SIGHUP reloads.

use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};
use weir_gateway::Recorders;

use crate::config::Config;
use crate::failure::Failure;
use crate::server::Server;

/// Serves the configuration in `file` until SIGTERM or SIGINT, recorded if there are `recorders`.
///
/// # Errors
/// If it cannot start.
pub(crate) async fn serve(file: &Path, recorders: Option<Recorders>) -> Result<(), Failure> {
    // Before anything else, so that a signal during the start is not lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let config = Config::load(file).map_err(Failure::usage)?;
    let volumes = config.volumes.len();
    let mut server = Server::start(config, recorders).await.map_err(|failure| failure.in_file(file))?;
    println!("weir: serving {volumes} volume(s) on {}", server.addresses().join(", "));
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => reload(&mut server, file).await,
        }
    }
    tracing::info!("stopping");
    server.shutdown().await;
    println!("weir: stopped");
    Ok(())
}

/// A configuration that is wrong changes nothing: the server goes on as it was.
async fn reload(server: &mut Server, file: &Path) {
    let outcome = match Config::load(file) {
        Ok(config) => server.reload(config).await.map_err(|failure| failure.in_file(file)),
        Err(error) => Err(Failure::usage(error)),
    };
    match outcome {
        Ok(()) => println!("weir: reloaded {}", file.display()),
        Err(failure) => {
            eprintln!("weir: not reloaded, nothing has changed:");
            failure.report();
        }
    }
}
