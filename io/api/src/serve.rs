//! HTTP for many unknown clients: the number of connections is bounded, and each connection has one request
//! and a bounded time.
//!
//! A connection has only one request, because an idle connection would be one more thing to bound. A client
//! that asks every few seconds does not notice the cost of a new connection. So one time limit bounds
//! everything: sending the head and the body, the work on the answer, and taking the answer. A new connection
//! always finds a place: if all are taken, the oldest connection of the address with the most connections
//! gives way.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::timeout;
use weir_gateway::{UnixSocket, is_of_one_peer};
use weir_newcomers::{Newcomers, Origin, Ticket};

use crate::refusal::with_reason;

/// How long a listener pauses when the system has no descriptors or no memory left.
const REST: Duration = Duration::from_millis(100);

/// The limits for clients over HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApiLimits {
    /// Connections at a time, at each address.
    pub connections: u32,
    /// Time from connecting until the client has taken the last byte of the answer.
    pub timeout: Duration,
    /// Bytes of the request before its body. At least 8 KiB.
    pub header_bytes: usize,
    /// Bytes of the body.
    pub body_bytes: usize,
}

impl ApiLimits {
    /// The defaults of `[limits]`, for servers whose file has no such table.
    pub const DEFAULT: Self = Self {
        connections: 32,
        timeout: Duration::from_secs(10),
        header_bytes: 16 << 10,
        body_bytes: 64 << 10,
    };
}

/// A listening socket.
pub(crate) trait Accept {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Its name for the log.
    const NAME: &'static str;

    /// The next connection, and the origin whose share it counts to. The future may be dropped while it
    /// waits.
    async fn accept(&self) -> io::Result<(Self::Stream, Origin)>;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    const NAME: &'static str = "metrics";

    async fn accept(&self) -> io::Result<(TcpStream, Origin)> {
        let (stream, peer) = Self::accept(self).await?;
        Ok((stream, peer.ip().into()))
    }
}

impl Accept for UnixSocket {
    type Stream = UnixStream;

    const NAME: &'static str = "control";

    async fn accept(&self) -> io::Result<(UnixStream, Origin)> {
        Self::accept(self).await
    }
}

/// The present connections.
struct Connected {
    places: Newcomers,
    tasks: JoinSet<()>,
    by_task: HashMap<Id, (Ticket, Origin)>,
    by_ticket: HashMap<Ticket, AbortHandle>,
}

/// What a server answers.
pub(crate) struct Routes {
    pub(crate) router: Router,
    /// The paths in it, for who asks for another one.
    pub(crate) paths: &'static [&'static str],
}

impl Routes {
    /// The router, in which each refusal has a reason.
    pub(crate) fn with_reasons(self) -> Router {
        // As a whole: a layer within a router does not see the header `Allow`.
        let whole = Router::new().fallback_service(self.router);
        whole.layer(from_fn_with_state(self.paths, with_reason))
    }
}

/// Answers until the future is dropped; that drops every connection, too. New limits are for later
/// connections.
pub(crate) async fn serve<A: Accept>(listener: A, routes: Routes, limits: watch::Receiver<ApiLimits>) {
    let routes = routes.with_reasons();
    let places = Newcomers::new(limits.borrow().connections);
    let (by_task, by_ticket) = (HashMap::new(), HashMap::new());
    let mut connected = Connected { places, tasks: JoinSet::new(), by_task, by_ticket };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(ended) = connected.tasks.join_next_with_id() => {
                connected.end(ended.map_or_else(|error| error.id(), |(id, ())| id));
                continue;
            }
        };
        match accepted {
            Ok((stream, origin)) => {
                let limits = *limits.borrow();
                connected.begin(A::NAME, stream, origin, routes.clone(), limits);
            }
            Err(error) if is_of_one_peer(&error) => {
                tracing::info!(listener = A::NAME, %error, "a connection ended at once");
            }
            Err(error) => {
                tracing::warn!(listener = A::NAME, %error, "cannot accept a connection");
                tokio::time::sleep(REST).await;
            }
        }
    }
}

impl Connected {
    fn begin(
        &mut self,
        listener: &'static str,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        origin: Origin,
        routes: Router,
        limits: ApiLimits,
    ) {
        self.places.set_most(limits.connections);
        let (ticket, given_up) = self.places.begin(origin);
        if let Some((ticket, peer)) = given_up {
            tracing::info!(%peer, listener, "limits.api_connections are connected: the oldest gives way to a new one");
            self.by_ticket.remove(&ticket).iter().for_each(AbortHandle::abort);
        }
        let answered = answer(stream, routes, limits);
        let task = self.tasks.spawn(async move {
            if timeout(limits.timeout, answered).await.is_err() {
                tracing::info!(peer = %origin, listener, "closed: not done within limits.api_timeout");
            }
        });
        self.by_task.insert(task.id(), (ticket, origin));
        self.by_ticket.insert(ticket, task);
    }

    fn end(&mut self, task: Id) {
        if let Some((ticket, origin)) = self.by_task.remove(&task) {
            self.places.end(ticket, origin);
            self.by_ticket.remove(&ticket);
        }
    }
}

/// Answers one request.
pub(crate) async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    routes: Router,
    limits: ApiLimits,
) {
    let routes = routes.layer(DefaultBodyLimit::max(limits.body_bytes));
    let answered = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(limits.header_bytes)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
        .await;
    // hyper tells a peer about its mistakes. A peer that is gone needs no answer.
    if let Err(error) = answered {
        tracing::debug!(listener = "http", %error, "a request ended early");
    }
}
