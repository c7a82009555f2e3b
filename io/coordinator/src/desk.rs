//! The desk: everything that the coordinator decides and remembers, without a socket.
//!
//! The desk has the scheduler, the catalogue, and a list of the transfers whose clients are connected. A
//! driver tells it each message and the time. The desk answers through each client's outbox, and names the
//! **errands**: what is to be removed from nodes. So a test can drive it without a network.
//!
//! | file | what it decides |
//! |---|---|
//! | `desk/admission.rs` | whether a transfer may be asked for, and on which nodes it may run |
//! | `desk/progress.rs` | what follows from the messages of a transfer that runs |
//! | `desk/lists.rs` | what people are told: objects, transfers, nodes |
//! | `desk/report.rs` | what `/metrics` and `weir status` tell |
//! | `desk/sensed.rs` | what the sensors of nodes say, and when that counts no more |
//! | `desk/errands.rs` | what is removed, and when an interrupted transfer is given up |
//! | `desk/room.rs` | what is coming to each node, and how many transfers each peer has |
//! | `desk/patience.rs` | for how long a transfer waits for a removal, or for the one node on which it can go on |

mod admission;
mod errands;
mod lists;
mod patience;
mod progress;
mod report;
mod room;
mod sensed;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::mpsc;
use weir_model::{Bandwidth, Direction, Instant, Span};
use weir_status::EndedTransfers;
use weir_transfer::{Domain, NodeIndex, NodeSet, NodeSpec, Policy, SAMPLE, Scheduler, TransferId};

use crate::catalogue::{Catalogue, CatalogueError, Holder, NewTransfer, Progress, State, UnixMs};
use crate::proto::to_client::Message;
use crate::proto::{Fault, Kind, Pace, Refusal, Refused, Start, ToClient, Waiting};

pub use admission::CALIBRATION;
pub(crate) use admission::{NotAdmitted, VERSION};
pub(crate) use errands::Errand;
use patience::Awaited;
pub(crate) use progress::MOST_NOTES;
use report::MovedBytes;
pub(crate) use room::Peer;
use sensed::Sensor;

/// The most transfers that wait or run at a time. Each has a stream, and so memory, at the coordinator.
const MOST_LIVE: usize = 20_000;

/// What a node is taken to do whose peak nobody has given or measured: more than any node does. The policies
/// that need the peak do not use such a node at all.
const UNKNOWN_PEAK: Bandwidth = Bandwidth::new(100_000_000_000).expect("above zero");

/// After how many samples the catalogue learns how far the transfers are. People see it after a crash.
const KEPT_EACH: u64 = 10;

/// How many waiting clients are told why they wait, at each sample.
const TOLD_AT_A_TIME: usize = 200;

/// A node, as the operator has configured it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeConfig {
    /// Its name.
    pub name: String,
    /// Where it is, without credentials, for people.
    pub url: String,
    /// The most that it reads, if the operator has given it.
    pub peak_read: Option<Bandwidth>,
    /// The most that it writes, if the operator has given it.
    pub peak_write: Option<Bandwidth>,
    /// It takes only transfers of this class or a higher one, as a place in [`DeskConfig::classes`].
    pub class: usize,
    /// A transfer with a lower bound of cost leaves it out.
    pub cost: u64,
    /// The most bytes that replicas may take there.
    pub capacity: Option<u64>,
    /// What it fails with: replicas of an object lie in different domains.
    pub domain: String,
}

/// What the operator has configured.
#[derive(Clone, PartialEq, Debug)]
pub struct DeskConfig {
    /// Which node a transfer goes to, and when.
    pub policy: Policy,
    /// The names of the classes, rising; at least one.
    pub classes: Vec<String>,
    /// The rate of a transfer that asks for none.
    pub rate: Bandwidth,
    /// The nodes; at least one.
    pub nodes: Vec<NodeConfig>,
}

/// Where messages to a client go. They are boxed because a channel sets room for 32 messages aside at once,
/// and most clients only wait.
pub(crate) type Outbox = mpsc::Sender<Box<ToClient>>;

