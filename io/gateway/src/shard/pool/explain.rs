//! The decisions of a law that shares out concurrency about each volume in the last control intervals, and
//! the reasons.

use std::collections::VecDeque;

use weir_engine::{Control, MaestroConfig, Reasoning, TotalConcurrency};
use weir_model::{Instant, Objective, VolumeId};
use weir_status::{ControlKind, Explanation, GrantStatus, IntervalStatus, PoolSharing, VolumeSharing};

use super::Pool;

/// How many intervals are kept for each volume: a minute of intervals of the default length.
const KEPT: usize = 30;

/// The last control intervals of a volume.
#[derive(Default, Debug)]
pub(super) struct Intervals(VecDeque<Interval>);

#[derive(Debug)]
struct Interval {
    ended: Instant,
    /// The volume's objective in that interval.
    objective: Objective,
    reasoning: Reasoning,
    /// The bounds that were granted for the next interval, at each port.
    grants: Vec<GrantStatus>,
}

impl Intervals {
    fn last(&self) -> Option<&Interval> {
        self.0.back()
    }

    fn push(&mut self, interval: Interval) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(interval);
    }
}

impl Pool {
    /// The last control intervals of a volume, or what its pool allows to the background; `None` if it is
    /// gone.
    pub(in crate::shard) fn explain(&self, now: Instant, id: VolumeId) -> Option<Explanation> {
        let volume = self.volumes.get(id.0 as usize)?.as_ref()?;
        let status = |interval: &Interval| {
            let age = now.saturating_since(interval.ended).as_secs_f64();
            IntervalStatus::new(age, interval.objective, &interval.reasoning, interval.grants.clone())
        };
        Some(Explanation {
            volume: volume.name.clone(),
            pool: self.name.clone(),
            control: self.control_kind(),
            intervals: volume.intervals.0.iter().map(status).collect(),
            background: self.background(),
        })
    }

    /// The control that decides about the pool's requests.
    pub(super) const fn control_kind(&self) -> ControlKind {
        match self.control {
            Control::None => ControlKind::None,
            Control::Facade(_) => ControlKind::Facade,
            Control::Maestro(_) | Control::Leased(_) => ControlKind::Maestro,
            Control::Promise | Control::SharedPromise => ControlKind::Promise,
            Control::Pid(_) => ControlKind::Pid,
        }
    }

    /// Whether a controller grants the bounds of this pool.
    pub(super) const fn is_leased(&self) -> bool {
        matches!(self.control, Control::Leased(_))
    }

    /// Notes a decision of the law about a volume.
    pub(super) fn note_allocation(&mut self, now: Instant, id: VolumeId, reasoning: Reasoning) {
        let Some(volume) = self.volumes[id.0 as usize].as_ref() else { return };
        let (objective, grants) = (volume.config.objective, self.grants(volume));
        self.volume(id).intervals.push(Interval { ended: now, objective, reasoning, grants });
    }

    /// Forgets all decisions, because another law rules, or the same law starts anew.
    pub(super) fn forget_allocations(&mut self) {
        self.volumes.iter_mut().flatten().for_each(|volume| volume.intervals = Intervals::default());
    }

    /// How the places at the device are shared out, if the pool's law does that.
    pub(super) fn sharing(&self) -> Option<PoolSharing> {
        let is_probed = match self.control {
            Control::Maestro(MaestroConfig { total, .. }) => total == TotalConcurrency::Auto,
            Control::Leased(_) => false,
            Control::None
            | Control::Facade(_)
            | Control::Promise
            | Control::SharedPromise
            | Control::Pid(_) => return None,
        };
        let last = self.volumes.iter().flatten().filter_map(|volume| volume.intervals.last());
        let case = last.max_by_key(|last| last.ended).map(|last| last.reasoning.case.into());
        Some(PoolSharing {
            total_concurrency: self.engine.snapshot().total_concurrency.map(u32::from),
            is_probed,
            case,
        })
    }

    /// The volume's part of the shared places.
    pub(super) fn sharing_of(&self, id: VolumeId) -> Option<VolumeSharing> {
        self.engine.grant(id)?;
        let volume = self.volumes[id.0 as usize].as_ref()?;
        let last = volume.intervals.last().map(|last| (last.objective, &last.reasoning));
        let desired = (volume.config.objective, volume.config.limits());
        Some(VolumeSharing::new(desired, self.grants(volume), last))
    }
}
