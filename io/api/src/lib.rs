//! What a running gateway tells over HTTP: `/metrics` for Prometheus, `/v1/status` for people's tools.
//!
//! Both are made on request from one [`GatewayStatus`](weir_gateway::GatewayStatus), so that they can never
//! disagree, and nothing is collected that nobody asked for.

mod metrics;

use std::io;
use std::net::SocketAddr;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use thiserror::Error;
use tokio::net::TcpListener;
use weir_gateway::StatusProbe;

/// Where the status is found.
pub const STATUS_PATH: &str = "/v1/status";

/// The content type of the OpenMetrics text format, which Prometheus asks for.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A bound address that answers nothing yet.
#[derive(Debug)]
pub struct ApiListener(TcpListener);

/// The address cannot be listened on.
#[derive(Debug, Error)]
#[error("{address}: cannot listen: {source}; accepted: an address of this host that is free")]
pub struct ApiListenError {
    address: SocketAddr,
    source: io::Error,
}

impl ApiListener {
    /// Binds `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// If the address is in use or not permitted.
    pub async fn bind(address: SocketAddr) -> Result<Self, ApiListenError> {
        TcpListener::bind(address).await.map(Self).map_err(|source| ApiListenError { address, source })
    }

    /// The address with the port that was taken.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Answers until the task is dropped.
    ///
    /// # Errors
    /// Never in practice: errors of single connections are theirs.
    pub async fn serve(self, probe: StatusProbe) -> io::Result<()> {
        let routes =
            Router::new().route("/metrics", get(metrics)).route(STATUS_PATH, get(status)).with_state(probe);
        axum::serve(self.0, routes).await
    }
}

async fn metrics(State(probe): State<StatusProbe>) -> Response {
    match metrics::encode(probe.status().await) {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot encode the metrics");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn status(State(probe): State<StatusProbe>) -> Response {
    Json(probe.status().await).into_response()
}
