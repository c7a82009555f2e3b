//! The thread of the desk: one loop that takes messages, samples each second, and has errands run.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, sleep};
use weir_clock::Clock;
use weir_model::Instant;
use weir_node::{Node, NodeError, Note};
use weir_transfer::{NodeIndex, SAMPLE};

use crate::catalogue::{CatalogueError, UnixMs, What};
use crate::desk::{Desk, Errand};

/// How many messages of all clients together wait for the desk.
const INBOX: usize = 256;

/// How often a node is asked whether it is there.
const PROBED_EACH: Duration = Duration::from_secs(5);

/// How long a removal that failed waits before it is tried again.
const REMOVED_AGAIN: Duration = Duration::from_secs(30);

/// Work on the desk, for its thread.
type Work = Box<dyn FnOnce(&mut Desk, Instant, UnixMs) + Send>;

/// The way to the desk.
#[derive(Clone, Debug)]
pub(super) struct DeskHandle {
    inbox: mpsc::Sender<Work>,
    end: Arc<Notify>,
    thread: Arc<std::sync::Mutex<Option<thread::JoinHandle<()>>>>,
}

impl DeskHandle {
    /// Tries each node once, and gives the desk a thread.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub(super) async fn start(clock: Clock, mut desk: Desk, nodes: Vec<Node>) -> io::Result<Self> {
        let first: Vec<_> = nodes.iter().map(|node| tokio::spawn(probe(node.clone()))).collect();
        for (place, answer) in first.into_iter().enumerate() {
            let answer = answer.await.unwrap_or_else(|_| Err("it was not tried".to_owned()));
            if let Err(error) = desk.probed(clock.now(), clock.unix_ms(), NodeIndex(place), answer) {
                return Err(io::Error::other(error));
            }
        }
        let (inbox, messages) = mpsc::channel::<Work>(INBOX);
        let weak = inbox.downgrade();
        for (place, node) in nodes.iter().cloned().enumerate() {
            let weak = weak.clone();
            tokio::spawn(async move {
                loop {
                    sleep(PROBED_EACH).await;
                    let answer = probe(node.clone()).await;
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
        let end = Arc::<Notify>::default();
        let ended = Arc::clone(&end);
        let outside = Handle::current();
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(clock, desk, messages, weak, &nodes, &outside) => {}
                    () = ended.notified() => {}
                }
            });
        };
        let thread = thread::Builder::new().name("weir-desk".to_owned()).spawn(run)?;
        Ok(Self { inbox, end, thread: Arc::new(std::sync::Mutex::new(Some(thread))) })
    }

    /// Has the desk do something, and returns what came of it; `None` if the desk has stopped.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk, Instant, UnixMs) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |desk, now, unix| {
            let _ = answer.send(work(desk, now, unix)); // who asked may have gone
        });
        self.inbox.send(work).await.ok()?;
        answered.await.ok()
    }

    /// Ends the desk's thread, and waits for its end: the catalogue is closed then. The clients' connections
    /// may still have handles. They get no answers any more.
    pub(super) async fn stop(&self) {
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        self.end.notify_one();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

async fn serve(
    clock: Clock,
    mut desk: Desk,
    mut inbox: mpsc::Receiver<Work>,
    itself: mpsc::WeakSender<Work>,
    nodes: &[Node],
    outside: &Handle,
) {
    let mut samples = interval(SAMPLE.into());
    samples.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            work = inbox.recv() => match work {
                Some(work) => work(&mut desk, clock.now(), clock.unix_ms()),
                None => return,
            },
            _ = samples.tick() => {
                logged(desk.sample(clock.now(), clock.unix_ms()));
                for errand in logged(desk.errands(clock.unix_ms())).unwrap_or_default() {
                    let node = nodes[errand.node.0].clone();
                    outside.spawn(run(errand, node, itself.clone()));
                }
            }
        }
    }
}

/// Removes something from a node, and tells the desk.
async fn run(errand: Errand, node: Node, desk: mpsc::WeakSender<Work>) {
    let removed = match &errand.what {
        What::Object(name) => match name.parse() {
            Ok(name) => node.remove(&name).await,
            Err(_) => Ok(()), // no such name was ever stored
        },
        What::Partial(lines) => {
            let notes: Vec<Note> = lines.iter().filter_map(|line| line.parse().ok()).collect();
            node.discard(&notes).await
        }
    };
    if let Err(error) = &removed {
        tracing::warn!(%error, "a leftover cannot be removed from its node; it is tried again");
        sleep(REMOVED_AGAIN).await;
    }
    if let Some(desk) = desk.upgrade() {
        let done = move |desk: &mut Desk, _, _| {
            logged(desk.errand_done(errand.id, removed.is_ok()));
        };
        let _ = desk.send(Box::new(done)).await; // the desk stops; the leftover is still in the catalogue
    }
}

async fn probe(node: Node) -> Result<(), String> {
    node.probe().await.map_err(|error: NodeError| error.to_string())
}

/// What the catalogue refuses has no client to hear of it.
fn logged<T>(done: Result<T, CatalogueError>) -> Option<T> {
    done.inspect_err(|error| tracing::error!(%error, "the catalogue refuses a change")).ok()
}
