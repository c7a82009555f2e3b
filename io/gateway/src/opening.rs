//! Backends that are being opened beside everything else: a disk or another server may take its time, or never answer.
//!
//! Each is opened on a thread that nobody waits for. A runtime's own threads for blocking calls will not do: the end of the
//! runtime waits for them, and so would the end of the process. What is opened and not wanted any more is undone: a file that was
//! created is removed.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread::Builder;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;
use weir_backend::{BackendSpec, OpenError, Opened, open};

use crate::gateway::GatewayError;
use crate::spec::VolumeSpec;

/// How many backends are opened at a time: a start with many volumes on one server is not to overrun it.
const THREADS: usize = 32;

/// How long is waited, after one could not be opened, for those under way to be undone: a process that ends then leaves no file
/// behind, unless a device does not answer.
const UNDONE_WITHIN: Duration = Duration::from_secs(1);

/// The backends of some volumes, on their way. Dropping it gives them up.
#[derive(Default)]
pub(crate) struct Opening {
    volumes: BTreeMap<String, Volume>,
    /// Those that no thread has begun with.
    jobs: Arc<Mutex<VecDeque<Job>>>,
}

/// One volume's backend.
struct Volume {
    backend: BackendSpec,
    size: Option<u64>,
    state: State,
}

enum State {
    Pending(oneshot::Receiver<Result<Fresh, OpenError>>),
    Open(Fresh),
}

/// A backend that is open and not yet in use. Undone when it is dropped.
struct Fresh(Option<Opened>);

/// What a thread is to open.
struct Job {
    backend: BackendSpec,
    size: Option<u64>,
    answer: oneshot::Sender<Result<Fresh, OpenError>>,
}

impl Opening {
    /// Begins to open these. What is `before` on its way, or there, and is wanted again goes on; the rest is given up.
    pub(crate) fn begin<'a>(
        wanted: impl Iterator<Item = (&'a str, &'a VolumeSpec)>,
        mut before: Self,
    ) -> Result<Self, GatewayError> {
        let mut volumes = BTreeMap::new();
        let mut jobs = VecDeque::new();
        for (name, VolumeSpec { backend, size, .. }) in wanted {
            let known = before.volumes.remove(name);
            let known = known.filter(|known| known.backend == *backend && known.size == *size);
            let volume = known.unwrap_or_else(|| {
                let (answer, answered) = oneshot::channel();
                jobs.push_back(Job { backend: backend.clone(), size: *size, answer });
                Volume { backend: backend.clone(), size: *size, state: State::Pending(answered) }
            });
            volumes.insert(name.to_owned(), volume);
        }
        let threads = jobs.len().min(THREADS);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..threads {
            let jobs = Arc::clone(&jobs);
            Builder::new()
                .name("weir-open".to_owned())
                .spawn(move || work(&jobs))
                .map_err(GatewayError::Thread)?;
        }
        Ok(Self { volumes, jobs })
    }

    /// Returns when all are open. May be dropped while it waits, and called again.
    ///
    /// # Errors
    /// If one cannot be opened: then it is of no use any more, and is to be dropped.
    pub(crate) async fn wait(&mut self) -> Result<(), GatewayError> {
        let opened = self.all_open().await;
        if opened.is_err() {
            let _ = timeout(UNDONE_WITHIN, self.undo()).await;
        }
        opened
    }

    /// Returns when what is open or under way is undone.
    async fn undo(&mut self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        poll_fn(|cx| {
            self.volumes.retain(|_, volume| match &mut volume.state {
                State::Pending(answered) => Pin::new(answered).poll(cx).is_pending(),
                State::Open(_) => false,
            });
            if self.volumes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    async fn all_open(&mut self) -> Result<(), GatewayError> {
        poll_fn(|cx| {
            let mut left = false;
            for (name, volume) in &mut self.volumes {
                let State::Pending(answered) = &mut volume.state else { continue };
                match Pin::new(answered).poll(cx) {
                    Poll::Pending => left = true,
                    Poll::Ready(Ok(Ok(opened))) => volume.state = State::Open(opened),
                    Poll::Ready(Ok(Err(source))) => {
                        let volume = name.clone();
                        self.volumes.remove(&volume);
                        return Poll::Ready(Err(GatewayError::Open { volume, source }));
                    }
                    Poll::Ready(Err(_)) => {
                        let volume = name.clone();
                        self.volumes.remove(&volume);
                        let ended = std::io::Error::other("it has ended while it opened a volume");
                        return Poll::Ready(Err(GatewayError::Thread(ended)));
                    }
                }
            }
            if left { Poll::Pending } else { Poll::Ready(Ok(())) }
        })
        .await
    }

    /// What is open, by volume.
    pub(crate) fn take(self) -> BTreeMap<String, Opened> {
        let open = |(name, volume): (String, Volume)| match volume.state {
            State::Open(mut fresh) => Some((name, fresh.0.take()?)),
            State::Pending(_) => None,
        };
        self.volumes.into_iter().filter_map(open).collect()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Opened::discard);
    }
}

/// Opens what there is to open, but for what nobody waits for any more.
fn work(jobs: &Mutex<VecDeque<Job>>) {
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(Job { backend, size, answer }) = next() {
        if !answer.is_closed() {
            // If nobody waits any more, it comes back, and is undone.
            let _ = answer.send(open(&backend, size).map(|opened| Fresh(Some(opened))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weir_engine::VolumeConfig;

    use super::*;

    fn volume(path: &Path) -> VolumeSpec {
        VolumeSpec {
            description: String::new(),
            backend: BackendSpec::File { path: path.to_owned() },
            size: Some(1 << 20),
            config: VolumeConfig::default(),
            faults: Vec::new(),
        }
    }

    async fn open_all(wanted: &[(&str, &VolumeSpec)], before: Opening) -> Opening {
        let mut opening = Opening::begin(wanted.iter().copied(), before).unwrap();
        opening.wait().await.unwrap();
        opening
    }

    #[tokio::test]
    async fn what_is_given_up_leaves_no_file_behind_and_what_is_wanted_again_is_not_opened_twice() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, given_up) = (dir.path().join("kept"), dir.path().join("given-up"));
        let (kept_spec, given_up_spec) = (volume(&kept), volume(&given_up));
        let first = open_all(&[("a", &kept_spec), ("b", &given_up_spec)], Opening::default()).await;
        assert!(kept.exists() && given_up.exists());
        // A file that is open is locked, so it could not be opened again.
        let second = open_all(&[("a", &kept_spec)], first).await;
        assert!(kept.exists() && !given_up.exists());
        assert_eq!(second.take().keys().collect::<Vec<_>>(), ["a"]);
        assert!(kept.exists(), "what was taken is in use");
    }

    #[tokio::test]
    async fn one_that_cannot_be_opened_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = volume(&dir.path().join("no-folder/file"));
        let mut opening = Opening::begin([("v", &wanted)].into_iter(), Opening::default()).unwrap();
        let error = opening.wait().await.unwrap_err().to_string();
        assert!(error.contains("volume.v.backend"), "{error}");
    }
}
