//! What each gateway may be holding, so that the sum of what all of them hold never exceeds what there is.
//!
//! A message that was sent may be in force already, may come to be, or may be lost: until its number or a
//! later one is acknowledged, a gateway may hold what it acknowledged last or anything sent since. The ledger
//! counts the most of these. A cut therefore makes room when it is acknowledged, or when the lease of what
//! was held before is over; and a raise is sent only as far as there is room. To count what was sent last
//! instead would let two gateways hold the same place whenever the raise of one overtakes the cut of the
//! other.
//!
//! The same is done for the total, for which a gateway counts with the most that *one* of its messages grants
//! all its volumes, and for the limits of each volume on its own.
//!
//! **Whole numbers.** Grants are whole numbers, and each is counted as it was sent. So the sum is exact, and
//! the ledger compares it with its limit without a tolerance.
//!
//! **More than there is.** When a limit falls, or a gateway returns that was counted with less, more may be
//! held than there is. Until that is over, no message grants more than the one before it: if those sent in
//! the first moment fit, then all that are sent until the excess is over fit.
//!
//! **Gateways that are away.** A gateway whose last acknowledgement answers a message sent a lease ago is
//! counted with its fallback as well, which it takes when it has been alone for [`ALONE_AFTER`] leases. What
//! was granted to others before that moment is over one lease later, long before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weir_model::{Instant, Span};

use crate::amounts::{Amounts, Bounds, Holding, VolumeKey};
use crate::bound::Bound;

/// After how many leases without a word a gateway takes its whole fallback: one until it is counted with it,
/// an interval until all others are told, one until what they held before is over; and a margin.
pub(crate) const ALONE_AFTER: u64 = 3;

/// A gateway, by the place of its name among the controller's.
pub(crate) type GatewayKey = u64;

/// Messages to a gateway that may be unacknowledged at a time; after that it is sent nothing.
const MOST_UNACKNOWLEDGED: usize = 16;

/// Runs of a gateway that are counted each for itself, beside the one that is connected.
const MOST_ASIDE: usize = 4;

/// What each gateway may be holding.
#[derive(Debug)]
pub(crate) struct GrantLedger {
    accounts: BTreeMap<GatewayKey, Account>,
    total: u32,
    /// By volume, for those that have one.
    limits: BTreeMap<VolumeKey, Bounds>,
    /// What was counted last, and when: a batch of messages is sent at one instant.
    counted: Option<(Instant, Counted)>,
}

/// What a gateway may be holding.
#[derive(Debug)]
struct Account {
    /// What it acknowledged last, or said that it holds, and what was sent since.
    possible: VecDeque<Sent>,
    /// The volumes that it has.
    volumes: BTreeSet<VolumeKey>,
    /// Until when nothing is known of it, so that it may hold anything.
    unknown_until: Instant,
    /// From when on it is counted with its fallback.
    alone_from: Instant,
}

/// What a gateway was told.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The message's number.
    pub number: u64,
    /// When it was sent.
    pub at: Instant,
    /// When its lease is over at the latest.
    pub until: Instant,
    /// What it grants.
    pub grants: Holding,
    /// The part that is always left for the gateway.
    pub fallback: Holding,
}

/// The most that a gateway can hold, by volume.
#[derive(Debug)]
pub(crate) struct Known {
    /// Now, or when it is away.
    pub grants: Holding,
    /// When it is away.
    pub fallback: Holding,
    /// When its lease is over at the latest.
    pub until: Instant,
}

/// Everything that may be held at an instant.
#[derive(Debug)]
pub(crate) struct Counted {
    by_gateway: BTreeMap<GatewayKey, (u64, Holding)>,
    requests: Bound,
    volumes: BTreeMap<VolumeKey, Bounds>,
}

impl GrantLedger {
    pub(crate) fn new() -> Self {
        Self { accounts: BTreeMap::new(), total: 0, limits: BTreeMap::new(), counted: None }
    }

