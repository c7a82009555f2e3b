//! Asks a running coordinator for its state, without holding it up when it stops.

use tokio::sync::mpsc;
use weir_status::TransfersStatus;

use super::desk_thread::{DeskHandle, Work, ask};

/// Asks a running coordinator for its state. The coordinator may stop meanwhile.
#[derive(Clone, Debug)]
pub struct StatusProbe {
    inbox: mpsc::WeakSender<Work>,
}

impl StatusProbe {
    pub(super) fn new(desk: &DeskHandle) -> Self {
        Self { inbox: desk.weak() }
    }

    /// The state now; `None`: the coordinator has stopped.
    pub async fn status(&self) -> Option<TransfersStatus> {
        let inbox = self.inbox.upgrade()?;
        ask(&inbox, |desk, now, _| desk.status(now)).await
    }
}
