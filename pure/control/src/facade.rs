//! Queue depth by feedback: the controller of Façade §3.
//!
//! **Problem.** A device with a long queue is well used and slow. With a short queue it is fast, and idle now
//! and then. The depth should give every volume the latency that it was promised, and waste nothing. The
//! right depth depends on the device and on the load, and both change. The law assumes only that fewer
//! requests at the device mean less latency there, and finds the depth by watching.
//!
//! **Equations** (§3, unnumbered; every period `P`):
//!
//! ```text
//! latencyTarget(W_k) = tr_i f_r + tw_i (1 - f_r)      if r_(i-1) <= rate(W_k) < r_i
//! E     = min over k of latencyTarget(W_k) / L(W_k)
//! Q_new = E Q_old          if E < 1                   (somebody waits too long: less, in proportion)
//!         (1 + e) Q_old    else if Q_max = Q_old      (all is well and the bound was felt: a little more)
//!         Q_old            otherwise
//! ```
//!
//! **Why this form.** Latency at a busy device is about proportional to the number of requests queued there.
//! So the proportional cut lands near the target in one step, however far off the depth was. Growth is by a
//! fixed share and not by the error: the error says that there is room, but not how much of it another load
//! will leave. A depth that was not reached limits nobody, so to raise it would only wind it up.
//!
//! # On real devices
//!
//! - **No samples.** A volume whose requests all hang completes none, and would fall silent just when it is
//!   served worst. Without a sample, the age of its oldest outstanding request stands in for `L`, because its
//!   latency is at least that. If other volumes' requests spend a longer time at the device now, that time
//!   stands in. The reason: the first requests of a burst queue behind what other volumes sent during the
//!   pause. Waiting for the first answers would leave that queue in place for as long as they take. A volume
//!   with nothing outstanding takes no part.
//! - **A wait that no cut can shorten.** The law's assumption is about the time at the device, and `L` also
//!   contains the wait before it. The larger part may be that wait. Then the volume waits for its own rate or
//!   concurrency, for a client that does not take its replies, or for a depth that is too small for the load.
//!   A cut shortens none of these waits, and lengthens the last. Such a volume takes no part. Taken
//!   literally, the paper's rule would let one volume that is held by its own limits take the depth down to 1
//!   for all, and keep it there.
//! - **A volume that is alone** asks for no cut either. A cut would hold back only this volume, and the
//!   device could no longer choose what to do first. Requests that no SLO speaks of are company too. Example:
//!   a neighbour's thousand flushes at the device make a volume's reads wait, just as a thousand reads do.
//! - **A latency has its own depth.** A request that is answered in a period was given to the device one
//!   latency ago. While a queue builds up, such latencies tell of a shorter queue than there is now; while it
//!   drains, of a longer one. Taken literally, the paper's first cut is then too small, and each period until
//!   the queue has drained cuts anew, far below what is needed. A depth that was not felt may be far above
//!   what is at the device, and then cuts of it do nothing. So the first case is read as `E Q`, at most
//!   `Q_old`. `Q` is how many requests were at the device together with those that took `L`. By Little's law,
//!   `Q` is the time that the requests finished in the period spent there, in sum, divided by the time in
//!   which the device had any. At rest, `Q` is `Q_old`. A `Q` of 1 means that requests waited for nobody;
//!   then the law does not cut.
//! - **At rest above the target.** Requests that are past due pass the depth, so `Q` may be far above `Q_old`
//!   for as long as a promise is missed. Example: a flash disk that was allowed 5 has 5 reads of 32 MiB and
//!   25 requests of the promise. `E Q` is then no cut at all, and the promise would be missed for ever. So
//!   the paper's `E Q_old` holds once two conditions are met. The depth is older than `L` and a period, so
//!   that all answered requests met it. And the device does not drain.
//! - **Growth shows late.** The requests that a growth lets in show in no latency before they are answered.
//!   Example: if a request is at the device for 130 ms, two more periods of growth follow before the first
//!   one tells. So before the depth grows again, it waits for the longest time that a volume's requests spend
//!   at the device now.
//! - **Room for what cannot be foreseen.** Taken literally, the law balances around the target: it grows
//!   whenever the last period was below it, by however little. If arrivals or the device are random, SLO
//!   windows average over this hunt, and miss the target about as often as not. So the law aims below the
//!   target by its own step, at an `L` of `latencyTarget / (1 + e)`. It grows only if it may expect to stay
//!   below that afterwards, by its own assumption that latency rises at most in proportion. In between it
//!   rests. Cost: a device settles between `e` and `2 e` below the target.
//! - **The device's share of the target.** The paper's deadline says when a request should be answered, and a
//!   request passes the depth gate once its deadline is past. On a flash disk, the target may be only a few
//!   times what the device needs. A request that waits until its deadline is then late for certain, because
//!   its time at the device is still to come. So a request is due at the device earlier: its arrival plus the
//!   target, less twice the mean time at the device. Twice, because many requests take longer than the mean.
//!   If nothing is left, the request is due at once. If the target is long, this changes little.
//! - **Beyond the promise.** A volume that offered more than its SLO covers has no target until a window has
//!   ended in which it did not. A volume without an SLO never has a target (the paper's infinite latency).
//!   Neither has a deadline: the scheduler sends their requests behind all others, and gives them a small
//!   share of the device's time so that they come to an end. The promise belongs to the volume and not to a
//!   request. When it is back, it also holds for the requests that already wait. Otherwise the volume would
//!   queue behind a backlog of its own that has no deadline.
//! - **Floor, ceiling, fractions.** The depth is held as a fraction and used as its whole part. As a whole
//!   number, it could not leave 1 by 10 %. It is at least 1, or nothing would move, and at most
//!   [`DepthFeedbackConfig::max_depth`]. `Q_max = Q_old` is read as `Q_max >=` the whole part, because
//!   past-due requests pass the bound.
//! - **Counting noise.** In 50 ms, a volume of 200 requests a second has 10 arrivals, give or take 3, which
//!   says nothing about its rate. So the rate is that of the SLO window before, by which the open window will
//!   be judged. The share of reads is that of both windows. Only `L` is that of the last period, or the law
//!   would act on what is long past.
//! - **Sub-millisecond devices** finish hundreds of requests in a period; nothing in the law depends on the
//!   number. Their latencies include the server's own work, which no depth reduces. A target below that work
//!   drives the depth to its floor.
//! - **Cold start.** The initial depth of 200 is the paper's. It is too high for most devices, and is
//!   corrected in the first period in which a volume with a target suffers. With an initial depth of 1, a
//!   pool without targets would need 56 periods to reach 200.
//! - **A mix not seen yet**: until a volume has arrivals, its mix is taken to be only reads or only writes,
//!   whichever has the tighter promise. So the first request after a pause is not let down.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_model::{Arrivals, Instant, Offered, QueueDepth, Slo, Span};

