//! What the agent of a storage node reports over HTTP.
//!
//! It has metrics alone: a coordinator reads them as any monitoring does, so there is one format to keep.

use axum::Router;
use axum::routing::get;
use tokio::sync::watch;
use weir_status::NodeAgentStatus;

use crate::serve::{self, Routes};
use crate::shared::{Shared, tell};
use crate::{ApiLimits, ApiListener, OPEN_METRICS, metrics};

impl ApiListener {
    /// Answers for an agent until the task is dropped. `read` reads the devices for each answer. Without a
    /// reading, the client gets an error.
    pub async fn serve_node_agent(self, read: impl AsyncFn() -> Option<NodeAgentStatus>) {
        let (_kept, limits) = watch::channel(ApiLimits::DEFAULT);
        let (metrics, made) = Shared::new(OPEN_METRICS, read, as_metrics);
        let router = Router::new().route("/metrics", get(tell)).with_state(metrics);
        let routes = Routes { router, paths: &["/metrics"] };
        tokio::select! {
            () = serve::serve(self.0, routes, limits) => {}
            () = made => {} // when nobody can ask any more
        }
    }
}

fn as_metrics(status: Option<NodeAgentStatus>) -> Result<Vec<u8>, String> {
    let status = status.ok_or("the devices could not be read")?;
    metrics::encode_node_agent(status).map_err(|error| error.to_string())
}
