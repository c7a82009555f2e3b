//! `weir transfers serve FILE`: the coordinator as a process.

use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_local};
use weir_api::{ApiListener, Asked, Change};
use weir_clock::Clock;
use weir_cluster::Tls;
use weir_coordinator::{DeskConfig, NodeConfig, Server, ServerError, ServerSpec};
use weir_model::Span;

use crate::compose::{socket_address, tls_files};
use crate::config::{ConfigError, Report, Source, TransfersConfig, transfers_report};
use crate::daemon::{self, Daemon};
use crate::descriptors;
use crate::failure::Failure;
use crate::transfers::nodes;

/// A coordinator that serves.
struct Running {
    config: TransfersConfig,
    server: Server,
    /// Where the state is told.
    metrics: SocketAddr,
    told: JoinHandle<()>,
}

/// Coordinates the transfers of the configuration `file` until SIGTERM or SIGINT.
///
/// # Errors
/// If it cannot start.
pub(super) async fn serve(file: &Path) -> Result<(), Failure> {
    daemon::run(|| Source::read(file), Running::start).await
}

impl Running {
    async fn start(config: TransfersConfig) -> Result<Self, Failure> {
        descriptors::raise(); // each client of this machine has one
        let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("transfers.metrics: {error}"));
        let metrics = socket_address(&config.metrics.value).map_err(|error| wrong(&error))?;
        let remote = match (&config.address.value, &config.tls) {
            (Some(address), Some(tls)) => {
                let wrong =
                    |error: &dyn std::fmt::Display| Failure::usage(format!("transfers.address: {error}"));
                let tls = Tls::read(tls_files(tls))
                    .map_err(|error| Failure::usage(format!("transfers: {error}")))?;
                let found = socket_address(address).map_err(|error| wrong(&error))?;
                let listener = TcpListener::bind(found).await;
                Some((listener.map_err(|error| wrong(&format!("{found}: cannot listen: {error}")))?, tls))
            }
            _ => None,
        };
        let opened = nodes(&config)?.into_iter().map(|(_, node)| node).collect();
        let spec = ServerSpec {
            state: config.state.value.clone(),
            remote,
            desk: desk_config(&config),
            nodes: opened,
            sensors: config.nodes.values().map(|node| node.sensor.value.clone()).collect(),
        };
        let refused = |error: ServerError| Failure::usage(format!("transfers: {error}"));
        let server = Server::start(Clock::new(), spec).await.map_err(refused)?;
        // The address comes second, so that a second coordinator hears of the first and not of its address.
        let listener = match ApiListener::bind(metrics).await {
            Ok(listener) => listener,
            Err(error) => {
                server.stop().await;
                return Err(wrong(&error));
            }
        };
        let metrics = listener.local_address()?;
        let probe = server.probe();
        let told = spawn_local(listener.serve_transfers(async move || probe.status().await));
        Ok(Self { config, server, metrics, told })
    }
}

/// What the coordinator decides by.
fn desk_config(config: &TransfersConfig) -> DeskConfig {
    let node = |(name, node): (&String, &crate::config::NodeConfig)| NodeConfig {
        name: name.clone(),
        url: node.url.value.to_string(),
        peak_read: node.peak_read.value,
        peak_write: node.peak_write.value,
        class: node.class.value.map_or(0, |class| usize::from(class.0)),
        cost: node.cost.value,
        capacity: node.capacity.value.map(|capacity| capacity.as_u64()),
        domain: node.domain.value.clone(),
    };
    DeskConfig {
        policy: config.policy.value.policy(),
        classes: config.classes.iter().map(|class| class.value.clone()).collect(),
        rate: config.rate.value,
        nodes: config.nodes.iter().map(node).collect(),
    }
}

impl Daemon for Running {
    type Config = TransfersConfig;
    type Begun = TransfersConfig;

    fn config(source: &Source) -> Result<TransfersConfig, ConfigError> {
        source.transfers()
    }

    fn report(config: &TransfersConfig) -> Report {
        transfers_report(config)
    }

    fn announcement(&self) -> String {
        let TransfersConfig { nodes, policy, state, address, .. } = &self.config;
        let remote = address.value.as_ref().map_or(String::new(), |address| format!(" and {address}"));
        let at = state.value.display();
        let (count, metrics) = (nodes.len(), self.metrics);
        format!(
            "coordinating transfers to {count} node(s) by {} in {at}{remote}; state on http://{metrics}/metrics",
            policy.value
        )
    }

    fn begin_reload(
        &self,
        config: TransfersConfig,
        _superseded: Option<TransfersConfig>,
    ) -> Result<TransfersConfig, Failure> {
        if config == self.config {
            return Ok(config);
        }
        let why =
            "found another configuration; accepted: a restart, after which each client goes on by itself";
        Err(Failure::usage(format!("transfers: cannot change while it runs: {why}")))
    }

    async fn opened(_config: &mut TransfersConfig) -> Result<(), Failure> {
        Ok(())
    }

    async fn finish_reload(&mut self, config: TransfersConfig) {
        self.config = config;
    }

    async fn next_asked(&mut self) -> Result<Asked, Failure> {
        pending().await // it has no control socket
    }

    fn interval(_config: &TransfersConfig, _change: &Change) -> Option<Span> {
        None
    }

    async fn shutdown(self) {
        self.told.abort(); // before the desk stops, so that nobody is answered with an error
        self.server.stop().await;
    }
}
