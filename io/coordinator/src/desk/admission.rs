//! Whether a transfer may be asked for, and on which nodes it may run.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::{Bandwidth, Direction, Instant, Span};
use weir_node::ObjectName;
use weir_transfer::{Class, NodeIndex, NodeSet, ObjectId, PolicyName, Request, TransferId};

use super::progress::MOST_NOTES;
use super::room::{MOST_OF_PEER, Peer};
use super::{Desk, Live, MOST_LIVE, Outbox, direction, message};
use crate::catalogue::{CatalogueError, Holder, NewTransfer, Progress, State, TransferRow, UnixMs};
use crate::proto::to_client::Message;
use crate::proto::{Admitted, Ask, Done, Fault, Kind, Refusal};

/// The version of the protocol.
pub(crate) const VERSION: u32 = 1;

/// What the names of the files begin with that a calibration writes to a node, and removes. No object has
/// such a name.
pub const CALIBRATION: &str = "weir-calibration-";

/// The longest name of a run or of a source, in bytes.
const LONGEST_TEXT: usize = 400;
/// The most nodes that a client names.
const MOST_NODES: usize = 1_000;

/// Why a transfer cannot be asked for.
#[derive(Debug)]
pub(crate) enum NotAdmitted {
    Refused(Refusal, String),
    Catalogue(CatalogueError),
}

impl From<CatalogueError> for NotAdmitted {
    fn from(error: CatalogueError) -> Self {
        Self::Catalogue(error)
    }
}

