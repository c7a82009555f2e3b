//! A client: it asks the coordinator, and moves the data itself.
//!
//! A transfer is a [`Session`](session) with the coordinator and a task that moves the data. The task moves
//! nothing unless the session is there and the coordinator has started the transfer: so nothing moves that
//! the coordinator does not count. If the session breaks, the task holds on. It goes on once the coordinator
//! has started the transfer again, on the same node; for another node, a new task begins.

mod counts;
mod download;
mod error;
mod gate;
mod jobs;
mod run;
mod session;
mod sink;
mod source;
mod upload;

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};
use weir_clock::Clock;
use weir_cluster::Tls;
use weir_node::Node;

use crate::proto::coordinator_client::CoordinatorClient;
use crate::proto::{
    BackupRequest, CancelTransferRequest, DropReplicaRequest, FindObjectRequest, FindTransferRequest,
    ListNodesRequest, ListObjectsRequest, ListTransfersRequest, NodeInfo, NodeList, Object, ObjectList,
    RemoveObjectRequest, SetPeakRequest, TransferInfo, TransferList,
};
use crate::server::{MOST_BYTES, SOCKET};

pub use error::ClientError;
pub use jobs::{Asked, Stored, Target, Watched, What};
pub use run::{Phase, Progress};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a silent connection is asked whether it is there, and how long it may take to answer.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a coordinator is.
#[derive(Clone, Debug)]
pub enum Address {
    /// On this machine: its state directory, which has its socket.
    State(PathBuf),
    /// At `host:port`. Its certificate names the host.
    Remote(String, Tls),
}

/// A client of a coordinator. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    coordinator: CoordinatorClient<Channel>,
    /// The nodes that this client can reach, by name.
    nodes: Arc<BTreeMap<String, Node>>,
    /// For messages.
    place: Arc<str>,
    clock: Clock,
    /// Whether the coordinator has taken a transfer of this client, or of a clone of it.
    has_met: Arc<AtomicBool>,
}

impl Client {
    /// A client of the coordinator at an address, which knows how to reach these nodes. It connects when it
    /// first asks.
    ///
    /// # Errors
    /// If the address cannot be read, or the certificate cannot be used.
    pub fn new(clock: Clock, address: Address, nodes: BTreeMap<String, Node>) -> Result<Self, ClientError> {
        let bounded = |endpoint: Endpoint| {
            endpoint
                .connect_timeout(CONNECT_TIMEOUT)
                .http2_keep_alive_interval(KEEPALIVE)
                .keep_alive_timeout(KEEPALIVE_TIMEOUT)
                .keep_alive_while_idle(true)
        };
        let (channel, place) = match address {
            Address::State(state) => {
                let socket = state.join(SOCKET);
                let place = socket.display().to_string();
                // The address is for the protocol's headers only: the connection is the socket's.
                let endpoint = bounded(Endpoint::from_static("http://localhost"));
                let connect = tower::service_fn(move |_: Uri| {
                    let socket = socket.clone();
                    async move { UnixStream::connect(socket).await.map(TokioIo::new) }
                });
                (endpoint.connect_with_connector_lazy(connect), place)
            }
            Address::Remote(address, tls) => {
                let wrong = |why: String| ClientError::Address { address: address.clone(), why };
                let host = address.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']);
                let endpoint = Endpoint::from_shared(format!("https://{address}"))
                    .map_err(|error| wrong(error.to_string()))?;
                let endpoint =
                    tls.client(bounded(endpoint), host).map_err(|error| wrong(error.to_string()))?;
                (endpoint.connect_lazy(), address)
            }
        };
        let coordinator = CoordinatorClient::new(channel)
            .max_decoding_message_size(MOST_BYTES)
            .max_encoding_message_size(MOST_BYTES);
        let has_met = Arc::default();
        Ok(Self { coordinator, nodes: Arc::new(nodes), place: place.into(), clock, has_met })
    }

