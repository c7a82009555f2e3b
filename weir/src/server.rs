//! A whole server: sockets, gateway and API, put together from a configuration.

use std::collections::BTreeMap;
use std::thread::available_parallelism;

use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, spawn_local};
use weir_api::{ApiLimits, ApiListener, Asked, ControlListener};
use weir_gateway::{Gateway, GatewayError, Listener, Recorders, Reload, StatusProbe};

use crate::compose::{api_limits, gateway_spec, link_specs, listen_address, socket_address};
use crate::config::{Config, Pool};
use crate::descriptors;
use crate::failure::Failure;
use crate::port_link;

/// A server that serves.
pub(crate) struct Server {
    config: Config,
    gateway: Gateway,
    api: Option<AbortHandle>,
    control: Option<AbortHandle>,
    /// What those who ask over HTTP may take.
    api_limits: watch::Sender<ApiLimits>,
    /// Changes that somebody asks for at the control socket. One end is held here, so that there may always be another.
    asked: (mpsc::Sender<Asked>, mpsc::Receiver<Asked>),
    addresses: Vec<String>,
    /// By pool, its link to its controller.
    links: BTreeMap<String, AbortHandle>,
}

impl Server {
    /// Binds the sockets, opens the volumes and serves, recorded if there are `recorders`. Must be called on a
    /// `LocalSet`.
    ///
    /// # Errors
    /// If anything that the configuration names cannot be had; then nothing was started.
    pub(crate) async fn start(config: Config, recorders: Option<Recorders>) -> Result<Self, Failure> {
        let spec = descriptors::fit(&config, gateway_spec(&config))?;
        let mut addresses = Vec::new();
        let mut listeners = Vec::new();
        for (i, address) in config.listen.nbd.iter().enumerate() {
            let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("listen.nbd[{i}]: {error}"));
            let address = listen_address(&address.value)
                .map_err(|error| wrong(&format!("{}: {error}", address.value)))?;
            let listener = Listener::bind(address).map_err(|error| wrong(&error))?;
            addresses.push(listener.local_address().to_string());
            listeners.push(listener);
        }
        let api = bind_api(&config, &mut addresses).await?;
        let control = bind_control(&config)?;
        let cores = available_parallelism().map_or(1, usize::from);
        let gateway = Gateway::start(spec, listeners, cores, recorders).await.map_err(start_failure)?;
        let (api_limits, limits) = watch::channel(api_limits(&config));
        let api = api.map(|api| spawn_local(api.serve(gateway.probe(), limits.clone())).abort_handle());
        let asked = mpsc::channel(1);
        let changes = asked.0.clone();
        let control = control
            .map(|control| spawn_local(control.serve(gateway.probe(), changes, limits)).abort_handle());
        let links = BTreeMap::new();
        let mut server = Self { config, gateway, api, control, api_limits, asked, addresses, links };
        server.link_pools()?;
        Ok(server)
    }

    /// Where clients and scrapers find it, as text.
    pub(crate) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Asks for its state.
    pub(crate) fn probe(&self) -> StatusProbe {
        self.gateway.probe()
    }

    /// Begins to change to another configuration: its new backends are being opened, beside everything else. A change that is
    /// `superseded` is given up, but for what both open.
    ///
    /// # Errors
    /// If it cannot be put in force; then nothing has changed.
    pub(crate) fn begin_reload(
        &self,
        config: &Config,
        superseded: Option<Reload>,
    ) -> Result<Reload, Failure> {
        if config.listen != self.config.listen {
            return Err(Failure::usage(
                "listen: cannot change while serving; accepted: the same addresses, or a restart",
            ));
        }
        let is_same = |name: &String, pool: &Pool| {
            let served = self.config.pools.get(name);
            served.is_none_or(|served| served.controller == pool.controller)
        };
        if config.cluster != self.config.cluster
            || !config.pools.iter().all(|(name, pool)| is_same(name, pool))
        {
            return Err(Failure::usage(
                "cluster, pool: who controls a pool, and what is shown to them, cannot change while serving; \
                 accepted: the same, or a restart",
            ));
        }
        let spec = descriptors::fit(config, gateway_spec(config))?;
        self.gateway.begin_reload(spec, superseded).map_err(Failure::usage)
    }

    /// Puts in force what was begun and has opened its backends, without disturbing what stays.
    ///
    /// # Errors
    /// If a pool cannot be joined to its controller.
    pub(crate) async fn finish_reload(&mut self, config: Config, reload: Reload) -> Result<(), Failure> {
        self.gateway.finish_reload(reload).await;
        self.api_limits.send_replace(api_limits(&config));
        self.config = config;
        self.link_pools()
    }

    /// Changes values of the configuration in force; no volume is new.
    ///
    /// # Errors
    /// If it cannot be put in force; then nothing has changed.
    pub(crate) async fn change(&mut self, config: Config) -> Result<(), Failure> {
        let mut reload = self.begin_reload(&config, None)?;
        reload.opened().await.map_err(Failure::usage)?; // at once: there is nothing to open
        self.finish_reload(config, reload).await
    }

    /// Joins the pools that have a controller to it, and leaves those that are gone.
    fn link_pools(&mut self) -> Result<(), Failure> {
        let specs = link_specs(&self.config).map_err(|error| Failure::usage(format!("cluster: {error}")))?;
        self.links.retain(|pool, link| {
            let stays = specs.contains_key(pool);
            if !stays {
                link.abort();
            }
            stays
        });
        for (pool, spec) in specs {
            let Some(port) = self.gateway.port(&pool).filter(|_| !self.links.contains_key(&pool)) else {
                continue;
            };
            let volumes = self.config.volumes.iter().filter(|(_, volume)| volume.pool.value == pool);
            let volumes = volumes.map(|(name, _)| name.clone()).collect();
            let link = port_link::link(pool.clone(), spec, volumes, port)
                .map_err(|error| Failure::usage(format!("pool.{pool}.controller: {error}")))?;
            self.links.insert(pool, spawn_local(link).abort_handle());
        }
        Ok(())
    }

    /// The next change that somebody asks for at the control socket.
    pub(crate) async fn next_asked(&mut self) -> Asked {
        self.asked.1.recv().await.expect("a sender is held")
    }

    /// Stops: finishes what was accepted within its time, flushes, closes.
    pub(crate) async fn shutdown(self) {
        self.api.iter().chain(&self.control).chain(self.links.values()).for_each(AbortHandle::abort);
        for volume in self.gateway.shutdown().await {
            tracing::error!(volume, "did not finish in time");
        }
    }
}

/// What the operator can mend is a usage error; a system without threads or io_uring is not.
fn start_failure(error: GatewayError) -> Failure {
    match error {
        GatewayError::Shard(error) => Failure::Runtime(error.into()),
        error => Failure::usage(error),
    }
}

async fn bind_api(config: &Config, addresses: &mut Vec<String>) -> Result<Option<ApiListener>, Failure> {
    let Some(address) = &config.listen.metrics.value else { return Ok(None) };
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("listen.metrics: {error}"));
    let found = socket_address(address).map_err(|error| wrong(&format!("{address}: {error}")))?;
    let listener = ApiListener::bind(found).await.map_err(|error| wrong(&error))?;
    addresses.push(format!("http://{}/metrics", listener.local_address()?));
    Ok(Some(listener))
}

fn bind_control(config: &Config) -> Result<Option<ControlListener>, Failure> {
    let Some(path) = &config.listen.control.value else { return Ok(None) };
    let wrong = |error| Failure::usage(format!("listen.control: {error}"));
    ControlListener::bind(path).map(Some).map_err(wrong)
}
