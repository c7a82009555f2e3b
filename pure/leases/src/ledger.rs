//! What each gateway may be holding, so that all of them together never hold more than there is.
//!
//! **The ledger assumes the worst.** A grant that was sent and is not acknowledged may be in force, may still
//! arrive, or may be lost. So the ledger counts, for each gateway, the largest of the last acknowledged grant
//! and every grant sent since. Example: 10 was acknowledged, then 6 and 8 were sent: the ledger counts 10
//! until 6 or 8 is acknowledged. So a cut makes room only when it is acknowledged, or when the lease of the
//! larger grant is over. A raise is sent only as far as there is room. If the ledger counted the last grant
//! sent, two gateways could hold the same request of the total: the raise of one may overtake the cut of the
//! other.
//!
//! The ledger does this for the total and for the limits of each volume. Against the total, it counts the
//! most that any *one* message grants to all volumes of a gateway together.
//!
//! **Whole numbers.** Grants are whole numbers, and each is counted as it was sent. So the sum is exact, and
//! the ledger compares it with its limit without a tolerance.
//!
//! **More than there is.** More may be held than there is when a limit falls, or when a gateway returns that
//! was counted with less. As long as that lasts, no message grants a gateway more than the message before it.
//! The first messages after the limit fell fit into it; later messages never grant more, so they fit too.
//!
//! **Gateways that are away.** A gateway takes its whole static part when it has been alone for
//! [`ALONE_AFTER`] leases. So the ledger also counts its static part, from one lease after the sending of the
//! last message that it acknowledged. Grants that others got before that moment end within a lease of it,
//! long before the gateway takes its static part.
//!
//! **Gateways that a controller has not met.** A controller that has just started does not know which volumes
//! an absent gateway serves, and the fewer these are, the more each of them has of the static part. So the
//! ledger counts for each volume what it has where the gateway serves no other. Example: of a static part of
//! 4, three volumes have 2, 1 and 1; each of them is counted with 4, and all three together with 4.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weir_model::{Instant, Span};

use crate::amounts::{Amounts, Bounds, Holding, VolumeKey};
use crate::bound::Bound;

/// After how many leases without a message a gateway takes its whole static part. One lease passes until the
/// ledger counts that part, an interval until all others are told, and one lease until their earlier grants
/// end. The rest is a margin.
pub(crate) const ALONE_AFTER: u64 = 3;

/// A gateway, by the place of its name among the controller's.
pub(crate) type GatewayKey = u64;

/// How many messages to a gateway may be unacknowledged at a time. Beyond that, it is sent nothing.
const MOST_UNACKNOWLEDGED: usize = 16;

/// How many runs of a gateway are counted one by one, beside the run that is connected.
const MOST_ASIDE: usize = 4;

/// What each gateway may be holding.
#[derive(Debug)]
pub(crate) struct GrantLedger {
    accounts: BTreeMap<GatewayKey, Account>,
    total: u32,
    /// The limits of volumes that have any.
    limits: BTreeMap<VolumeKey, Bounds>,
    /// What was counted last, and when. It is kept because a batch of messages is sent at one instant.
    counted: Option<(Instant, Counted)>,
}

/// What a gateway may be holding.
#[derive(Debug)]
struct Account {
    /// First what it acknowledged last, or claimed to hold; then what was sent since.
    possible: VecDeque<Sent>,
    /// The volumes that it has.
    volumes: BTreeSet<VolumeKey>,
    /// Until when nothing is known of it. It may hold anything until then.
    unknown_until: Instant,
    /// From when on its static part is counted.
    alone_from: Instant,
    /// The most requests that it can hold of all its volumes together, if that is known better than from
    /// what it can hold of each.
    together: Bound,
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
    /// The static part that the message tells the gateway.
    pub fallback: Holding,
}

/// The most that a gateway can hold, by volume.
#[derive(Debug)]
pub(crate) struct Known {
    /// The most of what it holds now and of its static part.
    pub grants: Holding,
    /// The most of its static parts: it takes one of them when it is away.
    pub fallback: Holding,
    /// The most requests of its static part, if that is known better than from `fallback`.
    pub fallback_together: Bound,
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

    /// Sets how many requests there are to share out.
    pub(crate) fn set_total(&mut self, total: u32) {
        self.total = total;
    }

    /// Sets what all gateways together may do for a volume.
    pub(crate) fn set_limits(&mut self, volume: VolumeKey, limits: Bounds) {
        self.counted = None;
        self.limits.insert(volume, limits);
    }

    /// Adds a gateway of which nothing is known. Until `unknown_until` it may hold anything, and then its
    /// static part: of each volume as much as `fallback` at most, and `together` requests of all of them.
    /// That is the part that this controller would have told it; an earlier controller with another total may
    /// have told it another one.
    pub(crate) fn add(
        &mut self,
        now: Instant,
        gateway: GatewayKey,
        unknown_until: Instant,
        fallback: Holding,
        together: u64,
    ) {
        let volumes = fallback.keys().copied().collect();
        let fallen = Sent { number: 0, at: now, until: now, grants: fallback.clone(), fallback };
        let possible = VecDeque::from([fallen]);
        self.counted = None;
        let together = Bound::AtMost(together);
        let account = Account { possible, volumes, unknown_until, alone_from: now, together };
        self.accounts.insert(gateway, account);
    }

    /// A gateway has opened a new stream. Its claim `held` replaces what was sent on an old stream.
    pub(crate) fn connect(&mut self, gateway: GatewayKey, held: Sent) {
        self.counted = None;
        let Some(account) = self.accounts.get_mut(&gateway) else { return };
        account.volumes = held.grants.keys().copied().collect();
        account.possible = VecDeque::from([held]);
        account.unknown_until = Instant::ORIGIN;
        account.together = Bound::Unlimited;
    }

