//! One volume of a pool: its promise, its limits, what it has outstanding, and its sensors.

use std::num::NonZeroU32;
use std::sync::Arc;

use weir_control::{Grant, Latency, Limits, PortObservation, PromisedObservation, VolumeObservation};
use weir_model::{Bandwidth, Instant, IoKind, Iops, MilliIops, Objective, Slo, Span, Target, VolumeId};
use weir_sched::{Chain, Covered, VolumeKnobs};

use crate::config::VolumeConfig;
use crate::event::{WindowReport, WindowTraffic};
use crate::promise_sensor::PromiseSensor;
use crate::requests::{RequestTable, Stage, Stamped};
use crate::sensors::{LatencySensor, RateSensor};
use crate::slo_window::{Ending, SloWindows, WindowNumber};
use crate::time_spent::SpentHistory;
use crate::usage::UsageSensor;
use crate::writing::Writing;

#[derive(Debug)]
pub(crate) struct Volume {
    /// A number that no other volume of the engine ever has.
    serial: u64,
    slo: Option<Arc<Slo>>,
    objective: Objective,
    port_of: Option<VolumeId>,
    limits: Limits,
    /// What a law that shares out concurrency lets it do; `None`: no such law rules.
    grant: Option<Grant>,
    /// Such a law rules, and its controller grants the bounds: the pool is leased.
    is_leased: bool,
    /// What a law that shares out concurrency has to know.
    usage: Option<Box<UsageSensor>>,
    /// What the law of promises has to know.
    promise: Option<Box<PromiseSensor>>,
    /// What the law of promises holds it to.
    promised: Option<Target>,
    /// How many times its promised rate goes before all background requests; `None`: all that it asks for.
    covered: Option<f64>,
    /// What the scheduler knows of that.
    said_covered: Covered,
    /// Whether it has offered more than its SLO covers, and its backlog is not gone.
    is_beyond: bool,
    /// The latency that the law holds the volume to; `None`: nothing is promised.
    latency_target: Option<Span>,
    /// How long after its arrival a request must be at the device to keep that latency; `None`: the volume is
    /// in the background.
    due_at_device: Option<Span>,
    /// The mean time at the device in the last period with an answer.
    at_device: Option<Span>,
    pub(crate) outstanding: u32,
    /// Its reads and writes without an answer, the oldest first. An SLO speaks only of these.
    transfers: Chain,
    /// Its other requests without an answer.
    others: Chain,
    latency: LatencySensor,
    /// Whether it had a request in the current control period.
    was_active: bool,
    /// The reads and writes that arrived in it.
    arrived: RateSensor,
    /// What the one-sided PID has to know.
    pub(crate) writing: Writing,
    windows: SloWindows,
    /// For how long schedulers before this one have held its requests back, by the limits of the volume.
    pub(crate) limited_before: Span,
    /// Where the time of its requests went.
    pub(crate) spent: SpentHistory,
}

impl Volume {
    pub(crate) fn new(now: Instant, config: VolumeConfig) -> Self {
        let limits = config.limits();
        let slo = config.slo.map(Arc::new);
        let silent = silent_target(slo.as_ref());
        Self {
            serial: 0,
            slo,
            objective: config.objective,
            port_of: config.port_of,
            limits,
            grant: None,
            is_leased: false,
            usage: None,
            promise: None,
            promised: None,
            covered: None,
            said_covered: Covered::ALL,
            is_beyond: false,
            latency_target: silent,
            due_at_device: silent,
            at_device: None,
            outstanding: 0,
            transfers: Chain::EMPTY,
            others: Chain::EMPTY,
            latency: LatencySensor::default(),
            was_active: false,
            arrived: RateSensor::default(),
            writing: Writing::default(),
            windows: SloWindows::new(now),
            limited_before: Span::ZERO,
            spent: SpentHistory::new(now),
        }
    }

    /// Takes a new configuration. The latency target follows at the next control tick.
    pub(crate) fn set_config(&mut self, now: Instant, config: VolumeConfig) {
        self.limits = config.limits();
        self.objective = config.objective;
        self.slo = config.slo.map(Arc::new);
        self.keep_latencies();
        self.judge_target(now);
    }

