//! The loop of a transfer: between its session and the task that moves the data.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};
use weir_model::{Bandwidth, Span};
use weir_node::{ErrorKind, NodeError, Note};

use super::counts::Counts;
use super::gate::{Gate, Signal};
use super::session::Session;
use super::{Client, ClientError};
use crate::catalogue::FINISHING;
use crate::desk::MOST_NOTES;
use crate::proto::from_client::Message as Said;
use crate::proto::to_client::Message;
use crate::proto::{Ask, Failed, Fault, Finished, Moved, Notes, Refusal, Refused, Start};

/// How often the coordinator hears what has moved.
const TOLD_EACH: Span = Span::from_millis(250);

/// How far a transfer is, for its user.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// Its number; 0: not admitted yet.
    pub transfer: u64,
    /// What it does.
    pub phase: Phase,
    /// How many bytes are done.
    pub moved: u64,
    /// How many there are, if that is known.
    pub bytes: Option<u64>,
    /// The rate that it asks for, in bytes a second.
    pub rate: u64,
}

/// What a transfer does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It waits, and why.
    Waiting(String),
    /// It moves data to or from this node.
    Moving(String),
    /// The coordinator does not answer; it is tried again.
    Lost,
    /// It is done, on this node.
    Done(String),
}

/// Why a task stops before it is done.
#[derive(Debug)]
pub(super) enum Stop {
    /// The node's fault, or the way to it: the transfer may go on elsewhere.
    Node(Fault, String),
    /// The client's fault: the transfer ends.
    Client(ClientError),
    /// The replica is not what was stored, and its data was passed on already: the transfer ends.
    PassedOn(String),
}

/// What a task has for its transfer.
pub(super) struct Tools {
    pub(super) gate: Gate,
    pub(super) counts: Arc<Counts>,
    pub(super) notes: mpsc::Sender<Vec<String>>,
}

/// The task that moves the data of one start.
pub(super) type Task = JoinHandle<Result<Finished, Stop>>;

/// How a transfer went.
pub(super) struct Outcome {
    pub(super) node: String,
    pub(super) bytes: u64,
    pub(super) checksum: Vec<u8>,
}

/// Runs a transfer to its end. `begin` makes the task for a start.
pub(super) async fn run(
    client: &Client,
    ask: Ask,
    progress: &watch::Sender<Progress>,
    mut begin: impl FnMut(&Start, Tools) -> Result<Task, ClientError>,
) -> Result<Outcome, ClientError> {
    let session = Session::open(client.clone(), ask).await?;
    let mut run = Run { session, task: None, is_started: false, told: 0, progress };
    let mut ticks = interval(client.clock.takes(TOLD_EACH));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = run.session.next() => match message {
                Some(Message::Start(start)) => run.start(client, &start, &mut begin).await?,
                Some(message) => match run.hear(message) {
                    Ok(Some(outcome)) => return Ok(outcome),
                    Ok(None) => {}
                    Err(error) => {
                        if matches!(&error, ClientError::Refused { refusal: Refusal::Cancelled, .. }) {
                            run.take_back(client).await;
                        }
                        return Err(error);
                    }
                },
                None => run.reopen().await?,
            },
            Some(event) = next(run.task.as_mut()), if run.is_started => run.tell(event).await?,
            _ = ticks.tick(), if run.is_started => run.tell_moved().await,
        }
    }
}

/// A transfer that goes on.
struct Run<'p> {
    session: Session,
    task: Option<Going>,
    /// Whether the coordinator has started the transfer over this stream. Before that, what the task has done
    /// is not told: messages name no node, and the coordinator may have started the transfer on another one.
    is_started: bool,
    /// How many bytes of the task the coordinator has heard of.
    told: u64,
    progress: &'p watch::Sender<Progress>,
}

