//! The process of a gateway. It has the parts of the real process, joined as they are there:
//!
//! - the client of the controller (`io/cluster/src/client.rs`), in [`Uplink`];
//! - the link between that client and the pool (`weir/src/lease_link.rs`). It takes only the newest terms,
//!   puts them in force, waits until they are, and then acknowledges them. One observation of the pool waits
//!   meanwhile, and later ones are lost;
//! - the pool's thread (`io/gateway/src/shard/turn.rs`, `leased.rs`): the engine, which is told the time
//!   before anything else.
//!
//! **Not modelled**: a process that is stopped after it has looked at the clock, and before it sends the
//! array a request.

use std::collections::{BTreeMap, VecDeque};

use rand::RngExt;
use weir_control::{Grant, PortObservation};
use weir_engine::{Control, Dispatch, Engine, EngineConfig, Grants, LeasedConfig, Request, VolumeConfig};
use weir_leases::{Terms, UNTOLD};
use weir_model::{Instant, Io, IoKind, Span, TimeShare, VolumeId};

use super::clock::Clock;
use super::device::{Asked, SIZE};
use super::net::Net;
use super::promise::{Promise, Promises};
use super::surroundings::{Going, Surroundings};
use super::uplink::Uplink;
use crate::check::Checkers;

/// Bytes of a request.
const LENGTH: u32 = 4096;
/// For how many control intervals a new run may have rates that the others have not made room for.
const SETTLED: u64 = 5;

/// The process.
pub(super) struct Process {
    gateway: usize,
    pub run: u64,
    engine: Engine,
    checkers: Checkers,
    uplink: Uplink,
    /// The terms that are being put in force, and when they are.
    carried: Option<(Instant, Terms, Option<Promise>)>,
    /// The observation of the interval that ended, if it was not reported yet.
    observed: Option<Vec<(String, PortObservation)>>,
    /// The grants that the engine was told to use once its lease is over.
    after: BTreeMap<String, Grant>,
    promises: Promises,
    /// The requests that the array has finished.
    finished: VecDeque<(Asked, bool)>,
    /// By volume, how many requests were answered.
    answered: Vec<u64>,
    /// Whether there is something to do at once.
    pub is_dirty: bool,
    /// Since when it has run without a pause, by its clock.
    pub awake_since: Instant,
    /// When all others have made room for its rates, by its clock. The lease of the run before it is over
    /// then, and the rest was shared out anew an interval later.
    settled_at: Instant,
}

/// What a volume may do at a gateway at this instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct InForce {
    pub grant: Grant,
    /// Whether its rates count. They do not before the first grant, and not until the others have made room
    /// for a new run.
    pub has_rates: bool,
    pub outstanding: u32,
    pub answered: u64,
}

impl Process {
    pub(super) fn new(
        shown: Instant,
        gateway: usize,
        run: u64,
        interval: Span,
        volumes: &[(String, u32)],
    ) -> Self {
        let config = EngineConfig {
            control: Control::Leased(LeasedConfig { interval }),
            // So long that no window ends in a run: a process that slept closes a window late, and that would
            // not be a mistake.
            slo_window: Span::from_secs(1_000_000),
            background_share: TimeShare::PERCENT,
            ..EngineConfig::default()
        };
        let mut engine = Engine::new(shown, config);
        let mut checkers = Checkers::new(shown, config, None);
        for _ in volumes {
            engine.add_volume(shown, VolumeConfig::default());
            checkers.on_volume_added(shown, &VolumeConfig::default());
        }
        let names = volumes.iter().map(|(name, _)| name.clone()).collect();
        Self {
            gateway,
            run,
            engine,
            checkers,
            uplink: Uplink::new(shown, gateway, run, interval, names),
            carried: None,
            observed: None,
            after: BTreeMap::new(),
            promises: Promises::new(interval),
            finished: VecDeque::new(),
            answered: vec![0; volumes.len()],
            is_dirty: true,
            awake_since: shown,
            settled_at: shown + interval.saturating_mul(SETTLED),
        }
    }

    pub(super) fn outstanding(&self) -> u64 {
        (0..self.answered.len()).map(|volume| u64::from(self.engine.outstanding(number(volume)))).sum()
    }

    pub(super) fn is_granted(&self, shown: Instant) -> bool {
        self.engine.snapshot().granted_until.is_some_and(|until| shown < until)
    }

    /// What a volume may do. If the process sleeps and its lease is over, it is what the volume may do after
    /// the process's first look at the clock.
    pub(super) fn in_force(&self, shown: Instant, volume: usize, name: &str) -> InForce {
        let is_over = self.engine.snapshot().granted_until.is_some_and(|until| until <= shown);
        let grant = if is_over {
            self.after.get(name).copied().unwrap_or(UNTOLD)
        } else {
            self.engine.grant(number(volume)).expect("a leased pool shares out concurrency")
        };
        let has_rates = self.after.contains_key(name) && shown >= self.settled_at;
        let outstanding = self.engine.outstanding(number(volume));
        InForce { grant, has_rates, outstanding, answered: self.answered[volume] }
    }

    pub(super) fn handle_finished(&mut self, asked: Asked, ok: bool) {
        self.finished.push_back((asked, ok));
        self.is_dirty = true;
    }

    /// The first true instant at which there is something to do.
    pub(super) fn next_at(&self, clock: Clock, net: &mut Net) -> Instant {
        let carried = self.carried.as_ref().map(|(at, ..)| *at);
        let engine = self.engine.poll_timeout().map(|at| clock.when(at));
        let own = carried.into_iter().chain(engine).min().unwrap_or(Instant::FAR_FUTURE);
        own.min(self.uplink.next_at(clock, net))
    }