    /// How many requests there are to share out.
    pub(crate) fn set_total(&mut self, total: u32) {
        self.total = total;
    }

    /// What all gateways together may do for a volume.
    pub(crate) fn set_limits(&mut self, volume: VolumeKey, limits: Bounds) {
        self.counted = None;
        self.limits.insert(volume, limits);
    }

    /// A gateway of which nothing is known: until `unknown_until` it may hold anything, and then what is
    /// always left for it, `fallback`: as this controller would have told it, which is wrong if another one
    /// did, of another total.
    pub(crate) fn add(
        &mut self,
        now: Instant,
        gateway: GatewayKey,
        unknown_until: Instant,
        fallback: Holding,
    ) {
        let volumes = fallback.keys().copied().collect();
        let fallen = Sent { number: 0, at: now, until: now, grants: fallback.clone(), fallback };
        let possible = VecDeque::from([fallen]);
        self.counted = None;
        let account = Account { possible, volumes, unknown_until, alone_from: now };
        self.accounts.insert(gateway, account);
    }

    /// A gateway on a new stream: what it says that it holds takes the place of what was sent on an old one.
    pub(crate) fn connect(&mut self, gateway: GatewayKey, held: Sent) {
        self.counted = None;
        let Some(account) = self.accounts.get_mut(&gateway) else { return };
        account.volumes = held.grants.keys().copied().collect();
        account.possible = VecDeque::from([held]);
        account.unknown_until = Instant::ORIGIN;
    }

    /// What another run than the one that is connected may hold under a gateway's name: this, and what was
    /// set aside before, each until its lease is over. Counted as if it were a gateway of its own. No run
    /// serves more than `most_volumes`.
    pub(crate) fn set_aside(&mut self, now: Instant, gateway: GatewayKey, held: Sent, most_volumes: usize) {
        self.counted = None;
        let mut possible = self.accounts.remove(&gateway).map(|account| account.possible).unwrap_or_default();
        possible.retain(|before| before.until > now && !before.is_within(&held));
        if possible.len() == MOST_ASIDE {
            // Of what is too much the latest is put together. The first, which may be much, ends when it
            // ends.
            let last = possible.pop_back().into_iter().flat_map(|last| last.grants);
            possible.push_back(held.with(last));
        } else {
            possible.push_back(held);
        }
        let volumes_of = |possible: &VecDeque<Sent>| -> BTreeSet<VolumeKey> {
            possible.iter().flat_map(|held| held.grants.keys().copied()).collect()
        };
        let mut volumes = volumes_of(&possible);
        if volumes.len() > most_volumes {
            // No two runs of one gateway differ so much: the volumes are made up, and only the last are
            // counted.
            possible.drain(..possible.len() - 1);
            volumes = volumes_of(&possible);
        }
        let account =
            Account { possible, volumes, unknown_until: Instant::ORIGIN, alone_from: Instant::FAR_FUTURE };
        self.accounts.insert(gateway, account);
    }

    /// The most that a gateway can hold now or come to hold; `None` while nothing is known of it.
    pub(crate) fn known(&self, now: Instant, gateway: GatewayKey) -> Option<Known> {
        let account = self.accounts.get(&gateway).filter(|account| now >= account.unknown_until)?;
        let mut fallback = Holding::new();
        for (volume, amounts) in account.possible.iter().flat_map(|sent| account.restricted(&sent.fallback)) {
            let most = fallback.entry(volume).or_insert(amounts);
            *most = most.max(amounts);
        }
        Some(Known { grants: account.most(now, true).1, fallback, until: account.until() })
    }

    /// The volumes that a gateway is counted with.
    pub(crate) fn volumes(&self, gateway: GatewayKey) -> BTreeSet<VolumeKey> {
        self.accounts.get(&gateway).map(|account| account.volumes.clone()).unwrap_or_default()
    }