use crate::completions::{Completion, Completions};
use crate::law::Law;

/// How the law is tuned.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct DepthFeedbackConfig {
    /// The control period `P`. Shorter reacts faster on fewer samples. 50 ms, as in the paper: a twentieth of
    /// the usual SLO window, so that a window can absorb a correction.
    pub period: Span,
    /// The growth `e` of a depth that was felt and did no harm. 0.1, as in the paper: from 20 to 200 takes 25
    /// periods.
    pub growth: f64,
    /// The depth before anything was measured. 200, as in the paper.
    pub initial_depth: QueueDepth,
    /// The ceiling. 4096: more than any device gains from. While no volume's target holds the depth down, it
    /// grows as long as it is felt, and must come back from there when a target is missed.
    pub max_depth: QueueDepth,
}

impl Default for DepthFeedbackConfig {
    fn default() -> Self {
        Self {
            period: Span::from_millis(50),
            growth: 0.1,
            initial_depth: QueueDepth::new(200),
            max_depth: QueueDepth::new(4096),
        }
    }
}

/// The observation of a pool in the last period.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct PoolObservation {
    /// `Q_max`: the highest number of requests at the device.
    pub peak: u32,
    /// How many requests were at the device, on average, together with those that it finished, themselves
    /// included. It is the time that the finished requests spent there, in sum, over the time in which the
    /// device had anything to do. Zero if it finished none.
    pub beside_finished: f64,
    /// The volumes, in an order that is the observer's.
    pub volumes: Vec<VolumeObservation>,
}

