//! A leased pool, on its shard.

use std::collections::BTreeMap;

use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;
use weir_control::{Grant, PortObservation};
use weir_engine::Grants;
use weir_model::VolumeId;

use super::{Pool, Shard};
use crate::leased::{LeaseTerms, Observations};

impl Shard {
    pub(super) fn observe(&mut self, pool: usize, observations: Sender<Observations>) {
        if let Some(pool) = self.pools.get_mut(pool) {
            pool.observer = Some(observations);
        }
    }

    pub(super) fn apply_terms(&mut self, pool: usize, terms: &LeaseTerms, done: oneshot::Sender<()>) {
        let now = self.clock.now();
        let Some(pool) = self.pools.get_mut(pool).filter(|pool| pool.is_leased()) else { return };
        pool.engine.set_fallback(now, pool.by_number(&terms.after));
        let volumes = pool.by_number(&terms.volumes);
        pool.engine.handle_grants(now, Grants { until: terms.until, volumes });
        pool.dirty = true;
        let _ = done.send(());
    }
}

impl Pool {
    /// Tells the observer, by whom the controller is told, what was seen, if an interval has ended.
    pub(super) fn tell_observer(&mut self) {
        let Some(seen) = self.engine.poll_observation() else { return };
        let named = |(id, seen): (VolumeId, PortObservation)| {
            Some((self.volumes.get(id.0 as usize)?.as_ref()?.name.clone(), seen))
        };
        let named = seen.into_iter().filter_map(named).collect();
        if let Some(observer) = &self.observer {
            let _ = observer.try_send(named); // nobody listens, or they have not taken the last one
        }
    }

    fn by_number(&self, grants: &BTreeMap<String, Grant>) -> Vec<(VolumeId, Grant)> {
        let volumes =
            self.volumes.iter().zip(0..).filter_map(|(volume, number)| Some((volume.as_ref()?, number)));
        volumes.filter_map(|(volume, number)| Some((VolumeId(number), *grants.get(&volume.name)?))).collect()
    }
}