    /// Forgets the limits of all volumes but those that are needed.
    pub(crate) fn retain_limits(&mut self, is_needed: impl Fn(VolumeKey) -> bool) {
        self.limits.retain(|volume, _| is_needed(*volume));
    }

    /// The volumes that a gateway has.
    pub(crate) fn set_volumes(&mut self, gateway: GatewayKey, volumes: BTreeSet<VolumeKey>) {
        self.counted = None;
        if let Some(account) = self.accounts.get_mut(&gateway) {
            account.volumes = volumes;
        }
    }

    /// A message was sent.
    pub(crate) fn record(&mut self, gateway: GatewayKey, sent: Sent) {
        if let Some(account) = self.accounts.get_mut(&gateway) {
            account.possible.push_back(sent);
        }
        self.recount(gateway);
    }

    /// A gateway holds message `number`; its lease is `lease`. Whether that was not known before.
    pub(crate) fn acknowledge(&mut self, gateway: GatewayKey, number: u64, lease: Span) -> bool {
        let Some(account) = self.accounts.get_mut(&gateway) else { return false };
        let Some(place) = account.possible.iter().skip(1).position(|sent| sent.number == number) else {
            return false;
        };
        account.possible.drain(..=place);
        account.alone_from = account.possible[0].at + lease;
        self.recount(gateway);
        true
    }

    /// Whoever is not to be counted any more once its lease is over, for it is no gateway of this controller.
    pub(crate) fn remove(&mut self, gateway: GatewayKey) {
        self.counted = None;
        self.accounts.remove(&gateway);
    }

    /// Whether a gateway has acknowledged something that is not too old to build on.
    pub(crate) fn hears(&self, now: Instant, gateway: GatewayKey) -> bool {
        self.accounts.get(&gateway).is_some_and(|account| now < account.alone_from)
    }

    /// Whether a gateway has so much unacknowledged that it is to be told no more.
    pub(crate) fn is_behind(&self, gateway: GatewayKey) -> bool {
        self.accounts.get(&gateway).is_none_or(|account| account.possible.len() > MOST_UNACKNOWLEDGED)
    }

    /// When the last lease of a gateway is over.
    pub(crate) fn until(&self, gateway: GatewayKey) -> Option<Instant> {
        self.accounts.get(&gateway).map(Account::until)
    }

    /// What a gateway was told last, as it is in force if it came there.
    pub(crate) fn told(&self, now: Instant, gateway: GatewayKey) -> Holding {
        self.accounts.get(&gateway).map(|account| account.latest(now)).unwrap_or_default()
    }

    /// What is left for a gateway that is away: the most that it may hold and that it will hold.
    pub(crate) fn reserved(&self, now: Instant, gateway: GatewayKey) -> (u64, Holding) {
        self.accounts.get(&gateway).map(|account| account.most(now, true)).unwrap_or_default()
    }

    /// What may be held at `now`.
    pub(crate) fn count(&self, now: Instant) -> Counted {
        let by_gateway =
            self.accounts.iter().map(|(key, account)| (*key, account.most(now, false))).collect();
        let mut counted = Counted::of(by_gateway);
        if self.accounts.values().any(|account| now < account.unknown_until) {
            counted.requests = Bound::Unlimited;
            let unlimited = self.limits.keys().map(|volume| (*volume, Bounds::UNLIMITED));
            counted.volumes.extend(unlimited);
        }
        counted
    }

    /// What of `wanted` may be sent to a gateway now: all cuts, and of the raises what there is room for.
    pub(crate) fn permit(&mut self, now: Instant, gateway: GatewayKey, wanted: &Holding) -> Holding {
        let counted = self.counted.take().filter(|(at, _)| *at == now);
        let (_, counted) = counted.unwrap_or_else(|| (now, self.count(now)));
        let permitted = self.permitted(now, gateway, wanted, &counted);
        self.counted = Some((now, counted));
        permitted
    }

