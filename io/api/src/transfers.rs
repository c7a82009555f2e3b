//! What a coordinator of bulk transfers reports over HTTP.

use axum::Router;
use axum::routing::get;
use tokio::sync::watch;
use weir_status::TransfersStatus;

use crate::serve::{self, ApiLimits};
use crate::shared::{Shared, tell};
use crate::{ApiListener, JSON, OPEN_METRICS, STATUS_PATH, metrics};

/// Why there is no report.
const STOPPED: &str = "the coordinator has stopped";

impl ApiListener {
    /// Answers for a coordinator until the task is dropped. `status` is its state now, or `None` if it has
    /// stopped.
    pub async fn serve_transfers(self, status: impl AsyncFn() -> Option<TransfersStatus>) {
        let (_kept, limits) = watch::channel(ApiLimits::DEFAULT);
        let (as_json, json_made) = Shared::new(JSON, &status, as_json);
        let (as_metrics, metrics_made) = Shared::new(OPEN_METRICS, &status, as_metrics);
        let routes = Router::new().route(STATUS_PATH, get(tell).with_state(as_json));
        let routes = routes.route("/metrics", get(tell).with_state(as_metrics));
        tokio::select! {
            () = serve::serve(self.0, routes, limits) => {}
            () = json_made => {} // when nobody can ask any more
            () = metrics_made => {}
        }
    }
}

fn as_json(status: Option<TransfersStatus>) -> Result<Vec<u8>, String> {
    serde_json::to_vec(&status.ok_or(STOPPED)?).map_err(|error| error.to_string())
}

fn as_metrics(status: Option<TransfersStatus>) -> Result<Vec<u8>, String> {
    metrics::encode_transfers(status.ok_or(STOPPED)?).map_err(|error| error.to_string())
}
