//! The state machine: gateways come, report, acknowledge and go; time passes; grants go out.
//!
//! The controller first sends a new gateway what the gateway itself claims to hold: the *welcome*. When the
//! gateway has acknowledged it, the controller knows that the gateway listens, and lets it take part. A
//! controller that has just started sends only welcomes until all its gateways have acknowledged theirs, or
//! an interval has passed. Otherwise the bounds of the first gateways would jump, only because others come a
//! moment later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weir_control::{ArrayLaw, TotalConcurrency};
use weir_model::{Instant, Span};

use crate::amounts::{Amounts, Bounds, Holding, VolumeKey};
use crate::config::{ControllerConfig, VolumeConfig};
use crate::connection::{Connection, Refused};
use crate::gateways::{Due, Gateway};
use crate::ledger::{ALONE_AFTER, GatewayKey, GrantLedger, Sent};
use crate::message::{Grants, Report, VolumeGrant};
use crate::names::Names;
use crate::record::{ArrayStatus, Event, GatewayStatus, History, Record};
use crate::share;

/// The controller of one array.
#[derive(Debug)]
pub struct Controller {
    pub(crate) config: ControllerConfig,
    pub(crate) names: Names,
    pub(crate) gateway_names: Names,
    pub(crate) volumes: BTreeMap<VolumeKey, VolumeConfig>,
    pub(crate) gateways: BTreeMap<GatewayKey, Gateway>,
    pub(crate) ledger: GrantLedger,
    pub(crate) law: ArrayLaw,
    pub(crate) history: History,
    /// The volumes that gateways serve and that the log has called unknown.
    pub(crate) said: BTreeSet<VolumeKey>,
    /// The controller has just started, and sends only welcomes.
    recovering: bool,
    next_step: Instant,
    /// The longest of all leases that this controller ever granted.
    pub(crate) longest_lease: Span,
    pub(crate) connections: u64,
    pub(crate) due: BTreeMap<GatewayKey, Due>,
    pub(crate) events: VecDeque<Event>,
}

/// Configuration.
impl Controller {
    /// A controller with these volumes, by name. It knows nothing yet of what its gateways hold.
    pub fn new(
        now: Instant,
        config: ControllerConfig,
        volumes: impl IntoIterator<Item = (String, VolumeConfig)>,
    ) -> Self {
        let mut controller = Self {
            names: Names::default(),
            gateway_names: Names::default(),
            volumes: BTreeMap::new(),
            gateways: BTreeMap::new(),
            ledger: GrantLedger::new(),
            law: ArrayLaw::new(config.total),
            history: History::default(),
            said: BTreeSet::new(),
            recovering: true,
            next_step: now + config.interval,
            longest_lease: config.lease(),
            connections: 0,
            due: BTreeMap::new(),
            events: VecDeque::new(),
            config,
        };
        volumes.into_iter().for_each(|(name, volume)| controller.set_volume(now, &name, volume));
        controller.adopt_total();
        controller.adopt_gateways(now, now + controller.config.lease());
        controller
    }

    /// Changes the total, the interval or the gateways, with effect from the next control step.
    pub fn set_config(&mut self, now: Instant, config: ControllerConfig) {
        self.config = config;
        self.longest_lease = self.longest_lease.max(self.config.lease());
        self.next_step = self.next_step.min(now + self.config.interval);
        self.adopt_total();
        self.adopt_gateways(now, now);
    }

    /// Adds a volume, or changes one, with effect from the next control step.
    pub fn set_volume(&mut self, _now: Instant, name: &str, volume: VolumeConfig) {
        let key = self.names.key(name);
        self.ledger.set_limits(key, volume.limits.into());
        self.volumes.insert(key, volume);
        self.said.remove(&key);
    }

    /// Forgets the configuration of a volume. Gateways that serve it go on, and promise it nothing.
    pub fn remove_volume(&mut self, _now: Instant, name: &str) {
        if let Some(key) = self.names.known(name) {
            self.ledger.set_limits(key, Bounds::UNLIMITED);
            self.volumes.remove(&key);
        }
    }

    fn adopt_total(&mut self) {
        self.law.set_total(self.config.total);
        self.ledger.set_total(self.total());
    }

