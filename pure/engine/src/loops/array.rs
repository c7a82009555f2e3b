//! The loop of Maestro where all ports of the array are the engine's own. It gives the law what each volume
//! got, and gives the scheduler the bounds that the law decides.
//!
//! **Between two intervals** volumes come and go, and the sum of the bounds must stay within the total.
//! Before the first interval ends, the loop deals the total out by priority. Later a newcomer gets one
//! request at a time, until the law has seen it for an interval. If all is dealt out, the volume with the
//! highest bound gives that request up.

use std::num::NonZeroU32;

use weir_control::{ApplicationObservation, ArrayLaw, Completions, Grant};
use weir_model::{Instant, VolumeId};

use super::Pool;
use crate::config::MaestroConfig;
use crate::event::{Event, GrantedBy};
use crate::tick::Tick;

/// The loop.
#[derive(Debug)]
pub(crate) struct ArrayLoop {
    law: ArrayLaw,
    pub(super) tick: Tick,
    has_run: bool,
}

impl ArrayLoop {
    pub(super) fn new(now: Instant, config: MaestroConfig, completions: Completions) -> Self {
        let law = ArrayLaw::with(config.total, completions);
        Self { law, tick: Tick::new(now, config.interval), has_run: false }
    }

    /// How many requests may be at the device at a time.
    pub(crate) const fn total(&self) -> NonZeroU32 {
        self.law.total()
    }

    /// Ends an interval that is over: reads the sensors, and turns the knobs.
    pub(super) fn handle_timeout(&mut self, now: Instant, pool: &mut Pool<'_>) {
        if !self.tick.serve(now) || pool.volumes.is_empty() {
            return;
        }
        self.has_run = true;
        let applications = pool.volumes.applications();
        let seen = applications.iter().map(|ports| observe(now, ports, pool)).collect();
        let setting = self.law.step(now, NONE_RESERVED, seen);
        for (ports, setting) in applications.iter().zip(setting.applications) {
            for (id, grant) in ports.iter().zip(setting.ports) {
                pool.grant(now, *id, grant, GrantedBy::Law);
            }
            pool.events.push_back(Event::Allocated { volume: ports[0], reasoning: setting.reasoning });
        }
    }

    pub(super) fn on_volumes_changed(&mut self, now: Instant, pool: &mut Pool<'_>) {
        if self.has_run {
            pool.admit(now, self.total(), GrantedBy::Law);
        } else {
            pool.deal_by_priority(now, self.total());
        }
    }
}

/// All ports of the array are the engine's.
const NONE_RESERVED: u32 = 0;

/// What the sensors saw of a volume with these ports.
fn observe(now: Instant, ports: &[VolumeId], pool: &mut Pool<'_>) -> ApplicationObservation {
    let requests = pool.requests;
    let first = pool.volumes.get(ports[0]);
    let (id, objective, limits) = (first.serial(), first.objective(), first.limits());
    let ports = ports.iter().map(|port| pool.volumes.get_mut(*port).take_usage(now, requests)).collect();
    ApplicationObservation { id, objective, limits, ports }
}

/// Whole parts of `total` in proportion to `weights`. Each part is at least one, as long as the total has so
/// many.
fn parts(total: u32, weights: &[f64]) -> impl Iterator<Item = NonZeroU32> {
    let count = u32::try_from(weights.len()).unwrap_or(u32::MAX);
    let spare = f64::from(total.saturating_sub(count));
    let sum: f64 = weights.iter().sum();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to a u32
    weights.iter().map(move |weight| NonZeroU32::MIN.saturating_add((spare * weight / sum) as u32))
}

impl Pool<'_> {
    /// Deals the total out to all volumes by their priorities.
    fn deal_by_priority(&mut self, now: Instant, total: NonZeroU32) {
        let applications = self.volumes.applications();
        let priority = |ports: &Vec<VolumeId>| self.volumes.get(ports[0]).objective().priority.get();
        let (ids, weights): (Vec<VolumeId>, Vec<f64>) = applications
            .iter()
            .flat_map(|ports| {
                let count = u32::try_from(ports.len()).unwrap_or(u32::MAX);
                let weight = priority(ports) / f64::from(count);
                ports.iter().map(move |port| (*port, weight))
            })
            .unzip();
        for (id, concurrency) in ids.into_iter().zip(parts(total.get(), &weights)) {
            let grant = self.volumes.part_of_limits(id, concurrency);
            self.grant(now, id, grant, GrantedBy::Law);
        }
    }

    /// Gives each volume without a bound one request at a time. The sum of all bounds stays within `total`,
    /// as long as another volume has more than one request to give up.
    pub(super) fn admit(&mut self, now: Instant, total: NonZeroU32, by: GrantedBy) {
        for id in self.volumes.without_grant() {
            let bounds = || self.volumes.iter().filter_map(|(id, volume)| Some((id, volume.grant()?)));
            let dealt = bounds().fold(0, |sum: u32, (_, grant)| sum.saturating_add(grant.concurrency.get()));
            let richest = bounds().max_by_key(|(id, grant)| (grant.concurrency, std::cmp::Reverse(*id)));
            if let Some((richest, grant)) = richest
                && dealt >= total.get()
                && let Some(less) = NonZeroU32::new(grant.concurrency.get() - 1)
            {
                self.grant(now, richest, Grant { concurrency: less, ..grant }, by);
            }
            let grant = self.volumes.part_of_limits(id, NonZeroU32::MIN);
            self.grant(now, id, grant, by);
        }
    }

    /// Puts a grant in force.
    pub(super) fn grant(&mut self, now: Instant, id: VolumeId, grant: Grant, by: GrantedBy) {
        let volume = self.volumes.get_mut(id);
        if volume.set_grant(Some(grant)) {
            self.scheduler.set_volume(now, id, &volume.knobs());
            self.events.push_back(Event::Granted { volume: id, grant, by });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_by_weight_and_their_sum_is_within_the_total() {
        let of = |total, weights: &[f64]| parts(total, weights).map(NonZeroU32::get).collect::<Vec<_>>();
        assert_eq!(of(10, &[1.0, 4.0]), [2, 7]);
        assert_eq!(of(2, &[1.0, 100.0]), [1, 1]);
        assert_eq!(of(160, &[1.0]), [160]);
    }
}
