//! The kernel side of packet delay: it gives interfaces the agent's queues, and says which connections'
//! packets enter which queue. Nothing here starts `tc` or `nft`: ten changes a second would cost too much.
//!
//! Whatever ends the agent, no packet stays delayed. The agent's table goes with its socket, its signs of
//! life in the table expire by themselves, and the [guard](crate::guard) removes the queues. A queue into
//! which nothing is sent delays nothing.
//!
//! A root queue is the agent's own only if it has the agent's mark. Somebody else's may have its kind and its
//! number.

mod alive;
mod attributes;
mod error;
mod family;
mod interfaces;
mod members;
mod nftables;
mod queues;
mod rule;
mod table;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use weir_model::Span;
use weir_throttle::{Command, Connection, HIGHEST_CEILING, LeafId, Packets, Present};

pub use error::ActuatorError;
pub use wire::{Answer, Message, Refusal, Request, Sockets, Wire};

use alive::Sign;
use family::Family;
use interfaces::Interfaces;
use queues::{Place, Queue};

/// The kinds of queues that the agent uses, each with its module.
const KINDS: [(&str, &str); 2] = [("htb", "sch_htb"), ("netem", "sch_netem")];

/// How long connections stay in their leaves unless that is renewed.
pub const LASTS: Span = Span::from_secs(3);

/// The most connections of one transaction. The kernel bounds the length of a message, and of a list in it.
const MOST_AT_ONCE: usize = 256;

/// How often a sign of life is tried again. It may expire in the middle of its renewal.
const REPEATS: u32 = 3;

/// The time between two looks at leaves that are to run empty.
const PAUSE: Duration = Duration::from_millis(5);

/// The agent's hand on the kernel, in one network namespace.
pub struct Actuator {
    wire: Box<dyn Wire + Send>,
    interfaces: Interfaces,
    /// The longest delay, for which the leaves have room.
    ceiling: Span,
    packets: Packets,
    /// Whether the table is there, and therefore ours.
    has_table: bool,
    /// The interfaces whose root queue was removed the last time.
    removed: BTreeSet<String>,
    /// Whether it may have made a queue or a table that is not removed.
    has_left: bool,
    /// How many packets a leaf of each interface can hold.
    limits: BTreeMap<String, u32>,
    /// The connections of which the maps have an element. Nobody else can change the maps.
    members: BTreeMap<Connection, LeafId>,
    /// The sign of life whose turn it is.
    sign: Sign,
}

impl Actuator {
    /// Opens the sockets, and changes nothing. It works in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the kernel lacks netlink.
    pub fn open() -> Result<Self, ActuatorError> {
        Self::over(Box::new(Sockets::open()?))
    }

    /// An actuator that reaches the kernel by this way.
    ///
    /// # Errors
    /// If the kernel has no socket left.
    pub fn over(wire: Box<dyn Wire + Send>) -> Result<Self, ActuatorError> {
        let interfaces = Interfaces::open().map_err(|errno| Refusal {
            what: "open a socket".to_owned(),
            errno,
            said: String::new(),
            needs: None,
        })?;
        let (limits, members) = (BTreeMap::new(), BTreeMap::new());
        let (ceiling, packets, sign) = (Span::ZERO, Packets::All, Sign::Even);
        let (has_table, has_left) = (false, false);
        let removed = BTreeSet::new();
        Ok(Self { wire, interfaces, ceiling, packets, has_table, removed, has_left, limits, members, sign })
    }

    /// The same, but only these packets to members are delayed.
    #[must_use]
    pub fn delaying(mut self, packets: Packets) -> Self {
        self.packets = packets;
        self
    }

    /// All reasons for which the kernel would refuse to delay packets on these interfaces: somebody's root
    /// queue, a module that is missing, somebody's table, another agent. It changes nothing, but the kernel
    /// may load its modules.
    pub fn refusals(&mut self, interfaces: &BTreeSet<String>) -> Vec<ActuatorError> {
        let mut refusals: Vec<_> =
            KINDS.iter().filter_map(|(kind, module)| self.try_kind(kind, module).err()).collect();
        refusals.extend(self.try_table().err());
        // Without the right to do anything, nothing else is known.
        let is_forbidden = |refusal: &ActuatorError| matches!(refusal, ActuatorError::NotPermitted { .. });
        if let Some(at) = refusals.iter().position(is_forbidden) {
            return vec![refusals.swap_remove(at)];
        }
        match self.queues() {
            Ok(queues) => refusals.extend(interfaces.iter().filter_map(|name| self.foreign(name, &queues))),
            Err(error) => refusals.push(error),
        }
        refusals
    }

