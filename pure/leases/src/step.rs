//! A control step: from what the gateways saw to what each gateway is to hold, its *target*.
//!
//! The law shares out what is not reserved. What is reserved for a gateway depends on what the controller
//! hears from it:
//!
//! - A gateway that listens and did not report in time keeps what it has, and is not raised.
//! - A gateway that is connected and does not report for a lease, or keeps reconnecting instead, is cut to
//!   its static part.
//! - For a gateway that is away, or has acknowledged nothing for a lease, the most is reserved that it may
//!   hold now or come to hold.
//!
//! Other gateways may have come or gone since the law decided. So the controller then scales what the law
//! wants down to what there is room for.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use weir_control::{ApplicationObservation, Grant, Limits, PortObservation, Reasoning};
use weir_model::{Bandwidth, Instant, Iops, MilliIops, Span};

use crate::amounts::{Amounts, Bounds, Holding, VolumeKey};
use crate::bound::Bound;
use crate::controller::Controller;
use crate::ledger::{GatewayKey, sum};
use crate::record::{Allocated, Record};
use crate::share::{fit_rates, fit_requests};

/// What is reserved: requests of all volumes together, and each amount by volume.
#[derive(Default)]
struct Reserved {
    requests: u64,
    volumes: BTreeMap<VolumeKey, Bounds>,
}

impl Reserved {
    fn add(&mut self, (requests, cells): (u64, Holding)) {
        self.requests += requests;
        for (volume, amounts) in cells {
            let sum = self.volumes.entry(volume).or_insert(Bounds::NONE);
            *sum = sum.plus(amounts.into());
        }
    }

    /// What the reserved amounts leave of the `limits` of a volume.
    fn leaves(&self, volume: VolumeKey, limits: Bounds) -> Bounds {
        limits.zip(self.volumes.get(&volume).copied().unwrap_or(Bounds::NONE), Bound::beside)
    }
}

impl Controller {
    /// Runs the law for the gateways that reported, then sets the target of each gateway.
    pub(crate) fn step(&mut self, now: Instant) {
        // A report may be half an interval late, as gateways and controller have clocks of their own.
        let since = now - self.config.interval - Span::from_nanos(self.config.interval.as_nanos() / 2);
        let mut reporting = self.listening(now);
        reporting.retain(|key| {
            let gateway = &self.gateways[key];
            gateway.report(since).is_some() && now >= gateway.waits_until
        });
        let seen = self.observations(&reporting, since);
        let decided = self.decide(now, &reporting, seen);
        self.retarget(now);
        let volumes = decided.into_iter().filter_map(|(volume, why)| self.allocated(volume, why)).collect();
        self.history.push(Record { at: now, total: self.total(), volumes });
    }

    /// What was seen, by volume and gateway.
    fn observations(&self, reporting: &[GatewayKey], since: Instant) -> Seen {
        let mut seen = Seen::new();
        for key in reporting {
            for (volume, observation) in self.gateways[key].report(since).into_iter().flatten() {
                seen.entry(*volume).or_default().push((*key, observation.clone()));
            }
        }
        seen
    }

    /// Asks the law, and notes what it wants for each gateway.
    fn decide(&mut self, now: Instant, reporting: &[GatewayKey], seen: Seen) -> Vec<(VolumeKey, Reasoning)> {
        let reserved = self.reserved(now, reporting);
        let (mut places, mut applications) = (Vec::new(), Vec::new());
        for (volume, at) in seen {
            let (gateways, ports): (Vec<_>, Vec<_>) = at.into_iter().unzip();
            let config = self.volumes.get(&volume).copied().unwrap_or_default();
            let left = reserved.leaves(volume, config.limits.into());
            let limits = left_of(config.limits, left, gateways.len());
            applications.push(ApplicationObservation {
                id: volume,
                objective: config.objective,
                limits,
                ports,
            });
            places.push((volume, gateways));
        }
        let setting = self.law.step(now, u32::try_from(reserved.requests).unwrap_or(u32::MAX), applications);
        self.ledger.set_total(self.total());
        let mut decided = Vec::new();
        for ((volume, gateways), application) in places.into_iter().zip(setting.applications) {
            for (key, grant) in gateways.iter().zip(application.ports) {
                self.gateways.get_mut(key).expect("it reported").wanted.insert(volume, grant.into());
            }
            decided.push((volume, application.reasoning));
        }
        decided
    }

