//! Opens backends while the gateway's other work goes on: a disk or another server may take its time, or
//! never answer.
//!
//! Each backend is opened on a thread that weir never joins. The runtime's own threads for blocking calls
//! would not do: the end of the runtime waits for them, and so would the end of the process. A backend that
//! was opened and is no longer wanted is undone: a file that was created is removed.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::Builder;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};
use weir_backend::{BackendSpec, OpenError, Opened, open};

use crate::error::GatewayError;
use crate::spec::VolumeSpec;

/// How many backends are opened at a time, so that a start with many volumes does not overrun one server.
const THREADS: usize = 32;

/// How long [`Opening::wait`] waits, after one backend failed, for the others to be undone. A process that
/// ends then leaves no file behind, unless a device does not answer.
const UNDONE_WITHIN: Duration = Duration::from_secs(1);

/// The backends of some volumes while they are opened. Dropping it gives them up.
#[derive(Default)]
pub(crate) struct Opening {
    volumes: BTreeMap<String, Volume>,
    /// Backends that no thread has begun to open.
    jobs: Arc<Mutex<VecDeque<Job>>>,
    /// The failure of a backend. It is not kept in the future that undoes the rest, because the caller may
    /// drop that future and call again. The next call must not find only the backends that did open.
    failed: Option<Failed>,
}

/// The failure of one backend to open.
struct Failed {
    /// `None` once the caller was told.
    error: Option<GatewayError>,
    /// Ends when the caller has waited long enough for the others to be undone.
    patience: Pin<Box<Sleep>>,
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

/// A backend that a thread is to open.
struct Job {
    backend: BackendSpec,
    size: Option<u64>,
    answer: oneshot::Sender<Result<Fresh, OpenError>>,
}

impl Opening {
    /// Begins to open the wanted backends. Of `before`, backends that are wanted again are kept, whether open
    /// or still being opened; the others are given up. If `before` has failed, nothing of it is kept, because
    /// all of it is being undone.
    pub(crate) fn begin<'a>(
        wanted: impl Iterator<Item = (&'a str, &'a VolumeSpec)>,
        before: Self,
    ) -> Result<Self, GatewayError> {
        let mut before = if before.failed.is_some() { Self::default() } else { before };
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
        Ok(Self { volumes, jobs, failed: None })
    }

    /// Returns when all backends are open. The caller may drop the future and call again, also while the
    /// future undoes the other backends because one failed.
    ///
    /// # Errors
    /// If a backend cannot be opened. The caller then drops this value, whose later calls fail too.
    pub(crate) async fn wait(&mut self) -> Result<(), GatewayError> {
        if self.failed.is_none()
            && let Err(error) = self.all_open().await
        {
            self.failed = Some(Failed { error: Some(error), patience: Box::pin(sleep(UNDONE_WITHIN)) });
        }
        if self.failed.is_none() {
            return Ok(());
        }
        poll_fn(|cx| {
            let undone = self.poll_undone(cx);
            let patience = self.failed.as_mut().map(|failed| failed.patience.as_mut().poll(cx));
            if patience == Some(Poll::Pending) { undone } else { Poll::Ready(()) }
        })
        .await;
        let error = self.failed.as_mut().and_then(|failed| failed.error.take());
        let told = || GatewayError::Thread(std::io::Error::other("a volume could not be opened before"));
        Err(error.unwrap_or_else(told))
    }

    /// Ready when every backend is undone that was open or being opened.
    fn poll_undone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.volumes.retain(|_, volume| match &mut volume.state {
            State::Pending(answered) => Pin::new(answered).poll(cx).is_pending(),
            State::Open(_) => false,
        });
        if self.volumes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
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

    /// All backends, by volume. Call this only after [`Self::wait`] has succeeded.
    pub(crate) fn take(self) -> BTreeMap<String, Opened> {
        debug_assert!(self.failed.is_none(), "what failed is dropped");
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

/// Opens the backends in the queue, except backends whose caller has gone.
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
    use weir_model::SloGoal;

    use super::*;

    fn volume(path: &Path) -> VolumeSpec {
        VolumeSpec {
            description: String::new(),
            backend: BackendSpec::File { path: path.to_owned() },
            size: Some(1 << 20),
            config: VolumeConfig::default(),
            goal: SloGoal::default(),
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

    /// A volume that the test opens itself, step by step.
    fn by_hand(path: &Path) -> (oneshot::Sender<Result<Fresh, OpenError>>, Volume) {
        let VolumeSpec { backend, size, .. } = volume(path);
        let (answer, answered) = oneshot::channel();
        (answer, Volume { backend, size, state: State::Pending(answered) })
    }

    /// Waits until the first pause, then drops the future that waits.
    async fn begin_to_wait(opening: &mut Opening) {
        tokio::select! {
            biased;
            waited = opening.wait() => panic!("it does not wait for what is under way: {waited:?}"),
            () = std::future::ready(()) => {}
        }
    }

    /// Volume `a` has failed to open, and the caller was not told yet, because `u` is still being opened.
    async fn failed_midway(u: Volume) -> Opening {
        let (a, a_volume) = by_hand(Path::new("a"));
        let volumes = [("a", a_volume), ("u", u)].map(|(name, volume)| (name.to_owned(), volume)).into();
        let mut opening = Opening { volumes, ..Opening::default() };
        begin_to_wait(&mut opening).await;
        assert!(a.send(Err(OpenError::SizeNeeded { backend: "memory" })).is_ok());
        begin_to_wait(&mut opening).await;
        opening
    }

    #[tokio::test]
    async fn a_failure_is_told_also_if_whoever_waited_let_go_while_the_others_were_undone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("u");
        let (u, u_volume) = by_hand(&path);
        let mut opening = failed_midway(u_volume).await;
        let until = |opening: &Opening| opening.failed.as_ref().unwrap().patience.deadline();
        let first = until(&opening);
        begin_to_wait(&mut opening).await;
        assert_eq!(until(&opening), first, "it is not put off each time");
        let VolumeSpec { backend, size, .. } = volume(&path);
        let opened = open(&backend, size).unwrap();
        assert!(u.send(Ok(Fresh(Some(opened)))).is_ok());
        let error = opening.wait().await.unwrap_err().to_string();
        assert!(error.contains("volume.a.backend"), "{error}");
        assert!(!path.exists(), "what opened late is undone");
        assert!(opening.wait().await.is_err(), "it is never open");
    }

    #[tokio::test]
    async fn nothing_is_taken_from_what_has_failed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("u");
        let (u, u_volume) = by_hand(&path);
        let before = failed_midway(u_volume).await;
        let wanted = volume(&path);
        let mut opening = Opening::begin([("u", &wanted)].into_iter(), before).unwrap();
        assert!(u.is_closed(), "nobody waits for the one under way");
        opening.wait().await.unwrap();
        assert_eq!(opening.take().keys().collect::<Vec<_>>(), ["u"]);
    }
}
