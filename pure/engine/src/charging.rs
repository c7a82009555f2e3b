//! On whose behalf requests waited: charges the waiting of a period to volumes.
//!
//! **The rule.** Time passes on behalf of the requests that are at the device, in equal parts. A request
//! waits for a place among 4 that are there. Each millisecond of its wait is charged to the volumes of the
//! 4, a quarter of a millisecond for each request. The whole wait is charged, so the charges add up to it.
//! Example: the depth is 4; 3 requests of `hog` and 1 of `db` are at the device for 8 ms, and one more of
//! `db` waits for that long. `hog` is charged with 6 ms, and `db` with 2 ms.
//!
//! There are two exceptions. Time at the bound of background volumes passes on behalf of the promise that the
//! bound protects: the promised volume that is worst off. Of promised volumes that go in order, only promised
//! requests are in the way.
//!
//! **The cost.** To keep a sum for each pair of volumes would be a loop over volumes at each dispatch. So the
//! scheduler adds up, for each volume, what its requests waited, and what it had of the device while the gate
//! was shut. Both are multiplied at the end of a *period* of 20 ms. What a volume waits for its own requests
//! is exact. What it waits for others is exact in sum, and is dealt out to them by their means over the
//! period. Only the [`TOP`] volumes that had most of the device are charged by name, and all the others
//! together. A period costs some products for each volume that had a request.
//!
//! **Charged as time passes**, and not at dispatch: a request that starves is never dispatched, and it is the
//! one that an operator asks about.

use weir_model::{Instant, Span};
use weir_sched::{Knob, Scheduler, VolumeWaits};

use crate::time_spent::{Hold, Key};
use crate::volume::{Volume, VolumeTable};

/// How long a period is. It ends with the first dispatch or timer after that.
const PERIOD: Span = Span::from_millis(20);
/// How many volumes are charged by name in a period, beside the waiting volume itself.
const TOP: usize = 8;

/// Charges what the requests of a pool waited for.
#[derive(Debug)]
pub(crate) struct Charging {
    due: Instant,
    /// The promise for which background volumes are held back, as far as it is known.
    promise: Key,
    /// Kept from period to period, so that no period allocates.
    waits: Vec<VolumeWaits>,
}

/// Some volumes, and what each had of something of which there was `total`.
struct Shares {
    /// Those that had most, the one with the most first.
    top: Vec<Share>,
    total: u64,
}

#[derive(Clone, Copy)]
struct Share {
    key: Key,
    had: u64,
    issued: u32,
}

/// What the volume had whose requests waited, and the part of their wait for which its own were in the way.
#[derive(Clone, Copy)]
struct Own {
    share: Share,
    time: Span,
}

impl Charging {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { due: now, promise: Key::Nobody, waits: Vec::new() }
    }

    /// Whether a period is over.
    #[inline(always)]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due <= now
    }

    /// Ends a period. `promise` is the promise that is worst off now; `None`: there is none, and the last one
    /// is charged for what is left of its bound.
    pub(crate) fn charge(
        &mut self,
        now: Instant,
        scheduler: &mut dyn Scheduler,
        volumes: &mut VolumeTable,
        promise: Option<Key>,
    ) {
        self.due = now + PERIOD;
        self.promise = promise.unwrap_or(self.promise);
        self.waits.clear();
        scheduler.take_waits(now, &mut self.waits);
        let at_device = shares(&self.waits, volumes, |waits| waits.share);
        let while_shut = shares(&self.waits, volumes, |waits| waits.shut_share);
        let promised = shares(&self.waits, volumes, |waits| waits.promised_share);
        let by_promise = self.waits.iter().filter(|it| key_of(it, volumes) == self.promise);
        let by_promise = by_promise.map(|waits| u64::from(waits.issued)).sum();
        for waits in &self.waits {
            let volume = volumes.get_mut(waits.volume);
            let holds = holds(volume, waits);
            let key = Key::Volume(volume.serial());
            let own = |had, time| Own { share: Share { key, had, issued: waits.issued }, time };
            let slice = volume.spent.slice(now);
            slice.hold(&holds);
            let time = waits.waited_for(Knob::Depth) + waits.waited_for(Knob::Turn);
            let own_part = own(waits.shut_share, waits.own_while_shut);
            while_shut.deal(time, own_part, |key, time, went| slice.wait_for(key, time, went));
            let time = waits.waited_for(Knob::PromisedBound);
            let own_part = own(waits.promised_share, waits.own_at_promised);
            promised.deal(time, own_part, |key, time, went| slice.wait_for(key, time, went));
            slice.wait_for(self.promise, waits.waited_for(Knob::BackgroundBound), by_promise);
            slice.wait_for(Key::Driver, waits.waited_for(Knob::Driver), 0);
            let own_part = own(waits.share, waits.own_at_device);
            at_device.deal(waits.at_device, own_part, |key, time, went| slice.be_beside(key, time, went));
        }
    }
}