    /// From now on a law rules that shares out concurrency, or a law that does not.
    /// `leased`: a controller has that law, and the objective.
    pub(crate) fn set_shared(&mut self, now: Instant, shared: bool, leased: bool, at_device: u32) {
        self.grant = None;
        self.is_leased = leased;
        self.usage = shared.then(|| Box::new(UsageSensor::new(now, self.outstanding, at_device)));
        self.keep_latencies();
    }

    /// From now on the law of promises rules, with SLO windows of this length, or another law. What the law
    /// of promises held the volume to ends with it.
    pub(crate) fn set_guarded(&mut self, now: Instant, window: Option<Span>, at_device: u32) {
        if self.promise.is_some() && window.is_none() {
            let target = silent_target(self.slo.as_ref());
            self.set_targets(target, target);
        }
        let sensor = |window| Box::new(PromiseSensor::new(now, window, self.outstanding, at_device));
        self.promise = window.map(sensor);
        self.promised = None;
        (self.covered, self.said_covered) = (None, Covered::ALL);
        self.is_beyond = false;
        self.judge_target(now);
    }

    /// Has its windows judge its target, if the law of promises rules.
    fn judge_target(&mut self, now: Instant) {
        let target = self.objective.target.filter(|_| self.promise.is_some());
        self.windows.set_target(now, target, self.outstanding);
    }

    /// What the volume is promised now: its target, or what its SLO says for the rate that it offers. `None`
    /// if it has neither, or is beyond its SLO.
    pub(crate) fn promise(&self) -> Option<Target> {
        let by_slo = || self.covered().filter(|_| !self.is_beyond).map(Target::Latency);
        self.objective.target.or_else(by_slo)
    }

