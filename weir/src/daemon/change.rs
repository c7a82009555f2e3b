//! `weir set`, on the server's side. The server judges a change as it judges its file, and puts it in force
//! or refuses it as a whole. The change lasts until the file is read again.

use weir_api::{Asked, Change};
use weir_model::Span;

use super::Daemon;
use crate::config::{Source, units};
use crate::failure::Failure;

/// Puts a change in force, and answers the client that asked for it. If a reload is under way, the change is
/// in force until that ends, and the answer says so.
pub(super) async fn carry_out<D: Daemon>(daemon: &mut D, source: &mut Source, asked: Asked, reloading: bool) {
    let Asked { change, answer } = asked;
    let done = put_in_force(daemon, source, &change, reloading).await;
    // The client may be gone; the log says what is in force.
    let _ = answer.send(done.map_err(|failure| failure.to_string()));
}

async fn put_in_force<D: Daemon>(
    daemon: &mut D,
    source: &mut Source,
    change: &Change,
    reloading: bool,
) -> Result<String, Failure> {
    let changed = source.with(&change.table, &change.name, &change.set).map_err(Failure::usage)?;
    let config = D::config(&changed).map_err(Failure::usage)?;
    let mut said = said(&changed, change, D::interval(&config, change));
    if reloading {
        said.push_str("; it is being read now, and takes over when its volumes are open");
    }
    daemon.change(config).await?;
    *source = changed;
    tracing::info!("{said}");
    Ok(said)
}

/// The answer: what was changed, from when on, and until when.
fn said(source: &Source, Change { table, name, set }: &Change, interval: Option<Span>) -> String {
    let keys: Vec<_> = set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let from = interval.map_or("at once".to_owned(), |span| format!("within {}", units::show_span(span)));
    let until = format!("until {} is read again (SIGHUP)", source.path().display());
    format!("{table} {name}: {} is in force {from}, {until}", keys.join(" "))
}