/// The one place of all decisions of a coordinator.
#[derive(Debug)]
pub(crate) struct Desk {
    config: DeskConfig,
    scheduler: Scheduler,
    catalogue: Catalogue,
    nodes: Vec<Node>,
    /// Changed by `desk/room.rs` alone.
    live: BTreeMap<u64, Live>,
    /// How many of them each peer has.
    peers: BTreeMap<Peer, usize>,
    /// The leftovers that somebody removes now.
    under_way: BTreeMap<u64, NodeIndex>,
    /// How often each leftover could not be removed.
    failed_removals: BTreeMap<u64, u32>,
    /// The nodes and names of which a leftover is gone, since the last sample.
    freed: Vec<(String, String)>,
    /// The waiting transfer that was told last why it waits.
    told_last: u64,
    /// Transfers that the desk gave up while the catalogue could not remember that. Each was live before.
    abandoned: BTreeSet<u64>,
    /// What has become of transfers since this desk was opened.
    ended: EndedTransfers,
    /// How many samples there were.
    samples: u64,
}

/// What the desk knows of a node beside its configuration.
#[derive(Debug)]
struct Node {
    /// Why it is down; `None`: it is up.
    down: Option<String>,
    /// When the last probe of it ended.
    probed: Option<Instant>,
    /// Since this desk was opened.
    moved: MovedBytes,
    /// What its sensor says, if it has one.
    sensor: Option<Sensor>,
    measured: Option<(Bandwidth, Bandwidth)>,
    domain: Domain,
    /// What the replicas there take, in bytes, and how many they are.
    stored: u64,
    objects: u64,
    /// What those will take that are being written there, in bytes.
    coming: u128,
}

/// A transfer whose client is connected.
#[derive(Debug)]
struct Live {
    kind: Kind,
    new: NewTransfer,
    outbox: Outbox,
    /// The number of its client's stream.
    stream: u64,
    /// Its client's.
    peer: Peer,
    /// The nodes that it may ever use.
    allowed: NodeSet,
    /// Those that have failed it, and how.
    failed: BTreeMap<NodeIndex, (Fault, String)>,
    /// How often a node was not reachable for it.
    unreachable: u32,
    /// How often a partial replica of it was lost.
    gone: u32,
    /// The node that its client could not reach. It is not used again before somebody has asked it.
    doubted: Option<NodeIndex>,
    /// All nodes with a replica are down: the scheduler has it again when one is up.
    is_parked: bool,
    /// It waits for something that passes by itself.
    awaits: Option<Awaited>,
    /// The object that it reads, since its last start: another one may have its name by its end.
    object: Option<u64>,
    /// Where it runs.
    node: Option<NodeIndex>,
    /// The node that has a partial replica of it.
    partial: Option<NodeIndex>,
    progress: Progress,
    /// Since when it runs, or waits.
    since: Instant,
    /// For how many milliseconds it has waited before that, since its client asked.
    waited: u64,
    /// What it was told last.
    pace: Option<Bandwidth>,
    waits: String,
    /// How many replicas its object is to have.
    wanted: u32,
    /// How many notes its client may still leave.
    notes_left: usize,
}