    /// A period of the law of promises has ended: whether the volume is beyond its SLO. It is if it offers
    /// more than that covers, and until no more requests are left of it than one that keeps to its SLO has.
    /// Otherwise a client that waits for its backlog would offer little, and all of the backlog would go
    /// before every other promise.
    pub(crate) fn note_contract(&mut self) {
        self.is_beyond = match (&self.slo, self.covered()) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(slo), Some(latency)) => self.is_beyond && self.outstanding > slo.outstanding(latency),
        };
    }

    /// The latency that the SLO says for what the volume offers.
    fn covered(&self) -> Option<Span> {
        let seen = VolumeObservation {
            slo: self.slo.clone(),
            offered: self.windows.offered_before(),
            read_fraction: self.windows.recent_mix(),
            ..VolumeObservation::default()
        };
        seen.latency_target()
    }

    /// Sets what the law of promises holds it to. True: the scheduler has to know.
    pub(crate) fn set_promise(&mut self, promise: Option<Target>) -> bool {
        let latency = match promise {
            Some(Target::Latency(limit) | Target::Percentile(_, limit)) => Some(limit),
            Some(Target::Rate(_) | Target::Throughput(_)) | None => None,
        };
        let limit = if let Some(Target::Percentile(_, limit)) = promise { Some(limit) } else { None };
        self.sensor().set_limit(limit);
        self.promised = promise;
        // Due at once, unless promised volumes have to go in order.
        let due = promise.map(|_| self.due_at_device.unwrap_or(Span::ZERO));
        self.set_targets(latency, due)
    }

    /// Sets when its requests are due in the order of promised volumes, after they came. True: the scheduler
    /// has to know.
    pub(crate) fn set_due(&mut self, due: Span) -> bool {
        self.is_promised() && self.set_targets(self.latency_target, Some(due))
    }

    /// Sets how many times its promised rate is covered; `None`: all that it asks for.
    pub(crate) const fn cover(&mut self, times: Option<f64>) {
        self.covered = times;
    }

    /// What is covered now, if that is news.
    pub(crate) fn take_news_of_covered(&mut self) -> Option<Covered> {
        let covered = self.covered_rates();
        (std::mem::replace(&mut self.said_covered, covered) != covered).then_some(covered)
    }

    /// How many times its promised rate is covered; `None`: all that it asks for, or it is promised none.
    pub(crate) fn covered_part(&self) -> Option<f64> {
        self.covered.filter(|_| self.covered_rates().is_bounded())
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // about a rate
    fn covered_rates(&self) -> Covered {
        match self.promised.zip(self.covered) {
            Some((Target::Rate(rate), times)) => {
                Covered { iops: Iops::new(rate.get() * times), ..Covered::ALL }
            }
            Some((Target::Throughput(rate), times)) => {
                let bandwidth = Bandwidth::new(((rate.get() as f64 * times) as u64).max(1));
                Covered { bandwidth, ..Covered::ALL }
            }
            _ => Covered::ALL,
        }
    }

    /// Whether the law of promises holds it to something. If not, it is in the background.
    pub(crate) const fn is_promised(&self) -> bool {
        self.promised.is_some()
    }

    /// # Panics
    /// If another law rules.
    fn sensor(&mut self) -> &mut PromiseSensor {
        self.promise.as_mut().expect("the law of promises rules")
    }

    /// What the law of promises has to know of the period that ends now.
    pub(crate) fn observe_promise(&mut self, now: Instant, requests: &RequestTable) -> PromisedObservation {
        let (serial, target, priority) = (self.serial, self.promised, self.objective.priority);
        let late = self.sensor().limit().map_or(0, |limit| {
            let chains = [&self.transfers, &self.others].into_iter();
            chains.map(|chain| requests.older_than(chain, now, limit)).sum()
        });
        let is_capped = self.limits != Limits::default();
        PromisedObservation { serial, target, priority, is_capped, ..self.sensor().take(now, late) }
    }

    fn keep_latencies(&mut self) {
        let is_percentile = matches!(self.objective.target, Some(Target::Percentile(..)));
        if let Some(usage) = &mut self.usage {
            // One more port has the objective of its first port, where the law reads it.
            usage.keep_latencies(is_percentile || self.port_of.is_some() || self.is_leased);
        }
    }

    /// SLO windows have a new length: what was observed over the old length no longer counts.
    pub(crate) fn restart_windows(&mut self, now: Instant) {
        self.windows.restart(now, self.outstanding);
    }

    /// Another law takes over: what was measured under the old law no longer counts.
    pub(crate) fn restart_period(&mut self) {
        self.latency = LatencySensor::default();
        self.arrived = RateSensor::default();
        self.writing = Writing::default();
    }

    pub(crate) fn knobs(&self) -> VolumeKnobs {
        let knobs = |limit: Limits| VolumeKnobs {
            due_after: self.due_at_device,
            covered: self.said_covered,
            concurrency: limit.concurrency,
            max_iops: limit.max_iops,
            max_bandwidth: limit.max_bandwidth,
            priority: self.objective.priority,
        };
        let Some(Grant { concurrency, max_iops, max_bandwidth }) = self.grant else {
            return knobs(self.limits);
        };
        knobs(Limits {
            concurrency: least(Some(concurrency), self.limits.concurrency),
            max_iops: least(max_iops.map(Iops::from), self.limits.max_iops),
            max_bandwidth: least(max_bandwidth, self.limits.max_bandwidth),
        })
    }

    pub(crate) const fn serial(&self) -> u64 {
        self.serial
    }

    /// The volume of which this one is one more port.
    pub(crate) const fn port_of(&self) -> Option<VolumeId> {
        self.port_of
    }

    pub(crate) const fn objective(&self) -> Objective {
        self.objective
    }

    pub(crate) const fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) const fn grant(&self) -> Option<Grant> {
        self.grant
    }

    /// Whether its rate and its concurrency, as they are in force, come from a grant rather than from the
    /// configuration.
    pub(crate) fn limits_that_are_granted(&self) -> (bool, bool) {
        let Some(Grant { concurrency, max_iops, max_bandwidth }) = self.grant else { return (false, false) };
        let of_iops = is_lower(max_iops.map(Iops::from), self.limits.max_iops);
        let of_bandwidth = is_lower(max_bandwidth, self.limits.max_bandwidth);
        (of_iops || of_bandwidth, is_lower(Some(concurrency), self.limits.concurrency))
    }

    /// Puts a grant in force. True: that is a change.
    pub(crate) fn set_grant(&mut self, grant: Option<Grant>) -> bool {
        std::mem::replace(&mut self.grant, grant) != grant
    }

    /// What a law that shares out concurrency has to know of the interval that ends now.
    pub(crate) fn take_usage(&mut self, now: Instant, requests: &RequestTable) -> PortObservation {
        let oldest = requests.oldest(&self.transfers).map(|oldest| now.since(oldest.arrived));
        let usage = self.usage.as_mut().expect("a law that shares out concurrency rules");
        usage.take(now, oldest, self.grant)
    }

    /// The chain of its outstanding requests of a kind.
    pub(crate) fn chain(&mut self, kind: IoKind) -> &mut Chain {
        if kind.direction().is_some() { &mut self.transfers } else { &mut self.others }
    }

    /// A request has arrived. Returns the SLO window to which it belongs.
    pub(crate) fn on_arrival(&mut self, now: Instant, kind: IoKind, length: u32) -> WindowNumber {
        self.outstanding += 1;
        self.was_active = true;
        if let Some(direction) = kind.direction() {
            self.arrived.record(direction);
        }
        if let Some(usage) = &mut self.usage {
            usage.on_submit(now, kind.direction().map(|_| length));
        }
        if let Some(sensor) = &mut self.promise {
            sensor.on_submit(now);
        }
        self.windows.on_arrival(now, kind.direction())
    }

    pub(crate) fn on_issue(&mut self, now: Instant) {
        if let Some(usage) = &mut self.usage {
            usage.on_issue(now);
        }
        if let Some(sensor) = &mut self.promise {
            sensor.on_issue(now);
        }
    }

    pub(crate) fn on_complete(&mut self, now: Instant) {
        if let Some(usage) = &mut self.usage {
            usage.on_complete(now);
        }
        if let Some(sensor) = &mut self.promise {
            sensor.on_complete(now);
        }
    }

    /// A request is over.
    pub(crate) fn on_end(&mut self, now: Instant, request: &Stamped, ending: Ending) {
        let Stamped { kind, arrived, window, .. } = *request;
        self.outstanding -= 1;
        self.windows.on_end(now, arrived, kind.direction().map(|_| window), ending);
        if let Some(usage) = &mut self.usage {
            usage.on_end(now);
        }
        if let Some(sensor) = &mut self.promise {
            sensor.on_end(now, arrived);
        }
    }

    /// A request was answered with success.
    pub(crate) fn on_answer(&mut self, kind: IoKind, length: u32, latency: Latency) {
        if let Some(sensor) = &mut self.promise {
            sensor.on_answer(length, latency.total);
        }
        self.windows.on_answer(length, kind.direction().map(|_| latency));
        if kind.direction().is_some() {
            self.latency.record(latency);
            if let Some(usage) = &mut self.usage {
                usage.on_answer(length, latency.total);
            }
        }
    }

    /// What the control law has to know of the period that ends now.
    pub(crate) fn observe(
        &mut self,
        now: Instant,
        period: Span,
        requests: &RequestTable,
    ) -> VolumeObservation {
        let answered = self.latency.take_mean();
        self.at_device = answered.map(|answered| answered.at_device).or(self.at_device);
        // A request that is outstanding now also belongs to the next period.
        let is_active = std::mem::replace(&mut self.was_active, self.outstanding > 0);
        VolumeObservation {
            slo: self.slo.clone(),
            offered: self.windows.offered_before(),
            arrived: std::mem::take(&mut self.arrived).over(period),
            read_fraction: self.windows.recent_mix(),
            answered,
            oldest: requests.oldest(&self.transfers).map(|oldest| latency_so_far(now, oldest)),
            at_device: self.at_device,
            is_active,
        }
    }

    /// Sets what the law has decided. True: the scheduler has to know.
    pub(crate) fn set_targets(&mut self, latency: Option<Span>, due_at_device: Option<Span>) -> bool {
        self.latency_target = latency;
        std::mem::replace(&mut self.due_at_device, due_at_device) != due_at_device
    }

    /// The latency that the law holds the volume to.
    pub(crate) const fn latency_target(&self) -> Option<Span> {
        self.latency_target
    }

    /// The latency by which its running SLO window will be judged.
    pub(crate) fn window_target(&self) -> Option<Span> {
        self.windows.target(self.slo.as_ref()?)
    }

    /// Ends its running SLO window.
    pub(crate) fn end_window(&mut self, now: Instant, requests: &RequestTable) -> WindowTraffic {
        let oldest = requests.oldest(&self.transfers).map(|oldest| oldest.arrived);
        self.windows.end(now, self.slo.as_deref(), oldest)
    }

    /// Whether an SLO window has ended and is not closed.
    pub(crate) fn has_window_to_close(&self) -> bool {
        self.windows.has_ended()
    }

    /// The next SLO window whose verdict is certain.
    pub(crate) fn close_window(&mut self, now: Instant) -> Option<WindowReport> {
        self.windows.close(now)
    }
}