impl Run<'_> {
    /// The coordinator starts the transfer. A task that holds on goes on if it is that of this start.
    async fn start(
        &mut self,
        client: &Client,
        start: &Start,
        begin: &mut impl FnMut(&Start, Tools) -> Result<Task, ClientError>,
    ) -> Result<(), ClientError> {
        self.progress.send_modify(|progress| {
            progress.phase = Phase::Moving(start.node.clone());
            progress.bytes = start.bytes.or(progress.bytes);
        });
        self.is_started = true;
        if let Some(task) = &mut self.task {
            task.take_notes(); // they waited for this start
        }
        let task = match self.task.take() {
            Some(task) if task.goes_on(start) => task,
            before => {
                if let Some(before) = before.filter(|before| before.is_forgotten(start)) {
                    before.discard(client);
                }
                self.told = 0;
                Going::begin(client, start, begin)?
            }
        };
        let task = self.task.insert(task);
        // The coordinator may have ended before it had heard of the last ones.
        for lines in task.noted.get(start.notes.len()..).unwrap_or_default().chunks(MOST_NOTES) {
            self.session.say(Said::Notes(Notes { lines: lines.to_vec() })).await;
        }
        // A note that the coordinator knows of is not sent again, so nothing else would answer it.
        let may_finish = start.notes.iter().any(|note| note == FINISHING);
        task.signal.send_replace(Signal { is_open: true, may_finish, pace: None });
        if let Some(finished) = task.finished.clone() {
            self.session.say(Said::Finished(finished)).await; // the first one was lost
        }
        Ok(())
    }

    /// Any other message. How the transfer went, if it is done.
    fn hear(&mut self, message: Message) -> Result<Option<Outcome>, ClientError> {
        match message {
            Message::Admitted(admitted) => self.progress.send_modify(|progress| {
                (progress.transfer, progress.rate) = (admitted.transfer, admitted.rate);
            }),
            Message::Waiting(waiting) => {
                self.progress.send_modify(|progress| progress.phase = Phase::Waiting(waiting.why));
            }
            Message::Pace(pace) => {
                if let Some(task) = &self.task {
                    let pace = Bandwidth::new(pace.bytes_per_second);
                    task.signal.send_modify(|signal| signal.pace = pace);
                }
            }
            Message::Finish(_) => {
                if let Some(task) = &self.task {
                    task.signal.send_modify(|signal| signal.may_finish = true);
                }
            }
            Message::Done(done) => {
                let task = self.task.take();
                let node = task.as_ref().map(|task| task.node.clone()).unwrap_or_default();
                let finished = task.and_then(|mut task| task.finished.take());
                // If the coordinator's first answer was lost, it remembers only what this transfer has moved.
                let bytes = finished.as_ref().map_or(done.bytes, |finished| finished.bytes);
                self.progress.send_modify(|progress| {
                    (progress.phase, progress.moved) = (Phase::Done(node.clone()), bytes);
                });
                let checksum = finished.map(|finished| finished.checksum).unwrap_or_default();
                return Ok(Some(Outcome { node, bytes, checksum }));
            }
            Message::Refused(Refused { refusal, why }) => {
                let refusal = Refusal::try_from(refusal).unwrap_or(Refusal::Unspecified);
                return Err(ClientError::Refused { refusal, why });
            }
            Message::Start(_) => {} // the caller's
        }
        Ok(None)
    }

    /// The transfer was cancelled. What the task makes visible at this moment is removed again: the
    /// coordinator has looked for it, and may have been too early. After a break of the stream, the transfer
    /// may have become another client's, and so may what is visible. Then the coordinator alone removes it.
    async fn take_back(&mut self, client: &Client) {
        let mine = self.task.take().filter(|going| self.is_started && going.counts.finishes());
        let Some(mut going) = mine else { return };
        let Some((task, name)) = going.task.take().zip(self.session.name()) else { return };
        if let Ok(Ok(_)) = task.await
            && going.counts.has_published()
            && let Some(node) = client.node(&going.node)
        {
            let _ = node.remove(&name).await; // the coordinator has tried, too
        }
    }

    /// The stream is broken: nothing moves until there is another.
    async fn reopen(&mut self) -> Result<(), ClientError> {
        self.is_started = false;
        if let Some(task) = &self.task {
            task.signal.send_modify(|signal| (signal.is_open, signal.may_finish) = (false, false));
        }
        self.progress.send_modify(|progress| progress.phase = Phase::Lost);
        self.session.reopen().await
    }

    /// Tells the coordinator what the task has done.
    async fn tell(&mut self, event: Event) -> Result<(), ClientError> {
        match event {
            Event::Notes(lines) => self.session.say(Said::Notes(Notes { lines })).await,
            Event::Ended(Ok(finished)) => {
                self.tell_moved().await;
                if let Some(task) = &mut self.task {
                    task.finished = Some(finished.clone());
                }
                self.session.say(Said::Finished(finished)).await;
            }
            Event::Ended(Err(Stop::Node(fault, why))) => {
                let node = self.task.as_ref().map(|task| task.node.clone()).unwrap_or_default();
                let waiting = Phase::Waiting(format!("{node}: {why}"));
                self.progress.send_modify(|progress| progress.phase = waiting);
                self.session.say(Said::Failed(Failed { fault: fault.into(), why })).await;
            }
            Event::Ended(Err(Stop::Client(error))) => return Err(self.end(Fault::Client, error).await),
            Event::Ended(Err(Stop::PassedOn(why))) => {
                return Err(self.end(Fault::PassedOn, ClientError::Corrupt(why)).await);
            }
        }
        Ok(())
    }

    /// Tells the coordinator why the transfer ends, and waits until it has heard that.
    async fn end(&mut self, fault: Fault, error: ClientError) -> ClientError {
        let failed = Failed { fault: fault.into(), why: error.to_string() };
        self.session.say(Said::Failed(failed)).await;
        while let Some(message) = self.session.next().await {
            if matches!(message, Message::Refused(_)) {
                break;
            }
        }
        error
    }

    /// Tells the coordinator, and the user, what has moved.
    async fn tell_moved(&mut self) {
        let Some(task) = &self.task else { return };
        let moved = task.counts.moved();
        let done = task.counts.before() + moved;
        self.progress.send_if_modified(|progress| {
            let is_new = progress.moved != done;
            progress.moved = done;
            is_new
        });
        let bytes = moved.saturating_sub(self.told);
        if bytes > 0 {
            self.told += bytes;
            self.session.say(Said::Moved(Moved { bytes })).await;
        }
    }
}

