//! A shard's part of the memory that requests may hold, and how it is divided among volumes.
//!
//! **Each volume owns a part that no other volume can use up.** The part of a volume with a promise is the
//! largest request of the protocol: whatever others hold, each request of such a volume gets in as soon as
//! the volume's own earlier requests are answered. A volume without a promise owns less, if there are many of
//! them; see [`Budget::share_out`].
//!
//! **The rest is shared**, and is never less than one largest request. A request first uses what its volume's
//! part has left. What the part cannot hold comes from the shared rest. When that has too little left,
//! volumes wait in a line. The first volume of the line gets room for one request, and goes to the end of the
//! line if it has more that wait. So one volume's hundred connections that wait stand before another volume's
//! one connection only once.
//!
//! Example: a shard has 1 GiB, one volume with an SLO and one without. Each owns 32 MiB; 960 MiB are shared.
//! A client of the second volume announces 64 writes of 32 MiB and does not send them. It holds 992 MiB, and
//! the volume with the SLO still has its 32 MiB.
//!
//! When all this is used up, a connection still has a small reserve of its own. So within one volume, clients
//! that hold everything slow the others down to small requests, and never stop them.
//!
//! The sum of what is handed out and held never exceeds the total. After a reload has made the total or a
//! part smaller, what was handed out before stays so; nothing more is handed out until the sum fits again.

//!
//! What *one connection* may have in flight is bounded where a request is let in: `Memory::admit`.

use slab::Slab;
use weir_sched::{Chain, SlotChains};

use crate::exports::LARGEST_REQUEST;

mod debt;

use debt::{Debt, Lender};

/// Bytes charged for a request on top of its data: its entries in the tables of gateway and engine.
pub(crate) const REQUEST_OVERHEAD: u64 = 512;

/// The most that a request is charged: the largest request is charged for its data alone, so that limits can
/// be counted in such requests.
pub(crate) const LARGEST: u64 = LARGEST_REQUEST as u64;

/// Bytes that a connection may hold beyond the budget: a request of 64 KiB, or some smaller ones.
pub(crate) const RESERVE: u64 = 64 * 1024 + REQUEST_OVERHEAD;

/// Why a volume that is named is there.
const STAYS: &str = "a volume stays until it has no request and no connection";

/// A volume, as the budget knows it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct OwnerId(u32);

/// What a volume owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// It is promised something: the largest request.
    Promised,
    /// Nothing is promised: as much as all such volumes.
    Equal,
    /// It is on its way out: nothing.
    Nothing,
}

/// What a request holds: bytes of the budget, or of its connection's reserve.
///
/// A charge is handed on by value, from the request to its reply, and ends in [`Budget::give_back`]. So it
/// cannot be given back twice, and a debug build panics where a charge is lost.
#[must_use = "a charge is given back to its budget"]
#[derive(Debug)]
pub(crate) struct Charge {
    /// No more than [`LARGEST`]; small, as it is in tables that each request goes through.
    bytes: u32,
    owner: OwnerId,
    /// It is of the connection's reserve, and not of the budget.
    is_reserve: bool,
    debt: Debt,
}

impl Charge {
    /// The part taken from the reserve of the connection.
    pub(crate) fn reserve(&self) -> u64 {
        if self.is_reserve { self.bytes() } else { 0 }
    }

    /// The bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.into()
    }
}

/// A shard's bytes: how many each volume owns and uses, and the volumes and requests that wait for more.
#[derive(Debug)]
pub(crate) struct Budget {
    total: u64,
    /// Bytes that requests hold.
    used: u64,
    /// Bytes that were read and wait to be let in. They are of the shared rest.
    held: u64,
    /// What is no volume's part.
    shared: u64,
    /// What volumes use beyond their parts.
    shared_used: u64,
    owners: Slab<Owner>,
    /// The connections, in the list of their volume.
    connections: SlotChains<usize>,
    /// By connection: its request that waits.
    waiters: SlotChains<Waiter>,
    /// By volume: the line of the volumes with requests that wait.
    places: SlotChains<OwnerId>,
    line: Chain,
    /// Volumes with requests that wait, of whose part something was given back.
    eased: Vec<OwnerId>,
    lender: Lender,
}

#[derive(Debug)]
struct Owner {
    kind: Part,
    part: u64,
    used: u64,
    /// Its requests that wait, the first first.
    waiting: Chain,
    /// In [`Budget::eased`].
    is_eased: bool,
    connections: Chain,
    /// The volume has gone; the last of its connections goes yet.
    is_gone: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    connection: usize,
    owner: OwnerId,
    bytes: u64,
}

impl Owner {
    /// Whether `bytes` more need nothing of the shared rest.
    fn fits_in_part(&self, bytes: u64) -> bool {
        self.used + bytes <= self.part
    }

    /// What it would use of the shared rest if it used `used`.
    fn beyond(&self, used: u64) -> u64 {
        used.saturating_sub(self.part)
    }
}

