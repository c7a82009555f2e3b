//! The thread of the desk: one loop that takes messages, samples each second, and has errands run.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, sleep};
use weir_clock::Clock;
use weir_model::Instant;
use weir_node::{ErrorKind, Node, NodeError, Note};
use weir_transfer::{NodeIndex, SAMPLE};

use super::ServerError;
use crate::catalogue::{CatalogueError, UnixMs, What};
use crate::desk::{Desk, Errand};

/// How many messages of all clients together wait for the desk.
const INBOX: usize = 256;

/// How often a node is asked whether it is there.
const PROBED_EACH: Duration = Duration::from_secs(5);

/// How long a removal that failed waits before it is tried again.
const REMOVED_AGAIN: Duration = Duration::from_secs(30);

/// Work on the desk, for its thread.
pub(super) type Work = Box<dyn FnOnce(&mut Desk, Instant, UnixMs) + Send>;

/// The way to the desk.
#[derive(Clone, Debug)]
pub(super) struct DeskHandle {
    inbox: mpsc::Sender<Work>,
    stop: Arc<Notify>,
    /// Wakes those that wait for a removal.
    removed: Arc<Notify>,
    thread: Arc<std::sync::Mutex<Option<thread::JoinHandle<()>>>>,
}

impl DeskHandle {
    /// Tries each node once, and gives the desk a thread.
    ///
    /// # Errors
    /// If there is no thread to be had, or a node refuses its credentials.
    pub(super) async fn start(clock: Clock, mut desk: Desk, nodes: Vec<Node>) -> Result<Self, ServerError> {
        let calendar = Calendar { clock, started: clock.now(), started_unix: clock.unix_ms() };
        let ask = |node: &Node| {
            let node = node.clone();
            tokio::spawn(async move { node.probe().await })
        };
        let first: Vec<_> = nodes.iter().map(ask).collect();
        for (place, answer) in first.into_iter().enumerate() {
            let answer = answer.await.map_err(io::Error::other)?;
            if let Err(error) = &answer
                && error.kind() == ErrorKind::Denied
            {
                // Time does not mend this, and the operator is here to do so.
                let name = desk.name(NodeIndex(place)).to_owned();
                return Err(ServerError::Denied { node: name, why: error.to_string() });
            }
            let answer = answer.map_err(|error| error.to_string());
            let (now, unix) = calendar.now();
            desk.probed(now, unix, NodeIndex(place), answer)?;
        }
        let (inbox, messages) = mpsc::channel::<Work>(INBOX);
        let weak = inbox.downgrade();
        for (place, node) in nodes.iter().cloned().enumerate() {
            let weak = weak.clone();
            tokio::spawn(async move {
                loop {
                    sleep(PROBED_EACH).await;
                    let answer = node.probe().await.map_err(|error| error.to_string());
                    let Some(inbox) = weak.upgrade() else { return };
                    let work: Work = Box::new(move |desk, now, unix| {
                        logged(desk.probed(now, unix, NodeIndex(place), answer));
                    });
                    if inbox.send(work).await.is_err() {
                        return;
                    }
                }
            });
        }
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let outside = Handle::current();
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let removed = Arc::new(Notify::new());
        let told = Arc::clone(&removed);
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = stopped.notified() => {}
                    () = serve(calendar, desk, messages, weak, &nodes, &outside, &told) => {}
                }
            });
        };
        let thread = thread::Builder::new().name("weir-desk".to_owned()).spawn(run)?;
        Ok(Self { inbox, stop, removed, thread: Arc::new(std::sync::Mutex::new(Some(thread))) })
    }

    /// Has the desk do something, and returns what came of it; `None` if the desk has stopped.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk, Instant, UnixMs) -> T + Send + 'static,
    ) -> Option<T> {
        ask(&self.inbox, work).await
    }

    /// Ends when something was removed from a node, after this call.
    pub(super) fn removed(&self) -> Notified<'_> {
        self.removed.notified()
    }

    /// A way to the desk that is no handle: the desk may stop while there is one.
    pub(super) fn weak(&self) -> mpsc::WeakSender<Work> {
        self.inbox.downgrade()
    }

    /// Ends the desk's thread: the catalogue is closed then. Whoever asks through another handle gets no
    /// answer.
    pub(super) async fn stop(&self) {
        self.stop.notify_one();
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

/// Has the desk do something, and returns what came of it; `None` if the desk has stopped.
pub(super) async fn ask<T: Send + 'static>(
    inbox: &mpsc::Sender<Work>,
    work: impl FnOnce(&mut Desk, Instant, UnixMs) -> T + Send + 'static,
) -> Option<T> {
    let (answer, answered) = oneshot::channel();
    let work: Work = Box::new(move |desk, now, unix| {
        let _ = answer.send(work(desk, now, unix)); // who asked may have gone
    });
    inbox.send(work).await.ok()?;
    answered.await.ok()
}

