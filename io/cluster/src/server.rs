//! The controller's side: one task that drives the state machine, and a task for each gateway's stream.
//!
//! A stream's task reads messages, checks them, and passes them on. Only the driver has the controller, so
//! there is no lock. All queues are short. If a gateway sends faster than the driver takes, its messages wait
//! in its socket. If a gateway does not take its grants, the driver ends its stream, and the gateway connects
//! again. Standings that a gateway does not take are left out: newer ones follow.
//!
//! Each line of the log that a gateway can cause has a field `peer`, by which the log limits it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::TlsConnectInfo;
use tonic::{Request, Response, Status, Streaming};
use weir_clock::Clock;
use weir_control::Standing;
use weir_leases::{Connection, Event, Hello, Refused, Report};
use weir_model::Instant;

use crate::array::Array;
use crate::error::ClusterError;
use crate::incoming::Seat;
use crate::proto::cluster_server::{Cluster, ClusterServer};
use crate::proto::from_gateway::Message;
use crate::proto::{FromController, FromGateway};
use crate::tls::Tls;
use crate::{identity, incoming, wire};

/// How many messages of all gateways together wait for the driver.
const INBOX: usize = 64;
/// How many messages wait for a gateway to take them.
const OUTBOX: usize = 8;
/// How long a gateway may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// The most streams of a connection at a time: a gateway has one, and may open another while the first ends.
const MOST_STREAMS: u32 = 2;
/// The most bytes of a stream's headers: several times as many as a gateway sends.
const MOST_HEADER_BYTES: u32 = 16 * 1024;

/// A controller that serves its gateways until it is dropped or stopped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    inbox: mpsc::Sender<Inbox>,
    tasks: [JoinHandle<()>; 3],
}

/// Messages to the driver.
enum Inbox {
    Attach {
        name: String,
        hello: Hello,
        stream: Attached,
        answer: oneshot::Sender<Result<Connection, Status>>,
    },
    Report(Connection, Report),
    /// A gateway has sent a message that makes no sense.
    Wrong(Connection, String),
    Acknowledged(Connection, u64),
    Standing(Connection, Standing),
    Detached(Connection),
    Ask(Ask),
}

/// Work on the state machine, for the driver.
type Ask = Box<dyn FnOnce(Instant, &mut Array) + Send>;

/// A gateway's stream, as the driver has it. The stream ends when this is dropped.
struct Attached {
    /// The address that the stream comes from.
    peer: String,
    messages: mpsc::Sender<Result<FromController, Status>>,
    _reading: oneshot::Sender<()>,
}