/// Volumes and their parts.
impl Budget {
    /// A budget of `total` bytes.
    pub(crate) fn new(total: u64) -> Self {
        Self {
            total,
            used: 0,
            held: 0,
            shared: total,
            shared_used: 0,
            owners: Slab::new(),
            connections: SlotChains::new(),
            waiters: SlotChains::new(),
            places: SlotChains::new(),
            line: Chain::EMPTY,
            eased: Vec::new(),
            lender: Lender::default(),
        }
    }

    /// Changes the size; what is handed out already stays so.
    pub(crate) fn set_total(&mut self, total: u64) {
        self.total = total;
        self.share_out();
    }

    /// A volume has come.
    pub(crate) fn add_owner(&mut self, kind: Part) -> OwnerId {
        let owner = Owner {
            kind,
            part: 0,
            used: 0,
            waiting: Chain::EMPTY,
            is_eased: false,
            connections: Chain::EMPTY,
            is_gone: false,
        };
        let id = OwnerId(slot(self.owners.insert(owner)));
        self.share_out();
        id
    }

    /// What the volume owns has changed; what it holds stays so.
    pub(crate) fn set_part(&mut self, owner: OwnerId, kind: Part) {
        self.owner_mut(owner).kind = kind;
        self.share_out();
    }

    /// The volume has gone, and all that was at its device. Its connections may still have replies to write.
    pub(crate) fn remove_owner(&mut self, owner: OwnerId) {
        let gone = self.owner_mut(owner);
        (gone.kind, gone.is_gone) = (Part::Nothing, true);
        self.forget_if_unused(owner);
        self.share_out();
    }

    /// A connection has come to the volume.
    pub(crate) fn join(&mut self, owner: OwnerId, connection: usize) {
        let joined = self.owners.get_mut(owner.0 as usize).expect(STAYS);
        self.connections.push_back(&mut joined.connections, slot(connection), connection);
    }

    /// A connection has gone, after what it held was given back.
    pub(crate) fn leave(&mut self, owner: OwnerId, connection: usize) {
        self.forget(connection);
        let left = self.owners.get_mut(owner.0 as usize).expect(STAYS);
        self.connections.remove(&mut left.connections, slot(connection));
        self.forget_if_unused(owner);
    }

    /// The connections of the volume.
    pub(crate) fn connections(&self, owner: OwnerId) -> impl Iterator<Item = usize> {
        self.connections.of(&self.owner(owner).connections).copied()
    }

    fn forget_if_unused(&mut self, owner: OwnerId) {
        let left = self.owner(owner);
        if left.is_gone && left.connections.is_empty() {
            self.eased.retain(|eased| *eased != owner);
            self.owners.remove(owner.0 as usize);
        }
    }

    /// Gives each volume its part. A volume with a promise owns a largest request. One largest request stays
    /// shared, so that every request can get in some time. Half of what is then left is dealt out equally to
    /// the volumes without a promise, up to a largest request each; the other half is for the busy ones
    /// among them.
    fn share_out(&mut self) {
        let count = |kind| self.owners.iter().filter(|(_, owner)| owner.kind == kind).count() as u64;
        let (promised, others) = (count(Part::Promised), count(Part::Equal));
        let rest = self.total.saturating_sub(promised * LARGEST);
        let equal = (rest.saturating_sub(LARGEST) / (2 * others).max(1)).min(LARGEST);
        self.shared = rest - equal * others;
        self.shared_used = 0;
        for (key, owner) in &mut self.owners {
            owner.part = match owner.kind {
                Part::Promised => LARGEST,
                Part::Equal => equal,
                Part::Nothing => 0,
            };
            self.shared_used += owner.beyond(owner.used);
            if !owner.waiting.is_empty() && !owner.is_eased {
                owner.is_eased = true;
                self.eased.push(OwnerId(slot(key)));
            }
        }
    }

    fn owner(&self, owner: OwnerId) -> &Owner {
        self.owners.get(owner.0 as usize).expect(STAYS)
    }

    fn owner_mut(&mut self, owner: OwnerId) -> &mut Owner {
        self.owners.get_mut(owner.0 as usize).expect(STAYS)
    }
}

/// Requests get in, wait, and give back.
impl Budget {
    /// Takes `bytes` for a request of the connection, which holds `reserve_used` bytes of its reserve.
    /// `None`: it has to wait, and [`Budget::poll_granted`] will name it.
    pub(crate) fn take(
        &mut self,
        owner: OwnerId,
        connection: usize,
        bytes: u64,
        reserve_used: u64,
    ) -> Option<Charge> {
        let asks = self.owner(owner);
        let is_next = asks.waiting.is_empty() && (self.line.is_empty() || asks.fits_in_part(bytes));
        if is_next && self.fits(asks, bytes) {
            return Some(self.hand_out(owner, bytes));
        }
        if reserve_used + bytes <= RESERVE {
            self.forget(connection);
            return Some(self.charge(owner, bytes, true));
        }
        self.wait(Waiter { connection, owner, bytes });
        None
    }