    /// All objects whose names begin with `prefix`, by name.
    ///
    /// # Errors
    /// If the coordinator does not answer.
    pub async fn objects(&self, prefix: &str) -> Result<Vec<Object>, ClientError> {
        let mut all: Vec<Object> = Vec::new();
        loop {
            let after = all.last().map(|object| object.name.clone()).unwrap_or_default();
            let asked = ListObjectsRequest { prefix: prefix.to_owned(), after };
            let answer = self.coordinator.clone().list_objects(asked).await;
            let ObjectList { objects, more } = self.answered(answer)?;
            let is_last = !more || objects.is_empty();
            all.extend(objects);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// An object.
    ///
    /// # Errors
    /// If there is none of the name, or the coordinator does not answer.
    pub async fn object(&self, name: &str) -> Result<Object, ClientError> {
        let asked = FindObjectRequest { name: name.to_owned() };
        let answer = self.coordinator.clone().find_object(asked).await;
        self.answered(answer)
    }

    /// Removes an object. The nodes that it is yet to be removed from; the coordinator goes on.
    ///
    /// # Errors
    /// If there is none of the name, or the coordinator does not answer.
    pub async fn remove(&self, name: &str) -> Result<Vec<String>, ClientError> {
        let asked = RemoveObjectRequest { name: name.to_owned() };
        let answer = self.coordinator.clone().remove_object(asked).await;
        self.answered(answer).map(|removed| removed.pending)
    }

    /// Removes a bad replica. The nodes that it is yet to be removed from; the coordinator goes on.
    ///
    /// # Errors
    /// If it is not bad, there is no good one besides, or the coordinator does not answer.
    pub async fn drop_replica(&self, name: &str, node: &str) -> Result<Vec<String>, ClientError> {
        let asked = DropReplicaRequest { name: name.to_owned(), node: node.to_owned() };
        let answer = self.coordinator.clone().drop_replica(asked).await;
        self.answered(answer).map(|removed| removed.pending)
    }

    /// The transfers that have not ended, or `all`, the last one first.
    ///
    /// # Errors
    /// If the coordinator does not answer.
    pub async fn transfers(&self, all: bool) -> Result<Vec<TransferInfo>, ClientError> {
        let mut listed: Vec<TransferInfo> = Vec::new();
        loop {
            let before = listed.last().map_or(0, |transfer| transfer.transfer);
            let answer = self.coordinator.clone().list_transfers(ListTransfersRequest { all, before }).await;
            let TransferList { transfers, more } = self.answered(answer)?;
            let is_last = !more || transfers.is_empty();
            listed.extend(transfers);
            if is_last {
                return Ok(listed);
            }
        }
    }

    /// A transfer.
    ///
    /// # Errors
    /// If there is none of the number, or the coordinator does not answer.
    pub async fn transfer(&self, transfer: u64) -> Result<TransferInfo, ClientError> {
        let answer = self.coordinator.clone().find_transfer(FindTransferRequest { transfer }).await;
        self.answered(answer)
    }

    /// Cancels a transfer, which may be another client's.
    ///
    /// # Errors
    /// If it has ended, there is none of the number, or the coordinator does not answer.
    pub async fn cancel(&self, transfer: u64) -> Result<TransferInfo, ClientError> {
        let answer = self.coordinator.clone().cancel_transfer(CancelTransferRequest { transfer }).await;
        self.answered(answer)
    }

    /// All nodes.
    ///
    /// # Errors
    /// If the coordinator does not answer.
    pub async fn nodes(&self) -> Result<NodeList, ClientError> {
        let answer = self.coordinator.clone().list_nodes(ListNodesRequest {}).await;
        self.answered(answer)
    }

    /// Tells the coordinator what a node reads and writes at most, in bytes a second.
    ///
    /// # Errors
    /// If there is no such node, or the coordinator does not answer.
    pub async fn set_peak(&self, node: &str, read: u64, write: u64) -> Result<NodeInfo, ClientError> {
        let asked = SetPeakRequest { node: node.to_owned(), read, write };
        let answer = self.coordinator.clone().set_peak(asked).await;
        self.answered(answer)
    }

    /// Has the coordinator write a copy of its catalogue to a new file on its own host. Its size in bytes.
    ///
    /// # Errors
    /// If it cannot be written, or the coordinator does not answer.
    pub async fn backup(&self, path: &str) -> Result<u64, ClientError> {
        let answer = self.coordinator.clone().backup(BackupRequest { path: path.to_owned() }).await;
        self.answered(answer).map(|done| done.bytes)
    }

    fn answered<T>(&self, answer: Result<tonic::Response<T>, tonic::Status>) -> Result<T, ClientError> {
        answer.map(tonic::Response::into_inner).map_err(|status| ClientError::of(&self.place, &status))
    }

    fn has_met(&self) -> bool {
        self.has_met.load(Ordering::Relaxed)
    }

    fn meet(&self) {
        self.has_met.store(true, Ordering::Relaxed);
    }

    /// A node by its name.
    fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }
}

/// A word that no other run of a client has. It is made from the random keys that the standard library draws
/// for hash maps.
fn draw_word() -> String {
    let draw = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", draw(), draw())
}
