//! What a packet-delay agent reports over HTTP.

use axum::Router;
use axum::routing::get;
use tokio::sync::watch;
use weir_status::ThrottleStatus;

use crate::serve::{self, ApiLimits};
use crate::shared::{Shared, tell};
use crate::{ApiListener, JSON, OPEN_METRICS, STATUS_PATH, metrics};

impl ApiListener {
    /// Answers for an agent until the task is dropped. The agent puts its newest state into `status`.
    pub async fn serve_throttle(self, status: watch::Receiver<ThrottleStatus>) {
        let (_kept, limits) = watch::channel(ApiLimits::DEFAULT);
        let newest = async || status.borrow().clone();
        let (as_json, json_made) =
            Shared::new(JSON, newest, |status: ThrottleStatus| serde_json::to_vec(&status));
        let (as_metrics, metrics_made) = Shared::new(OPEN_METRICS, newest, metrics::encode_throttle);
        let routes = Router::new().route(STATUS_PATH, get(tell).with_state(as_json));
        let routes = routes.route("/metrics", get(tell).with_state(as_metrics));
        tokio::select! {
            () = serve::serve(self.0, routes, limits) => {}
            () = json_made => {} // when nobody can ask any more
            () = metrics_made => {}
        }
    }
}