    pub(super) fn turn(
        &mut self,
        shown: Instant,
        volumes: &[(String, u32)],
        around: &mut Surroundings<'_>,
    ) -> Going {
        self.is_dirty = false;
        self.checkers.on_time(shown)?;
        self.uplink.turn(shown, around, &mut self.promises);
        self.carry(shown, volumes, around);
        self.serve(shown, volumes, around)?;
        self.carry(shown, volumes, around);
        let granted =
            |volume| self.engine.grant(number(volume)).expect("a leased pool shares out concurrency");
        let by_name = volumes.iter().enumerate().map(|(volume, (name, _))| (name.as_str(), granted(volume)));
        self.promises.check(shown, self.awake_since, by_name)
    }

    /// Carries terms from the uplink to the engine, and observations back.
    fn carry(&mut self, shown: Instant, volumes: &[(String, u32)], around: &mut Surroundings<'_>) {
        if let Some((_, terms, promise)) = self.carried.take_if(|(at, ..)| *at <= around.now) {
            self.apply(shown, &terms, volumes, around);
            self.promises.on_applied(promise);
            self.uplink.handle_applied(&terms, around);
        }
        if self.carried.is_some() {
            return;
        }
        if let Some((terms, promise)) = self.uplink.poll_terms() {
            let handover = Span::from_nanos(around.random.random_range(0..=around.handover.as_nanos()));
            self.carried = Some((around.now + handover, terms, promise));
        } else if let Some(seen) = self.observed.take() {
            self.uplink.report(shown, seen, around, &mut self.promises);
        }
    }

    /// Puts terms in force, as the real shard does.
    fn apply(&mut self, shown: Instant, terms: &Terms, volumes: &[(String, u32)], around: &Surroundings<'_>) {
        let by_number = |grants: &BTreeMap<String, Grant>| -> Vec<_> {
            let numbered = volumes.iter().enumerate();
            let granted =
                |(volume, (name, _)): (usize, &(String, u32))| Some((number(volume), *grants.get(name)?));
            numbered.filter_map(granted).collect()
        };
        self.after.clone_from(&terms.after);
        self.engine.set_fallback(shown, by_number(&terms.after));
        let until = around.rules.until(terms);
        self.engine.handle_grants(shown, Grants { until, volumes: by_number(&terms.volumes) });
        self.is_dirty = true;
    }

    /// Takes a turn, as the real shard does: time, completions, clients, and requests for the array.
    fn serve(&mut self, shown: Instant, volumes: &[(String, u32)], around: &mut Surroundings<'_>) -> Going {
        self.is_dirty = false;
        if self.engine.poll_timeout().is_some_and(|due| due <= shown) {
            self.engine.handle_timeout(shown);
        }
        while let Some((Asked { id, volume, .. }, ok)) = self.finished.pop_front() {
            self.checkers.on_answer(shown, id.slot, ok)?;
            // A leased pool holds no replies.
            self.engine.handle_complete(shown, id, ok);
            self.checkers.on_reply(shown, id.slot)?;
            self.engine.handle_reply(shown, id);
            self.checkers.on_split(self.engine.last_answered())?;
            self.answered[volume.0 as usize] += 1;
            around.outcome.answered += 1;
        }
        for (volume, (_, wanted)) in volumes.iter().enumerate() {
            while self.engine.outstanding(number(volume)) < *wanted {
                self.submit(shown, number(volume), around)?;
            }
        }
        self.take_events(shown, around)?;
        while let Dispatch::Issue(io) = self.engine.poll_dispatch(shown) {
            self.checkers.on_issue(shown, &io)?;
            self.issue(&io, around);
        }
        self.take_events(shown, around)?;
        if let Some(seen) = self.engine.poll_observation() {
            let named = |(id, seen): (VolumeId, _)| (volumes[id.0 as usize].0.clone(), seen);
            // If the last observation still waits, this one is lost.
            self.observed.get_or_insert_with(|| seen.into_iter().map(named).collect());
        }
        self.checkers.at_rest(shown)
    }

    fn submit(&mut self, shown: Instant, volume: VolumeId, around: &mut Surroundings<'_>) -> Going {
        let kind = if around.random.random_bool(0.7) { IoKind::Read } else { IoKind::Write };
        let offset = around.random.random_range(0..SIZE / u64::from(LENGTH)) * u64::from(LENGTH);
        let id = self.engine.handle_submit(shown, Request { volume, kind, offset, length: LENGTH });
        around.outcome.submitted += 1;
        self.checkers.on_submit(&Io { id, volume, kind, offset, length: LENGTH, arrived: shown })
    }

    fn issue(&self, io: &Io, around: &mut Surroundings<'_>) {
        let Io { id, volume, kind, offset, length, .. } = *io;
        for copy in 0..around.rules.copies() {
            // No process is told of a copy's end.
            let run = if copy == 0 && around.rules.hears_answers(self.gateway) { self.run } else { 0 };
            let asked = Asked { gateway: self.gateway, run, id, volume };
            around.device.submit(around.now, asked, Request { volume, kind, offset, length });
        }
    }

    fn take_events(&mut self, shown: Instant, around: &mut Surroundings<'_>) -> Going {
        while let Some(event) = self.engine.poll_event() {
            self.checkers.on_event(shown, &event)?;
            around.observer.on_event(around.now, &event);
        }
        Ok(())
    }
}

fn number(volume: usize) -> VolumeId {
    VolumeId(u32::try_from(volume).expect("a few volumes"))
}