impl Desk {
    /// A desk over a catalogue. All transfers of an earlier desk are interrupted.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn open(
        now: Instant,
        unix: UnixMs,
        config: DeskConfig,
        mut catalogue: Catalogue,
    ) -> Result<Self, CatalogueError> {
        catalogue.interrupt_all(unix)?;
        let peaks = catalogue.peaks()?;
        let mut domains: Vec<&str> = config.nodes.iter().map(|node| node.domain.as_str()).collect();
        domains.sort_unstable();
        domains.dedup();
        let mut nodes = Vec::new();
        for node in &config.nodes {
            let number = domains.binary_search(&node.domain.as_str()).expect("each node's is among them");
            let measured = peaks
                .iter()
                .find(|(name, ..)| *name == node.name)
                .and_then(|(_, read, write)| Some((Bandwidth::new(*read)?, Bandwidth::new(*write)?)));
            let (objects, stored) = catalogue.stored_on(&node.name)?;
            let domain = Domain(u32::try_from(number).expect("few nodes"));
            let moved = MovedBytes::default();
            nodes.push(Node {
                down: None,
                probed: None,
                moved,
                sensor: None,
                measured,
                domain,
                stored,
                objects,
                coming: 0,
            });
        }
        let specs = config.nodes.iter().zip(&nodes).map(|(config, node)| spec(config, node)).collect();
        let scheduler = Scheduler::new(now, config.policy.clone(), specs);
        let (live, peers, under_way) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let ended = EndedTransfers::default();
        let (freed, told_last, samples) = (Vec::new(), 0, 0);
        Ok(Self {
            config,
            scheduler,
            catalogue,
            nodes,
            live,
            peers,
            under_way,
            freed,
            told_last,
            samples,
            failed_removals: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            ended,
        })
    }

    /// A second has passed: the scheduler takes its sample, and clients hear what follows.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn sample(&mut self, now: Instant, unix: UnixMs) -> Result<(), CatalogueError> {
        self.scheduler.sample(now);
        self.set_external_loads(now);
        let mut lost = Vec::new();
        for (id, live) in &mut self.live {
            if live.outbox.is_closed() {
                lost.push(*id); // its client had gone before anybody read its stream
                continue;
            }
            let held_to = self.scheduler.held_to(TransferId(*id));
            if live.node.is_some() && held_to != live.pace {
                let bytes_per_second = held_to.map_or(0, Bandwidth::get);
                // One that reads slowly hears of it with the next sample.
                if live.outbox.try_send(message(Message::Pace(Pace { bytes_per_second }))).is_ok() {
                    live.pace = held_to;
                }
            }
        }
        for id in lost {
            self.lose(now, unix, id)?;
        }
        self.samples += 1;
        if self.samples.is_multiple_of(KEPT_EACH) {
            let running = self.live.iter().filter(|(_, live)| live.node.is_some()).map(|(id, _)| *id);
            for id in running.collect::<Vec<_>>() {
                self.keep_progress(now, id)?;
            }
        }
        self.look_again(now, unix);
        self.start_all(now, unix)?;
        self.tell_why();
        Ok(())
    }

    /// A probe of a node has ended: the node answers, or does not.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn probed(
        &mut self,
        now: Instant,
        unix: UnixMs,
        node: NodeIndex,
        answer: Result<(), String>,
    ) -> Result<(), CatalogueError> {
        self.nodes[node.0].probed = Some(now);
        let name = &self.config.nodes[node.0].name;
        let was_up = self.nodes[node.0].down.is_none();
        match &answer {
            Err(why) if was_up => tracing::warn!(node = name, why, "the node is down; it is tried again"),
            Ok(()) if !was_up => tracing::info!(node = name, "the node is up again"),
            _ => {}
        }
        self.nodes[node.0].down = answer.err();
        let is_down = self.nodes[node.0].down.is_some();
        self.scheduler.set_down(node, is_down);
        // A transfer waits for a node that is down, because of its partial replica there: it may go
        // elsewhere now.
        let has_changed = is_down == was_up;
        let is_down_now: Vec<bool> = self.nodes.iter().map(|node| node.down.is_some()).collect();
        let may_leave = |live: &Live| {
            has_changed && live.node.is_none() && live.partial.is_some_and(|partial| is_down_now[partial.0])
        };
        let mut again = Vec::new();
        for (id, live) in &mut self.live {
            let is_back = has_changed && !is_down && (live.is_parked || live.awaits.is_some());
            if may_leave(live) || is_back || live.doubted == Some(node) {
                (live.doubted, live.is_parked) = (None, false);
                again.push(*id);
            }
        }
        self.submit_again(now, unix, again);
        self.start_all(now, unix)
    }

    /// Gives transfers to the scheduler anew. One that the catalogue refuses is no reason to leave the others
    /// out: nobody would give them to the scheduler later.
    fn submit_again(&mut self, now: Instant, unix: UnixMs, ids: Vec<u64>) {
        for id in ids {
            self.scheduler.give_up(TransferId(id));
            if let Err(error) = self.submit(now, unix, id) {
                tracing::error!(transfer = id, %error, "the catalogue refuses a change");
                self.abandon(id, &error.to_string());
            }
        }
    }

    /// A client has measured what a node can do.
    ///
    /// # Errors
    /// If the catalogue refuses.
    pub(crate) fn set_peak(
        &mut self,
        now: Instant,
        unix: UnixMs,
        node: NodeIndex,
        (read, write): (Bandwidth, Bandwidth),
    ) -> Result<(), CatalogueError> {
        self.catalogue.set_peak(unix, &self.config.nodes[node.0].name, read.get(), write.get())?;
        let before = self.taken_by(node);
        self.nodes[node.0].measured = Some((read, write));
        self.scheduler.set_spec(node, spec(&self.config.nodes[node.0], &self.nodes[node.0]));
        // Those that the node takes now and did not before, or the other way round. Others keep their place.
        let after = self.taken_by(node);
        let is_other = |(before, after): &(_, (u64, Option<bool>))| before != after || after.1.is_none();
        let again = before.into_iter().zip(after).filter(is_other).map(|(_, (id, _))| id);
        self.submit_again(now, unix, again.collect());
        self.start_all(now, unix)
    }

    /// Of the waiting transfers that may ever use a node, whether it would take them; `None`: they wait for
    /// something else than the scheduler.
    fn taken_by(&self, node: NodeIndex) -> Vec<(u64, Option<bool>)> {
        let waiting = self.live.iter().filter(|(_, live)| live.node.is_none() && live.allowed.contains(node));
        let taken = |(id, live): (&u64, &Live)| {
            let would_take = self.scheduler.would_take(TransferId(*id), node);
            (*id, would_take.map(|would_take| would_take && self.peak_is_known(node, direction(live.kind))))
        };
        waiting.map(taken).collect()
    }

    /// The name of a node.
    pub(crate) fn name(&self, node: NodeIndex) -> &str {
        &self.config.nodes[node.0].name
    }

    /// The node of that name.
    pub(crate) fn node(&self, name: &str) -> Option<NodeIndex> {
        self.config.nodes.iter().position(|node| node.name == name).map(NodeIndex)
    }

    /// Starts all transfers that may start now.
    fn start_all(&mut self, now: Instant, unix: UnixMs) -> Result<(), CatalogueError> {
        while let Some(start) = self.scheduler.poll_start(now) {
            let TransferId(id) = start.id;
            if let Err(error) = self.start(now, unix, id, start.node) {
                // Its client has heard nothing of the start. Another transfer's change is no reason to end
                // others.
                tracing::error!(transfer = id, %error, "the catalogue refuses a start");
                self.abandon(id, &error.to_string());
            }
        }
        Ok(())
    }

    /// A transfer starts on a node.
    fn start(&mut self, now: Instant, unix: UnixMs, id: u64, node: NodeIndex) -> Result<(), CatalogueError> {
        let Some(live) = self.live.get(&id) else { return Ok(()) };
        let name = self.config.nodes[node.0].name.clone();
        let stores = matches!(live.kind, Kind::Put | Kind::Replicate | Kind::Import);
        let holder = if stores { self.catalogue.holder(&name, &live.new.name, id)? } else { Holder::Nobody };
        let writes = direction(live.kind) == Direction::Write;
        if matches!(holder, Holder::Leftover | Holder::Transfer(_))
            || writes && !self.has_room(node, live.new.bytes)
        {
            // Its name or its room was taken there while it waited.
            self.scheduler.give_up(TransferId(id));
            return self.submit(now, unix, id);
        }
        let live = self.live.get_mut(&id).expect("it was found just now");
        if live.partial.is_some_and(|partial| partial != node) {
            self.catalogue.wait_again(id, "")?;
            live.partial = None;
        }
        if live.partial.is_none() {
            live.progress = Progress { moved: 0, ..live.progress };
        }
        live.waited += passed_ms(now, live.since);
        (live.since, live.pace, live.awaits) = (now, None, None);
        live.waits.clear();
        self.move_to(id, Some(node));
        let live = &self.live[&id];
        self.catalogue.start(unix, id, &name)?;
        let notes = self.catalogue.notes(id)?;
        let begun = self.catalogue.transfer(id)?.map_or(0, |row| row.begun);
        let object = match live.kind {
            Kind::Put | Kind::Import | Kind::Unspecified => None,
            Kind::Get | Kind::Check | Kind::Replicate => self.catalogue.object(&live.new.name)?,
        };
        let read = object.as_ref().map(|object| object.id);
        let (bytes, checksum) = match object {
            Some(object) => (Some(object.bytes), object.checksum.to_vec()),
            None => (live.new.bytes, Vec::new()),
        };
        let start = Start { node: name, notes, bytes, checksum, begun };
        let live = self.live.get_mut(&id).expect("it was found just now");
        live.object = read;
        if live.outbox.try_send(message(Message::Start(start))).is_err() {
            self.lose(now, unix, id)?;
        }
        Ok(())
    }

    /// Tells some of those that wait why they do, if they were told otherwise before.
    fn tell_why(&mut self) {
        let from = self.told_last + 1;
        let waiting = |(_, live): &(&u64, &Live)| live.node.is_none();
        let next = self.live.range(from..).chain(self.live.range(..from)).filter(waiting);
        let some: Vec<u64> = next.take(TOLD_AT_A_TIME).map(|(id, _)| *id).collect();
        for id in some {
            self.told_last = id;
            let why = self.why_it_waits(id);
            let live = self.live.get_mut(&id).expect("it was found just now");
            if live.waits != why {
                live.waits.clone_from(&why);
                let _ = live.outbox.try_send(message(Message::Waiting(Waiting { why }))); // it may read slowly
            }
        }
    }

    /// Why a transfer waits, for people.
    fn why_it_waits(&self, id: u64) -> String {
        let Some(live) = self.live.get(&id) else { return String::new() };
        if let Some(node) = live.doubted {
            return format!("its client cannot reach {}; it is tried again", self.config.nodes[node.0].name);
        }
        if let Some(awaited) = &live.awaits {
            return awaited.why.clone();
        }
        let nodes = match self.scheduler.waits_for(TransferId(id)) {
            Some(nodes) => nodes,
            None if live.is_parked => &live.allowed,
            None => return String::new(),
        };
        let direction = direction(live.kind);
        let one = |node: NodeIndex| {
            let name = &self.config.nodes[node.0].name;
            if let Some(why) = &self.nodes[node.0].down {
                return format!("{name} is down ({why})");
            }
            let (view, _) = self.scheduler.load(node, direction);
            let what = if direction == Direction::Read { "reads" } else { "writes" };
            let others = view.external.filter(|external| *external > 0);
            let others = others.map_or(String::new(), |rate| format!(", and {} for others", megabytes(rate)));
            format!("{name} {what} {} for {} transfers{others}", megabytes(view.average), view.active)
        };
        let mut told: Vec<String> = nodes.iter().take(4).map(one).collect();
        let more = nodes.iter().count().saturating_sub(told.len());
        if more > 0 {
            told.push(format!("and {more} nodes more"));
        }
        let others = self.scheduler.waiting().saturating_sub(1);
        let queue = if others == 0 { String::new() } else { format!("; {others} others wait") };
        match told.is_empty() {
            true => "no node is left in another failure domain".to_owned(),
            false => {
                format!("no node can give it {} now: {}{queue}", megabytes(live.new.rate), told.join(", "))
            }
        }
    }

    /// Whether this stream is that of the transfer's client. A client may have a newer one.
    pub(crate) fn has_stream(&self, id: u64, stream: u64) -> bool {
        self.live.get(&id).is_some_and(|live| live.stream == stream)
    }

    /// Gives up a transfer about which the catalogue can remember nothing now, as on a full disk. Once it
    /// can, the transfer is an interrupted one: [`Desk::errands`].
    pub(crate) fn abandon(&mut self, id: u64, why: &str) {
        self.scheduler.give_up(TransferId(id));
        if self.live.contains_key(&id) {
            self.count(State::Interrupted);
            self.abandoned.insert(id);
        }
        self.refuse(id, Refusal::Failed, why);
    }

    /// Counts a transfer that has ended.
    const fn count(&mut self, state: State) {
        report::count(&mut self.ended, state);
    }

    /// Sends a client its refusal, and forgets the transfer.
    fn refuse(&mut self, id: u64, refusal: Refusal, why: &str) {
        if let Some(live) = self.leave(id) {
            let refused = Refused { refusal: refusal.into(), why: why.to_owned() };
            let _ = live.outbox.try_send(message(Message::Refused(refused))); // the stream ends in any case
        }
    }
}

