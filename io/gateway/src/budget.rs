//! A shard's part of the memory that requests may hold, and how it is divided among volumes.
//!
//! **Each volume owns a part that no other volume can use up.** The part of a volume with a promise is the
//! largest request of the protocol. So such a volume's next request gets in as soon as the volume's own
//! earlier requests are answered, however much other volumes hold. A volume without a promise owns less, if
//! there are many such volumes; see [`Budget::share_out`].
//!
//! **The rest is shared**, and is never less than one largest request. A request first uses the free bytes of
//! its volume's part. A request that the part cannot hold takes the remaining bytes from the shared rest.
//! While the shared rest has too few bytes, volumes wait in a line. The first volume of the line gets room
//! for one request. If more of its requests wait, it goes to the end of the line. So a volume with a hundred
//! waiting connections has one place in the line, as has a volume with one.
//!
//! Example: a shard has 1 GiB, one volume with an SLO and one without. Each owns 32 MiB; 960 MiB are shared.
//! A client of the second volume announces 64 writes of 32 MiB and does not send them. It holds 992 MiB, and
//! the volume with the SLO still has its 32 MiB.
//!
//! While the part and the shared rest are used up, a connection still has a small reserve of its own. So
//! within one volume, clients that hold everything slow the other clients down to small requests, and never
//! stop them.
//!
//! The sum of the bytes that are handed out and held never exceeds the total. If a reload makes the total or
//! a part smaller, requests keep the bytes that they have; the budget hands out nothing more until the sum
//! fits again.
//!
//! `Memory::admit` bounds the bytes that *one connection* may have in flight, before it asks the budget.

use slab::Slab;
use weir_sched::{Chain, SlotChains};

use crate::exports::LARGEST_REQUEST;

mod debt;

use debt::{Debt, Lender};

/// Bytes charged for a request on top of its data: its entries in the tables of gateway and engine.
pub(crate) const REQUEST_OVERHEAD: u64 = 512;

/// The most that a request is charged. The largest request is charged for its data alone, so that limits can
/// be counted in such requests.
pub(crate) const LARGEST: u64 = LARGEST_REQUEST as u64;

/// Bytes that a connection may hold beyond the budget: a request of 64 KiB, or some smaller ones.
pub(crate) const RESERVE: u64 = 64 * 1024 + REQUEST_OVERHEAD;

/// The message of a panic when a volume is missing.
const STAYS: &str = "a volume stays until it has no request and no connection";

/// The number of a volume in the budget.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct OwnerId(u32);

/// The size of the part that a volume owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The volume has a promise, and owns the largest request.
    Promised,
    /// The volume has no promise, and owns as much as every other such volume.
    Equal,
    /// The volume is being removed, and owns nothing.
    Nothing,
}

/// The bytes that a request holds: bytes of the budget, or of its connection's reserve.
///
/// A charge is handed on by value, from the request to its reply, and ends in [`Budget::give_back`]. So it
/// cannot be given back twice, and a debug build panics where a charge is lost.
#[must_use = "a charge is given back to its budget"]
#[derive(Debug)]
pub(crate) struct Charge {
    /// No more than [`LARGEST`]. A `u32`, because each request goes through the tables that hold charges.
    bytes: u32,
    owner: OwnerId,
    /// Whether the bytes are of the connection's reserve, and not of the budget.
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
    /// Bytes that were read and wait to be let in. They use the shared rest.
    held: u64,
    /// Bytes that are in no volume's part.
    shared: u64,
    /// Bytes that volumes use beyond their parts.
    shared_used: u64,
    owners: Slab<Owner>,
    /// The connections, each in the list of its volume.
    connections: SlotChains<usize>,
    /// By connection: its request that waits.
    waiters: SlotChains<Waiter>,
    /// By volume: its place in the line of the volumes with requests that wait.
    places: SlotChains<OwnerId>,
    line: Chain,
    /// Volumes that have waiting requests, and have got back some bytes of their part.
    eased: Vec<OwnerId>,
    lender: Lender,
}

#[derive(Debug)]
struct Owner {
    kind: Part,
    part: u64,
    used: u64,
    /// The volume's requests that wait, the oldest first.
    waiting: Chain,
    /// Whether the volume is in [`Budget::eased`].
    is_eased: bool,
    connections: Chain,
    /// The volume has gone; its entry stays until its last connection has gone.
    is_gone: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    connection: usize,
    owner: OwnerId,
    bytes: u64,
}

impl Owner {
    /// Whether `bytes` more fit into the part, without the shared rest.
    fn fits_in_part(&self, bytes: u64) -> bool {
        self.used + bytes <= self.part
    }

    /// The bytes of the shared rest that the volume would use if it used `used` bytes in all.
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

    /// Changes the total; requests keep the bytes that they have.
    pub(crate) fn set_total(&mut self, total: u64) {
        self.total = total;
        self.share_out();
    }

    /// Adds a volume.
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

    /// Changes the size of the volume's part; its requests keep the bytes that they have.
    pub(crate) fn set_part(&mut self, owner: OwnerId, kind: Part) {
        self.owner_mut(owner).kind = kind;
        self.share_out();
    }

    /// Removes a volume that has no request at its device any more. Its connections may still have replies to
    /// write.
    pub(crate) fn remove_owner(&mut self, owner: OwnerId) {
        let gone = self.owner_mut(owner);
        (gone.kind, gone.is_gone) = (Part::Nothing, true);
        self.forget_if_unused(owner);
        self.share_out();
    }

    /// Adds a connection to the volume.
    pub(crate) fn join(&mut self, owner: OwnerId, connection: usize) {
        let joined = self.owners.get_mut(owner.0 as usize).expect(STAYS);
        self.connections.push_back(&mut joined.connections, slot(connection), connection);
    }

    /// Removes a connection, after all of its charges were given back.
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
    /// shared, so that every request can get in some time. Half of the remaining bytes is divided equally
    /// among the volumes without a promise, up to a largest request each. The other half is for the busy
    /// volumes among them.
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
    /// `None`: the request has to wait, and [`Budget::poll_granted`] will name the connection.
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

    /// The next connection whose waiting request gets room, and the charge for that request.
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

    /// Gives back the bytes of a charge; returns how many of them belong to the connection's reserve.
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

    /// Takes the connection's waiting request out of the line, if it has one.
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

/// Bytes that were read and wait.
impl Budget {
    /// Whether there is room to read `bytes` that may have to wait. One largest request of the shared rest
    /// stays free of such bytes, so that they cannot lock out the requests for which they wait.
    pub(crate) fn may_hold(&self, bytes: usize) -> bool {
        self.shared_used + self.held + bytes as u64 + LARGEST <= self.shared
            && self.used + self.held + bytes as u64 <= self.total
    }

    /// Counts `bytes` that were read.
    pub(crate) fn hold(&mut self, bytes: usize) {
        self.held += bytes as u64;
    }

    /// Counts `bytes` no more that were held.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.held = self.held.checked_sub(bytes as u64).expect("nobody releases more than is held");
    }

    /// Whether a request waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.line.is_empty()
    }

    /// Bytes that no request uses now.
    pub(crate) fn unused(&self) -> u64 {
        self.total.saturating_sub(self.used + self.held)
    }
}

fn slot(key: usize) -> u32 {
    u32::try_from(key).expect("connections and volumes are fewer than 2^32")
}

#[cfg(test)]
mod tests;
