//! `weir serve FILE`: serves until it is told to stop; SIGHUP reloads, and `weir set` changes single values.

use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};
use weir_gateway::Recorders;

use crate::config::Source;
use crate::failure::Failure;
use crate::server::Server;
use crate::set;

/// Serves the configuration in `file` until SIGTERM or SIGINT, recorded if there are `recorders`.
///
/// # Errors
/// If it cannot start.
pub(crate) async fn serve(file: &Path, recorders: Option<Recorders>) -> Result<(), Failure> {
    // Before anything else, so that a signal during the start is not lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut source = Source::read(file).map_err(Failure::usage)?;
    let config = source.config().map_err(Failure::usage)?;
    let volumes = config.volumes.len();
    let mut server = Server::start(config, recorders).await.map_err(|failure| failure.in_file(file))?;
    println!("weir: serving {volumes} volume(s) on {}", server.addresses().join(", "));
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => reload(&mut server, &mut source).await,
            asked = server.next_asked() => set::carry_out(&mut server, &mut source, asked).await,
        }
    }
    tracing::info!("stopping");
    server.shutdown().await;
    println!("weir: stopped");
    Ok(())
}

/// A configuration that is wrong changes nothing: the server goes on as it was. What was set since the file was read last
/// gives way to what the file says.
async fn reload(server: &mut Server, source: &mut Source) {
    let file = source.path().to_owned();
    match reload_from(server, &file).await {
        Ok(new) => {
            *source = new;
            println!("weir: reloaded {}", file.display());
        }
        Err(failure) => {
            eprintln!("weir: not reloaded, nothing has changed:");
            failure.report();
        }
    }
}

async fn reload_from(server: &mut Server, file: &Path) -> Result<Source, Failure> {
    let source = Source::read(file).map_err(Failure::usage)?;
    let config = source.config().map_err(Failure::usage)?;
    server.reload(config).await.map_err(|failure| failure.in_file(file))?;
    Ok(source)
}
