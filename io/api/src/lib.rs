//! The HTTP interface of a running gateway: reports, and changes.
//!
//! | where | what |
//! |---|---|
//! | `/metrics` | for Prometheus |
//! | `/v1/status` | the state of all pools, for people's tools |
//! | `/v1/volumes` | each volume, and how well its promise was kept |
//! | `/v1/volumes/NAME/intervals` | decisions about a volume in the last control intervals, with reasons |
//! | `/v1/volumes/NAME/why?last_s=60` | where its requests' time went, and for whom they waited |
//! | `/v1/changes` | POST: other targets, priorities and limits, all or none, until the configuration is read again |
//!
//! An answer that is no success has the object `{"error": "what is wrong, and what would be accepted"}`.
//!
//! The metrics address serves all but the last, without authentication. The control socket, a Unix socket
//! that only the gateway's user can open, serves all but the first. Every report is made on request from one
//! [`GatewayStatus`]. So the reports cannot disagree, and the gateway collects nothing without a request.

mod array;
mod client;
mod control;
mod metrics;
mod named_volume;
mod node_agent;
mod object;
mod refusal;
mod serve;
mod shared;
mod throttle;
mod transfers;
mod volumes;
mod why;

use std::io;
use std::net::SocketAddr;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use weir_gateway::StatusProbe;
use weir_status::GatewayStatus;

pub use array::ArrayProbe;
pub use client::{AskError, Server, get_over};
pub use control::{Asked, Change, Changed, Changes, ControlListener, Setting};
use named_volume::NamedVolume;
use refusal::refused;
pub use serve::ApiLimits;
use serve::Routes;
use shared::{Shared, tell};
use volumes::VOLUMES_PATH;
pub use why::{MOST_REMEMBERED, why_path};

/// The path of the status.
pub const STATUS_PATH: &str = "/v1/status";

/// The path for changes.
pub const CHANGES_PATH: &str = "/v1/changes";

/// The path of the last control intervals of a volume.
const INTERVALS_PATH: &str = "/v1/volumes/{volume}/intervals";

/// The path of the last control intervals of `volume`. Its name needs no escaping.
pub fn intervals_path(volume: &str) -> String {
    INTERVALS_PATH.replace("{volume}", volume)
}

/// The content type of the OpenMetrics text format, which Prometheus asks for.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The content type of the status.
const JSON: &str = "application/json";

/// A bound address that answers nothing yet.
#[derive(Debug)]
pub struct ApiListener(TcpListener);

/// The error if weir cannot listen on an address.
#[derive(Debug, Error)]
#[error("{address}: cannot listen: {source}; accepted: an address of this host that is free")]
pub struct ApiListenError {
    address: SocketAddr,
    source: io::Error,
}

impl ApiListener {
    /// Binds `address`; for port 0 the system chooses a free port.
    ///
    /// # Errors
    /// If the address is in use or not permitted.
    pub async fn bind(address: SocketAddr) -> Result<Self, ApiListenError> {
        TcpListener::bind(address).await.map(Self).map_err(|source| ApiListenError { address, source })
    }

    /// The address, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Answers for a gateway until the task is dropped.
    pub async fn serve(self, probe: StatusProbe, limits: watch::Receiver<ApiLimits>) {
        let (metrics, metrics_made) =
            Shared::new(OPEN_METRICS, async || probe.status().await, metrics::encode);
        let (reports, reports_made) = reports(&probe);
        let router = reports.merge(Router::new().route("/metrics", get(tell)).with_state(metrics));
        let paths = &["/metrics", STATUS_PATH, VOLUMES_PATH, INTERVALS_PATH, why::WHY_PATH];
        let routes = Routes { router, paths };
        tokio::select! {
            () = serve::serve(self.0, routes, limits) => {}
            () = metrics_made => {} // when nobody can ask any more
            () = reports_made => {}
        }
    }

    /// Answers with a status and with metrics until the task is dropped, for a server that has nothing else
    /// to tell.
    async fn serve_reports<T, E, F>(
        self,
        collect: impl AsyncFn() -> T,
        as_json: fn(T) -> Result<Vec<u8>, E>,
        as_metrics: fn(T) -> Result<Vec<u8>, F>,
    ) where
        T: Send + 'static,
        E: std::fmt::Display + Send + 'static,
        F: std::fmt::Display + Send + 'static,
    {
        let (_kept, limits) = watch::channel(ApiLimits::DEFAULT);
        let (as_json, json_made) = Shared::new(JSON, &collect, as_json);
        let (as_metrics, metrics_made) = Shared::new(OPEN_METRICS, &collect, as_metrics);
        let router = Router::new().route(STATUS_PATH, get(tell).with_state(as_json));
        let router = router.route("/metrics", get(tell).with_state(as_metrics));
        let routes = Routes { router, paths: &["/metrics", STATUS_PATH] };
        tokio::select! {
            () = serve::serve(self.0, routes, limits) => {}
            () = json_made => {} // when nobody can ask any more
            () = metrics_made => {}
        }
    }

    /// Answers for a controller until the task is dropped.
    ///
    /// # Errors
    /// Never in practice: an error of a single connection ends only that connection.
    pub async fn serve_array(self, probe: ArrayProbe) -> io::Result<()> {
        let (_kept, limits) = watch::channel(ApiLimits::DEFAULT);
        let (router, made) = array::reports(&probe);
        let routes = Routes { router, paths: &[STATUS_PATH, INTERVALS_PATH] };
        tokio::select! {
            () = serve::serve(self.0, routes, limits) => {}
            () = made => {} // when nobody can ask any more
        }
        Ok(())
    }
}

/// The reports that both the metrics address and the control socket serve, and their maker.
fn reports(probe: &StatusProbe) -> (Router, impl Future<Output = ()>) {
    let collect = async || probe.status().await;
    let (status, status_made) =
        Shared::new(JSON, collect, |status: GatewayStatus| serde_json::to_vec(&status));
    let (volumes, volumes_made) = Shared::new(JSON, collect, volumes::as_json);
    let routes = Router::new().route(INTERVALS_PATH, get(intervals)).route(why::WHY_PATH, get(why::tell_why));
    let routes = routes.with_state(probe.clone());
    let routes = routes.route(STATUS_PATH, get(tell).with_state(status));
    let routes = routes.route(VOLUMES_PATH, get(tell).with_state(volumes));
    let made = async {
        tokio::join!(status_made, volumes_made);
    };
    (routes, made)
}

async fn intervals(State(probe): State<StatusProbe>, NamedVolume(volume): NamedVolume) -> Response {
    match probe.explain(&volume).await {
        Ok(explanation) => Json(explanation).into_response(),
        Err(volumes) => {
            let found = format!("volume {volume}: not served; accepted: {}", volumes.join(", "));
            refused(StatusCode::NOT_FOUND, found)
        }
    }
}