/// The observation of a volume in the last period.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct VolumeObservation {
    /// Its promise, if it has one.
    pub slo: Option<Arc<Slo>>,
    /// The reads and writes that arrived in the SLO window before the one that is open.
    pub offered: Arrivals,
    /// The reads and writes that arrived in the last period. Only the law to the letter goes by these.
    pub arrived: Offered,
    /// The share of reads, from 0 to 1, in the SLO window before and the open one; `None` if nothing arrived.
    pub read_fraction: Option<f64>,
    /// `L`: the mean latency of the requests that were answered in the last period; `None` if none was.
    pub answered: Option<Latency>,
    /// The latency so far of the oldest request that is not answered; `None` if none is outstanding.
    pub oldest: Option<Latency>,
    /// The mean time at the device, in the last period that had an answer; `None` before the first answer.
    pub at_device: Option<Span>,
    /// Whether it had a request of any kind in the last period.
    pub is_active: bool,
}

/// A latency, and how much of it was spent at the device.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Latency {
    /// From the arrival on.
    pub total: Span,
    /// From when the request was given to the device until the device had finished it.
    pub at_device: Span,
}

/// The law's decision for the next period.
#[derive(Clone, PartialEq, Debug)]
pub struct DepthSetting {
    /// How many requests the pool may have at its device.
    pub depth: QueueDepth,
    /// The latency that each volume is to get, in the order of the observation; `None`: it has no promise, or
    /// is beyond it.
    pub latency_targets: Vec<Option<Span>>,
    /// How long after its arrival a request of each volume has to be at the device to meet its target, in the
    /// same order.
    pub due_at_device: Vec<Option<Span>>,
}

/// The law. Its state is the depth, since when it is in force, and the peak of the last period.
#[derive(Clone, PartialEq, Debug)]
pub struct DepthFeedback {
    config: DepthFeedbackConfig,
    completions: Completions,
    depth: f64,
    /// When the depth last changed; `None` before its first change.
    changed: Option<Instant>,
    /// The highest number of requests at the device in the period before.
    peak: u32,
}

impl DepthFeedback {
    /// The law at its initial depth.
    ///
    /// # Panics
    /// If the growth is not a finite number above zero, or the period is zero.
    pub fn new(config: DepthFeedbackConfig) -> Self {
        Self::with(config, Completions::ALL)
    }

    /// The law with some of its completions.
    ///
    /// # Panics
    /// As [`DepthFeedback::new`].
    pub fn with(config: DepthFeedbackConfig, completions: Completions) -> Self {
        assert!(config.growth.is_finite() && config.growth > 0.0, "growth of {}", config.growth);
        assert!(!config.period.is_zero(), "a period of no length");
        let depth = f64::from(config.initial_depth.min(config.max_depth).get());
        Self { config, completions, depth, changed: None, peak: 0 }
    }

    /// The depth in force.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 1 and a u32
    pub fn depth(&self) -> QueueDepth {
        QueueDepth::new(self.depth as u32)
    }
}

impl Law for DepthFeedback {
    type Observation = PoolObservation;
    type Setting = DepthSetting;

    fn step(&mut self, now: Instant, seen: &PoolObservation) -> DepthSetting {
        let latency_targets: Vec<Option<Span>> =
            seen.volumes.iter().map(|volume| volume.target_with(self.completions)).collect();
        let growth = 1.0 + self.config.growth;
        let margin = if self.has(Completion::Room) { growth } else { 1.0 };
        let device_times = seen.volumes.iter().filter_map(|volume| Some(volume.answered?.at_device));
        let (shortest, longest) = (device_times.clone().min(), device_times.max());
        let (shortest, longest) = (shortest.unwrap_or_default(), longest.unwrap_or_default());
        let (room, latency) = seen
            .volumes
            .iter()
            .zip(&latency_targets)
            .filter_map(|(volume, target)| {
                let latency = volume.latency(shortest, self.completions)?;
                Some(((*target)?.as_secs_f64() / latency.as_secs_f64() / margin, latency))
            })
            .min_by(|(one, _), (other, _)| one.total_cmp(other))
            .unwrap_or((f64::INFINITY, Span::ZERO));
        let active = seen.volumes.iter().filter(|volume| volume.is_active).count();
        let alone = active == 1 && self.has(Completion::Alone);
        let before = self.depth();
        let age = self.changed.map_or(Span::MAX, |at| now.since(at));
        let has_shown = age >= longest || !self.has(Completion::LateGrowth);
        if room < 1.0 && !alone {
            self.cut(seen, room, age >= latency + self.config.period);
        } else if (room >= margin && has_shown || alone) && self.was_felt(seen.peak) {
            self.depth *= growth;
        }
        self.depth = self.depth.clamp(1.0, f64::from(self.config.max_depth.get()));
        if self.depth() != before {
            self.changed = Some(now);
        }
        self.peak = seen.peak;
        let due =
            |(volume, target): (&VolumeObservation, &Option<Span>)| {
                target.map(|target| {
                    if self.has(Completion::DeviceShare) { volume.due_at_device(target) } else { target }
                })
            };
        let due_at_device = seen.volumes.iter().zip(&latency_targets).map(due).collect();
        DepthSetting { depth: self.depth(), latency_targets, due_at_device }
    }
}