    /// Makes the agent's table, and gives each of the interfaces the agent's root queue, with room for delays
    /// up to `ceiling`. Removes what an agent left that was killed. Returns the interfaces that are not
    /// there; the plan adds their roots when they come. A leaf comes later, so nothing here needs netem: ask
    /// for the [refusals](Self::refusals) first.
    ///
    /// # Errors
    /// If somebody has set the root of one of the interfaces, another agent is at work, or the kernel
    /// refuses. Then nothing has changed.
    pub fn install(
        &mut self,
        interfaces: &BTreeSet<String>,
        ceiling: Span,
    ) -> Result<BTreeSet<String>, ActuatorError> {
        self.ceiling = ceiling;
        let queues = self.queues()?;
        if let Some(refusal) = interfaces.iter().find_map(|name| self.foreign(name, &queues)) {
            return Err(refusal);
        }
        self.take_table()?;
        let installed = self.install_roots(interfaces);
        if installed.is_err() {
            // The first error is the one to tell. What cannot be undone now, the guard removes.
            let removed = self.remove_roots();
            self.has_left = removed.and(self.drop_table()).is_err();
        }
        installed
    }

    /// Whether there is an interface of that name.
    pub fn has_interface(&self, name: &str) -> bool {
        self.interfaces.number(name).is_some()
    }