    /// Sets the target of each gateway that listens: what the law wants, as far as it fits beside what is
    /// reserved for the others.
    pub(crate) fn retarget(&mut self, now: Instant) {
        let listening = self.listening(now);
        let reserved = self.reserved(now, &listening);
        // The gateways that listen have their static parts, whatever others may hold.
        let mut own = Reserved::default();
        for key in &listening {
            let parts = self.fallback(self.gateways[key].volumes.iter().copied());
            let lease = self.config.lease();
            let gateway = self.gateways.get_mut(key).expect("it listens");
            let is_silent = now >= gateway.reported + lease;
            let target = |(volume, part): (&VolumeKey, &Amounts)| {
                let wanted = gateway.wanted.get(volume).copied().unwrap_or(*part);
                let wanted = if is_silent { wanted.min(*part) } else { wanted };
                // A rate may have been unlimited until now.
                let rate = |wanted, part| if wanted == Bound::Unlimited { part } else { wanted };
                let (iops, bandwidth) =
                    (rate(wanted.iops, part.iops), rate(wanted.bandwidth, part.bandwidth));
                (*volume, Amounts { iops, bandwidth, ..wanted })
            };
            gateway.target = parts.iter().map(target).collect();
            own.add((sum(parts.values().map(|part| part.requests)), parts));
        }
        for (volume, own) in &own.volumes {
            let available = reserved.leaves(*volume, self.limits(*volume)).zip(*own, Bound::max);
            let mut cells: Vec<_> =
                listening_targets(self, &listening).filter_map(|t| t.get_mut(volume)).collect();
            fit_requests(available.requests, cells.iter_mut().map(|cell| &mut cell.requests));
            fit_rates(available.iops, cells.iter_mut().map(|cell| &mut cell.iops));
            fit_rates(available.bandwidth, cells.iter_mut().map(|cell| &mut cell.bandwidth));
        }
        let available = Bound::AtMost(u64::from(self.left(reserved.requests)).max(own.requests));
        let cells = listening_targets(self, &listening).flat_map(Holding::values_mut);
        fit_requests(available, cells.map(|cell| &mut cell.requests));
    }

    /// What so many reserved requests leave of the total.
    fn left(&self, reserved: u64) -> u32 {
        self.total().saturating_sub(u32::try_from(reserved).unwrap_or(u32::MAX))
    }

    /// What is reserved for gateways other than `sharing`.
    fn reserved(&self, now: Instant, sharing: &[GatewayKey]) -> Reserved {
        let mut reserved = Reserved::default();
        for key in self.gateways.keys().filter(|key| !sharing.contains(key)) {
            if self.takes_part(now, *key) {
                let told = self.ledger.told(now, *key);
                reserved.add((sum(told.values().map(|amounts| amounts.requests)), told));
            } else {
                reserved.add(self.ledger.reserved(now, *key));
            }
        }
        reserved
    }

    /// `None` if the volume was forgotten.
    fn allocated(&self, volume: VolumeKey, reasoning: Reasoning) -> Option<Allocated> {
        let of = |(key, gateway): (&GatewayKey, &crate::gateways::Gateway)| {
            gateway.stream.as_ref()?;
            let target = gateway.target.get(&volume)?;
            Some((self.gateway_names.name(*key)?.to_owned(), Grant::from(*target)))
        };
        Some(Allocated {
            volume: self.names.name(volume)?.to_owned(),
            objective: self.volumes.get(&volume).copied().unwrap_or_default().objective,
            reasoning,
            split: self.gateways.iter().filter_map(of).collect(),
        })
    }
}

/// What gateways saw of each volume.
type Seen = BTreeMap<VolumeKey, Vec<(GatewayKey, PortObservation)>>;

fn listening_targets<'a>(
    controller: &'a mut Controller,
    listening: &'a [GatewayKey],
) -> impl Iterator<Item = &'a mut Holding> {
    let gateways = controller.gateways.iter_mut().filter(|(key, _)| listening.contains(key));
    gateways.map(|(_, gateway)| &mut gateway.target)
}

/// The part of `limits` that `left` leaves for so many gateways, at least one request for each. Where nothing
/// is left of a rate, the law is told the whole limit; `retarget` then cuts its grants down to the static
/// parts.
fn left_of(limits: Limits, left: Bounds, gateways: usize) -> Limits {
    let gateways = NonZeroU32::new(u32::try_from(gateways).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN);
    let iops = || left.iops.limit().and_then(MilliIops::new).map(Iops::from);
    let bandwidth = || left.bandwidth.limit().and_then(Bandwidth::new);
    Limits {
        concurrency: limits
            .concurrency
            .map(|limit| NonZeroU32::new(left.requests.of(limit.get())).unwrap_or(gateways).max(gateways)),
        max_iops: limits.max_iops.map(|limit| iops().unwrap_or(limit)),
        max_bandwidth: limits.max_bandwidth.map(|limit| bandwidth().unwrap_or(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_is_told_what_is_left_of_a_limit_and_the_limit_where_nothing_is() {
        let told = |concurrency, iops, bandwidth| Limits {
            concurrency: NonZeroU32::new(concurrency),
            max_iops: Iops::new(iops),
            max_bandwidth: Bandwidth::new(bandwidth),
        };
        let limits = told(9, 900.0, 9_000);
        let left = |requests, iops, bandwidth| Bounds {
            requests: Bound::AtMost(requests),
            iops: Bound::AtMost(iops),
            bandwidth: Bound::AtMost(bandwidth),
        };
        assert_eq!(left_of(limits, left(7, 1_500, 80), 3), told(7, 1.5, 80));
        assert_eq!(left_of(limits, left(0, 0, 0), 3), told(3, 900.0, 9_000), "a request for each gateway");
        assert_eq!(left_of(Limits::default(), Bounds::UNLIMITED, 3), Limits::default());
    }
}