impl DepthFeedback {
    const fn has(&self, one: Completion) -> bool {
        self.completions.has(one)
    }

    /// Cuts the depth, where `room` is `E`. `has_been_met`: all answered requests met the depth in force.
    fn cut(&mut self, seen: &PoolObservation, room: f64, has_been_met: bool) {
        if !self.has(Completion::OwnDepth) {
            self.depth *= room;
            return;
        }
        // If the device finished nothing, its latencies come from the requests that it still has: these
        // count.
        let nothing = seen.beside_finished <= 0.0;
        let beside = if nothing { f64::from(seen.peak) } else { seen.beside_finished };
        let is_at_rest = has_been_met && seen.peak >= self.peak && self.has(Completion::AtRest);
        let from = if is_at_rest { beside.min(self.depth) } else { beside };
        if beside > 1.0 {
            self.depth = self.depth.min(room * from);
        }
    }

    /// Whether the depth in force held requests back, where `peak` were at the device.
    fn was_felt(&self, peak: u32) -> bool {
        let depth = self.depth().get();
        if self.has(Completion::PastDueFelt) { peak >= depth } else { peak == depth }
    }
}

impl VolumeObservation {
    /// The latency that the volume was promised for what it offers.
    pub fn latency_target(&self) -> Option<Span> {
        self.target_with(Completions::ALL)
    }

    /// The same by a law with some of its completions.
    fn target_with(&self, completions: Completions) -> Option<Span> {
        let slo = self.slo.as_ref()?;
        let (offered, reads) = if completions.has(Completion::SloWindow) {
            (self.offered, self.read_fraction)
        } else {
            (self.arrived.into(), self.arrived.read_fraction())
        };
        if !completions.has(Completion::CountingNoise) {
            return printed_target(slo, &offered, reads);
        }
        match reads {
            Some(reads) => slo.target(&offered, reads),
            None => slo.target(&offered, 1.0).min(slo.target(&offered, 0.0)),
        }
    }

    /// How long a request may wait before it goes to the device, if it is to be answered within `target`.
    fn due_at_device(&self, target: Span) -> Span {
        let needed = self.at_device.map_or(Span::ZERO, |mean| mean.saturating_mul(2));
        Span::from_nanos(target.as_nanos().saturating_sub(needed.as_nanos()))
    }

    /// `L`, above zero, if a smaller depth could shorten it. `device_time` is the shortest mean time that any
    /// volume's requests spend at the device now.
    fn latency(&self, device_time: Span, completions: Completions) -> Option<Span> {
        let least = if completions.has(Completion::FirstOfBurst) { device_time } else { Span::ZERO };
        let expected = |oldest: Latency| Latency {
            total: oldest.total.max(least),
            at_device: oldest.at_device.max(least),
        };
        let oldest = self.oldest.filter(|_| completions.has(Completion::AgeForLatency));
        let Latency { total, at_device } = self.answered.or(oldest.map(expected))?;
        let waits_elsewhere =
            at_device.saturating_mul(2) < total && completions.has(Completion::WaitsElsewhere);
        (!waits_elsewhere && !total.is_zero()).then_some(total)
    }
}

/// `latencyTarget` as printed: of the first point with a rate above that of `offered`.
fn printed_target(slo: &Slo, offered: &Arrivals, reads: Option<f64>) -> Option<Span> {
    let over = offered.transfers.over.as_secs_f64();
    #[allow(clippy::cast_precision_loss)] // counts far below 2^53
    let rate = if over > 0.0 { offered.total() as f64 / over } else { 0.0 };
    let point = slo.points().iter().find(|point| rate < point.up_to.get())?;
    let (read, write) = (point.read.as_secs_f64(), point.write.as_secs_f64());
    let seconds = reads.map_or(read.min(write), |reads| read * reads + write * (1.0 - reads));
    Some(Span::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests;
