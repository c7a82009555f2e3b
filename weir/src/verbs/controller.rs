//! `weir controller FILE`: shares an array out among gateways until it is told to stop; SIGHUP reloads, and `weir set` changes
//! single values.

use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use weir_api::{ApiListener, ArrayProbe, Asked, ControlListener, STATUS_PATH};
use weir_clock::Clock;
use weir_cluster::{Server, Tls};
use weir_controller::Controller;

use crate::compose::{controller_config, socket_address, tls_files, volume_configs};
use crate::config::{ControllerConfig, Source};
use crate::failure::Failure;
use crate::verbs::set;

/// A controller that serves its gateways.
struct Running {
    config: ControllerConfig,
    server: Arc<Server>,
    /// Where gateways find it, and where it tells about itself.
    addresses: Vec<String>,
    /// Changes that somebody asks for at the control socket. One end is held here, so that there may always be another.
    asked: (mpsc::Sender<Asked>, mpsc::Receiver<Asked>),
}

/// Shares out what the configuration in `file` says until SIGTERM or SIGINT.
///
/// # Errors
/// If it cannot start.
pub(crate) async fn controller(file: &Path) -> Result<(), Failure> {
    // Before anything else, so that a signal during the start is not lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut source = Source::read(file).map_err(Failure::usage)?;
    let config = source.controller().map_err(Failure::usage)?;
    let mut running = Running::start(config).await.map_err(|failure| failure.in_file(file))?;
    let (pool, gateways) = (&running.config.pool, running.config.gateways.len());
    println!("weir: sharing out pool {pool} among {gateways} gateway(s) on {}", running.addresses.join(", "));
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => reload(&mut running, &mut source).await,
            asked = running.asked.1.recv() => {
                carry_out(&mut running, &mut source, asked.expect("a sender is held")).await;
            }
        }
    }
    println!("weir: stopped");
    Ok(())
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
        let controller = Controller::new(clock.now(), controller_config(&config), volume_configs(&config));
        let server = Server::start(listener, &tls, clock, controller);
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

    /// Changes to another configuration; gateways stay connected.
    async fn adopt(&mut self, config: ControllerConfig) -> Result<(), Failure> {
        let fixed = |config: &ControllerConfig| {
            let ControllerConfig { listen, status, control, tls, pool, .. } = config;
            (listen.clone(), status.clone(), control.clone(), tls.clone(), pool.clone())
        };
        if fixed(&config) != fixed(&self.config) {
            return Err(Failure::usage(
                "controller, pool: the addresses, the certificates and the pool's name cannot change while serving; \
                 accepted: the same, or a restart",
            ));
        }
        let (array, volumes) = (controller_config(&config), volume_configs(&config));
        let gone: Vec<String> =
            self.config.volumes.keys().filter(|name| !config.volumes.contains_key(*name)).cloned().collect();
        self.server
            .ask(move |now, controller| {
                gone.iter().for_each(|name| controller.remove_volume(now, name));
                volumes.into_iter().for_each(|(name, volume)| controller.set_volume(now, &name, volume));
                controller.set_config(now, array);
            })
            .await;
        self.config = config;
        Ok(())
    }
}

/// A configuration that is wrong changes nothing: the controller goes on as it was. What was set since the file was read last
/// gives way to what the file says.
async fn reload(running: &mut Running, source: &mut Source) {
    let file = source.path().to_owned();
    let read = || {
        let source = Source::read(&file).map_err(Failure::usage)?;
        let config = source.controller().map_err(Failure::usage)?;
        Ok((source, config))
    };
    let adopted = match read() {
        Ok((new, config)) => {
            running.adopt(config).await.map(|()| new).map_err(|failure| failure.in_file(&file))
        }
        Err(failure) => Err(failure),
    };
    match adopted {
        Ok(new) => {
            *source = new;
            println!("weir: reloaded {}", file.display());
        }
        Err(failure) => {
            eprintln!("weir: not reloaded, nothing has changed:");
            failure.report();
        }
    }
}

/// Puts a change in force, and answers whoever asked for it.
async fn carry_out(running: &mut Running, source: &mut Source, asked: Asked) {
    let Asked { change, answer } = asked;
    let read = || {
        let changed = source.with(&change.table, &change.name, &change.set).map_err(Failure::usage)?;
        let config = changed.controller().map_err(Failure::usage)?;
        Ok((changed, config))
    };
    let done = match read() {
        Ok((changed, config)) => {
            let in_force = set::within(&changed, &change, config.control_interval.value);
            running.adopt(config).await.map(|()| {
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