impl Desk {
    /// A client asks for a transfer. Its number; from now on, it hears of it through its outbox.
    ///
    /// # Errors
    /// If it is refused. Then nothing has changed.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        unix: UnixMs,
        stream: u64,
        peer: Peer,
        ask: &Ask,
        outbox: Outbox,
    ) -> Result<u64, NotAdmitted> {
        let kind = check_form(ask).map_err(wrong)?;
        let (mut new, allowed) = self.checked(kind, ask).map_err(wrong)?;
        let found = self.earlier(now, unix, kind, &new)?;
        // One that goes on has had its place before.
        if found.is_none() && self.live.len() >= MOST_LIVE {
            let why = format!("found {MOST_LIVE} transfers that wait or run; accepted: no more");
            return Err(NotAdmitted::Refused(Refusal::Busy, why));
        }
        let is_done = found.as_ref().is_some_and(|row| row.state == State::Done);
        if !is_done && self.of_peer(&peer) >= MOST_OF_PEER {
            let why = format!("found {MOST_OF_PEER} transfers of {peer} that wait or run; accepted: no more");
            return Err(NotAdmitted::Refused(Refusal::Busy, why));
        }
        if matches!(kind, Kind::Get | Kind::Check | Kind::Replicate) {
            new.bytes = self.catalogue.object(&new.name)?.map(|object| object.bytes);
        }
        let (id, partial, progress) = match found {
            Some(row) if row.state == State::Done => {
                let done = Done { bytes: row.progress.moved };
                let admitted = Admitted { transfer: row.id, rate: row.new.rate };
                let _ = outbox.try_send(message(Message::Admitted(admitted)));
                let _ = outbox.try_send(message(Message::Done(done)));
                return Ok(row.id);
            }
            Some(row) => {
                self.catalogue.ask_again(row.id, &new)?;
                let has_notes = !self.catalogue.notes(row.id)?.is_empty();
                let partial = self.node(&row.node).filter(|_| has_notes);
                (row.id, partial, row.progress)
            }
            None => (self.catalogue.ask(unix, &new)?, None, Progress::default()),
        };
        let _ = outbox.try_send(message(Message::Admitted(Admitted { transfer: id, rate: new.rate })));
        let live = Live {
            kind,
            new,
            outbox,
            stream,
            peer,
            allowed,
            failed: BTreeMap::new(),
            unreachable: 0,
            gone: 0,
            doubted: None,
            is_parked: false,
            awaits: None,
            object: None,
            node: None,
            partial,
            progress,
            since: now,
            waited: 0,
            pace: None,
            waits: String::new(),
            wanted: ask.replicas.max(1),
            notes_left: MOST_NOTES,
        };
        self.enter(id, live);
        self.submit(now, unix, id)?;
        self.start_all(now, unix)?;
        Ok(id)
    }

    /// The transfer and the nodes that it may ever use.
    fn checked(&self, kind: Kind, ask: &Ask) -> Result<(NewTransfer, NodeSet), (Refusal, String)> {
        let wrong = |why: String| (Refusal::Wrong, why);
        let class = match ask.class.as_str() {
            "" => 0,
            name => self.config.classes.iter().position(|class| class == name).ok_or_else(|| {
                wrong(format!("class: found {name:?}; accepted: {}", self.config.classes.join(", ")))
            })?,
        };
        if kind == Kind::Put && ask.replicas as usize > self.config.nodes.len() {
            let nodes = self.config.nodes.len();
            return Err(wrong(format!(
                "replicas: found {}; accepted: at most {nodes}, one a node",
                ask.replicas
            )));
        }
        let known = || self.config.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(", ");
        let mut allowed = NodeSet::EMPTY;
        if matches!(kind, Kind::Check | Kind::Import) {
            let node = self
                .node(&ask.node)
                .ok_or_else(|| wrong(format!("node: found {:?}; accepted: {}", ask.node, known())))?;
            allowed.insert(node);
        } else {
            let reachable: BTreeSet<&str> = ask.nodes.iter().map(String::as_str).collect();
            for (place, node) in self.config.nodes.iter().enumerate() {
                let takes_class = class >= node.class;
                let is_cheap = ask.max_cost.is_none_or(|most| node.cost <= most);
                // What is stored already may be read whatever it costs and whichever class asks.
                let is_allowed = direction(kind) == Direction::Read || (takes_class && is_cheap);
                if is_allowed && reachable.contains(node.name.as_str()) {
                    allowed.insert(NodeIndex(place));
                }
            }
        }
        if allowed.is_empty() {
            let why = format!(
                "found no node that takes this class at this cost, of the client's nodes {}; accepted: one of {}",
                ask.nodes.join(", "),
                known()
            );
            return Err((Refusal::NoNode, why));
        }
        let rate = if ask.rate == 0 { self.config.rate.get() } else { ask.rate };
        let new = NewTransfer {
            kind: kind.into(),
            name: ask.name.clone(),
            replica: ask.replica,
            run: ask.run.clone(),
            source: ask.source.clone(),
            bytes: ask.bytes,
            rate,
            class: self.config.classes[class].clone(),
            deadline: ask.deadline_ms,
        };
        Ok((new, allowed))
    }

    /// The transfer that this one continues, if there is one. What it replaces ends.
    fn earlier(
        &mut self,
        now: Instant,
        unix: UnixMs,
        kind: Kind,
        new: &NewTransfer,
    ) -> Result<Option<TransferRow>, NotAdmitted> {
        if let Some(row) = self.catalogue.transfer_of_run(new)? {
            match row.state {
                // The client has opened another stream before the coordinator noticed the end of the first.
                State::Waiting | State::Active => {
                    self.gone(now, unix, row.id)?;
                    return Ok(self.catalogue.transfer(row.id)?);
                }
                State::Interrupted | State::Done => return Ok(Some(row)),
                State::Failed => return Err(NotAdmitted::Refused(Refusal::Failed, row.why)),
                State::Cancelled => return Err(NotAdmitted::Refused(Refusal::Cancelled, row.why)),
            }
        }
        let object = self.catalogue.object(&new.name)?;
        match (kind, object) {
            (Kind::Get | Kind::Check | Kind::Replicate, None) => {
                let why = format!("object: found none of the name {}; accepted: one of weir ls", new.name);
                Err(NotAdmitted::Refused(Refusal::Wrong, why))
            }
            (Kind::Import, Some(_)) => {
                let why =
                    format!("object: found {} already; accepted: a file that is no object yet", new.name);
                Err(NotAdmitted::Refused(Refusal::Exists, why))
            }
            (Kind::Put, object) => {
                let open = self.catalogue.open_transfers(&new.name, new.kind)?;
                let same = |row: &&TransferRow| row.new.source == new.source && !new.source.is_empty();
                // The catalogue may have refused to remember the end of one whose client has gone.
                let live = &self.live;
                let interrupted = |row: &&TransferRow| !live.contains_key(&row.id);
                let earlier = open.iter().filter(interrupted).filter(same);
                if let Some(row) = earlier.clone().find(|row| row.new.replica == new.replica) {
                    return Ok(Some(row.clone()));
                }
                if let Some(object) = object.filter(|object| object.run != new.run) {
                    let why = format!(
                        "object: found {} already, of {} bytes; accepted: another name, or weir rm {0} first",
                        object.name, object.bytes
                    );
                    return Err(NotAdmitted::Refused(Refusal::Exists, why));
                }
                if let Some(row) = open.iter().find(|row| row.new.run != new.run && !interrupted(row)) {
                    let why = format!(
                        "object: found transfer {}, which writes {} now; accepted: another name, or its end",
                        row.id, new.name
                    );
                    return Err(NotAdmitted::Refused(Refusal::Exists, why));
                }
                let replaced = open.iter().filter(interrupted).filter(|row| !same(row)).map(|row| row.id);
                for id in replaced.collect::<Vec<_>>() {
                    let why = "other data was put under its name";
                    self.catalogue.end_transfer(unix, id, State::Cancelled, why)?;
                    self.count(State::Cancelled);
                }
                self.without_conflict(&new.name).map(|()| None)
            }
            (Kind::Import, None) => self.without_conflict(&new.name).map(|()| None),
            _ => Ok(None),
        }
    }

    /// Refuses a name that would have to be a folder and a file.
    fn without_conflict(&self, name: &str) -> Result<(), NotAdmitted> {
        let Some(other) = self.catalogue.conflict(name)? else { return Ok(()) };
        let why =
            format!("object: found {other}, beside which no node can have {name}; accepted: another name");
        Err(NotAdmitted::Refused(Refusal::Exists, why))
    }

    /// Gives a transfer to the scheduler, has it wait for what passes by itself, or refuses it if no node is
    /// left.
    pub(super) fn submit(&mut self, now: Instant, unix: UnixMs, id: u64) -> Result<(), CatalogueError> {
        let Some(live) = self.live.get(&id) else { return Ok(()) };
        let Usable { mut nodes, mut reasons, has_leftover } = self.usable(id, live)?;
        if let Some(doubted) = live.doubted {
            let is_up = |node: NodeIndex| node != doubted && self.nodes[node.0].down.is_none();
            if nodes.contains(doubted) && !nodes.iter().any(is_up) {
                return Ok(()); // the next answer of the node brings it back
            }
            nodes.remove(doubted);
        }
        let mut awaited = None;
        if let Some(partial) = live.partial {
            let down = self.nodes[partial.0].down.as_ref();
            let has_other = !live.is_bound() && nodes.iter().any(|node| self.nodes[node.0].down.is_none());
            if nodes.contains(partial) && (down.is_none() || !has_other) {
                nodes = [partial].into_iter().collect();
                awaited = down.filter(|_| live.is_bound()).map(|why| {
                    let name = &self.config.nodes[partial.0].name;
                    format!("{name} is down ({why}), and no other node can go on with what a pipe has sent")
                });
            } else {
                self.catalogue.wait_again(id, "")?;
                let live = self.live.get_mut(&id).expect("it is there");
                (live.partial, live.progress.moved) = (None, 0);
                // What it has left there may keep it from the node for a while.
                return self.submit(now, unix, id);
            }
        } else if nodes.is_empty() && has_leftover {
            awaited = Some(format!("no node is left before a removal: {}", reasons.join("; ")));
        }
        let live = self.live.get_mut(&id).expect("it is there");
        live.doubted = None;
        if let Some(in_vain) = live.set_awaited(now, awaited) {
            (nodes, reasons) = (NodeSet::EMPTY, vec![in_vain]);
        } else if nodes.is_empty() && has_leftover {
            return Ok(()); // the removal brings it back
        }
        if nodes.is_empty() {
            let why = format!("no node is left for {}: {}", live.new.name, reasons.join("; "));
            let is_denied = |(fault, _): &(Fault, String)| *fault == Fault::Denied;
            let wrong = !live.failed.is_empty() && live.failed.values().all(is_denied);
            self.catalogue.end_transfer(unix, id, State::Failed, &why)?;
            self.count(State::Failed);
            self.refuse(id, if wrong { Refusal::Wrong } else { Refusal::NoNode }, &why);
            return Ok(());
        }
        let request = self.request(now, unix, id, nodes.clone());
        if let Err(refused) = self.scheduler.submit(now, request) {
            let mut why = refused.to_string();
            if matches!(refused, weir_transfer::Refused::NoReplica(_)) {
                let live = self.live.get_mut(&id).expect("it is there");
                if live.progress.first_byte > 0 {
                    live.is_parked = true;
                    return Ok(());
                }
                // Nothing is read yet, so nothing is lost by an error, and its user may know better than to
                // wait (paper §III-A).
                why = self.why_unreachable(id, &nodes);
            }
            let refusal = match refused {
                weir_transfer::Refused::TooFast { .. } => Refusal::Wrong,
                _ => Refusal::NoNode,
            };
            self.catalogue.end_transfer(unix, id, State::Failed, &why)?;
            self.count(State::Failed);
            self.refuse(id, refusal, &why);
        }
        Ok(())
    }

    /// Why none of these nodes can be reached, which a read needs.
    fn why_unreachable(&self, id: u64, nodes: &NodeSet) -> String {
        let down = nodes.iter().filter_map(|node| {
            let why = self.nodes[node.0].down.as_ref()?;
            Some(format!("{} is down ({why})", self.config.nodes[node.0].name))
        });
        let down = down.collect::<Vec<_>>().join(", ");
        match self.live.get(&id) {
            Some(live) if live.kind != Kind::Import => {
                format!("no replica of {} can be reached: {down}", live.new.name)
            }
            _ => down,
        }
    }

    /// A transfer as the scheduler has it.
    fn request(&self, now: Instant, unix: UnixMs, id: u64, nodes: NodeSet) -> Request {
        let live = &self.live[&id];
        Request {
            id: TransferId(id),
            direction: direction(live.kind),
            bytes: live.new.bytes.map(|bytes| bytes.saturating_sub(live.progress.moved)),
            rate: Bandwidth::new(live.new.rate).expect("a rate of zero is replaced"),
            class: Class(self.class_of(&live.new.class)),
            deadline: live.new.deadline.map(|deadline| {
                now + Span::from_millis(deadline.saturating_sub(unix).min(LONGEST_DEADLINE_MS))
            }),
            nodes,
            object: (live.kind == Kind::Put).then(|| object_id(&live.new.name)),
        }
    }

    /// The nodes that a transfer may use now, and why others are left out.
    fn usable(&self, id: u64, live: &Live) -> Result<Usable, CatalogueError> {
        let object = self.catalogue.object(&live.new.name)?;
        let replicas = match &object {
            Some(object) => self.catalogue.replicas(object.id)?,
            None => Vec::new(),
        };
        let with_replica =
            |node: NodeIndex| replicas.iter().find(|replica| replica.node == self.config.nodes[node.0].name);
        let domains: BTreeSet<_> = replicas.iter().filter_map(|replica| self.node(&replica.node)).collect();
        let domains: BTreeSet<_> = domains.into_iter().map(|node| self.nodes[node.0].domain).collect();
        let holders = self.catalogue.holders(&live.new.name, id)?;
        let (mut usable, mut reasons, mut has_leftover) = (NodeSet::EMPTY, Vec::new(), false);
        for node in live.allowed.iter() {
            let name = &self.config.nodes[node.0].name;
            let mut leave_out = |why: &str| reasons.push(format!("{name}: {why}"));
            if let Some((_, why)) = live.failed.get(&node) {
                leave_out(why);
                continue;
            }
            if !self.peak_is_known(node, direction(live.kind)) {
                leave_out("its peak is not known, and the policy needs it: weir nodes calibrate");
                continue;
            }
            match live.kind {
                Kind::Get if with_replica(node).is_none_or(|replica| !replica.is_good) => {
                    leave_out("it has no good replica");
                }
                Kind::Check if with_replica(node).is_none() => leave_out("it has no replica"),
                Kind::Get | Kind::Check | Kind::Unspecified => usable.insert(node),
                Kind::Put | Kind::Replicate if domains.contains(&self.nodes[node.0].domain) => {
                    leave_out("its failure domain has a replica");
                }
                Kind::Put | Kind::Replicate | Kind::Import => match holders.on(name) {
                    Holder::Leftover => {
                        leave_out("an earlier object of that name is yet to be removed there");
                        has_leftover = true;
                    }
                    Holder::Transfer(other) => {
                        leave_out(&format!("transfer {other} has not ended, and may have stored it there"));
                    }
                    _ if live.kind != Kind::Import && !self.has_room(node, live.new.bytes) => {
                        leave_out("its capacity is taken");
                    }
                    Holder::Nobody | Holder::Replica => usable.insert(node),
                },
            }
        }
        Ok(Usable { nodes: usable, reasons, has_leftover })
    }

    /// Whether the policy can judge a node.
    pub(super) fn peak_is_known(&self, node: NodeIndex, direction: Direction) -> bool {
        let needs = match self.config.policy.name() {
            PolicyName::Static | PolicyName::SmR1 | PolicyName::SmR2 => true,
            PolicyName::Rr | PolicyName::SmR3 | PolicyName::Deadline => false,
        };
        let config = &self.config.nodes[node.0];
        let given = match direction {
            Direction::Read => config.peak_read,
            Direction::Write => config.peak_write,
        };
        !needs || given.is_some() || self.nodes[node.0].measured.is_some()
    }

    fn class_of(&self, name: &str) -> u8 {
        let place = self.config.classes.iter().position(|class| class == name).unwrap_or(0);
        u8::try_from(place).unwrap_or(u8::MAX)
    }
}