impl Shares {
    /// Charges `time` to the volume whose requests waited, as far as its own requests were in the way, and
    /// the rest to the others, in proportion to what each had. The charges add up to `time`.
    fn deal(&self, time: Span, own: Own, mut charge: impl FnMut(Key, Span, u64)) {
        if time.is_zero() {
            return;
        }
        let others = self.total - own.share.had;
        // Without any request of others at the device, nobody else is in the way.
        let own_part = if others == 0 && own.share.had > 0 { time } else { own.time.min(time) };
        charge(own.share.key, own_part, own.share.issued.into());
        let (rest, mut had_by_others) = (time.as_nanos() - own_part.as_nanos(), others);
        let mut left = rest;
        for Share { key, had, issued } in self.top.iter().filter(|share| share.key != own.share.key) {
            had_by_others = had_by_others.saturating_sub(*had);
            // The last one gets what rounding has left.
            let part = if had_by_others == 0 { left } else { part_of(rest, *had, others) };
            left -= part;
            charge(*key, Span::from_nanos(part), (*issued).into());
        }
        let whom = if others == 0 { Key::Nobody } else { Key::Others };
        charge(whom, Span::from_nanos(left), 0);
    }
}

/// What each volume had, by `had`.
fn shares(waits: &[VolumeWaits], volumes: &VolumeTable, had: impl Fn(&VolumeWaits) -> u64) -> Shares {
    let mut top: Vec<&VolumeWaits> = Vec::with_capacity(TOP + 1);
    for waits in waits.iter().filter(|waits| had(waits) > 0) {
        if top.last().is_none_or(|least| top.len() < TOP || had(least) < had(waits)) {
            let at = top.partition_point(|other| had(other) >= had(waits));
            top.insert(at, waits);
            top.truncate(TOP);
        }
    }
    let share =
        |waits: &VolumeWaits| Share { key: key_of(waits, volumes), had: had(waits), issued: waits.issued };
    let total = waits.iter().map(&had).fold(0, u64::saturating_add);
    Shares { top: top.into_iter().map(share).collect(), total }
}

/// The volume that waited.
fn key_of(waits: &VolumeWaits, volumes: &VolumeTable) -> Key {
    Key::Volume(volumes.get(waits.volume).serial())
}

/// `nanos * had / total`, rounded down.
fn part_of(nanos: u64, had: u64, total: u64) -> u64 {
    let part = u128::from(nanos) * u128::from(had.min(total)) / u128::from(total);
    u64::try_from(part).unwrap_or(nanos) // it is no more than that
}

/// What held the requests of a volume back, in the order of [`Hold::ALL`].
fn holds(volume: &Volume, waits: &VolumeWaits) -> [Span; Hold::ALL.len()] {
    let (of_rate, of_concurrency) = volume.limits_that_are_granted();
    Hold::ALL.map(|hold| match hold {
        Hold::Rate if !of_rate => waits.waited_for(Knob::Rate),
        Hold::GrantedRate if of_rate => waits.waited_for(Knob::Rate),
        Hold::Concurrency if !of_concurrency => waits.waited_for(Knob::Concurrency),
        Hold::GrantedConcurrency if of_concurrency => waits.waited_for(Knob::Concurrency),
        Hold::Rate | Hold::GrantedRate | Hold::Concurrency | Hold::GrantedConcurrency => Span::ZERO,
        Hold::Depth => waits.waited_for(Knob::Depth),
        Hold::PromisedBound => waits.waited_for(Knob::PromisedBound),
        Hold::Turn => waits.waited_for(Knob::Turn),
        Hold::BackgroundBound => waits.waited_for(Knob::BackgroundBound),
        Hold::Driver => waits.waited_for(Knob::Driver),
    })
}
