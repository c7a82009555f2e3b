//! Calls that may wait in the kernel, each on a thread of its own.
//!
//! A call to a network file system whose server is gone never returns. tokio waits for its own blocking
//! threads when a runtime ends, so such a call would hold up the end of the program. A plain thread does not.

use std::time::Duration;

use tokio::sync::{Mutex, oneshot};

use crate::error::{NodeError, within};

/// What `work` comes to, for at most `limit`. After that, the thread goes on alone, and its result is
/// dropped.
pub(crate) async fn on_thread<T: Send + 'static>(
    limit: Duration,
    what: &str,
    work: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
) -> Result<T, NodeError> {
    let outcome = start(what, work)?;
    within(limit, what, ended(what, outcome)).await
}

/// Calls of one sort, of which one is under way at a time. A call that hangs so costs one thread, however
/// often it is made again.
pub(crate) struct OneAtATime<T>(Mutex<Option<oneshot::Receiver<Result<T, NodeError>>>>);

impl<T> Default for OneAtATime<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Send + 'static> OneAtATime<T> {
    /// What `work` comes to, for at most `limit`. If an earlier call has not returned yet, this is what the
    /// earlier one comes to, and `work` is not done.
    pub(crate) async fn call(
        &self,
        limit: Duration,
        what: &str,
        work: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        let called = async {
            let mut under_way = self.0.lock().await;
            let outcome = match under_way.take() {
                Some(outcome) => outcome,
                None => start(what, work)?,
            };
            // It stays here if this future is dropped.
            let came = ended(what, under_way.insert(outcome)).await;
            *under_way = None;
            came
        };
        within(limit, what, called).await
    }
}

/// Starts a thread.
fn start<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
) -> Result<oneshot::Receiver<Result<T, NodeError>>, NodeError> {
    let (sender, receiver) = oneshot::channel();
    let run = move || {
        let _ = sender.send(work()); // nobody may wait for it any more
    };
    std::thread::Builder::new().spawn(run).map_err(|error| NodeError::io(what, &error))?;
    Ok(receiver)
}

/// What a thread comes to.
async fn ended<T>(
    what: &str,
    outcome: impl Future<Output = Result<Result<T, NodeError>, oneshot::error::RecvError>>,
) -> Result<T, NodeError> {
    outcome.await.unwrap_or_else(|_| Err(NodeError::ended(what)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::channel;

    use super::*;
    use crate::error::ErrorKind;

    /// The clock stands still, and goes on at once to the end of whatever is waited for.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_costs_one_thread_however_often_it_is_made_again() {
        let (calls, started) = (OneAtATime::default(), Arc::new(AtomicU32::new(0)));
        let (release, released) = channel();
        let mut released = Some(released);
        for _ in 0..3 {
            let (count, released) = (started.clone(), released.take());
            let hang = move || {
                count.fetch_add(1, Ordering::Relaxed);
                released.map_or(Ok(()), |released| released.recv().map_err(|_| NodeError::ended("test")))
            };
            let called = calls.call(Duration::from_secs(5), "test", hang).await;
            assert_eq!(called.unwrap_err().kind(), ErrorKind::Stalled);
        }
        release.send(()).unwrap();
        tokio::time::resume();
        let count = started.clone();
        let later = move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        calls.call(Duration::from_secs(60), "test", later.clone()).await.unwrap();
        assert_eq!(started.load(Ordering::Relaxed), 1, "this is what the first call came to");
        calls.call(Duration::from_secs(60), "test", later).await.unwrap();
        assert_eq!(started.load(Ordering::Relaxed), 2);
    }
}