/// The latency that a volume with this SLO is promised before it has sent anything.
fn silent_target(slo: Option<&Arc<Slo>>) -> Option<Span> {
    VolumeObservation { slo: slo.cloned(), ..VolumeObservation::default() }.latency_target()
}

/// The lower of two limits, where `None` is no limit.
fn least<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Whether a grant is below a limit, where `None` is none.
fn is_lower<T: PartialOrd>(grant: Option<T>, limit: Option<T>) -> bool {
    grant.is_some_and(|grant| limit.is_none_or(|limit| grant < limit))
}

/// How long a request that is not answered has taken until now.
fn latency_so_far(now: Instant, request: &Stamped) -> Latency {
    let at_device = match request.stage {
        Stage::Queued { .. } => Span::ZERO,
        Stage::AtDevice { issued, .. } => now.since(issued),
        Stage::Done { issued, completed, .. } => completed.since(issued),
    };
    Latency { total: now.since(request.arrived), at_device }
}

/// The volumes of a pool by number. The number of a removed one is used again.
#[derive(Default, Debug)]
pub(crate) struct VolumeTable {
    volumes: Vec<Option<Volume>>,
    /// How many there ever were.
    serials: u64,
}

impl VolumeTable {
    pub(crate) fn insert(&mut self, mut volume: Volume) -> VolumeId {
        volume.serial = self.serials;
        self.serials += 1;
        let index = self.volumes.iter().position(Option::is_none).unwrap_or(self.volumes.len());
        if index == self.volumes.len() {
            self.volumes.push(None);
        }
        self.volumes[index] = Some(volume);
        number(index)
    }

