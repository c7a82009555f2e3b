//! The loop of a leased pool, whose bounds a controller grants: it measures, and obeys.
//!
//! Grants hold until an instant that comes with them. A pool that gets no new grants until then has lost its
//! controller. It falls back to what it was told to do without a lease: a part of the total that no other
//! gateway is ever given.

use std::num::NonZeroU32;

use weir_control::{Grant, PortObservation};
use weir_model::{Instant, VolumeId};

use super::Pool;
use crate::config::{Grants, LeasedConfig};
use crate::event::GrantedBy;
use crate::tick::Tick;

/// The loop.
#[derive(Debug)]
pub(crate) struct LeasedLoop {
    tick: Tick,
    /// Until when the controller's grants hold; `None`: the fallback is in force.
    until: Option<Instant>,
    fallback: Vec<(VolumeId, Grant)>,
    observed: Option<Vec<(VolumeId, PortObservation)>>,
}

impl LeasedLoop {
    pub(super) fn new(now: Instant, config: LeasedConfig) -> Self {
        Self { tick: Tick::new(now, config.interval), until: None, fallback: Vec::new(), observed: None }
    }

    pub(super) fn due(&self) -> Instant {
        self.until.map_or(self.tick.due(), |until| until.min(self.tick.due()))
    }

    /// What was measured in the interval that ended last, once.
    pub(crate) fn poll_observation(&mut self) -> Option<Vec<(VolumeId, PortObservation)>> {
        self.observed.take()
    }

    /// Until when the controller's grants hold; `None`: the fallback is in force.
    pub(crate) const fn until(&self) -> Option<Instant> {
        self.until
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, pool: &mut Pool<'_>) {
        self.end_lease(now, pool);
        if self.tick.serve(now) {
            let requests = pool.requests;
            let usage = pool.volumes.iter_mut().map(|(id, volume)| (id, volume.take_usage(now, requests)));
            self.observed = Some(usage.collect());
        }
    }

    /// Falls back if the lease is over. The engine also calls it before each request that goes to the device:
    /// a driver that was held up may find much to do, and by then others may have what it was granted.
    pub(crate) fn end_lease(&mut self, now: Instant, pool: &mut Pool<'_>) {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            self.fall_back(now, pool);
        }
    }

    /// A controller has granted this. Grants that come after their time end the lease before them: they are
    /// acknowledged all the same, and then what they cut belongs to others. Grants to volumes that have gone
    /// are ignored.
    pub(crate) fn handle_grants(&mut self, now: Instant, grants: &Grants, pool: &mut Pool<'_>) {
        if grants.until <= now {
            if self.until.take().is_some() {
                self.fall_back(now, pool);
            }
            return;
        }
        self.until = Some(grants.until);
        for (id, grant) in &grants.volumes {
            if pool.volumes.contains(*id) {
                pool.grant(now, *id, *grant, GrantedBy::Controller);
            }
        }
    }

    /// Sets what the volumes may do without a lease.
    pub(crate) fn set_fallback(
        &mut self,
        now: Instant,
        fallback: Vec<(VolumeId, Grant)>,
        pool: &mut Pool<'_>,
    ) {
        self.fallback = fallback;
        if self.until.is_none() {
            self.fall_back(now, pool);
        }
    }

    /// A newcomer gets one request at a time, taken from another if there is one to spare, so that the sum
    /// that the controller knows of holds.
    pub(super) fn on_volumes_changed(&mut self, now: Instant, pool: &mut Pool<'_>) {
        let by = if self.until.is_some() { GrantedBy::Controller } else { GrantedBy::Fallback };
        let dealt = pool.volumes.iter().filter_map(|(_, volume)| volume.grant());
        // What a controller grants is not bounded here; more than a number can say is as good as the most.
        let total = dealt.fold(0, |sum: u32, grant| sum.saturating_add(grant.concurrency.get()));
        pool.admit(now, NonZeroU32::new(total).unwrap_or(NonZeroU32::MIN), by);
    }

    fn fall_back(&self, now: Instant, pool: &mut Pool<'_>) {
        for id in pool.volumes.ids() {
            let told = self.fallback.iter().find(|(told, _)| *told == id).map(|(_, grant)| *grant);
            let grant = told.unwrap_or_else(|| pool.volumes.part_of_limits(id, NonZeroU32::MIN));
            pool.grant(now, id, grant, GrantedBy::Fallback);
        }
    }
}
