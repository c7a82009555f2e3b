//! Calls that may wait in the kernel, each on a thread of its own.
//!
//! A call to a network file system whose server is gone never returns. tokio waits for its own blocking
//! threads when a runtime ends, so such a call would hold up the end of the program. A plain thread does not.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::error::{NodeError, within};

/// What `work` comes to, for at most `limit`. After that, the thread goes on alone, and its result is
/// dropped.
pub(crate) async fn on_thread<T: Send + 'static>(
    limit: Duration,
    what: &str,
    work: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
) -> Result<T, NodeError> {
    let (sender, receiver) = oneshot::channel();
    let run = move || {
        let _ = sender.send(work()); // nobody may wait for it any more
    };
    std::thread::Builder::new().spawn(run).map_err(|error| NodeError::io(what, &error))?;
    within(limit, what, async { receiver.await.unwrap_or_else(|_| Err(NodeError::ended(what))) }).await
}
