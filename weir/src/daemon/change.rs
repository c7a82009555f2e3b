//! `weir set`, on the server's side. The server judges changes as it judges its file, and puts them in force
//! or refuses them as a whole. The changes last until the file is read again.
//!
//! The loop of the daemon takes one request after the other, so no other change comes between the check and
//! the moment in which all of a request is in force.

use weir_api::{Asked, Change, Changed, Changes, Setting};
use weir_model::Span;

use super::Daemon;
use crate::config::{Report, Source, units};
use crate::failure::Failure;

/// Puts changes in force, and answers the client that asked for them. If a reload is under way, they are in
/// force until that ends, and the answer says so.
pub(super) async fn carry_out<D: Daemon>(daemon: &mut D, source: &mut Source, asked: Asked, reloading: bool) {
    let Asked { changes, answer } = asked;
    let done = put_in_force(daemon, source, &changes, reloading).await;
    // The client may be gone; the log says what is in force.
    let _ = answer.send(done.map_err(|failure| failure.to_string()));
}

async fn put_in_force<D: Daemon>(
    daemon: &mut D,
    source: &mut Source,
    changes: &Changes,
    reloading: bool,
) -> Result<Changed, Failure> {
    let Changes { changes: wanted, dry_run } = changes;
    let changed = source.with(wanted).map_err(Failure::usage)?;
    let before = D::config(source).map_err(Failure::usage)?;
    let config = D::config(&changed).map_err(Failure::usage)?;
    let within = wanted.iter().filter_map(|change| D::interval(&config, change)).max();
    let done = Changed {
        dry_run: *dry_run,
        settings: differences(&D::report(&before), &D::report(&config)),
        within_s: within.unwrap_or(Span::ZERO).as_secs_f64(),
        until_read: changed.path().display().to_string(),
        is_being_read: reloading,
    };
    daemon.change(config, *dry_run).await?;
    if !dry_run {
        *source = changed;
        tracing::info!("{}", said(wanted, &done));
    }
    Ok(done)
}

/// The settings whose values differ, in the order of the report after the change.
fn differences(before: &Report, after: &Report) -> Vec<Setting> {
    let value = |report: &Report, key: &str| {
        let row = report.settings.iter().find(|row| row.key == key)?;
        (row.value != "-").then(|| row.value.clone())
    };
    let gone = before.settings.iter().filter(|row| !after.settings.iter().any(|other| other.key == row.key));
    let keys = after.settings.iter().chain(gone).map(|row| &row.key);
    let settings = keys.map(|key| {
        let (old, new) = (value(before, key), value(after, key));
        Setting { key: key.clone(), old, new }
    });
    settings.filter(|setting| setting.old != setting.new).collect()
}

/// In words: what was changed, from when on, and until when.
pub(crate) fn said(changes: &[Change], changed: &Changed) -> String {
    let Changed { dry_run, within_s, until_read, is_being_read, .. } = changed;
    let one = |Change { table, name, set }: &Change| {
        let keys: Vec<_> = set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        format!("{table} {name}: {}", keys.join(" "))
    };
    let all: Vec<_> = changes.iter().map(one).collect();
    let from = match Span::from_secs_f64(*within_s) {
        Span::ZERO => "at once".to_owned(),
        within => format!("within {}", units::show_span(within)),
    };
    let is = if *dry_run { "would be" } else { "is" };
    let reading =
        if *is_being_read { "; it is being read now, and takes over when its volumes are open" } else { "" };
    let none = if *dry_run { "nothing has changed; " } else { "" };
    let until = format!("until {until_read} is read again (SIGHUP){reading}");
    format!("{none}{} {is} in force {from}, {until}", all.join("; "))
}
