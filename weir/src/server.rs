//! A whole server: sockets, gateway and API, built from a configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::available_parallelism;

use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, spawn_local};
use weir_api::{ApiLimits, ApiListener, Asked, Change, ControlListener};
use weir_cluster::CheckedSpec;
use weir_gateway::{Gateway, GatewayError, Listener, Recorders, Reload, StatusProbe};
use weir_model::Span;

use crate::compose::{api_limits, gateway_spec, link_specs, listen_address, socket_address};
use crate::config::{Config, ConfigError, Pool, Report, Resolved, Source, TlsConfig, check_report};
use crate::daemon::Daemon;
use crate::daemon::fixed::{Fixed, fixed, refuse_changes};
use crate::descriptors;
use crate::failure::Failure;
use crate::{lease_link, promise_link};

/// A running server.
pub(crate) struct Server {
    config: Config,
    gateway: Gateway,
    api: Option<AbortHandle>,
    control: Option<AbortHandle>,
    /// The limits for clients over HTTP.
    api_limits: watch::Sender<ApiLimits>,
    /// The changes that clients ask for at the control socket. The sender is kept so that the receiver waits
    /// for ever if there is no control socket.
    asked: (mpsc::Sender<Asked>, mpsc::Receiver<Asked>),
    addresses: Vec<String>,
    /// The link of each pool to its controller, by pool.
    links: BTreeMap<String, AbortHandle>,
}

/// A change of the configuration whose new backends are being opened. Everything else in it has been checked.
pub(crate) struct Begun {
    config: Config,
    reload: Reload,
    links: BTreeMap<String, CheckedSpec>,
}

impl Server {
    /// Binds the sockets, opens the volumes and serves, recorded if there are `recorders`. Must be called on
    /// a `LocalSet`.
    ///
    /// # Errors
    /// If a part that the configuration names is not available; then nothing was started.
    pub(crate) async fn start(config: Config, recorders: Option<Recorders>) -> Result<Self, Failure> {
        let spec = descriptors::fit(&config, gateway_spec(&config))?;
        let links = check_links(&config, &BTreeMap::new())?;
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
        let mut server =
            Self { config, gateway, api, control, api_limits, asked, addresses, links: BTreeMap::new() };
        server.link_pools(links);
        Ok(server)
    }

    /// A probe that asks for the gateway's state.
    pub(crate) fn probe(&self) -> StatusProbe {
        self.gateway.probe()
    }

    /// Links pools to their controllers, and ends links that are not in the configuration any more. It cannot
    /// fail, which matters because the gateway has changed already.
    fn link_pools(&mut self, links: BTreeMap<String, CheckedSpec>) {
        self.links.retain(|pool, link| {
            let stays = self.config.pools.get(pool).is_some_and(|pool| pool.controller().is_some());
            if !stays {
                link.abort();
            }
            stays
        });
        for (pool, spec) in links {
            let volumes = self.config.volumes.iter().filter(|(_, volume)| volume.pool.value == pool);
            let volumes = volumes.map(|(name, _)| name.clone()).collect();
            let link = if let Some(leased) = self.gateway.leased_pool(&pool) {
                spawn_local(lease_link::link(pool.clone(), spec, volumes, leased))
            } else if let Some(shared) = self.gateway.shared_pool(&pool) {
                spawn_local(promise_link::link(pool.clone(), spec, shared))
            } else {
                continue;
            };
            self.links.insert(pool, link.abort_handle());
        }
    }
}