    /// Whether something may be there that it has made, and has not removed.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    fn install_roots(&mut self, interfaces: &BTreeSet<String>) -> Result<BTreeSet<String>, ActuatorError> {
        self.remove_roots()?;
        let mut absent = BTreeSet::new();
        for name in interfaces {
            self.add_root(name, &mut absent)?;
        }
        Ok(absent)
    }

    /// What the kernel holds of the agent's. The members all have the same time left; with no time left, they
    /// are not delayed until one is renewed.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn look(&mut self) -> Result<Present, ActuatorError> {
        let mut present = Present::default();
        let queues = self.queues()?;
        for root in queues.iter().filter(|queue| queue.is_our_root()) {
            let Some(name) = self.interfaces.name(root.interface) else { continue };
            let leaves = queues.iter().filter(|queue| queue.interface == root.interface);
            let leaves = leaves.filter_map(|queue| match queue.place {
                Place::Leaf(leaf) if queue.kind == "netem" => Some((leaf, (queue.delay, queue.is_waiting))),
                _ => None,
            });
            present.interfaces.insert(name, leaves.collect());
        }
        let left = self.left()?;
        let members = self.elements()?.into_iter();
        present.members = members.map(|(connection, leaf)| (connection, (leaf, left))).collect();
        present.classifies = self.is_there(table::look_for_chain())?;
        Ok(present)
    }

    /// Does the commands in their order. Returns the interfaces that are not there, or no longer have the
    /// agent's root queue: [`Self::look`] tells which, and the plan adds what they lack.
    ///
    /// # Errors
    /// If the kernel refuses a command. That one has changed nothing, or has moved some hundreds of very many
    /// connections; those before it are done.
    pub fn apply(&mut self, commands: &[Command]) -> Result<BTreeSet<String>, ActuatorError> {
        let mut absent = BTreeSet::new();
        for command in commands {
            match command {
                Command::AddRoot { interface } => self.add_root(interface, &mut absent)?,
                Command::AddLeaf { interface, leaf, delay } => {
                    self.add_leaf(interface, *leaf, *delay, &mut absent)?;
                }
                Command::SetDelay { interface, leaf, delay } => {
                    let limit = self.limit(interface);
                    let set = |number| queues::set_delay(interface, number, *leaf, *delay, limit);
                    self.change_queue(interface, set, &mut absent)?;
                }
                Command::RemoveLeaf { interface, leaf } => {
                    let remove = |number| queues::remove_class(interface, number, *leaf);
                    self.change_queue(interface, remove, &mut absent)?;
                }
                Command::Enter { leaf, connections } => self.move_to(connections, Some(*leaf))?,
                Command::Leave { connections } => self.move_to(connections, None)?,
                Command::Classify(classify) => self.classify(*classify)?,
            }
        }
        Ok(absent)
    }

    /// Removes everything of the agent's, from all interfaces, so that all is as it was before. Packets that
    /// wait in leaves are sent first. Works without an [install](Self::install), too.
    ///
    /// # Errors
    /// If another agent is at work, or the kernel refuses a part. The other parts are removed nevertheless.
    pub fn remove(&mut self) -> Result<(), ActuatorError> {
        if !self.has_table {
            self.take_table()?;
        }
        let classifies = self.classify(false);
        self.wait_for_leaves();
        let roots = self.remove_roots();
        let table = self.drop_table();
        let removed = classifies.and(roots).and(table);
        self.has_left = removed.is_err();
        removed
    }

    /// The interfaces that had the agent's root queue before the last [removal](Self::remove).
    pub fn removed(&self) -> &BTreeSet<String> {
        &self.removed
    }

    /// Waits until no leaf holds a packet, and not longer than a delay may last.
    fn wait_for_leaves(&mut self) {
        let some_wait = |queues: Vec<Queue>| {
            let roots = queues.iter().filter(|queue| queue.is_our_root());
            let ours: BTreeSet<_> = roots.map(|queue| queue.interface).collect();
            let mut waiting = queues.iter().filter(|queue| queue.is_waiting && queue.kind == "netem");
            waiting.any(|queue| matches!(queue.place, Place::Leaf(_)) && ours.contains(&queue.interface))
        };
        // What entered before a delay shrank may wait for the ceiling, which only the agent itself knows.
        let ceiling = if self.ceiling.is_zero() { HIGHEST_CEILING } else { self.ceiling };
        let most = Duration::from_nanos(ceiling.as_nanos()) + PAUSE;
        let mut waited = Duration::ZERO;
        while waited < most && self.queues().is_ok_and(some_wait) {
            thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    /// Somebody's queue for what this interface sends.
    fn foreign(&self, name: &str, queues: &[Queue]) -> Option<ActuatorError> {
        let number = self.interfaces.number(name)?;
        let mut own = queues.iter().filter(|queue| queue.interface == number);
        own.find(|queue| queue.is_foreign()).map(|queue| foreign_root(name, queue))
    }

    /// Whether the kernel has a kind of queue.
    fn try_kind(&mut self, kind: &str, module: &'static str) -> Result<(), ActuatorError> {
        match self.wire.ask(&Request::Queues(queues::try_kind(kind, module))) {
            Err(refusal) if refusal.errno == Errno::INVAL => Ok(()),
            result => Ok(result.map(|_| ())?),
        }
    }

    /// Whether the kernel would make the table with all that is ever in it.
    fn try_table(&mut self) -> Result<(), ActuatorError> {
        let all = [table::create(LASTS), table::classify(self.packets)].concat();
        self.ask_for_table(&Request::Trial(all))
    }

    /// Makes the table, which keeps other agents out until this process ends.
    fn take_table(&mut self) -> Result<(), ActuatorError> {
        self.ask_for_table(&Request::Transaction(table::create(LASTS)))?;
        (self.has_table, self.has_left) = (true, true);
        Ok(())
    }

    /// Asks for something that needs the table's name to be free.
    fn ask_for_table(&mut self, request: &Request) -> Result<(), ActuatorError> {
        match self.wire.ask(request) {
            // Which of the two the kernel says depends on whether the table has an owner.
            Err(refusal) if [Errno::EXIST, Errno::PERM].contains(&refusal.errno) => {
                let Ok(answer) = self.wire.ask(&Request::Look(table::look())) else {
                    return Err(refusal.into());
                };
                let owner = answer.iter().find_map(|(_, body)| table::owner(body));
                Err(owner.map_or(ActuatorError::ForeignTable, |port| ActuatorError::OtherAgent { port }))
            }
            result => Ok(result.map(|_| ())?),
        }
    }

    fn drop_table(&mut self) -> Result<(), ActuatorError> {
        self.wire.ask(&Request::Transaction(table::remove()))?;
        self.has_table = false;
        self.members.clear();
        Ok(())
    }

    /// Adds the agent's root queue to an interface that has none.
    fn add_root(&mut self, name: &str, absent: &mut BTreeSet<String>) -> Result<(), ActuatorError> {
        let Some(number) = self.interfaces.number(name) else {
            absent.insert(name.to_owned());
            return Ok(());
        };
        self.limits.remove(name); // it may be another interface of that name
        match self.wire.ask(&Request::Queues(queues::add_root(name, number))) {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.errno == Errno::NODEV => {
                absent.insert(name.to_owned());
                Ok(())
            }
            Err(refusal) if refusal.errno == Errno::EXIST => {
                let queues = self.queues()?;
                let mut roots =
                    queues.iter().filter(|queue| queue.interface == number && queue.place == Place::Root);
                match roots.find(|queue| queue.is_foreign()) {
                    Some(queue) => Err(foreign_root(name, queue)),
                    None => Ok(()), // it is ours
                }
            }
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Adds a leaf: its class and the queue of that, or none of the two.
    fn add_leaf(
        &mut self,
        name: &str,
        leaf: LeafId,
        delay: Span,
        absent: &mut BTreeSet<String>,
    ) -> Result<(), ActuatorError> {
        let limit = self.limit(name);
        let Some(number) = self.interfaces.number(name) else {
            absent.insert(name.to_owned());
            return Ok(());
        };
        let is_new = match self.wire.ask(&Request::Queues(queues::add_class(name, number, leaf))) {
            Ok(_) => true,
            Err(refusal) if refusal.errno == Errno::EXIST => false,
            Err(refusal) if is_absence(refusal.errno) => {
                absent.insert(name.to_owned());
                return Ok(());
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let added = self.wire.ask(&Request::Queues(queues::add_queue(name, number, leaf, delay, limit)));
        match added {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.errno == Errno::NODEV => {
                absent.insert(name.to_owned());
                Ok(())
            }
            Err(refusal) => {
                if is_new {
                    // The first error is the one to tell.
                    let _ = self.wire.ask(&Request::Queues(queues::remove_class(name, number, leaf)));
                }
                Err(refusal.into())
            }
        }
    }

    /// Sends a change of a leaf. An interface or a leaf that is not there is an ordinary answer.
    fn change_queue(
        &mut self,
        name: &str,
        change: impl Fn(u32) -> Message,
        absent: &mut BTreeSet<String>,
    ) -> Result<(), ActuatorError> {
        let Some(number) = self.interfaces.number(name) else {
            absent.insert(name.to_owned());
            return Ok(());
        };
        match self.wire.ask(&Request::Queues(change(number))) {
            Err(refusal) if is_absence(refusal.errno) => {
                absent.insert(name.to_owned());
                Ok(())
            }
            result => Ok(result.map(|_| ())?),
        }
    }

    /// Removes the agent's root queue from all interfaces that have it.
    fn remove_roots(&mut self) -> Result<(), ActuatorError> {
        self.removed.clear();
        let mut result = Ok(());
        for root in self.queues()?.iter().filter(|queue| queue.is_our_root()) {
            let Some(name) = self.interfaces.name(root.interface) else { continue };
            match self.wire.ask(&Request::Queues(queues::remove_root(&name, root.interface))) {
                Ok(_) => {
                    self.removed.insert(name);
                }
                Err(refusal) if is_absence(refusal.errno) => {}
                Err(refusal) => result = result.and(Err(refusal.into())),
            }
        }
        result
    }

    /// Moves connections to a leaf, or to none. Those that are there already are left alone. With a leaf, it
    /// also gives a sign of life, so that members are delayed from now on for [`LASTS`].
    fn move_to(
        &mut self,
        connections: &BTreeSet<Connection>,
        leaf: Option<LeafId>,
    ) -> Result<(), ActuatorError> {
        let elsewhere = |connection: &Connection| self.members.get(connection).copied() != leaf;
        let moving: Vec<_> = connections.iter().copied().filter(elsewhere).collect();
        let mut chunks = moving.chunks(MOST_AT_ONCE).peekable();
        loop {
            let chunk = chunks.next().unwrap_or_default();
            let known = chunk.iter().copied().filter(|connection| self.members.contains_key(connection));
            let mut transaction = members::remove(&known.collect::<Vec<_>>());
            if let Some(leaf) = leaf {
                transaction.extend(members::add(leaf, chunk));
                transaction.extend(alive::renew(self.sign));
            }
            self.ask_again(&Request::Transaction(transaction))?;
            if leaf.is_some() {
                self.sign = self.sign.other();
            }
            for connection in chunk {
                match leaf {
                    Some(leaf) => self.members.insert(*connection, leaf),
                    None => self.members.remove(connection),
                };
            }
            if chunks.peek().is_none() {
                return Ok(());
            }
        }
    }

    /// Asks again if a sign of life has expired in the middle of its renewal.
    fn ask_again(&mut self, request: &Request) -> Result<(), Refusal> {
        let mut repeats = 0;
        while let Err(refusal) = self.wire.ask(request) {
            if ![Errno::NOENT, Errno::EXIST].contains(&refusal.errno) || repeats == REPEATS {
                return Err(refusal);
            }
            repeats += 1;
        }
        Ok(())
    }

    /// How long members are delayed unless that is renewed.
    fn left(&mut self) -> Result<Span, ActuatorError> {
        let mut left = Span::ZERO;
        for sign in Sign::ALL {
            let answer = self.elements_of(alive::look(sign))?;
            left = answer.iter().filter_map(|(_, body)| alive::lasts(body)).max().unwrap_or(left).max(left);
        }
        Ok(left)
    }

    /// Adds or removes the rules that look packets up.
    fn classify(&mut self, classify: bool) -> Result<(), ActuatorError> {
        let (change, already) = if classify {
            (table::classify(self.packets), Errno::EXIST)
        } else {
            (table::stop_classifying(), Errno::NOENT)
        };
        match self.wire.ask(&Request::Transaction(change)) {
            Err(refusal) if refusal.errno == already => Ok(()),
            result => Ok(result.map(|_| ())?),
        }
    }

    /// All queues of all interfaces.
    fn queues(&mut self) -> Result<Vec<Queue>, ActuatorError> {
        let answer = self.wire.ask(&Request::Queues(queues::look()))?;
        Ok(answer.iter().filter_map(|(_, body)| Queue::read(body)).collect())
    }

    /// The elements of both maps.
    fn elements(&mut self) -> Result<BTreeMap<Connection, LeafId>, ActuatorError> {
        let mut elements = BTreeMap::new();
        for family in Family::ALL {
            let answer = self.elements_of(members::look(family))?;
            elements.extend(answer.iter().flat_map(|(_, body)| members::read(body)));
        }
        Ok(elements)
    }

    /// The elements of a set or a map. There are none if there is no table.
    fn elements_of(&mut self, look: Message) -> Result<Answer, ActuatorError> {
        match self.wire.ask(&Request::Look(look)) {
            Err(refusal) if refusal.errno == Errno::NOENT => Ok(Answer::new()),
            result => Ok(result?),
        }
    }

    fn is_there(&mut self, look: Message) -> Result<bool, ActuatorError> {
        match self.wire.ask(&Request::Look(look)) {
            Err(refusal) if refusal.errno == Errno::NOENT => Ok(false),
            result => Ok(result.map(|_| true)?),
        }
    }

    /// The room of a leaf. Some drivers take long to say how fast an interface is, so it is asked once.
    fn limit(&mut self, name: &str) -> u32 {
        let ceiling = self.ceiling;
        let limit = || queues::limit(interfaces::line_rate(name), ceiling);
        *self.limits.entry(name.to_owned()).or_insert_with(limit)
    }
}

/// Whether the kernel says that there is no such interface, queue or class.
fn is_absence(errno: Errno) -> bool {
    [Errno::NODEV, Errno::NOENT].contains(&errno)
}

fn foreign_root(name: &str, queue: &Queue) -> ActuatorError {
    let (interface, kind, handle) = (name.to_owned(), queue.kind.clone(), queue.handle);
    ActuatorError::ForeignRoot { interface, kind, handle }
}