impl Server {
    /// Serves gateways on `listener` with a state machine that takes the time from `clock`.
    ///
    /// # Errors
    /// If the certificate cannot be used, or the listener has no address.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(listener: TcpListener, tls: &Tls, clock: Clock, array: Array) -> Result<Self, ClusterError> {
        let address = listener.local_addr()?;
        let (inbox, messages) = mpsc::channel(INBOX);
        let interval = Duration::from(array.interval());
        let mut server = tls
            .server()?
            // Two of these are less than a lease.
            .http2_keepalive_interval(Some(interval))
            .http2_keepalive_timeout(Some(interval))
            .http2_max_header_list_size(MOST_HEADER_BYTES)
            .max_concurrent_streams(MOST_STREAMS);
        let service = ClusterServer::new(Service { inbox: inbox.clone() })
            .max_decoding_message_size(wire::MOST_BYTES)
            .max_encoding_message_size(wire::MOST_BYTES);
        let (admit, admitted) = mpsc::channel(1);
        let accepting = tokio::spawn(incoming::accept(listener, incoming::OF_CONTROLLER, admit));
        let incoming = ReceiverStream::new(admitted);
        let serving = tokio::spawn(async move {
            if let Err(error) = server.add_service(service).serve_with_incoming(incoming).await {
                // No peer: once, at an end that never comes in practice.
                tracing::error!(error = crate::error::line(&error), "the controller serves no more");
            }
        });
        let driver = Driver { clock, array, streams: BTreeMap::new(), peers: BTreeMap::new() };
        let driving = tokio::spawn(driver.run(messages));
        Ok(Self { address, inbox, tasks: [accepting, serving, driving] })
    }

    /// The address that the server listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops serving, and frees the address. The gateways keep their grants until their leases are over.
    pub async fn stop(mut self) {
        for task in &mut self.tasks {
            task.abort();
            let _ = task.await;
        }
    }

    /// Runs `ask` on the state machine, such as to change a volume or to ask for its state.
    ///
    /// # Panics
    /// If the driver has panicked.
    pub async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(Instant, &mut Array) -> T + Send + 'static,
    ) -> T {
        let (answer, answered) = oneshot::channel();
        let ask = Box::new(move |now, array: &mut Array| {
            let _ = answer.send(ask(now, array));
        });
        let _ = self.inbox.send(Inbox::Ask(ask)).await;
        answered.await.expect("the driver lives as long as the server")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The one owner of the state machine.
struct Driver {
    clock: Clock,
    array: Array,
    streams: BTreeMap<Connection, Attached>,
    /// The address that each gateway of the configuration last came from.
    peers: BTreeMap<String, String>,
}

impl Driver {
    async fn run(mut self, mut inbox: mpsc::Receiver<Inbox>) {
        loop {
            let wait = self.array.poll_timeout().saturating_since(self.clock.now());
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.handle(message),
                    None => return,
                },
                () = sleep(wait.into()) => {}
            }
            self.array.handle_timeout(self.clock.now());
            self.drain();
        }
    }

    fn handle(&mut self, message: Inbox) {
        let now = self.clock.now();
        match message {
            Inbox::Attach { name, hello, stream, answer } => {
                let attached = self.array.handle_connected(now, &name, &hello);
                if let Ok(connection) = attached {
                    self.peers.insert(name, stream.peer.clone());
                    self.streams.insert(connection, stream);
                }
                let attached = attached.map_err(|refused| self.said(&refused));
                if let Err(Ok(connection)) = answer.send(attached) {
                    self.detach(now, connection); // gone before it was answered
                }
            }
            Inbox::Report(connection, report) => {
                if let Err(wrong) = self.array.handle_report(now, connection, report) {
                    self.send_away(now, connection, &wrong);
                }
            }
            Inbox::Wrong(connection, wrong) => {
                self.send_away(now, connection, &format!("a message makes no sense: found {wrong}"));
            }
            Inbox::Acknowledged(connection, number) => {
                self.array.handle_acknowledged(now, connection, number);
            }
            Inbox::Standing(connection, standing) => {
                if let Err(wrong) = self.array.handle_standing(now, connection, standing) {
                    self.send_away(now, connection, &wrong);
                }
            }
            Inbox::Detached(connection) => self.detach(now, connection),
            Inbox::Ask(ask) => ask(now, &mut self.array),
        }
    }

    /// The answer to a gateway that is refused. If its name is taken, the message gives the address of the
    /// name's owner.
    fn said(&self, refused: &Refused) -> Status {
        match refused {
            Refused::Taken { name, by } => {
                let peer = self.streams.get(by).map_or("another address", |stream| &stream.peer);
                Status::permission_denied(format!(
                    "gateway {name} is connected already, from {peer}; accepted: one gateway of each name; \
                     if that one is gone, its name is free when its lease is over, with control = \"promise\" after 2s"
                ))
            }
            Refused::Unknown { .. } | Refused::OtherLaw { .. } | Refused::TooMany { .. } => {
                Status::permission_denied(refused.to_string())
            }
        }
    }

    /// Ends a stream, and tells both sides why.
    fn send_away(&mut self, now: Instant, connection: Connection, why: &str) {
        if let Some(stream) = self.streams.get(&connection) {
            let peer = &stream.peer;
            tracing::warn!(peer, "a gateway is sent away: {why}");
            let _ = stream.messages.try_send(Err(Status::invalid_argument(why))); // or it sees an end
        }
        self.detach(now, connection);
    }

    fn detach(&mut self, now: Instant, connection: Connection) {
        self.streams.remove(&connection);
        self.array.handle_disconnected(now, connection);
    }

    fn drain(&mut self) {
        let now = self.clock.now();
        while let Some((connection, message)) = self.array.poll_message(now) {
            let is_held = match self.streams.get(&connection) {
                None => false,
                Some(stream) => match stream.messages.try_send(Ok(message)) {
                    Ok(()) => true,
                    Err(TrySendError::Full(_)) => self.array.may_skip(),
                    Err(TrySendError::Closed(_)) => false,
                },
            };
            if !is_held {
                self.detach(now, connection);
            }
        }
        self.streams.retain(|connection, _| self.array.is_connected(*connection));
        while let Some(event) = self.array.poll_event() {
            self.log(&event);
        }
    }

    fn log(&self, event: &Event) {
        let (Event::GatewayConnected { gateway, .. }
        | Event::GatewayLost { gateway }
        | Event::GatewayJoined { gateway }
        | Event::GatewayLeft { gateway }
        | Event::VolumeUnknown { gateway, .. }) = event;
        let peer = self.peers.get(gateway).map_or("unknown", String::as_str);
        match event {
            Event::GatewayConnected { volumes, .. } => {
                tracing::info!(peer, gateway, volumes, "a gateway has come")
            }
            Event::GatewayLost { .. } => {
                tracing::warn!(
                    peer,
                    gateway,
                    "a gateway is lost; its share is others' when its lease is over"
                );
            }
            Event::GatewayJoined { .. } => tracing::info!(peer, gateway, "a gateway has come"),
            Event::GatewayLeft { .. } => {
                tracing::warn!(peer, gateway, "a gateway is lost; in 2s the others forget its promises");
            }
            Event::VolumeUnknown { volume, .. } => tracing::warn!(
                peer,
                gateway,
                volume,
                "no configuration of this volume: it is served, promised nothing"
            ),
        }
    }
}