    /// Takes over the names of the configuration. A new gateway may hold anything until `unknown_until`. A
    /// gateway that is no longer named loses its stream.
    fn adopt_gateways(&mut self, now: Instant, unknown_until: Instant) {
        self.gateways.values_mut().for_each(|gateway| gateway.configured = false);
        for name in self.config.gateways.clone() {
            let key = self.gateway_names.key(&name);
            self.gateways.entry(key).or_default().configured = true;
            if self.ledger.until(key).is_none() {
                let fallback = self.most_fallback(self.volumes.keys().copied());
                self.ledger.add(now, key, unknown_until, fallback, self.most_fallback_requests());
            }
        }
        for gateway in self.gateways.values_mut().filter(|gateway| !gateway.configured) {
            gateway.stream = None;
        }
    }

    /// The static part of a gateway with these volumes.
    pub(crate) fn fallback(&self, volumes: impl IntoIterator<Item = VolumeKey>) -> Holding {
        let limits = volumes.into_iter().map(|volume| (volume, self.limits(volume)));
        let total = matches!(self.config.total, TotalConcurrency::Fixed(_)).then_some(self.total());
        let gateways = u32::try_from(self.config.gateways.len()).unwrap_or(u32::MAX);
        share::fallback(total, gateways, limits)
    }

    /// The most that a gateway's static part can have of each of these volumes, whichever others it serves:
    /// what the volume has where it is the only one.
    pub(crate) fn most_fallback(&self, volumes: impl IntoIterator<Item = VolumeKey>) -> Holding {
        volumes.into_iter().flat_map(|volume| self.fallback([volume])).collect()
    }

    /// The most requests that a gateway's static part can have, whichever volumes it serves.
    pub(crate) fn most_fallback_requests(&self) -> u64 {
        let dealt = match self.config.total {
            TotalConcurrency::Fixed(_) => self.part().into(),
            TotalConcurrency::Auto => 0,
        };
        dealt.max(self.volumes.len() as u64)
    }

    /// How many requests there are to share out.
    pub(crate) const fn total(&self) -> u32 {
        self.law.total().get()
    }

    /// The static part of each gateway, in requests, where the total is fixed: half of an equal share.
    pub(crate) fn part(&self) -> u32 {
        let gateways = u32::try_from(self.config.gateways.len()).unwrap_or(u32::MAX);
        share::static_part(self.total(), gateways)
    }

    /// The most requests that a controller of this array can have granted a gateway.
    pub(crate) fn most_requests(&self) -> u32 {
        self.law.most()
    }

    pub(crate) fn limits(&self, volume: VolumeKey) -> Bounds {
        self.volumes.get(&volume).map_or(Bounds::UNLIMITED, |config| config.limits.into())
    }
}

/// From the world.
impl Controller {
    /// A gateway reports what it saw, and its lease is renewed at once. A report on a stream that is over is
    /// ignored.
    ///
    /// # Errors
    /// If the gateway serves more volumes than it may. The caller then ends its stream.
    pub fn handle_report(
        &mut self,
        now: Instant,
        connection: Connection,
        report: Report,
    ) -> Result<(), Refused> {
        let Some(key) = self.gateway_of(connection) else { return Ok(()) };
        self.check_volumes(key, report.volumes.len())?;
        let seen: BTreeMap<_, _> =
            report.volumes.into_iter().map(|(name, seen)| (self.names.key(&name), seen)).collect();
        let volumes: BTreeSet<_> = seen.keys().copied().collect();
        let gateway = self.gateways.get_mut(&key).expect("found above");
        let has_changed = gateway.volumes != volumes;
        if has_changed {
            self.ledger.set_volumes(key, volumes.clone());
            gateway.volumes = volumes;
        }
        gateway.reported = now;
        if let Some(stream) = &mut gateway.stream {
            stream.heard = (report.number, now);
            stream.report = Some((now, seen));
        }
        if !self.recovering && (self.takes_part(now, key) || self.is_held_up(now, key)) {
            self.owe(key, Due::Renewal);
        }
        if has_changed {
            self.forget_names();
            self.say_unknown(key);
        }
        Ok(())
    }

