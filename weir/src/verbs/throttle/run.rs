//! The agent as a process: a thread with its turns, and the address where it tells its state.

use std::io;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::spawn_local;
use weir_agent::agent::{Agent, AgentError};
use weir_agent::sensors::Roots;
use weir_api::{ApiListener, Asked, Change};
use weir_clock::Clock;
use weir_control::OneSidedPidConfig;
use weir_model::Span;
use weir_status::ThrottleStatus;
use weir_throttle::Settings;

use crate::compose::socket_address;
use crate::config::{ConfigError, Report, Source, ThrottleConfig, throttle_report, units};
use crate::daemon::fixed::{Fixed, fixed, refuse_changes};
use crate::daemon::{self, Daemon};
use crate::failure::Failure;

/// What the agent's thread is told.
enum Order {
    Change(Settings, oneshot::Sender<Result<(), AgentError>>),
    Stop,
}

/// An agent that runs.
struct Running {
    config: ThrottleConfig,
    /// Where the state is told; nowhere, in a dry run whose address is in use.
    address: Option<String>,
    dry_run: bool,
    orders: mpsc::Sender<Order>,
    thread: JoinHandle<Result<(), AgentError>>,
    /// Changes each second, and closes when the agent's thread has ended.
    status: watch::Receiver<ThrottleStatus>,
}

/// Guards the resources of this host until SIGTERM or SIGINT.
///
/// # Errors
/// If it cannot start, or nothing guards it any more.
pub(super) async fn run(
    read: impl FnOnce() -> Result<Source, ConfigError>,
    dry_run: bool,
) -> Result<(), Failure> {
    daemon::run(read, async |config| Running::start(config, dry_run).await).await
}

impl Running {
    async fn start(config: ThrottleConfig, dry_run: bool) -> Result<Self, Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("throttle.metrics: {error}"));
        let address = socket_address(&config.metrics.value).map_err(|error| wrong(&error))?;
        let clock = Clock::new();
        let program: Option<fn() -> io::Result<process::Command>> = (!dry_run).then_some(guard);
        let agent =
            Agent::start(clock.now(), config.settings(), Roots::default(), program).map_err(|error| {
                match error {
                    AgentError::Settings(error) => Failure::usage(format!("throttle: {error}")),
                    error => Failure::Host(format!("throttle: {error}")),
                }
            })?;
        // The address comes second, so that a second agent hears of the first and not of its address.
        let listener = match ApiListener::bind(address).await {
            Ok(listener) => Some(listener),
            Err(error) if dry_run => {
                // No peer: once, at the start. As a rule, an agent is at work and has the address.
                tracing::warn!("throttle.metrics: {error}; this dry run serves no metrics");
                None
            }
            Err(error) => {
                agent.stop()?;
                return Err(wrong(&error));
            }
        };
        let address = listener.as_ref().map(ApiListener::local_address).transpose()?;
        let address = address.map(|address| address.to_string());
        let (told, status) = watch::channel(agent.status(clock.now()));
        let (orders, ordered) = mpsc::channel();
        let turns = move || take_turns(clock, agent, &ordered, &told);
        let thread = thread::Builder::new().name("weir-throttle".to_owned()).spawn(turns)?;
        if let Some(listener) = listener {
            spawn_local(listener.serve_throttle(status.clone()));
        }
        Ok(Self { config, address, dry_run, orders, thread, status })
    }
}

/// The guard: this program once more. The agent adds its process number.
pub(super) fn guard() -> io::Result<process::Command> {
    let mut program = process::Command::new(std::env::current_exe()?);
    program.args(["throttle", "guard"]);
    Ok(program)
}

/// The agent's turns, until it is told to stop or cannot go on.
fn take_turns(
    clock: Clock,
    mut agent: Agent,
    orders: &mpsc::Receiver<Order>,
    told: &watch::Sender<ThrottleStatus>,
) -> Result<(), AgentError> {
    let period = OneSidedPidConfig::default().period;
    let mut next = clock.now();
    loop {
        let wait = Duration::from_nanos(next.saturating_since(clock.now()).as_nanos());
        match orders.recv_timeout(wait) {
            Ok(Order::Change(settings, answer)) => {
                let _ = answer.send(agent.change(settings)); // who asked may have been stopped
            }
            Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return agent.stop(),
            Err(RecvTimeoutError::Timeout) => {
                let now = clock.now();
                // A turn that came late is not made up for: the law counts in periods, and a delay that rose
                // twice within a few milliseconds would make TCP send again.
                next = (next + period).max(now + Span::from_nanos(period.as_nanos() / 2));
                if agent.turn(now)? {
                    told.send_replace(agent.status(now));
                }
            }
        }
    }
}