    /// Counts `held` for a run of a gateway that is not the connected one, as if it were a gateway of its
    /// own, until its lease is over. What was set aside before is still counted, until its own lease is over.
    /// No run serves more than `most_volumes`.
    pub(crate) fn set_aside(&mut self, now: Instant, gateway: GatewayKey, held: Sent, most_volumes: usize) {
        self.counted = None;
        let mut possible = self.accounts.remove(&gateway).map(|account| account.possible).unwrap_or_default();
        possible.retain(|before| before.until > now && !before.is_within(&held));
        if possible.len() == MOST_ASIDE {
            // There are too many: the latest two become one. The earlier ones, which may be large, stay as
            // they are, and each ends with its own lease.
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
            // No two runs of one gateway differ so much, so the volumes are invented. Only those of the last
            // run are counted.
            possible.drain(..possible.len() - 1);
            volumes = volumes_of(&possible);
        }
        let account = Account {
            possible,
            volumes,
            unknown_until: Instant::ORIGIN,
            alone_from: Instant::FAR_FUTURE,
            together: Bound::Unlimited,
        };
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
        Some(Known {
            grants: account.most(now, true).1,
            fallback,
            fallback_together: account.together,
            until: account.until(),
        })
    }

    /// The volumes that a gateway is counted with.
    pub(crate) fn volumes(&self, gateway: GatewayKey) -> BTreeSet<VolumeKey> {
        self.accounts.get(&gateway).map(|account| account.volumes.clone()).unwrap_or_default()
    }

    /// Forgets the limits of all volumes but those that are needed.
    pub(crate) fn retain_limits(&mut self, is_needed: impl Fn(VolumeKey) -> bool) {
        self.limits.retain(|volume, _| is_needed(*volume));
    }

    /// Sets the volumes that a gateway has.
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

    /// A gateway has acknowledged message `number`; `lease` is how long a lease takes. Returns whether this
    /// is news.
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

    /// Removes a gateway, or runs that were set aside. The caller has waited for the end of the last lease.
    pub(crate) fn remove(&mut self, gateway: GatewayKey) {
        self.counted = None;
        self.accounts.remove(&gateway);
    }

    /// Whether a gateway has acknowledged a message that was sent within the last lease.
    pub(crate) fn hears(&self, now: Instant, gateway: GatewayKey) -> bool {
        self.accounts.get(&gateway).is_some_and(|account| now < account.alone_from)
    }

    /// Whether so many messages to a gateway are unacknowledged that it is sent no more.
    pub(crate) fn is_behind(&self, gateway: GatewayKey) -> bool {
        self.accounts.get(&gateway).is_none_or(|account| account.possible.len() > MOST_UNACKNOWLEDGED)
    }

    /// When the last lease of a gateway is over.
    pub(crate) fn until(&self, gateway: GatewayKey) -> Option<Instant> {
        self.accounts.get(&gateway).map(Account::until)
    }

    /// What a gateway was told last, as it is in force if that message has arrived.
    pub(crate) fn told(&self, now: Instant, gateway: GatewayKey) -> Holding {
        self.accounts.get(&gateway).map(|account| account.latest(now)).unwrap_or_default()
    }

    /// What must stay free for a gateway that is away: the most of what it may hold now and of its static
    /// part.
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

    /// The part of `wanted` that may be granted to a gateway now: all cuts, and raises as far as there is
    /// room.
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

    /// Counts one gateway again within the last count.
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

    /// The most that it may hold: requests of all volumes together, and each amount by volume. `reserved`:
    /// also what it may hold later, when it is alone.
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
        (self.together.limit().map_or(most, |together| most.min(together)), cells)
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
    /// Whether `other` grants at least as much of everything, for at least as long.
    fn is_within(&self, other: &Self) -> bool {
        let covered = |(volume, amounts): (&VolumeKey, &Amounts)| {
            other.grants.get(volume).is_some_and(|other| !amounts.is_more_than(*other))
        };
        self.until <= other.until && self.grants.iter().all(covered)
    }

    /// This, but for each volume at least the amounts of `others`.
    fn with(mut self, others: impl Iterator<Item = (VolumeKey, Amounts)>) -> Self {
        for (volume, amounts) in others {
            let most = self.grants.entry(volume).or_insert(amounts);
            *most = most.max(amounts);
        }
        self
    }

    /// What is in force of it at `now`: within its lease, or after.
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

    /// The sums over all gateways.
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

    /// Replaces one gateway's part of the sums. `None` if that cannot be done: no unlimited part can be taken
    /// from an unlimited sum.
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

/// The sum of the requests of volumes.
pub(crate) fn sum(requests: impl Iterator<Item = u32>) -> u64 {
    requests.map(u64::from).sum()
}

/// How far each amount of a volume may rise at one gateway. `all` is counted for all gateways, `cell` of it
/// for this gateway, and `told` is what the gateway was told last.
fn ceiling(limit: Bounds, all: Bounds, cell: Amounts, told: Amounts) -> Bounds {
    let (cell, told) = (Bounds::from(cell), Bounds::from(told));
    Bounds {
        requests: room(limit.requests, all.requests, cell.requests, told.requests),
        iops: room(limit.iops, all.iops, cell.iops, told.iops),
        bandwidth: room(limit.bandwidth, all.bandwidth, cell.bandwidth, told.bandwidth),
    }
}

/// How far an amount may rise at one gateway. `all` is counted for all gateways, `counted` of it for this
/// gateway, `told` is what the gateway was told last, and `limit` bounds all gateways together.
fn room(limit: Bound, all: Bound, counted: Bound, told: Bound) -> Bound {
    if all > limit { told } else { counted.plus(limit.beside(all)) }
}

#[cfg(test)]
mod tests;