    /// A gateway has put in force what message `number` grants.
    pub fn handle_acknowledged(&mut self, now: Instant, connection: Connection, number: u64) {
        let Some(key) = self.gateway_of(connection) else { return };
        if !self.ledger.acknowledge(key, number, self.config.lease()) {
            return;
        }
        let stream = self.gateways.get_mut(&key).and_then(|gateway| gateway.stream.as_mut());
        let first = stream.is_some_and(|stream| !std::mem::replace(&mut stream.confirmed, true));
        if self.recovering {
            if self.configured().all(|key| self.takes_part(now, key)) {
                self.recover(now);
            }
        } else if first {
            self.retarget(now);
            self.owe(key, Due::Renewal);
        } else {
            let is_short = |key: &GatewayKey| self.gateways[key].is_short;
            let short: Vec<_> = self.listening(now).into_iter().filter(is_short).collect();
            short.into_iter().for_each(|key| self.owe(key, Due::Change));
        }
    }

    /// The time of [`Controller::poll_timeout`] has come: a control step.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now < self.next_step {
            return;
        }
        self.next_step = (self.next_step + self.config.interval).max(now);
        self.forget_removed(now);
        self.recovering = false;
        self.step(now);
        self.owe_changes(now);
    }

    fn recover(&mut self, now: Instant) {
        self.recovering = false;
        self.retarget(now);
        self.listening(now).into_iter().for_each(|key| self.owe(key, Due::Renewal));
    }

    fn owe_changes(&mut self, now: Instant) {
        self.listening(now).into_iter().for_each(|key| self.owe(key, Due::Change));
    }

    fn forget_removed(&mut self, now: Instant) {
        let over = |key: &GatewayKey| self.ledger.until(*key).is_none_or(|until| until <= now);
        let removed: Vec<_> = self
            .gateways
            .iter()
            .filter(|(key, gateway)| !gateway.configured && over(key))
            .map(|(key, _)| *key)
            .collect();
        for key in removed {
            self.gateways.remove(&key);
            self.ledger.remove(key);
        }
        self.forget_names();
    }

    pub(crate) fn owe(&mut self, key: GatewayKey, due: Due) {
        let owed = self.due.entry(key).or_insert(due);
        *owed = due.max(*owed);
    }
}

/// To the world.
impl Controller {
    /// A message to a gateway.
    pub fn poll_grants(&mut self, now: Instant) -> Option<(Connection, Grants)> {
        while let Some((key, due)) = self.due.pop_first() {
            if let Some(grants) = self.grants(now, key, due) {
                return Some(grants);
            }
        }
        None
    }

    /// Something for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`Controller::handle_timeout`].
    pub const fn poll_timeout(&self) -> Instant {
        self.next_step
    }

    fn grants(&mut self, now: Instant, key: GatewayKey, due: Due) -> Option<(Connection, Grants)> {
        if self.ledger.is_behind(key) {
            return None;
        }
        let told = self.ledger.told(now, key);
        let mut left = self.fallback(told.keys().copied());
        left.iter_mut()
            .for_each(|(volume, part)| *part = told.get(volume).map_or(*part, |told| part.min(*told)));
        let gateway = self.gateways.get_mut(&key)?;
        let stream = gateway.stream.as_ref()?;
        let connection = stream.connection;
        let (holding, (answers, heard), lease) = if due == Due::Welcome {
            (stream.held.clone(), (0, stream.began), stream.left)
        } else if !self.ledger.hears(now, key) {
            // It was held up. Once it has acknowledged this, it takes part again.
            (left, stream.heard, self.config.lease())
        } else {
            let permitted = self.ledger.permit(now, key, &gateway.target);
            gateway.is_short = differ(&gateway.target, &permitted);
            if due == Due::Change && !differ(&permitted, &told) {
                return None;
            }
            (permitted, stream.heard, self.config.lease())
        };
        gateway.number += 1;
        let (number, volumes) = (gateway.number, gateway.volumes.clone());
        let fallback = self.fallback(volumes);
        let volume = |(volume, amounts): (&VolumeKey, &Amounts)| {
            Some(VolumeGrant {
                volume: self.names.name(*volume)?.to_owned(),
                grant: (*amounts).into(),
                fallback: fallback.get(volume).copied().unwrap_or(Amounts::UNTOLD).into(),
            })
        };
        let volumes = holding.iter().filter_map(volume).collect();
        self.ledger.record(key, Sent { number, at: now, until: heard + lease, grants: holding, fallback });
        let alone_after = self.longest_lease.saturating_mul(ALONE_AFTER);
        Some((connection, Grants { number, answers, lease, alone_after, volumes }))
    }
}