/// What cannot change while the agent runs: its queues, its rules and its address follow from it.
fn fixed_values(config: &ThrottleConfig) -> Vec<Fixed> {
    vec![
        fixed("throttle.metrics", Some(&config.metrics.value)),
        fixed("throttle.ceiling", Some(units::show_span(config.ceiling.value))),
        fixed("throttle.packets", Some(config.packets.value.name())),
    ]
}

impl Daemon for Running {
    type Config = ThrottleConfig;
    type Begun = ThrottleConfig;

    fn config(source: &Source) -> Result<ThrottleConfig, ConfigError> {
        source.throttle()
    }

    fn announcement(&self) -> String {
        let what = if self.dry_run { "saying what would be delayed" } else { "guarding" };
        let threshold = self.config.threshold.value;
        let state = match &self.address {
            Some(address) => format!("state on http://{address}/metrics"),
            None => "state in the log alone".to_owned(),
        };
        format!("{what}: reads are to wait {threshold} at most; {state}")
    }

    fn begin_reload(
        &self,
        config: ThrottleConfig,
        _superseded: Option<ThrottleConfig>,
    ) -> Result<ThrottleConfig, Failure> {
        refuse_changes(fixed_values(&self.config), &fixed_values(&config))?;
        Ok(config)
    }

    async fn opened(_config: &mut ThrottleConfig) -> Result<(), Failure> {
        Ok(()) // an agent has nothing to open
    }

    async fn finish_reload(&mut self, config: ThrottleConfig) {
        let (answer, answered) = oneshot::channel();
        let _ = self.orders.send(Order::Change(config.settings(), answer)); // a thread that ended is noticed
        match answered.await {
            Ok(Ok(())) => self.config = config,
            Ok(Err(error)) => tracing::error!(%error, "the settings are not in force"), // checked before
            Err(_) => {}
        }
    }

    async fn next_asked(&mut self) -> Result<Asked, Failure> {
        while self.status.changed().await.is_ok() {}
        Err(Failure::Runtime(anyhow::anyhow!("the agent cannot go on")))
    }

    fn report(config: &ThrottleConfig) -> Report {
        throttle_report(config)
    }

    fn interval(_config: &ThrottleConfig, _change: &Change) -> Option<Span> {
        None
    }

    async fn shutdown(self) {
        let _ = self.orders.send(Order::Stop);
        let ended = tokio::task::spawn_blocking(|| self.thread.join()).await;
        if let Ok(Ok(Err(error))) = ended {
            tracing::error!(%error, "the agent could not end as it should");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_value_that_cannot_change_is_named_alone_with_both_values() {
        let config = |rest: &str| {
            let text = format!("[throttle]\nthreshold = \"15ms\"\n{rest}");
            fixed_values(&Source::of(Path::new("throttle.toml"), text).throttle().expect("it is valid"))
        };
        let refused = |rest: &str| {
            let refused = refuse_changes(config(""), &config(rest));
            refused.map_err(|failure| failure.to_string())
        };
        let cannot = "cannot change while it runs";
        assert_eq!(refused("write_limit = \"2MiB/s\"\nceiling = \"20ms\"\n"), Ok(()));
        let ceiling = format!("throttle.ceiling: {cannot}: found \"30ms\"; accepted: \"20ms\", or a restart");
        assert_eq!(refused("ceiling = \"30ms\"\n"), Err(ceiling));
        let metrics = format!(
            "throttle.metrics: {cannot}: found \"127.0.0.1:1\"; accepted: \"127.0.0.1:9811\", or a restart"
        );
        let packets = format!("throttle.packets: {cannot}: found \"acks\"; accepted: \"all\", or a restart");
        let both = refused("packets = \"acks\"\nmetrics = \"127.0.0.1:1\"\n");
        assert_eq!(both, Err(format!("{metrics}\n{packets}")));
    }
}
