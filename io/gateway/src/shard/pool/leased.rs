//! A leased pool: its observations for the controller, and the terms that it gets.

use std::collections::BTreeMap;

use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;
use weir_control::{Grant, PortObservation};
use weir_engine::Grants;
use weir_model::{Instant, VolumeId};

use super::Pool;
use crate::shard::command::{LeaseTerms, Observations};

impl Pool {
    /// From now on, sends the pool's observations to `observations`.
    pub(in crate::shard) fn observe(&mut self, observations: Sender<Observations>) {
        self.observer = Some(observations);
    }

    /// Puts terms in force, if the pool is leased; `done` is dropped if it is not.
    pub(in crate::shard) fn apply_terms(
        &mut self,
        now: Instant,
        terms: &LeaseTerms,
        done: oneshot::Sender<()>,
    ) {
        if !self.is_leased() {
            return;
        }
        self.engine.set_fallback(now, self.by_number(&terms.after));
        let volumes = self.by_number(&terms.volumes);
        self.engine.handle_grants(now, Grants { until: terms.until, volumes });
        self.dirty = true;
        let _ = done.send(());
    }

    /// Sends the observations of an interval that has ended to the observer, which reports them to the
    /// controller.
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