/// A message to a client.
pub(crate) fn message(message: Message) -> Box<ToClient> {
    Box::new(ToClient { message: Some(message) })
}

/// Whether a transfer of this kind reads from its node or writes to it.
const fn direction(kind: Kind) -> Direction {
    match kind {
        Kind::Put | Kind::Replicate => Direction::Write,
        Kind::Get | Kind::Check | Kind::Import | Kind::Unspecified => Direction::Read,
    }
}

/// A node as the scheduler has it: what the operator has given counts before what was measured.
fn spec(config: &NodeConfig, node: &Node) -> NodeSpec {
    let (read, write) = node.measured.map_or((None, None), |(read, write)| (Some(read), Some(write)));
    NodeSpec {
        peak_read: config.peak_read.or(read).unwrap_or(UNKNOWN_PEAK),
        peak_write: config.peak_write.or(write).unwrap_or(UNKNOWN_PEAK),
        domain: node.domain,
    }
}

/// A rate for people, such as `12.3 MB/s`.
#[allow(clippy::cast_precision_loss)] // shown with one digit
fn megabytes(rate: u64) -> String {
    format!("{:.1} MB/s", rate as f64 / 1e6)
}

/// How long a client has moved data since `since`, in milliseconds.
fn passed_ms(now: Instant, since: Instant) -> u64 {
    now.saturating_since(since).as_nanos() / Span::from_millis(1).as_nanos()
}

const _: () = assert!(SAMPLE.as_nanos() == Span::from_secs(1).as_nanos(), "the text says seconds");
