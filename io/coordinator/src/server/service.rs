//! The methods of the protocol: each passes on to the desk what a client asks, and its answer back.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tokio_stream::Stream;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::{TlsConnectInfo, UdsConnectInfo};
use tonic::{Request, Response, Status, Streaming};
use weir_cluster::Seat;
use weir_model::Bandwidth;

use super::desk_thread::DeskHandle;
use crate::catalogue::{CatalogueError, backup};
use crate::desk::{NotAdmitted, Peer, message};
use crate::proto::coordinator_server::Coordinator;
use crate::proto::from_client::Message as Said;
use crate::proto::to_client::Message;
use crate::proto::{
    BackupDone, BackupRequest, CancelTransferRequest, DropReplicaRequest, FindObjectRequest,
    FindTransferRequest, FromClient, ListNodesRequest, ListObjectsRequest, ListTransfersRequest, NodeInfo,
    NodeList, Object, ObjectList, Refusal, Refused, RemoveObjectRequest, Removed, SetPeakRequest, ToClient,
    TransferInfo, TransferList,
};

/// How many messages wait for a client to take them.
const OUTBOX: usize = 64;
/// How long a client may take to say what it wants.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer to a removal waits for the nodes.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(3);

/// The methods.
#[derive(Clone)]
pub(super) struct Service {
    desk: DeskHandle,
    /// The number of the last stream: a client may have a new one before the old one's end is noticed.
    streams: Arc<AtomicU64>,
    catalogue: Arc<Path>,
    /// One backup is written at a time.
    backups: Arc<Mutex<()>>,
}

impl Service {
    pub(super) fn new(desk: DeskHandle, catalogue: Arc<Path>) -> Self {
        Self { desk, streams: Arc::default(), catalogue, backups: Arc::default() }
    }

    /// What nodes an object of that name is yet to be removed from, after a while.
    async fn pending(&self, name: &str) -> Result<Response<Removed>, Status> {
        let look = || {
            let name = name.to_owned();
            self.desk.ask(move |desk, _, _| desk.pending(&name))
        };
        let gone = async {
            loop {
                let removed = self.desk.removed(); // before the look, so that none is missed
                match look().await {
                    Some(Ok(pending)) if !pending.is_empty() => removed.await,
                    _ => return,
                }
            }
        };
        let _ = timeout(REMOVAL_PATIENCE, gone).await; // what is left is said
        let pending = answered(look().await)?;
        Ok(Response::new(Removed { pending }))
    }
}

type Messages = Pin<Box<dyn Stream<Item = Result<ToClient, Status>> + Send>>;

#[tonic::async_trait]
impl Coordinator for Service {
    type TransferStream = Messages;

    async fn transfer(&self, request: Request<Streaming<FromClient>>) -> Result<Response<Messages>, Status> {
        settle(&request)?;
        let peer = peer(&request)?;
        let mut messages = request.into_inner();
        let first = timeout(ASK_TIMEOUT, messages.message());
        let first = first.await.map_err(|_| Status::deadline_exceeded("asked for nothing within 10 s"))??;
        let Some(Said::Ask(ask)) = first.and_then(|first| first.message) else {
            return Err(Status::invalid_argument("the first message is not an ask"));
        };
        let (outbox, inbox) = mpsc::channel(OUTBOX);
        let stream = self.streams.fetch_add(1, Ordering::Relaxed);
        let refusals = outbox.clone();
        let asked =
            self.desk.ask(move |desk, now, unix| desk.ask(now, unix, stream, peer, &ask, outbox)).await;
        match asked.ok_or_else(stopping)? {
            Ok(id) => {
                tokio::spawn(read(self.desk.clone(), id, stream, messages));
            }
            Err(not_admitted) => {
                let (refusal, why) = match not_admitted {
                    NotAdmitted::Refused(refusal, why) => (refusal, why),
                    NotAdmitted::Catalogue(error) => (Refusal::Failed, error.to_string()),
                };
                let refused = Refused { refusal: refusal.into(), why };
                let _ = refusals.try_send(message(Message::Refused(refused))); // there is room for the first
            }
        }
        Ok(Response::new(Box::pin(ReceiverStream::new(inbox).map(|message| Ok(*message)))))
    }