/// The nodes that a transfer may use now.
struct Usable {
    nodes: NodeSet,
    /// Why others are left out.
    reasons: Vec<String>,
    /// Whether one of them is left out only until something is removed from it.
    has_leftover: bool,
}

/// The number of an object for the scheduler: it follows from the name alone, so that transfers of one
/// object that come back in another order still know each other.
fn object_id(name: &str) -> ObjectId {
    let hash = blake3::hash(name.as_bytes());
    let first = hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
    ObjectId(u64::from_le_bytes(*first))
}

/// A deadline in a century is none, and must not overflow an instant.
const LONGEST_DEADLINE_MS: u64 = 100 * 365 * 24 * 3_600 * 1_000;

/// Checks what a message says by itself.
fn check_form(ask: &Ask) -> Result<Kind, (Refusal, String)> {
    let wrong = |why: String| Err((Refusal::Wrong, why));
    if ask.version != VERSION {
        return wrong(format!("protocol: found version {}; accepted: {VERSION}", ask.version));
    }
    let Ok(kind) = Kind::try_from(ask.kind) else {
        return wrong(format!("kind: found number {}; accepted: 1 to 5", ask.kind));
    };
    if kind == Kind::Unspecified {
        return wrong("kind: found none; accepted: 1 to 5".to_owned());
    }
    if let Err(error) = ask.name.parse::<ObjectName>() {
        return wrong(format!("name: {error}"));
    }
    if matches!(kind, Kind::Put | Kind::Import) && ask.name.starts_with(CALIBRATION) {
        return wrong(format!(
            "name: found {}; accepted: one that does not begin with {CALIBRATION}, as data of a calibration does",
            ask.name
        ));
    }
    if ask.run.is_empty() || ask.run.len() > LONGEST_TEXT || ask.source.len() > LONGEST_TEXT {
        return wrong(format!("run and source: accepted: a run, and at most {LONGEST_TEXT} bytes each"));
    }
    if ask.nodes.len() > MOST_NODES {
        return wrong(format!("nodes: found {}; accepted: at most {MOST_NODES}", ask.nodes.len()));
    }
    if ask.rate > MOST || ask.bytes.is_some_and(|bytes| bytes > MOST) {
        return wrong(format!("rate and bytes: accepted: at most {MOST} B/s and {MOST} B"));
    }
    if ask.deadline_ms.is_some_and(|deadline| deadline > MOST) {
        return wrong(format!("deadline: accepted: at most {MOST} ms of Unix time"));
    }
    if kind == Kind::Put && (ask.replicas == 0 || ask.replica >= ask.replicas) {
        return wrong(format!("replica: found {} of {}; accepted: one of them", ask.replica, ask.replicas));
    }
    Ok(kind)
}

/// The largest number that the catalogue keeps.
const MOST: u64 = i64::MAX.cast_unsigned();

fn wrong((refusal, why): (Refusal, String)) -> NotAdmitted {
    NotAdmitted::Refused(refusal, why)
}
