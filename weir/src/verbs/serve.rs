//! `weir serve FILE`: serves until it is told to stop; SIGHUP reloads, and `weir set` changes single values.

use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};
use weir_gateway::Recorders;

use crate::config::Source;
use crate::failure::Failure;
use crate::server::{Begun, Server};
use crate::verbs::set;

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
    // A device that does not answer is not waited for.
    let started = tokio::select! {
        started = Server::start(config, recorders) => Some(started),
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
    };
    let Some(started) = started else {
        println!("weir: stopped before anything was served");
        return Ok(());
    };
    let mut server = started.map_err(|failure| failure.in_file(file))?;
    println!("weir: serving {volumes} volume(s) on {}", server.addresses().join(", "));
    let mut reloading = None;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => reloading = begin_reload(&server, file, reloading.take()),
            opened = opened(&mut reloading) => {
                if let Some(reload) = reloading.take() {
                    finish_reload(&mut server, &mut source, reload, opened).await;
                }
            }
            asked = server.next_asked() => {
                set::carry_out(&mut server, &mut source, asked, reloading.is_some()).await;
            }
        }
    }
    tracing::info!("stopping");
    drop(reloading);
    server.shutdown().await;
    println!("weir: stopped");
    Ok(())
}

/// A reload whose volumes are being opened. Everything else goes on meanwhile.
struct Reloading {
    source: Source,
    begun: Begun,
}

/// Reads the file, and begins to open what is new. A reload that is under way ends here in any case.
fn begin_reload(server: &Server, file: &Path, superseded: Option<Reloading>) -> Option<Reloading> {
    if superseded.is_some() {
        tracing::info!("the reload under way is superseded by a newer one");
    }
    let begin = || {
        let source = Source::read(file).map_err(Failure::usage)?;
        let config = source.config().map_err(Failure::usage)?;
        let begun = server.begin_reload(config, superseded.map(|superseded| superseded.begun));
        Ok(Reloading { source, begun: begun.map_err(|failure| failure.in_file(file))? })
    };
    begin().inspect_err(not_reloaded).ok()
}

/// When the volumes of a reload are open, or one cannot be; never without a reload.
async fn opened(reloading: &mut Option<Reloading>) -> Result<(), Failure> {
    match reloading {
        Some(Reloading { begun, .. }) => begun.opened().await,
        None => std::future::pending().await,
    }
}

/// A configuration that is wrong changes nothing: the server goes on as it was. What was set since the file was read last
/// gives way to what the file says.
async fn finish_reload(
    server: &mut Server,
    source: &mut Source,
    reloading: Reloading,
    opened: Result<(), Failure>,
) {
    let file = source.path().to_owned();
    if let Err(failure) = opened {
        return not_reloaded(&failure.in_file(&file));
    }
    server.finish_reload(reloading.begun).await;
    *source = reloading.source;
    println!("weir: reloaded {}", file.display());
}

fn not_reloaded(failure: &Failure) {
    eprintln!("weir: not reloaded, nothing has changed:");
    failure.report();
}