/// What is asked.
impl Controller {
    /// Whether a stream is still one of this controller: not if its gateway has opened another, or was
    /// removed.
    pub fn is_connected(&self, connection: Connection) -> bool {
        self.gateway_of(connection).is_some()
    }

    /// The configuration in force.
    pub const fn config(&self) -> &ControllerConfig {
        &self.config
    }

    /// The volumes that are configured, in the order of their names.
    pub fn volumes(&self) -> impl Iterator<Item = (&str, &VolumeConfig)> {
        let mut volumes: Vec<_> =
            self.volumes.iter().filter_map(|(key, config)| Some((self.names.name(*key)?, config))).collect();
        volumes.sort_unstable_by_key(|(name, _)| *name);
        volumes.into_iter()
    }

    /// What was decided in the last intervals, the oldest first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.history.iter()
    }

    /// The controller at a glance.
    pub fn status(&self, now: Instant) -> ArrayStatus {
        let counted = self.ledger.count(now);
        let shown = |requests: u64| u32::try_from(requests).unwrap_or(u32::MAX);
        let reported =
            |gateway: &Gateway| Some(now.saturating_since(gateway.stream.as_ref()?.report.as_ref()?.0));
        let gateway = |(key, gateway): (&GatewayKey, &Gateway)| {
            Some(GatewayStatus {
                gateway: self.gateway_names.name(*key)?.to_owned(),
                connected: gateway.stream.is_some(),
                reported: reported(gateway),
                held: shown(counted.requests_of(*key)),
                volumes: self.named(self.ledger.told(now, *key)),
            })
        };
        ArrayStatus {
            total: self.total(),
            held: counted.requests().limit().map(shown),
            gateways: self.gateways.iter().filter_map(gateway).collect(),
        }
    }

    fn named(&self, holding: Holding) -> Vec<(String, weir_control::Grant)> {
        holding
            .into_iter()
            .filter_map(|(volume, amounts)| Some((self.names.name(volume)?.to_owned(), amounts.into())))
            .collect()
    }

    pub(crate) fn configured(&self) -> impl Iterator<Item = GatewayKey> {
        self.gateways.iter().filter(|(_, gateway)| gateway.configured).map(|(key, _)| *key)
    }

    /// Whether a gateway has a stream on which it listens.
    pub(crate) fn takes_part(&self, now: Instant, key: GatewayKey) -> bool {
        let streams = self.gateways.get(&key).is_some_and(|gateway| gateway.stream.is_some());
        streams && self.ledger.hears(now, key)
    }

    /// Whether a gateway has a stream, and has acknowledged nothing on it for a lease: its engine was held
    /// up.
    fn is_held_up(&self, now: Instant, key: GatewayKey) -> bool {
        let stream = self.gateways.get(&key).and_then(|gateway| gateway.stream.as_ref());
        stream.is_some_and(|stream| now >= stream.began + self.config.lease()) && !self.ledger.hears(now, key)
    }

    pub(crate) fn listening(&self, now: Instant) -> Vec<GatewayKey> {
        self.gateways.keys().copied().filter(|key| self.takes_part(now, *key)).collect()
    }

    pub(crate) fn gateway_of(&self, connection: Connection) -> Option<GatewayKey> {
        self.gateways.iter().find(|(_, gateway)| gateway.is(connection)).map(|(key, _)| *key)
    }
}

/// Whether `new` is more or less than `old` of anything.
fn differ(new: &Holding, old: &Holding) -> bool {
    new.iter().any(|(volume, new)| {
        let old = old.get(volume).copied().unwrap_or(Amounts::UNTOLD);
        new.is_more_than(old) || old.is_more_than(*new)
    })
}