    async fn list_objects(
        &self,
        request: Request<ListObjectsRequest>,
    ) -> Result<Response<ObjectList>, Status> {
        settle(&request)?;
        let ListObjectsRequest { prefix, after } = request.into_inner();
        let listed = self.desk.ask(move |desk, _, _| desk.list_objects(&prefix, &after)).await;
        answered(listed).map(Response::new)
    }

    async fn find_object(&self, request: Request<FindObjectRequest>) -> Result<Response<Object>, Status> {
        settle(&request)?;
        let name = request.into_inner().name;
        let missing = no_object(&name);
        let found = self.desk.ask(move |desk, _, _| match desk.object(&name)? {
            Some(object) => desk.told_object(object).map(Some),
            None => Ok(None),
        });
        answered(found.await)?.map(Response::new).ok_or(missing)
    }

    async fn remove_object(
        &self,
        request: Request<RemoveObjectRequest>,
    ) -> Result<Response<Removed>, Status> {
        settle(&request)?;
        let name = request.into_inner().name;
        let asked = name.clone();
        let removed = self.desk.ask(move |desk, now, unix| desk.remove(now, unix, &asked)).await;
        if !answered(removed)? {
            return Err(no_object(&name));
        }
        self.pending(&name).await
    }

    async fn drop_replica(&self, request: Request<DropReplicaRequest>) -> Result<Response<Removed>, Status> {
        settle(&request)?;
        let DropReplicaRequest { name, node } = request.into_inner();
        let asked = (name.clone(), node.clone());
        let dropped = self.desk.ask(move |desk, _, _| desk.drop_replica(&asked.0, &asked.1)).await;
        if !answered(dropped)? {
            let why = format!(
                "replica of {name} on {node}: found none that may go; accepted: a bad one, of an object with a good one"
            );
            return Err(Status::failed_precondition(why));
        }
        self.pending(&name).await
    }

    async fn list_transfers(
        &self,
        request: Request<ListTransfersRequest>,
    ) -> Result<Response<TransferList>, Status> {
        settle(&request)?;
        let ListTransfersRequest { all, before } = request.into_inner();
        let listed = self.desk.ask(move |desk, now, _| desk.list_transfers(now, all, before)).await;
        answered(listed).map(Response::new)
    }

    async fn find_transfer(
        &self,
        request: Request<FindTransferRequest>,
    ) -> Result<Response<TransferInfo>, Status> {
        settle(&request)?;
        let id = request.into_inner().transfer;
        let found = self.desk.ask(move |desk, now, _| desk.find_transfer(now, id)).await;
        answered(found)?.map(Response::new).ok_or_else(|| no_transfer(id))
    }

    async fn cancel_transfer(
        &self,
        request: Request<CancelTransferRequest>,
    ) -> Result<Response<TransferInfo>, Status> {
        settle(&request)?;
        let id = request.into_inner().transfer;
        let cancelled = self.desk.ask(move |desk, now, unix| {
            let was_open = desk.cancel(now, unix, id)?;
            Ok(was_open.zip(desk.find_transfer(now, id)?))
        });
        match answered(cancelled.await)? {
            None => Err(no_transfer(id)),
            Some((false, found)) => {
                let how = if found.why.is_empty() { "is done".to_owned() } else { found.why };
                let why =
                    format!("transfer {id}: found one that has ended ({how}); accepted: one that has not");
                Err(Status::failed_precondition(why))
            }
            Some((true, found)) => Ok(Response::new(found)),
        }
    }

    async fn list_nodes(&self, request: Request<ListNodesRequest>) -> Result<Response<NodeList>, Status> {
        settle(&request)?;
        let listed = self.desk.ask(|desk, _, _| desk.list_nodes()).await;
        listed.map(Response::new).ok_or_else(stopping)
    }

    async fn set_peak(&self, request: Request<SetPeakRequest>) -> Result<Response<NodeInfo>, Status> {
        settle(&request)?;
        let SetPeakRequest { node, read, write } = request.into_inner();
        let Some(peaks) = rate(read).zip(rate(write)) else {
            return Err(Status::invalid_argument("peak: found 0 B/s; accepted: above 0"));
        };
        let name = node.clone();
        let set = self.desk.ask(move |desk, now, unix| {
            let Some(node) = desk.node(&node) else { return Ok(None) };
            desk.set_peak(now, unix, node, peaks)?;
            Ok(Some(desk.told_node(node)))
        });
        let missing = || Status::not_found(format!("node: found no {name}; accepted: one of weir nodes"));
        answered(set.await)?.map(Response::new).ok_or_else(missing)
    }