/// What cannot change while the server runs: its addresses, who controls its pools, and what it shows them.
fn fixed_values(config: &Config) -> Vec<Fixed> {
    let (listen, cluster) = (&config.listen, config.cluster.as_ref());
    let nbd: Vec<_> = listen.nbd.iter().map(|address| address.value.to_string()).collect();
    let file = |key: &str, of: fn(&TlsConfig) -> &Resolved<PathBuf>| {
        fixed(format!("cluster.{key}"), cluster.map(|cluster| of(&cluster.tls).value.display()))
    };
    let own = [
        fixed("listen.nbd", Some(nbd.join(", "))),
        fixed("listen.metrics", listen.metrics.value.as_ref()),
        fixed("listen.control", listen.control.value.as_ref().map(|path| path.display())),
        fixed("cluster.name", cluster.map(|cluster| &cluster.name.value)),
        file("ca", |tls| &tls.ca),
        file("certificate", |tls| &tls.certificate),
        file("key", |tls| &tls.key),
    ];
    let pools = config.pools.iter();
    let controller = |pool: &Pool| {
        let controller = pool.controller()?;
        Some(format!("{controller}, with control = \"{}\"", pool.control.value.kind()))
    };
    let controllers = pools.map(|(name, pool)| fixed(format!("pool.{name}.controller"), controller(pool)));
    own.into_iter().chain(controllers).collect()
}

impl Daemon for Server {
    type Config = Config;
    type Begun = Begun;

    fn config(source: &Source) -> Result<Config, ConfigError> {
        source.config()
    }

    fn announcement(&self) -> String {
        format!("serving {} volume(s) on {}", self.config.volumes.len(), self.addresses.join(", "))
    }

    fn begin_reload(&self, config: Config, superseded: Option<Begun>) -> Result<Begun, Failure> {
        refuse_changes(fixed_values(&self.config), &fixed_values(&config))?;
        let links = check_links(&config, &self.links)?;
        let spec = descriptors::fit(&config, gateway_spec(&config))?;
        let superseded = superseded.map(|superseded| superseded.reload);
        let reload = self.gateway.begin_reload(spec, superseded).map_err(Failure::usage)?;
        Ok(Begun { config, reload, links })
    }

    async fn opened(begun: &mut Begun) -> Result<(), Failure> {
        begun.reload.opened().await.map_err(Failure::usage)
    }

    async fn finish_reload(&mut self, Begun { config, reload, links }: Begun) {
        self.gateway.finish_reload(reload).await;
        self.api_limits.send_replace(api_limits(&config));
        self.config = config;
        self.link_pools(links);
    }

    async fn next_asked(&mut self) -> Result<Asked, Failure> {
        Ok(self.asked.1.recv().await.expect("a sender is held"))
    }

    fn report(config: &Config) -> Report {
        check_report(config)
    }

    fn interval(config: &Config, Change { table, name, .. }: &Change) -> Option<Span> {
        let volume = config.volumes.get(name).filter(|_| table == "volume");
        let pool = config.pools.get(volume.map_or(name, |volume| &volume.pool.value))?;
        pool.control_interval()
    }

    /// Finishes accepted requests within the time for that, flushes, and closes.
    async fn shutdown(self) {
        self.api.iter().chain(&self.control).chain(self.links.values()).for_each(AbortHandle::abort);
        for volume in self.gateway.shutdown().await {
            tracing::error!(volume, "did not finish in time");
        }
    }
}

/// The specifications of new links: for each pool that has a controller and no link to it yet. Files, keys
/// and addresses are checked here.
fn check_links(
    config: &Config,
    linked: &BTreeMap<String, AbortHandle>,
) -> Result<BTreeMap<String, CheckedSpec>, Failure> {
    let is_linked = |(name, pool): (&String, &Pool)| pool.controller().is_none() || linked.contains_key(name);
    if config.pools.iter().all(is_linked) {
        return Ok(BTreeMap::new()); // the files of a link that runs are not read again
    }
    let specs = link_specs(config).map_err(|error| Failure::usage(format!("cluster: {error}")))?;
    let new = specs.into_iter().filter(|(pool, _)| !linked.contains_key(pool));
    new.map(|(pool, spec)| {
        let wrong = |error| Failure::usage(format!("pool.{pool}.controller: {error}"));
        Ok((pool.clone(), spec.check().map_err(wrong)?))
    })
    .collect()
}

/// A failure that the operator can mend is a usage error. A system without threads or io_uring is none.
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