/// The time of day, as it was when the coordinator started, and what has passed since. Somebody who sets the
/// clock of the machine so changes neither what the catalogue keeps in order, nor when an interrupted
/// transfer is given up. Cost: the coordinator follows a corrected clock only after a restart.
#[derive(Clone, Copy, Debug)]
struct Calendar {
    clock: Clock,
    started: Instant,
    started_unix: UnixMs,
}

impl Calendar {
    fn now(self) -> (Instant, UnixMs) {
        let now = self.clock.now();
        let passed = now.saturating_since(self.started).as_nanos() / 1_000_000;
        (now, self.started_unix.saturating_add(passed))
    }
}

async fn serve(
    calendar: Calendar,
    mut desk: Desk,
    mut inbox: mpsc::Receiver<Work>,
    itself: mpsc::WeakSender<Work>,
    nodes: &[Node],
    outside: &Handle,
    removed: &Arc<Notify>,
) {
    let mut samples = interval(calendar.clock.takes(SAMPLE));
    samples.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            work = inbox.recv() => match work {
                Some(work) => {
                    let (now, unix) = calendar.now();
                    work(&mut desk, now, unix);
                }
                None => return,
            },
            _ = samples.tick() => {
                let (now, unix) = calendar.now();
                logged(desk.sample(now, unix));
                for errand in logged(desk.errands(unix)).unwrap_or_default() {
                    let node = nodes[errand.node.0].clone();
                    outside.spawn(run(errand, node, itself.clone(), Arc::clone(removed)));
                }
            }
        }
    }
}

/// Removes something from a node, and tells the desk.
async fn run(errand: Errand, node: Node, desk: mpsc::WeakSender<Work>, told: Arc<Notify>) {
    let removed = match &errand.what {
        What::Object(name) => remove(&node, name).await,
        What::Partial(lines) => discard(&node, lines).await.map(drop),
        What::Either(name, lines) => match discard(&node, lines).await {
            // It never had its name: what has it now is somebody else's.
            Ok(true) => Ok(()),
            Ok(false) => remove(&node, name).await,
            Err(error) => Err(error),
        },
    };
    if let Err(error) = &removed {
        tracing::warn!(%error, "a leftover cannot be removed from its node; it is tried again");
        sleep(REMOVED_AGAIN).await;
    }
    if let Some(desk) = desk.upgrade() {
        let done = move |desk: &mut Desk, _, _| {
            logged(desk.errand_done(errand.id, removed.is_ok()));
            told.notify_waiters();
        };
        let _ = desk.send(Box::new(done)).await; // the desk stops; the leftover is still in the catalogue
    }
}

async fn remove(node: &Node, name: &str) -> Result<(), NodeError> {
    match name.parse() {
        Ok(name) => node.remove(&name).await,
        Err(_) => Ok(()), // no such name was ever stored
    }
}

async fn discard(node: &Node, lines: &[String]) -> Result<bool, NodeError> {
    let notes: Vec<Note> = lines.iter().filter_map(|line| line.parse().ok()).collect();
    node.discard(&notes).await
}

/// What the catalogue refuses has no client to hear of it.
fn logged<T>(done: Result<T, CatalogueError>) -> Option<T> {
    done.inspect_err(|error| tracing::error!(%error, "the catalogue refuses a change")).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use weir_node::{Location, ObjectName, PartialId};

    use super::*;

    /// Removes what a transfer may have left that was about to finish `x`: what is in the root then.
    async fn left_after(finishes: bool, somebody_has_the_name: bool) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let location: Location = format!("file://{}", directory.path().display()).parse().unwrap();
        let node = Node::open(location, None).unwrap();
        let (name, id): (ObjectName, PartialId) = ("x".parse().unwrap(), "p".parse().unwrap());
        let mut writer = node.begin(&name, &id, None).await.unwrap();
        writer.write(bytes::Bytes::from_static(b"abc")).await.unwrap();
        let lines = writer.take_notes().iter().map(ToString::to_string).collect();
        if finishes {
            writer.finish().await.unwrap();
        } else {
            drop(writer);
        }
        if somebody_has_the_name {
            fs::write(directory.path().join("x"), "of somebody else").unwrap();
        }
        let errand = Errand { id: 1, node: NodeIndex(0), what: What::Either("x".to_owned(), lines) };
        let (inbox, _messages) = mpsc::channel(1);
        run(errand, node, inbox.downgrade(), Arc::default()).await;
        let all = fs::read_dir(directory.path())
            .unwrap()
            .chain(fs::read_dir(directory.path().join(".weir-partial")).unwrap());
        let names = all.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name != ".weir-partial").collect()
    }

    #[tokio::test]
    async fn what_a_transfer_has_finished_is_removed_and_a_file_that_has_the_name_otherwise_stays() {
        assert_eq!(left_after(true, false).await, [""; 0]);
        assert_eq!(left_after(false, false).await, [""; 0]);
        assert_eq!(left_after(false, true).await, ["x"]);
    }
}
