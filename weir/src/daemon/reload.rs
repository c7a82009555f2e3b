//! SIGHUP: the process reads its file again, and opens the new parts beside everything else.

use super::Daemon;
use crate::config::Source;
use crate::failure::Failure;
use crate::say;

/// A reload whose new parts are being opened.
pub(super) struct Reloading<D: Daemon> {
    source: Source,
    begun: D::Begun,
}

/// Reads the file, and begins to open the new parts. A reload that is under way ends here in any case.
pub(super) fn begin<D: Daemon>(
    daemon: &D,
    source: &Source,
    superseded: Option<Reloading<D>>,
) -> Option<Reloading<D>> {
    if superseded.is_some() {
        tracing::info!("the reload under way is superseded by a newer one");
    }
    let begin = || {
        let source = source.read_again().map_err(Failure::usage)?;
        let config = D::config(&source).map_err(Failure::usage)?;
        let begun = daemon.begin_reload(config, superseded.map(|superseded| superseded.begun));
        let begun = begun.map_err(|failure| failure.in_file(source.path()));
        Ok(Reloading { source, begun: begun? })
    };
    begin().inspect_err(not_reloaded).ok()
}

/// Waits until the new parts of a reload are open, or one cannot be opened. Without a reload, it waits for
/// ever.
pub(super) async fn opened<D: Daemon>(reloading: &mut Option<Reloading<D>>) -> Result<(), Failure> {
    match reloading {
        Some(Reloading { begun, .. }) => D::opened(begun).await,
        None => std::future::pending().await,
    }
}

/// Puts the file in force. Values that were set since the file was last read give way to the file's.
pub(super) async fn finish<D: Daemon>(
    daemon: &mut D,
    source: &mut Source,
    reloading: Reloading<D>,
    opened: Result<(), Failure>,
) {
    let file = source.path().to_owned();
    if let Err(failure) = opened {
        return not_reloaded(&failure.in_file(&file));
    }
    daemon.finish_reload(reloading.begun).await;
    *source = reloading.source;
    say::on_stdout(format_args!("weir: reloaded {}", file.display()));
}

fn not_reloaded(failure: &Failure) {
    say::on_stderr("weir: not reloaded, nothing has changed:");
    failure.report();
}