/// The calls that gateways make.
struct Service {
    inbox: mpsc::Sender<Inbox>,
}

#[tonic::async_trait]
impl Cluster for Service {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<FromController, Status>> + Send>>;

    async fn attach(
        &self,
        request: Request<Streaming<FromGateway>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let Some(info) = request.extensions().get::<TlsConnectInfo<Seat>>().cloned() else {
            return Err(Status::internal("a connection without TLS")); // the server has no such connections
        };
        let peer = info.get_ref().peer.to_string();
        let attached = self.begin(&peer, &info, request.into_inner()).await;
        attached.map(Response::new).inspect_err(|refusal| {
            tracing::warn!(peer, "refused: {}", refusal.message());
        })
    }
}

impl Service {
    async fn begin(
        &self,
        peer: &str,
        info: &TlsConnectInfo<Seat>,
        mut messages: Streaming<FromGateway>,
    ) -> Result<<Self as Cluster>::AttachStream, Status> {
        let first = timeout(HELLO_TIMEOUT, messages.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("no hello came in time"))??;
        let Some(Message::Hello(hello)) = first.and_then(|first| first.message) else {
            return Err(Status::failed_precondition("the first message is no hello"));
        };
        let name = wire::gateway_name(&hello).map_err(Status::invalid_argument)?;
        if hello.version != wire::VERSION {
            let who = format!("gateway {name:?}");
            return Err(Status::failed_precondition(wire::other_version(&who, hello.version)));
        }
        let certificates = info.peer_certs();
        identity::check(&name, certificates.as_deref().map(Vec::as_slice))
            .map_err(Status::permission_denied)?;
        let hello = wire::hello(hello).map_err(Status::invalid_argument)?;
        info.get_ref().settle().map_err(|full| Status::resource_exhausted(full.to_string()))?;
        let (outgoing, outbox) = mpsc::channel(OUTBOX);
        let (reading, read_on) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let stream = Attached { peer: peer.to_owned(), messages: outgoing, _reading: reading };
        let stopping = |_| Status::unavailable("the controller stops");
        let attach = Inbox::Attach { name, hello, stream, answer };
        self.inbox.send(attach).await.map_err(|_| stopping(()))?;
        let attached = answered.await.map_err(|_| stopping(()))?;
        let connection = attached?;
        tokio::spawn(read(connection, peer.to_owned(), messages, read_on, self.inbox.clone()));
        Ok(Box::pin(ReceiverStream::new(outbox)))
    }
}

/// Passes on the messages of a gateway, until its stream ends or the driver has left it.
async fn read(
    connection: Connection,
    peer: String,
    mut messages: Streaming<FromGateway>,
    mut read_on: oneshot::Receiver<()>,
    inbox: mpsc::Sender<Inbox>,
) {
    loop {
        let message = tokio::select! {
            message = messages.message() => message,
            _ = &mut read_on => return,
        };
        let message = match message {
            Ok(Some(FromGateway { message: Some(Message::Report(report)) })) => {
                wire::report(report).map(|report| Inbox::Report(connection, report))
            }
            Ok(Some(FromGateway { message: Some(Message::Acknowledged(acknowledged)) })) => {
                Ok(Inbox::Acknowledged(connection, acknowledged.number))
            }
            Ok(Some(FromGateway { message: Some(Message::Standing(standing)) })) => {
                Ok(Inbox::Standing(connection, wire::standing(standing)))
            }
            Ok(Some(_)) => Err("neither a report nor an acknowledgement nor a standing".to_owned()),
            Ok(None) => break,
            Err(status) => {
                tracing::debug!(peer, error = status.message(), "a gateway's stream has ended");
                break;
            }
        };
        let (message, is_wrong) = match message {
            Ok(message) => (message, false),
            Err(wrong) => (Inbox::Wrong(connection, wrong), true),
        };
        if inbox.send(message).await.is_err() || is_wrong {
            return;
        }
    }
    let _ = inbox.send(Inbox::Detached(connection)).await;
}
