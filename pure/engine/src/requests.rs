//! Every request that an engine holds, from its submission until its reply or its abort.

use weir_model::{Instant, IoId, IoKind, Span, VolumeId};
use weir_sched::{Chain, SlotChains};

use crate::slo_window::WindowNumber;

/// The requests by slot. The slot that was freed last is used first, because it is still in the cache.
#[derive(Default, Debug)]
pub(crate) struct RequestTable {
    requests: SlotChains<Stamped>,
    /// For each slot: how often it was used before.
    generations: Vec<u32>,
    free: Vec<u32>,
}

/// A request with the instants of its life so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamped {
    pub(crate) volume: VolumeId,
    pub(crate) kind: IoKind,
    pub(crate) length: u32,
    pub(crate) arrived: Instant,
    /// The SLO window in which it came.
    pub(crate) window: WindowNumber,
    pub(crate) stage: Stage,
}

/// How far a request has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The scheduler has it. `limited`: for how long, when it came, the limits of its volume had held back
    /// requests in all.
    Queued { limited: Span },
    /// The device has it. `limited`: for how long these limits held this request back.
    AtDevice { limited: Span, issued: Instant },
    /// The device has finished it, and its reply is on the way. `held_until`: when the reply may go.
    Done { limited: Span, issued: Instant, completed: Instant, held_until: Instant, ok: bool },
}

impl Stamped {
    pub(crate) const fn is_at_device(&self) -> bool {
        matches!(self.stage, Stage::AtDevice { .. })
    }

    /// It goes to the device. `limited`: for how long, by now, the limits of its volume have held requests
    /// back in all.
    ///
    /// # Panics
    /// If it is not queued.
    #[inline(always)]
    pub(crate) fn issue(&mut self, now: Instant, limited: Span) {
        let Stage::Queued { limited: before } = self.stage else { panic!("only what is queued is issued") };
        let limited = Span::from_nanos(limited.as_nanos().saturating_sub(before.as_nanos()));
        self.stage = Stage::AtDevice { limited, issued: now };
    }
}

impl RequestTable {
    /// Takes in a request, at the end of `chain`.
    #[inline(always)]
    pub(crate) fn insert(&mut self, chain: &mut Chain, request: Stamped) -> IoId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.generations.push(0);
            u32::try_from(self.generations.len() - 1).expect("fewer than 2^32 requests at a time")
        });
        self.requests.push_back(chain, slot, request);
        IoId { slot, generation: self.generations[slot as usize] }
    }

    /// Lets a request of `chain` go.
    #[inline(always)]
    pub(crate) fn remove(&mut self, chain: &mut Chain, id: IoId) -> Stamped {
        let gone = self.requests.remove(chain, id.slot);
        let generation = &mut self.generations[id.slot as usize];
        *generation = generation.wrapping_add(1);
        self.free.push(id.slot);
        gone
    }

    /// The request with this id; `None` if it is gone or never was.
    pub(crate) fn get(&self, id: IoId) -> Option<&Stamped> {
        let generation = self.generations.get(id.slot as usize)?;
        if *generation == id.generation { self.requests.get(id.slot) } else { None }
    }

    /// The same, to change it.
    pub(crate) fn get_mut(&mut self, id: IoId) -> Option<&mut Stamped> {
        let generation = self.generations.get(id.slot as usize)?;
        if *generation == id.generation { self.requests.get_mut(id.slot) } else { None }
    }

    /// The request of `chain` that arrived first.
    pub(crate) fn oldest(&self, chain: &Chain) -> Option<&Stamped> {
        self.requests.front(chain)
    }

    /// How many requests of `chain` came longer ago than `limit`, up to 64.
    pub(crate) fn older_than(&self, chain: &Chain, now: Instant, limit: Span) -> u32 {
        let late = self.requests.of(chain).take(64).take_while(|request| now.since(request.arrived) > limit);
        late.map(|_| 1).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stamped> {
        self.requests.iter()
    }
}
