//! A process that serves until it is told to stop: one loop for a gateway, a controller and an agent.
//!
//! - SIGTERM and SIGINT stop it, also while it starts.
//! - SIGHUP reloads its file. A new reload supersedes one that is under way.
//! - The control socket asks for changes of single values (`weir set`).
//!
//! A wrong configuration changes nothing: the process goes on as it was.

use tokio::signal::unix::{SignalKind, signal};
use weir_api::{Asked, Change};
use weir_model::Span;

use crate::config::{ConfigError, Report, Source};
use crate::failure::Failure;
use crate::say;

pub(crate) mod change;
pub(crate) mod fixed;
mod reload;

/// A process that serves: a gateway, a controller or a packet-delay agent.
pub(crate) trait Daemon: Sized {
    /// The configuration in its file.
    type Config;
    /// A change of the configuration whose new parts are being opened. Everything else in it has been
    /// checked.
    type Begun;

    /// Reads the configuration.
    ///
    /// # Errors
    /// If there is a mistake in it.
    fn config(source: &Source) -> Result<Self::Config, ConfigError>;

    /// For the operator: what the process serves, and at which addresses.
    fn announcement(&self) -> String;

    /// Begins to change to another configuration. The change `superseded`, if any, is given up, but parts
    /// that both changes open are kept.
    ///
    /// # Errors
    /// If the configuration cannot be put in force; then nothing has changed.
    fn begin_reload(
        &self,
        config: Self::Config,
        superseded: Option<Self::Begun>,
    ) -> Result<Self::Begun, Failure>;

    /// Waits until the new parts are open.
    ///
    /// # Errors
    /// If one cannot be opened; then nothing has changed.
    async fn opened(begun: &mut Self::Begun) -> Result<(), Failure>;

    /// Puts the begun change in force once its parts are open, without disturbing the parts that stay. It
    /// cannot fail.
    async fn finish_reload(&mut self, begun: Self::Begun);

    /// The next change that a client asks for at the control socket.
    ///
    /// # Errors
    /// If the process cannot go on.
    async fn next_asked(&mut self) -> Result<Asked, Failure>;

    /// Every value of the configuration.
    fn report(config: &Self::Config) -> Report;

    /// The interval at whose end a law looks at the change; `None` if it is in force at once.
    fn interval(config: &Self::Config, change: &Change) -> Option<Span>;

    /// Changes values of the configuration in force, or only finds out whether that can be done. Nothing new
    /// has to be opened for that.
    ///
    /// # Errors
    /// If the values cannot be put in force; then nothing has changed.
    async fn change(&mut self, config: Self::Config, dry_run: bool) -> Result<(), Failure> {
        let mut begun = self.begin_reload(config, None)?;
        Self::opened(&mut begun).await?;
        if !dry_run {
            self.finish_reload(begun).await;
        }
        Ok(())
    }

    /// Stops.
    async fn shutdown(self);
}

/// Starts the process that the configuration describes, which `read` reads, and serves until SIGTERM or
/// SIGINT.
///
/// # Errors
/// If it cannot start.
pub(crate) async fn run<D: Daemon>(
    read: impl FnOnce() -> Result<Source, ConfigError>,
    start: impl AsyncFnOnce(D::Config) -> Result<D, Failure>,
) -> Result<(), Failure> {
    // This comes first, so that a signal during the start is not lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut source = read().map_err(Failure::usage)?;
    let config = D::config(&source).map_err(Failure::usage)?;
    // A signal ends the start, even if a device does not answer.
    let started = tokio::select! {
        started = start(config) => Some(started),
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
    };
    let Some(started) = started else {
        say::on_stdout("weir: stopped before anything was served");
        return Ok(());
    };
    let mut daemon = started.map_err(|failure| match source.is_file() {
        true => failure.in_file(source.path()),
        false => failure,
    })?;
    say::on_stdout(format_args!("weir: {}", daemon.announcement()));
    let mut reloading = None;
    let mut result = Ok(());
    while result.is_ok() {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => reloading = reload::begin(&daemon, &source, reloading.take()),
            opened = reload::opened(&mut reloading) => {
                if let Some(reload) = reloading.take() {
                    reload::finish(&mut daemon, &mut source, reload, opened).await;
                }
            }
            asked = daemon.next_asked() => match asked {
                Ok(asked) => change::carry_out(&mut daemon, &mut source, asked, reloading.is_some()).await,
                Err(failure) => result = Err(failure),
            },
        }
    }
    tracing::info!("stopping");
    drop(reloading);
    daemon.shutdown().await;
    say::on_stdout("weir: stopped");
    result
}