/// A task that goes on, or holds on.
struct Going {
    node: String,
    task: Option<Task>,
    signal: watch::Sender<Signal>,
    counts: Arc<Counts>,
    notes: mpsc::Receiver<Vec<String>>,
    /// What it has noted, and what was noted before it: all notes of the partial replica.
    noted: Vec<String>,
    /// Which beginning of the transfer it is.
    begun: u32,
    /// Of the object that it reads.
    checksum: Vec<u8>,
    finished: Option<Finished>,
}

enum Event {
    Notes(Vec<String>),
    Ended(Result<Finished, Stop>),
}

impl Going {
    fn begin(
        client: &Client,
        start: &Start,
        begin: &mut impl FnMut(&Start, Tools) -> Result<Task, ClientError>,
    ) -> Result<Self, ClientError> {
        let (signal, signals) = watch::channel(Signal { is_open: true, ..Signal::default() });
        let (notes, noted) = mpsc::channel(1);
        let counts = Arc::<Counts>::default();
        let tools = Tools { gate: Gate::new(client.clock, signals), counts: Arc::clone(&counts), notes };
        let task = Some(begin(start, tools)?);
        Ok(Self {
            node: start.node.clone(),
            task,
            signal,
            counts,
            notes: noted,
            noted: start.notes.clone(),
            begun: start.begun,
            checksum: start.checksum.clone(),
            finished: None,
        })
    }

    /// Whether the task that holds on is that of this start: the same node, with the same partial data, of
    /// the same object. The coordinator may not have heard of the last notes, or of any.
    fn goes_on(&self, start: &Start) -> bool {
        let is_alive = self.task.is_some() || self.finished.is_some();
        let is_same = self.node == start.node && self.begun == start.begun && self.checksum == start.checksum;
        is_alive && is_same && self.noted.starts_with(&start.notes)
    }

    /// Takes in the notes of the task that nobody has asked for.
    fn take_notes(&mut self) {
        while let Ok(lines) = self.notes.try_recv() {
            self.noted.extend(lines);
        }
    }

    /// Whether the transfer begins anew now, and the coordinator may not have heard of the partial replica of
    /// this task.
    fn is_forgotten(&self, start: &Start) -> bool {
        !self.noted.is_empty() && !start.notes.iter().any(|note| self.noted.contains(note))
    }

    /// Ends the task, and removes its partial replica. If that fails, it stays on its node.
    fn discard(mut self, client: &Client) {
        let (node, task) = (client.node(&self.node).cloned(), self.task.take());
        tokio::spawn(async move {
            if let Some(task) = task {
                task.abort();
                let _ = task.await; // it was aborted
            }
            self.take_notes();
            let noted = self.noted.iter().filter(|note| *note != FINISHING);
            let notes: Vec<_> = noted.filter_map(|note| note.parse::<Note>().ok()).collect();
            if let Some(node) = node {
                let _ = node.discard(&notes).await; // nobody knows of it any more
            }
        });
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The next event of a task; `None` at once if there is none that goes on.
async fn next(going: Option<&mut Going>) -> Option<Event> {
    let going = going?;
    let task = going.task.as_mut()?;
    tokio::select! {
        biased;
        Some(lines) = going.notes.recv() => {
            going.noted.extend(lines.iter().cloned());
            Some(Event::Notes(lines))
        }
        ended = &mut *task => {
            going.task = None;
            let lost = |error: tokio::task::JoinError| Err(Stop::Node(Fault::Other, error.to_string()));
            Some(Event::Ended(ended.unwrap_or_else(lost)))
        }
    }
}

impl From<NodeError> for Stop {
    fn from(error: NodeError) -> Self {
        let fault = match error.kind() {
            ErrorKind::NotFound => Fault::Missing,
            ErrorKind::Exists => Fault::Exists,
            ErrorKind::Full => Fault::Full,
            ErrorKind::Denied => Fault::Denied,
            ErrorKind::Unreachable => Fault::Unreachable,
            ErrorKind::Stalled => Fault::Stalled,
            ErrorKind::Gone => Fault::Gone,
            ErrorKind::Other => Fault::Other,
        };
        Self::Node(fault, error.to_string())
    }
}
