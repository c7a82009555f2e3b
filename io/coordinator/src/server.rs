//! A coordinator as a process: the desk on a thread of its own, and the tasks that connect it with the world.
//!
//! Only the desk's thread has the desk, so there is no lock. A change of the catalogue waits for the disk;
//! on a thread of its own it holds up nothing else. All queues are bounded: if clients send faster than the
//! desk takes, their messages wait in their sockets.

mod desk_thread;
mod probe;
mod sensors;
mod service;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::transport::Server as Transport;
use weir_clock::Clock;
use weir_cluster::{Bounds, ClusterError, Tls, accept};
use weir_node::Node;
use weir_transfer::NodeIndex;

use crate::catalogue::{Catalogue, CatalogueError};
use crate::desk::{Desk, DeskConfig};
use crate::proto::coordinator_server::CoordinatorServer;
use crate::sensor::SensorUrl;
use desk_thread::DeskHandle;
pub use probe::StatusProbe;
use service::Service;

/// The file of the catalogue, in the state directory.
const CATALOGUE: &str = "catalogue.db";
/// The socket for clients of the same machine, in the state directory.
pub(crate) const SOCKET: &str = "coordinator.sock";

/// The largest message, in bytes: a list of some thousand entries.
pub(crate) const MOST_BYTES: usize = 4 << 20;
/// The most streams of a connection at a time.
const MOST_STREAMS: u32 = 256;
/// The most bytes of a stream's headers.
const MOST_HEADER_BYTES: u32 = 16 * 1024;
/// The most connections of clients of other machines.
const REMOTE: Bounds = Bounds { most: 4_096, most_of_address: 1_024, peers: "clients" };
/// How often a silent connection is asked whether it is there, and how long it may take to answer. So a
/// client whose machine has gone holds its transfer for no longer.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// What a coordinator needs.
pub struct ServerSpec {
    /// The directory of its catalogue and of its socket.
    pub state: PathBuf,
    /// Where it serves clients of other machines, and the certificate that it shows them.
    pub remote: Option<(TcpListener, Tls)>,
    /// What it decides by.
    pub desk: DeskConfig,
    /// The nodes, in the order of [`DeskConfig::nodes`].
    pub nodes: Vec<Node>,
    /// Where the sensor of each node is, in the same order; `None`: it has none.
    pub sensors: Vec<Option<SensorUrl>>,
}

/// Why a coordinator cannot start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The state directory cannot be used.
    #[error("state {}: {source}", path.display())]
    State {
        /// The directory, or a file in it.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The desk gets no thread, or a task of it was lost.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    /// A node does not let the coordinator in.
    #[error("node {node}: {why}; accepted: credentials and rights with which the node can be used")]
    Denied {
        /// The node.
        node: String,
        /// What it says.
        why: String,
    },
    /// The catalogue cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] ClusterError),
}

/// A coordinator that serves its clients until it is dropped.
#[derive(Debug)]
pub struct Server {
    desk: DeskHandle,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// Opens the catalogue, tries each node once, and begins to serve.
    ///
    /// # Errors
    /// If the state directory or the certificate cannot be used, or another coordinator uses the directory.
    /// It is no error if a node is down.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start(clock: Clock, spec: ServerSpec) -> Result<Self, ServerError> {
        let ServerSpec { state, remote, desk, nodes, sensors } = spec;
        let in_state = |path: &Path| {
            let path = path.to_owned();
            move |source| ServerError::State { path, source }
        };
        make_private(&state).map_err(in_state(&state))?;
        // The catalogue's lock says that no other coordinator is at work. Only then is an old socket
        // nobody's.
        let path = state.join(CATALOGUE);
        let catalogue = Catalogue::open(&path)?;
        let mut desk = Desk::open(clock.now(), clock.unix_ms(), desk, catalogue)?;
        let sensors = sensors.into_iter().enumerate();
        let sensors: Vec<_> = sensors.filter_map(|(place, url)| Some((NodeIndex(place), url?))).collect();
        sensors.iter().for_each(|(node, _)| desk.watch(*node));
        let socket = state.join(SOCKET);
        let listener = bind(&socket).map_err(in_state(&socket))?;
        let desk = DeskHandle::start(clock, desk, nodes).await?;
        let ask = |(node, url)| tokio::spawn(sensors::ask_each_second(url, node, desk.weak()));
        let mut tasks: Vec<_> = sensors.into_iter().map(ask).collect();
        let service = Service::new(desk.clone(), path.into());
        let service = || {
            CoordinatorServer::new(service.clone())
                .max_decoding_message_size(MOST_BYTES)
                .max_encoding_message_size(MOST_BYTES)
        };
        let local = bounded(Transport::builder()).add_service(service());
        tasks.push(tokio::spawn(async move {
            let served = local.serve_with_incoming(UnixListenerStream::new(listener)).await;
            report("the socket", served);
        }));
        if let Some((listener, tls)) = remote {
            let server = bounded(tls.server()?).add_service(service());
            let (admit, admitted) = mpsc::channel(1);
            tasks.push(tokio::spawn(accept(listener, REMOTE, admit)));
            tasks.push(tokio::spawn(async move {
                let served = server.serve_with_incoming(ReceiverStream::new(admitted)).await;
                report("the address", served);
            }));
        }
        Ok(Self { desk, tasks })
    }

    /// What asks it for its state.
    pub fn probe(&self) -> StatusProbe {
        StatusProbe::new(&self.desk)
    }

    /// Stops: clients lose their streams, and ask again when there is a coordinator.
    pub async fn stop(mut self) {
        for task in &mut self.tasks {
            task.abort();
            let _ = task.await;
        }
        self.desk.stop().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn bounded(server: Transport) -> Transport {
    server
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .http2_max_header_list_size(MOST_HEADER_BYTES)
        .max_concurrent_streams(MOST_STREAMS)
}

fn report(what: &str, served: Result<(), tonic::transport::Error>) {
    if let Err(error) = served {
        // No peer: once, at an end that never comes in practice.
        tracing::error!(what, %error, "clients are served no more");
    }
}

/// Makes a directory that only its owner may use, unless there is one.
fn make_private(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).recursive(true).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(io::Error::other("found something that is no directory; accepted: a directory"))
        }
        made => made,
    }
}

/// A socket that only its owner may use. An old one is removed; anything else of its name is not.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
        Ok(_) => {
            return Err(io::Error::other(
                "found something that is no socket; accepted: nothing, or a socket",
            ));
        }
        Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