    /// A connection whose request waited, and what it holds now.
    pub(crate) fn poll_granted(&mut self) -> Option<(usize, Charge)> {
        while let Some(owner) = self.eased.last().copied() {
            let (first, eases) = (self.first_waiter(owner), self.owner(owner));
            if let Some(waiter) =
                first.filter(|waiter| eases.fits_in_part(waiter.bytes) && self.fits(eases, waiter.bytes))
            {
                self.forget(waiter.connection);
                return Some((waiter.connection, self.hand_out(owner, waiter.bytes)));
            }
            self.eased.pop();
            self.owner_mut(owner).is_eased = false;
        }
        let owner = *self.places.front(&self.line)?;
        let waiter = self.first_waiter(owner).filter(|waiter| self.fits(self.owner(owner), waiter.bytes))?;
        self.forget(waiter.connection);
        if self.places.get(owner.0).is_some() {
            self.places.remove(&mut self.line, owner.0);
            self.places.push_back(&mut self.line, owner.0, owner);
        }
        Some((waiter.connection, self.hand_out(owner, waiter.bytes)))
    }

    /// Gives back what a request held; returns how much of it belongs to the connection's reserve.
    pub(crate) fn give_back(&mut self, charge: Charge) -> u64 {
        let Charge { bytes, owner: id, is_reserve, debt } = charge;
        debt.pay();
        let bytes = u64::from(bytes);
        if is_reserve {
            return bytes;
        }
        let owner = self.owners.get_mut(id.0 as usize).expect(STAYS);
        let left = owner.used.checked_sub(bytes).expect("a charge is given back once");
        self.shared_used -= owner.beyond(owner.used) - owner.beyond(left);
        self.used -= bytes;
        owner.used = left;
        if !owner.waiting.is_empty() && !owner.is_eased {
            owner.is_eased = true;
            self.eased.push(id);
        }
        0
    }

    /// The connection waits no more, if it did.
    pub(crate) fn forget(&mut self, connection: usize) {
        let slot = slot(connection);
        let Some(Waiter { owner, .. }) = self.waiters.get(slot).copied() else { return };
        let left = self.owners.get_mut(owner.0 as usize).expect(STAYS);
        self.waiters.remove(&mut left.waiting, slot);
        if left.waiting.is_empty() {
            self.places.remove(&mut self.line, owner.0);
        }
    }

    fn wait(&mut self, waiter: Waiter) {
        let (owner, slot) = (waiter.owner, slot(waiter.connection));
        if self.waiters.get(slot).is_some() {
            return;
        }
        let waits = self.owners.get_mut(owner.0 as usize).expect(STAYS);
        if waits.waiting.is_empty() {
            self.places.push_back(&mut self.line, owner.0, owner);
        }
        self.waiters.push_back(&mut waits.waiting, slot, waiter);
    }

    fn first_waiter(&self, owner: OwnerId) -> Option<Waiter> {
        self.waiters.front(&self.owner(owner).waiting).copied()
    }

    fn fits(&self, owner: &Owner, bytes: u64) -> bool {
        let more = owner.beyond(owner.used + bytes) - owner.beyond(owner.used);
        (more == 0 || self.shared_used + self.held + more <= self.shared)
            && self.used + self.held + bytes <= self.total
    }

    fn charge(&self, owner: OwnerId, bytes: u64, is_reserve: bool) -> Charge {
        let bytes = u32::try_from(bytes).expect("no request is charged more than the largest, of 32 MiB");
        Charge { bytes, owner, is_reserve, debt: self.lender.lend() }
    }

    fn hand_out(&mut self, id: OwnerId, bytes: u64) -> Charge {
        let owner = self.owners.get_mut(id.0 as usize).expect(STAYS);
        self.shared_used += owner.beyond(owner.used + bytes) - owner.beyond(owner.used);
        owner.used += bytes;
        self.used += bytes;
        self.charge(id, bytes, false)
    }
}

/// What was read and waits.
impl Budget {
    /// Whether there is room to read `bytes` that may have to wait. One largest request of the shared rest is
    /// kept free of them, so that they cannot lock out the requests for which they wait.
    pub(crate) fn may_hold(&self, bytes: usize) -> bool {
        self.shared_used + self.held + bytes as u64 + LARGEST <= self.shared
            && self.used + self.held + bytes as u64 <= self.total
    }

    /// Counts `bytes` that were read.
    pub(crate) fn hold(&mut self, bytes: usize) {
        self.held += bytes as u64;
    }

    /// Counts them no more.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.held = self.held.checked_sub(bytes as u64).expect("nobody releases more than is held");
    }

    /// Whether a request waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.line.is_empty()
    }

    /// What no request uses now.
    pub(crate) fn unused(&self) -> u64 {
        self.total.saturating_sub(self.used + self.held)
    }
}

fn slot(key: usize) -> u32 {
    u32::try_from(key).expect("connections and volumes are fewer than 2^32")
}

#[cfg(test)]
mod tests;
