//! `weir set`: another target, priority or limit for what a running server serves.
//!
//! The server judges it as it judges its file, and puts it in force or refuses it as a whole. It lasts until the server reads
//! its file again.

use std::io::Write;

use clap::{Args, ValueEnum};
use weir_api::{Asked, CHANGES_PATH, Change};
use weir_model::Span;

use crate::ask;
use crate::config::{Config, Control, Source, units};
use crate::failure::Failure;
use crate::server::Server;

/// What to change, and where.
#[derive(Args, Debug)]
pub(crate) struct SetArguments {
    /// What is changed
    kind: Kind,
    /// Its name
    name: String,
    /// For a volume: priority=4, target.latency=5ms, target.p95=20ms, target.throughput=20MiB/s, target.iops=900,
    /// max_iops=1200iops, max_bandwidth=100MiB/s, max_concurrency=64; for a pool: total_concurrency=80. KEY=none takes it away
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// The server: its configuration file, or its control socket
    #[arg(long, value_name = "SOURCE", default_value = ask::USUAL_CONTROL)]
    server: String,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Kind {
    /// What clients see as a disk
    Volume,
    /// Volumes that share a device
    Pool,
}

/// Asks the server for the change, and prints what is in force.
///
/// # Errors
/// If it does not answer, or refuses; then nothing has changed.
pub(crate) async fn set(arguments: SetArguments) -> Result<(), Failure> {
    let server = ask::to_change(&arguments.server)?;
    let table = match arguments.kind {
        Kind::Volume => "volume",
        Kind::Pool => "pool",
    };
    let change = Change { table: table.to_owned(), name: arguments.name, set: arguments.set };
    let in_force = server.post(CHANGES_PATH, &change).await.map_err(ask::failure)?;
    Ok(writeln!(std::io::stdout(), "{in_force}")?)
}

/// Puts a change in force at the server of this process, and answers whoever asked for it. If a reload is under way, the change
/// is in force until it ends, and the answer says so.
pub(crate) async fn carry_out(server: &mut Server, source: &mut Source, asked: Asked, reloading: bool) {
    let Asked { change, answer } = asked;
    let done = match changed(source, &change) {
        Ok((changed, config)) => {
            let mut in_force = in_force(&changed, &config, &change);
            if reloading {
                in_force.push_str("; it is being read now, and takes over when its volumes are open");
            }
            server.change(config).await.map(|()| {
                *source = changed;
                tracing::info!("{in_force}");
                in_force
            })
        }
        Err(failure) => Err(failure),
    };
    // Whoever asked may be gone; what is in force is in the log.
    let _ = answer.send(done.map_err(|failure| failure.to_string()));
}

fn changed(source: &Source, change: &Change) -> Result<(Source, Config), Failure> {
    let changed = source.with(&change.table, &change.name, &change.set).map_err(Failure::usage)?;
    let config = changed.config().map_err(Failure::usage)?;
    Ok((changed, config))
}

/// What was changed, from when on and until when.
fn in_force(source: &Source, config: &Config, change: &Change) -> String {
    let Change { table, name, .. } = change;
    let pool =
        config.volumes.get(name).filter(|_| table == "volume").map_or(name, |volume| &volume.pool.value);
    let law = config.pools.get(pool).filter(|pool| pool.control.value == Control::Maestro);
    match law {
        Some(law) => within(source, change, law.control_interval.value),
        None => said(source, change, "at once"),
    }
}

/// The same where a law looks at it at the end of each `interval`.
pub(crate) fn within(source: &Source, change: &Change, interval: Span) -> String {
    said(source, change, &format!("within {}", units::show_span(interval)))
}

fn said(source: &Source, Change { table, name, set }: &Change, from: &str) -> String {
    let keys: Vec<_> = set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let until = format!("until {} is read again (SIGHUP)", source.path().display());
    format!("{table} {name}: {} is in force {from}, {until}", keys.join(" "))
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("accepted: KEY=VALUE, such as priority=4")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
