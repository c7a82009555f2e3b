//! What a packet-delay agent reports over HTTP.

use tokio::sync::watch;
use weir_status::ThrottleStatus;

use crate::{ApiListener, metrics};

impl ApiListener {
    /// Answers for an agent until the task is dropped. The agent puts its newest state into `status`.
    pub async fn serve_throttle(self, status: watch::Receiver<ThrottleStatus>) {
        let newest = async || status.borrow().clone();
        let as_json = |status: ThrottleStatus| serde_json::to_vec(&status);
        self.serve_reports(newest, as_json, metrics::encode_throttle).await;
    }
}