    pub(crate) fn remove(&mut self, id: VolumeId) {
        self.volumes[id.0 as usize] = None;
    }

    pub(crate) fn contains(&self, id: VolumeId) -> bool {
        self.volumes.get(id.0 as usize).is_some_and(Option::is_some)
    }

    /// # Panics
    /// If there is no such volume: only the driver names volumes, and it was told their numbers.
    pub(crate) fn get(&self, id: VolumeId) -> &Volume {
        self.volumes.get(id.0 as usize).and_then(Option::as_ref).expect("the volume was added")
    }

    /// # Panics
    /// As [`VolumeTable::get`].
    pub(crate) fn get_mut(&mut self, id: VolumeId) -> &mut Volume {
        self.volumes.get_mut(id.0 as usize).and_then(Option::as_mut).expect("the volume was added")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.volumes.iter().all(Option::is_none)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (VolumeId, &Volume)> {
        self.volumes.iter().enumerate().filter_map(|(i, volume)| Some((number(i), volume.as_ref()?)))
    }

    /// The number of the volume with this serial number; `None` if it is gone.
    pub(crate) fn with_serial(&self, serial: u64) -> Option<VolumeId> {
        self.iter().find(|(_, volume)| volume.serial == serial).map(|(id, _)| id)
    }

    pub(crate) fn ids(&self) -> Vec<VolumeId> {
        self.iter().map(|(id, _)| id).collect()
    }

    /// The volumes without a grant.
    pub(crate) fn without_grant(&self) -> Vec<VolumeId> {
        self.iter().filter(|(_, volume)| volume.grant.is_none()).map(|(id, _)| id).collect()
    }

    /// The ports of each volume: the volume itself, then its other ports in the order of their numbers. A
    /// port whose volume has gone counts as a volume.
    pub(crate) fn applications(&self) -> Vec<Vec<VolumeId>> {
        let mut of = vec![Vec::new(); self.volumes.len()];
        let first =
            |id: VolumeId, volume: &Volume| volume.port_of.filter(|of| self.contains(*of)).unwrap_or(id);
        for (id, volume) in self.iter() {
            let ports: &mut Vec<VolumeId> = &mut of[first(id, volume).0 as usize];
            if first(id, volume) == id { ports.insert(0, id) } else { ports.push(id) }
        }
        of.retain(|ports| !ports.is_empty());
        of
    }

    /// A grant of so much concurrency. Its rates are an equal part of the volume's limits over all its ports,
    /// rounded down.
    pub(crate) fn part_of_limits(&self, id: VolumeId, concurrency: NonZeroU32) -> Grant {
        let first = self.get(id).port_of.filter(|of| self.contains(*of)).unwrap_or(id);
        let limits = self.get(first).limits;
        let is_port = |volume: &Volume| volume.port_of == Some(first);
        let ports = 1 + self.iter().filter(|(other, volume)| *other != first && is_port(volume)).count();
        let ports = u32::try_from(ports).expect("fewer than 2^32 volumes");
        Grant {
            concurrency,
            max_iops: limits
                .max_iops
                .map(|limit| MilliIops::at_least_one(MilliIops::at_most(limit).get() / u64::from(ports))),
            max_bandwidth: limits
                .max_bandwidth
                .and_then(|limit| Bandwidth::new((limit.get() / u64::from(ports)).max(1))),
        }
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (VolumeId, &mut Volume)> {
        self.volumes.iter_mut().enumerate().filter_map(|(i, volume)| Some((number(i), volume.as_mut()?)))
    }
}

fn number(index: usize) -> VolumeId {
    VolumeId(u32::try_from(index).expect("fewer than 2^32 volumes"))
}

#[cfg(test)]
mod tests {
    use weir_model::SloPoint;

    use super::*;

    #[test]
    fn what_a_promised_rate_covers_is_forgotten_when_another_law_rules() {
        let window = Span::from_secs(1);
        let mut volume = Volume::new(Instant::ORIGIN, VolumeConfig::default());
        volume.set_guarded(Instant::ORIGIN, Some(window), 0);
        volume.set_promise(Iops::new(100.0).map(Target::Rate));
        volume.cover(Some(1.1));
        assert!(volume.take_news_of_covered().is_some_and(|covered| covered.is_bounded()));
        assert!(volume.knobs().covered.is_bounded());
        volume.set_guarded(Instant::ORIGIN, None, 0);
        assert_eq!((volume.knobs().covered, volume.covered_part()), (Covered::ALL, None));
    }

    #[test]
    fn a_volume_beyond_its_slo_is_promised_something_again_when_its_backlog_is_gone() {
        let latency = Span::from_millis(10);
        let point = SloPoint { up_to: Iops::new(100.0).unwrap(), read: latency, write: latency };
        let slo = Some(Slo::new(vec![point]).unwrap());
        let (window, requests) = (Span::from_secs(1), RequestTable::default());
        let mut volume = Volume::new(Instant::ORIGIN, VolumeConfig { slo, ..VolumeConfig::default() });
        volume.set_guarded(Instant::ORIGIN, Some(window), 0);
        let mut now = Instant::ORIGIN;
        let request = Stamped {
            volume: VolumeId(0),
            kind: IoKind::Read,
            length: 4096,
            arrived: now,
            window: volume.on_arrival(now, IoKind::Read, 4096),
            stage: Stage::Queued { limited: Span::ZERO },
        };
        (1..200).for_each(|_| _ = volume.on_arrival(now, IoKind::Read, 4096));
        for _ in 0..3 {
            now = now + window;
            volume.end_window(now, &requests);
            volume.note_contract();
            assert_eq!(volume.promise(), None, "200 are left, though nothing comes");
        }
        (0..198).for_each(|_| volume.on_end(now, &request, Ending::Answered));
        volume.note_contract();
        assert_eq!(volume.promise(), Some(Target::Latency(latency)));
    }

    #[test]
    fn the_law_of_promises_is_told_whether_a_volume_has_caps() {
        let requests = RequestTable::default();
        let is_capped = |max_iops| {
            let mut volume =
                Volume::new(Instant::ORIGIN, VolumeConfig { max_iops, ..VolumeConfig::default() });
            volume.set_guarded(Instant::ORIGIN, Some(Span::from_secs(1)), 0);
            volume.observe_promise(Instant::ORIGIN, &requests).is_capped
        };
        assert!(!is_capped(None));
        assert!(is_capped(Iops::new(900.0)));
    }
}