    async fn backup(&self, request: Request<BackupRequest>) -> Result<Response<BackupDone>, Status> {
        if is_remote(&request) {
            let why = "backup: found a client of another machine; accepted: one of the coordinator's own, by its socket";
            return Err(Status::permission_denied(why));
        }
        let path = PathBuf::from(request.into_inner().path);
        if !path.is_absolute() {
            let why = format!("backup {}: found a relative path; accepted: an absolute one", path.display());
            return Err(Status::invalid_argument(why));
        }
        // It goes on if its client goes away, and the next one waits for it all the same.
        let one = Arc::clone(&self.backups).lock_owned().await;
        let from = Arc::clone(&self.catalogue);
        // The desk's thread goes on meanwhile.
        let done = tokio::task::spawn_blocking(move || {
            let done = backup(&from, &path);
            drop(one);
            done
        });
        let done = done.await;
        let done = done.map_err(|error| Status::internal(error.to_string()))?;
        let bytes = done.map_err(|error| Status::failed_precondition(error.to_string()))?;
        Ok(Response::new(BackupDone { bytes }))
    }
}

/// Passes on the messages of a client, until its stream ends.
async fn read(desk: DeskHandle, id: u64, stream: u64, mut messages: Streaming<FromClient>) {
    while let Ok(Some(FromClient { message: Some(said) })) = messages.message().await {
        let done = desk.ask(move |desk, now, unix| {
            if desk.has_stream(id, stream)
                && let Err(error) = desk.said(now, unix, id, said)
            {
                tracing::error!(transfer = id, %error, "the catalogue refuses a change");
                desk.abandon(id, &error.to_string());
            }
        });
        if done.await.is_none() {
            return;
        }
    }
    let gone = desk.ask(move |desk, now, unix| {
        if desk.has_stream(id, stream)
            && let Err(error) = desk.gone(now, unix, id)
        {
            tracing::error!(transfer = id, %error, "the catalogue refuses a change");
            desk.abandon(id, &error.to_string());
        }
    });
    let _ = gone.await; // the desk stops; its successor takes the transfer for interrupted
}

fn answered<T>(answer: Option<Result<T, CatalogueError>>) -> Result<T, Status> {
    answer.ok_or_else(stopping)?.map_err(|error| Status::internal(error.to_string()))
}

fn stopping() -> Status {
    Status::unavailable("the coordinator stops")
}

fn no_object(name: &str) -> Status {
    Status::not_found(format!("object: found none of the name {name:?}; accepted: one of weir ls"))
}

fn no_transfer(id: u64) -> Status {
    Status::not_found(format!("transfer: found no number {id}; accepted: one of weir transfers list --all"))
}

/// Notes that a connection of another machine is a client's: its certificate was checked before it could ask.
fn settle<T>(request: &Request<T>) -> Result<(), Status> {
    let Some(info) = request.extensions().get::<TlsConnectInfo<Seat>>() else { return Ok(()) };
    info.get_ref().settle().map_err(|full| Status::resource_exhausted(full.to_string()))
}

/// On whose behalf a client asks.
fn peer<T>(request: &Request<T>) -> Result<Peer, Status> {
    let extensions = request.extensions();
    if let Some(info) = extensions.get::<TlsConnectInfo<Seat>>() {
        let certificates = info.peer_certs();
        let own = certificates.as_deref().and_then(|chain| chain.first());
        return own
            .map(|own| Peer::certificate(own))
            .ok_or_else(|| Status::permission_denied("no certificate"));
    }
    let credentials = extensions.get::<UdsConnectInfo>().and_then(|info| info.peer_cred);
    let unknown = || Status::permission_denied("the system does not say which user has connected");
    credentials.map(|credentials| Peer::user(credentials.uid())).ok_or_else(unknown)
}

/// Whether a request has come by the address for other machines.
fn is_remote<T>(request: &Request<T>) -> bool {
    request.extensions().get::<UdsConnectInfo>().is_none()
}

const fn rate(bytes_per_second: u64) -> Option<Bandwidth> {
    if bytes_per_second > i64::MAX.cast_unsigned() { None } else { Bandwidth::new(bytes_per_second) }
}