    fn permitted(&self, now: Instant, gateway: GatewayKey, wanted: &Holding, counted: &Counted) -> Holding {
        let told = self.told(now, gateway);
        let told_of = |volume: &VolumeKey| told.get(volume).copied().unwrap_or(Amounts::UNTOLD);
        let nothing = (0, Holding::new());
        let (most, cells) = counted.by_gateway.get(&gateway).unwrap_or(&nothing);
        let mut permitted: Holding = wanted
            .iter()
            .map(|(volume, wanted)| {
                let cell = cells.get(volume).copied().unwrap_or(Amounts::UNTOLD);
                let all = counted.volumes.get(volume).copied().unwrap_or(cell.into());
                let limit = self.limits.get(volume).copied().unwrap_or(Bounds::UNLIMITED);
                (*volume, wanted.within(ceiling(limit, all, cell, told_of(volume))))
            })
            .collect();
        let total = Bound::AtMost(self.total.into());
        let told_sum = sum(permitted.keys().map(|volume| told_of(volume).requests));
        let kept = sum(permitted.iter().map(|(v, a)| a.requests.min(told_of(v).requests)));
        let room = room(total, counted.requests, Bound::AtMost(*most), Bound::AtMost(told_sum));
        let mut left = room.beside(Bound::AtMost(kept));
        for (volume, amounts) in &mut permitted {
            let before = told_of(volume).requests.min(amounts.requests);
            let raise = left.of(amounts.requests - before);
            amounts.requests = before + raise;
            left = left.beside(Bound::AtMost(raise.into()));
        }
        permitted
    }

    /// Counts one gateway anew in what was counted last.
    fn recount(&mut self, gateway: GatewayKey) {
        let Some((now, mut counted)) = self.counted.take() else { return };
        let Some(account) = self.accounts.get(&gateway) else { return };
        if counted.replace(gateway, &account.most(now, false)).is_some() {
            self.counted = Some((now, counted));
        }
    }
}

impl Account {
    /// When the last lease is over.
    fn until(&self) -> Instant {
        self.possible.iter().map(|sent| sent.until).max().unwrap_or(Instant::ORIGIN)
    }

    /// The most that it may hold: in sum of requests, and by volume of everything; `reserved`: also in the
    /// future, alone.
    fn most(&self, now: Instant, reserved: bool) -> (u64, Holding) {
        let alone = reserved || now >= self.alone_from;
        let holdings = self.possible.iter().flat_map(|sent| {
            [Some(self.restricted(&sent.in_force(now))), alone.then(|| self.restricted(&sent.fallback))]
        });
        let (mut most, mut cells) = (0, Holding::new());
        for holding in holdings.flatten() {
            most = most.max(sum(holding.values().map(|amounts| amounts.requests)));
            for (volume, amounts) in holding {
                let cell = cells.entry(volume).or_insert(amounts);
                *cell = cell.max(amounts);
            }
        }
        (most, cells)
    }

    /// What it was told last.
    fn latest(&self, now: Instant) -> Holding {
        self.possible.back().map(|sent| self.restricted(&sent.in_force(now))).unwrap_or_default()
    }

    /// The part of a holding that is about the volumes that it has.
    fn restricted(&self, holding: &Holding) -> Holding {
        let amounts = |volume: &VolumeKey| holding.get(volume).copied().unwrap_or(Amounts::UNTOLD);
        self.volumes.iter().map(|volume| (*volume, amounts(volume))).collect()
    }
}

impl Sent {
    /// Whether another one holds as much of everything, for as long.
    fn is_within(&self, other: &Self) -> bool {
        let covered = |(volume, amounts): (&VolumeKey, &Amounts)| {
            other.grants.get(volume).is_some_and(|other| !amounts.is_more_than(*other))
        };
        self.until <= other.until && self.grants.iter().all(covered)
    }

    /// The same, and of each volume at least this.
    fn with(mut self, others: impl Iterator<Item = (VolumeKey, Amounts)>) -> Self {
        for (volume, amounts) in others {
            let most = self.grants.entry(volume).or_insert(amounts);
            *most = most.max(amounts);
        }
        self
    }

