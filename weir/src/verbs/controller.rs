//! `weir controller FILE`: divides an array among gateways, or passes on how their promises stand, until a
//! signal stops it.

use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use weir_api::{ApiListener, ArrayProbe, Asked, Change, ControlListener, STATUS_PATH};
use weir_clock::Clock;
use weir_cluster::{Array, Server, Tls};
use weir_model::Span;

use crate::compose::{array, leases_config, socket_address, tls_files, volume_configs};
use crate::config::{ConfigError, ControllerConfig, ControllerLaw, Report, Source, controller_report};
use crate::daemon::fixed::{Fixed, fixed, refuse_changes};
use crate::daemon::{self, Daemon};
use crate::failure::Failure;

/// A controller that serves its gateways.
struct Running {
    config: ControllerConfig,
    server: Arc<Server>,
    /// The address for gateways, and the address of the status.
    addresses: Vec<String>,
    /// The changes that clients ask for at the control socket. The sender is kept so that the receiver waits
    /// for ever if there is no control socket.
    asked: (mpsc::Sender<Asked>, mpsc::Receiver<Asked>),
}

/// Serves the gateways of the array in the configuration `file` until SIGTERM or SIGINT.
///
/// # Errors
/// If it cannot start.
pub(crate) async fn controller(file: &Path) -> Result<(), Failure> {
    daemon::run(|| Source::read(file), Running::start).await
}

impl Running {
    async fn start(config: ControllerConfig) -> Result<Self, Failure> {
        let tls = Tls::read(tls_files(&config.tls))
            .map_err(|error| Failure::usage(format!("controller: {error}")))?;
        let wrong =
            |key: &str, error: &dyn std::fmt::Display| Failure::usage(format!("controller.{key}: {error}"));
        let address = socket_address(&config.listen.value).map_err(|error| wrong("listen", &error))?;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| wrong("listen", &format!("{address}: cannot listen: {error}")))?;
        let status = match &config.status.value {
            Some(address) => {
                let found = socket_address(address).map_err(|error| wrong("status", &error))?;
                Some(ApiListener::bind(found).await.map_err(|error| wrong("status", &error))?)
            }
            None => None,
        };
        let control = config.control.value.as_deref().map(ControlListener::bind).transpose();
        let control = control.map_err(|error| wrong("control", &error))?;
        let clock = Clock::new();
        let server = Server::start(listener, &tls, clock, array(clock.now(), &config));
        let server = Arc::new(server.map_err(|error| wrong("listen", &error))?);
        let asked = mpsc::channel(1);
        let mut addresses = vec![server.address().to_string()];
        let probe = ArrayProbe::new(Arc::clone(&server), config.pool.clone());
        if let Some(status) = status {
            addresses.push(format!("http://{}{STATUS_PATH}", status.local_address()?));
            let probe = probe.clone();
            spawn_local(async move {
                if let Err(error) = status.serve_array(probe).await {
                    tracing::error!(%error, "the state is no longer told");
                }
            });
        }
        if let Some(control) = control {
            let changes = asked.0.clone();
            spawn_local(async move {
                if let Err(error) = control.serve_array(probe, changes).await {
                    tracing::error!(%error, "nothing can be changed any more");
                }
            });
        }
        Ok(Self { config, server, addresses, asked })
    }
}

/// What cannot change while the controller runs: its addresses, what it shows to gateways, its pool and the
/// law.
fn fixed_values(config: &ControllerConfig) -> Vec<Fixed> {
    let ControllerConfig { listen, status, control, tls, pool, law, .. } = config;
    vec![
        fixed("controller.listen", Some(&listen.value)),
        fixed("controller.status", status.value.as_ref()),
        fixed("controller.control", control.value.as_ref().map(|path| path.display())),
        fixed("controller.ca", Some(tls.ca.value.display())),
        fixed("controller.certificate", Some(tls.certificate.value.display())),
        fixed("controller.key", Some(tls.key.value.display())),
        fixed("pool", Some(pool)),
        fixed(format!("pool.{pool}.control"), Some(law.value.kind())),
    ]
}

impl Daemon for Running {
    type Config = ControllerConfig;
    type Begun = ControllerConfig;

    fn config(source: &Source) -> Result<ControllerConfig, ConfigError> {
        source.controller()
    }

    fn announcement(&self) -> String {
        let (pool, gateways) = (&self.config.pool, self.config.gateways.len());
        format!("controlling pool {pool} of {gateways} gateway(s) on {}", self.addresses.join(", "))
    }

    fn begin_reload(
        &self,
        config: ControllerConfig,
        _superseded: Option<ControllerConfig>,
    ) -> Result<ControllerConfig, Failure> {
        refuse_changes(fixed_values(&self.config), &fixed_values(&config))?;
        Ok(config)
    }

    async fn opened(_config: &mut ControllerConfig) -> Result<(), Failure> {
        Ok(()) // a controller has nothing to open
    }

    /// Gateways stay connected.
    async fn finish_reload(&mut self, config: ControllerConfig) {
        let (new, volumes) = (config.clone(), volume_configs(&config));
        let gone: Vec<String> =
            self.config.volumes.keys().filter(|name| !config.volumes.contains_key(*name)).cloned().collect();
        self.server
            .ask(move |now, array| match (array, &new.law.value) {
                (Array::Leases(controller), ControllerLaw::Maestro(shared)) => {
                    gone.iter().for_each(|name| controller.remove_volume(now, name));
                    volumes.into_iter().for_each(|(name, volume)| controller.set_volume(now, &name, volume));
                    controller.set_config(now, leases_config(&new, shared));
                }
                (Array::Promises(messenger), ControllerLaw::Promise) => {
                    messenger.set_gateways(now, new.gateways.clone());
                }
                _ => {} // the law was refused as fixed
            })
            .await;
        self.config = config;
    }

    async fn next_asked(&mut self) -> Result<Asked, Failure> {
        Ok(self.asked.1.recv().await.expect("a sender is held"))
    }

    fn report(config: &ControllerConfig) -> Report {
        controller_report(config)
    }

    fn interval(config: &ControllerConfig, _change: &Change) -> Option<Span> {
        match &config.law.value {
            ControllerLaw::Maestro(shared) => Some(shared.control_interval.value),
            ControllerLaw::Promise => None,
        }
    }

    async fn shutdown(self) {}
}
