//! The gateway's side of a lease: what its volumes may do, and for how long.
//!
//! A gateway that hears no more from its controller falls back in two steps:
//!
//! 1. When its lease ends, it takes the lesser of its grant and its static part (`fallback`). If the grant
//!    was more, the others may have the difference from then on. If the static part was more, the difference
//!    is still lent to others, and they may not know yet that they must give it back.
//! 2. Three leases after the controller's last message, it takes its whole static part. By then, the leases
//!    of all others have ended, or were renewed without that part.
//!
//! Example: the static part is 20 requests. A gateway that was granted 30 has 20 after the first step. A
//! gateway that was granted 5 has 5 after the first step, and 20 after the second.
//!
//! Instants are those of the gateway's own clock. A lease counts from the *sending* of the report that the
//! grant answers. So it ends here no later than at the controller, however long messages take.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use weir_control::Grant;
use weir_model::Instant;

use crate::amounts::Amounts;
use crate::message::{Grants, Held, Hello};

/// How many reports are remembered with the instant of their sending. A grant that answers an older report
/// has no lease.
const REMEMBERED: usize = 16;

/// What an engine lets a volume do when nothing was granted for it.
pub const UNTOLD: Grant = Grant { concurrency: NonZeroU32::MIN, max_iops: None, max_bandwidth: None };

/// What a gateway may do, and for how long.
#[derive(Clone, PartialEq, Debug)]
pub struct Leaseholder {
    /// Which run of the gateway this is; see [`Hello::run`].
    run: u64,
    /// First the terms in force, then those that were received since and are not yet in force.
    terms: VecDeque<Terms>,
    /// The last reports: their numbers, and when they were sent.
    sent: VecDeque<(u64, Instant)>,
    /// The number of the newest terms.
    serial: u64,
    /// The number of the first terms that can come on the stream that is open.
    of_stream: u64,
}

/// What is to be put in force at a gateway's engine.
#[derive(Clone, PartialEq, Debug)]
pub struct Terms {
    serial: u64,
    number: Option<u64>,
    /// Until when `volumes` hold.
    pub until: Instant,
    /// What each volume may do until then.
    pub volumes: BTreeMap<String, Grant>,
    /// What each volume may do from then on, if no other terms come.
    pub after: BTreeMap<String, Grant>,
    /// When `fallback` replaces `after`; never, if these terms are the fallback.
    pub alone_at: Instant,
    /// The static part of this gateway.
    pub fallback: BTreeMap<String, Grant>,
}

impl Leaseholder {
    /// A gateway that was granted nothing yet. `run` is a number that no other run of any gateway has.
    pub fn new(run: u64) -> Self {
        let terms = VecDeque::from([Terms::untold()]);
        Self { run, terms, sent: VecDeque::new(), serial: 0, of_stream: 0 }
    }

    /// The first message of a new stream, with these volumes. From now on, the caller must not accept
    /// messages that are still on their way on an old stream.
    pub fn hello(&mut self, now: Instant, volumes: impl IntoIterator<Item = String>) -> Hello {
        self.sent = VecDeque::from([(0, now)]);
        self.of_stream = self.serial + 1;
        let until = self.terms.iter().map(|terms| terms.until).max().unwrap_or(now);
        let held = |volume: String| {
            let most = |of: &dyn Fn(&Terms) -> Grant| {
                self.terms.iter().map(|terms| Amounts::from(of(terms))).fold(Amounts::NONE, Amounts::max)
            };
            let grant = most(&|terms| told(terms.in_force(now), &volume)).into();
            let fallback = most(&|terms| told(&terms.fallback, &volume)).into();
            Held { volume, grant, fallback }
        };
        let volumes = volumes.into_iter().map(held).collect();
        Hello { run: self.run, volumes, left: until.saturating_since(now), is_of_promises: false }
    }

    /// Report `number` is being sent.
    pub fn handle_reported(&mut self, now: Instant, number: u64) {
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back((number, now));
    }

    /// Grants have come. The caller puts the returned terms in force, and then says so by
    /// [`Leaseholder::handle_applied`].
    pub fn handle_grants(&mut self, now: Instant, grants: &Grants) -> Terms {
        let asked = self.sent.iter().find(|(number, _)| *number == grants.answers);
        let least = |of: &crate::VolumeGrant| Amounts::from(of.grant).min(of.fallback.into()).into();
        let by_volume = |of: &dyn Fn(&crate::VolumeGrant) -> Grant| {
            grants.volumes.iter().map(|volume| (volume.volume.clone(), of(volume))).collect()
        };
        self.serial += 1;
        let terms = Terms {
            serial: self.serial,
            number: Some(grants.number),
            until: asked.map_or(now, |(_, sent)| *sent + grants.lease),
            volumes: by_volume(&|volume| volume.grant),
            after: by_volume(&least),
            alone_at: now + grants.alone_after,
            fallback: by_volume(&|volume| volume.fallback),
        };
        self.terms.push_back(terms.clone());
        terms
    }

    /// Terms are in force at the engine. Returns the number to acknowledge, if they came on the stream that
    /// is open.
    pub fn handle_applied(&mut self, terms: &Terms) -> Option<u64> {
        while self.terms.get(1).is_some_and(|next| next.serial <= terms.serial) {
            self.terms.pop_front();
        }
        terms.number.filter(|_| terms.serial >= self.of_stream)
    }

    /// When to call [`Leaseholder::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let terms = self.terms.back()?;
        (terms.alone_at != Instant::FAR_FUTURE).then_some(terms.alone_at)
    }

    /// Time has passed. Returns terms to put in force if the gateway has been alone for long enough to take
    /// its whole static part.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Terms> {
        let terms = self.terms.back().filter(|terms| terms.alone_at <= now)?;
        let alone = Terms {
            serial: terms.serial,
            number: None,
            until: now,
            volumes: terms.fallback.clone(),
            after: terms.fallback.clone(),
            alone_at: Instant::FAR_FUTURE,
            fallback: terms.fallback.clone(),
        };
        self.terms.clear(); // all came long ago, and are in force or were never put in force
        self.terms.push_back(alone.clone());
        Some(alone)
    }
}

impl Terms {
    fn untold() -> Self {
        let nothing = BTreeMap::new;
        Self {
            serial: 0,
            number: None,
            until: Instant::ORIGIN,
            volumes: nothing(),
            after: nothing(),
            alone_at: Instant::FAR_FUTURE,
            fallback: nothing(),
        }
    }

    /// What holds at `now`; a volume that is not named is [`UNTOLD`].
    pub fn in_force(&self, now: Instant) -> &BTreeMap<String, Grant> {
        if now < self.until { &self.volumes } else { &self.after }
    }
}

fn told(volumes: &BTreeMap<String, Grant>, volume: &str) -> Grant {
    volumes.get(volume).copied().unwrap_or(UNTOLD)
}