    /// What is in force of it once its lease is over, too.
    fn in_force(&self, now: Instant) -> Holding {
        if now < self.until {
            return self.grants.clone();
        }
        let fallback = |volume| self.fallback.get(volume).copied().unwrap_or(Amounts::UNTOLD);
        self.grants.iter().map(|(volume, amounts)| (*volume, amounts.min(fallback(volume)))).collect()
    }
}

impl Counted {
    /// Everything that may be held, in requests.
    pub(crate) const fn requests(&self) -> Bound {
        self.requests
    }

    /// What a gateway may be holding, in requests.
    pub(crate) fn requests_of(&self, gateway: GatewayKey) -> u64 {
        self.by_gateway.get(&gateway).map_or(0, |(most, _)| *most)
    }

    /// Everything that so much at each gateway comes to.
    fn of(by_gateway: BTreeMap<GatewayKey, (u64, Holding)>) -> Self {
        let requests =
            by_gateway.values().fold(Bound::AtMost(0), |sum, (most, _)| sum.plus(Bound::AtMost(*most)));
        let mut volumes = BTreeMap::new();
        for (volume, amounts) in by_gateway.values().flat_map(|(_, cells)| cells) {
            let sum = volumes.entry(*volume).or_insert(Bounds::NONE);
            *sum = sum.plus((*amounts).into());
        }
        Self { by_gateway, requests, volumes }
    }

    /// Puts one gateway's part in the place of what it was. `None` if that cannot be done: from an unlimited
    /// sum no unlimited part can be taken away.
    fn replace(&mut self, gateway: GatewayKey, most: &(u64, Holding)) -> Option<()> {
        let before = self.by_gateway.insert(gateway, most.clone())?;
        self.requests = replaced(self.requests, Bound::AtMost(before.0), Bound::AtMost(most.0))?;
        for (volume, after) in &most.1 {
            let (sum, before) = (self.volumes.get_mut(volume)?, before.1.get(volume)?);
            *sum = Bounds {
                requests: replaced(
                    sum.requests,
                    Bound::AtMost(before.requests.into()),
                    Bound::AtMost(after.requests.into()),
                )?,
                iops: replaced(sum.iops, before.iops, after.iops)?,
                bandwidth: replaced(sum.bandwidth, before.bandwidth, after.bandwidth)?,
            };
        }
        (before.1.len() == most.1.len()).then_some(())
    }
}

/// A sum of which a part is no longer `before`, but `after`.
fn replaced(sum: Bound, before: Bound, after: Bound) -> Option<Bound> {
    // What was unlimited and stays so.
    if after == Bound::Unlimited { Some(after) } else { Some(sum.without(before)?.plus(after)) }
}

/// Of requests of volumes.
pub(crate) fn sum(requests: impl Iterator<Item = u32>) -> u64 {
    requests.map(u64::from).sum()
}

/// Up to where each amount of a volume may go at a gateway that is counted with `cell`, of `all`, and was
/// told `told`.
fn ceiling(limit: Bounds, all: Bounds, cell: Amounts, told: Amounts) -> Bounds {
    let (cell, told) = (Bounds::from(cell), Bounds::from(told));
    Bounds {
        requests: room(limit.requests, all.requests, cell.requests, told.requests),
        iops: room(limit.iops, all.iops, cell.iops, told.iops),
        bandwidth: room(limit.bandwidth, all.bandwidth, cell.bandwidth, told.bandwidth),
    }
}

/// Up to where a gateway may go that is counted with `counted` and was told `told`, if `all` is counted and
/// `limit` is the most.
fn room(limit: Bound, all: Bound, counted: Bound, told: Bound) -> Bound {
    if all > limit { told } else { counted.plus(limit.beside(all)) }
}

#[cfg(test)]
mod tests;
