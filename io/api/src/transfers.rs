//! What a coordinator of bulk transfers reports over HTTP.

use weir_status::TransfersStatus;

use crate::{ApiListener, metrics};

/// Why there is no report.
const STOPPED: &str = "the coordinator has stopped";

impl ApiListener {
    /// Answers for a coordinator until the task is dropped. `status` is its state now, or `None` if it has
    /// stopped.
    pub async fn serve_transfers(self, status: impl AsyncFn() -> Option<TransfersStatus>) {
        self.serve_reports(status, as_json, as_metrics).await;
    }
}

fn as_json(status: Option<TransfersStatus>) -> Result<Vec<u8>, String> {
    serde_json::to_vec(&status.ok_or(STOPPED)?).map_err(|error| error.to_string())
}

fn as_metrics(status: Option<TransfersStatus>) -> Result<Vec<u8>, String> {
    metrics::encode_transfers(status.ok_or(STOPPED)?).map_err(|error| error.to_string())
}
