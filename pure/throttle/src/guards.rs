//! The resources that are guarded: each with its law and with the number of its leaf.

use std::collections::{BTreeMap, BTreeSet};

use weir_control::{Law, OneSidedPid, PidProblem, ReadWait, WaitObservation};
use weir_model::{Instant, Span};

use crate::kernel::LeafId;
use crate::limits::MOST_RESOURCES;
use crate::resource::{Resource, ResourceId};
use crate::rise::risen;
use crate::settings::Settings;

/// How long the law has to be at the ceiling, or below it, before that is said: a delay that touches the
/// ceiling now and then is no news.
const SETTLED: Span = Span::from_secs(1);

/// All resources.
#[derive(Debug)]
pub(crate) struct Guards {
    /// The law as it begins for a new resource.
    new_law: OneSidedPid,
    guards: BTreeMap<LeafId, Guard>,
    leaf_of: BTreeMap<ResourceId, LeafId>,
    /// The leaf that was given last.
    last: LeafId,
    /// The leaves that the kernel still has, or that elements lead to.
    held: BTreeSet<LeafId>,
}

/// A resource that is guarded.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) id: ResourceId,
    pub(crate) name: String,
    pub(crate) threshold: Span,
    /// In bytes a second.
    pub(crate) write_limit: u64,
    law: OneSidedPid,
    /// Whether a delay would reach anybody.
    pub(crate) reaches: bool,
    /// In the last interval.
    pub(crate) last_wait: ReadWait,
    /// The delay in place of the law's.
    held: Option<Span>,
    ceiling_reached: bool,
    /// Since when the law says otherwise than `ceiling_reached`.
    otherwise_since: Option<Instant>,
}

impl Guards {
    /// No resource, and the law as each of them begins.
    pub(crate) fn new(new_law: OneSidedPid) -> Self {
        let nothing = BTreeMap::new();
        Self { new_law, guards: nothing, leaf_of: BTreeMap::new(), last: LeafId(0), held: BTreeSet::new() }
    }

    /// Puts other settings in force. The law of each resource goes on from the delay that it has.
    ///
    /// # Errors
    /// If the law cannot work so.
    pub(crate) fn set_settings(&mut self, settings: &Settings) -> Result<(), PidProblem> {
        self.new_law = OneSidedPid::new(settings.law)?;
        for guard in self.guards.values_mut() {
            guard.threshold = settings.threshold_of(&guard.name);
            guard.write_limit = settings.write_limit_of(&guard.name);
            guard.law.set_config(settings.law)?;
        }
        Ok(())
    }

    /// The leaf of a resource, and whether the resource is new; `None` if there are too many.
    pub(crate) fn admit(&mut self, resource: Resource, settings: &Settings) -> Option<(LeafId, bool)> {
        if let Some(&leaf) = self.leaf_of.get(&resource.id) {
            return Some((leaf, false));
        }
        let leaf = self.free_leaf().filter(|_| self.guards.len() < MOST_RESOURCES)?;
        self.last = leaf;
        self.leaf_of.insert(resource.id.clone(), leaf);
        let guard = Guard {
            threshold: settings.threshold_of(&resource.name),
            write_limit: settings.write_limit_of(&resource.name),
            id: resource.id,
            name: resource.name,
            law: self.new_law.clone(),
            reaches: false,
            last_wait: ReadWait::NoReads,
            held: None,
            ceiling_reached: false,
            otherwise_since: None,
        };
        self.guards.insert(leaf, guard);
        Some((leaf, true))
    }

    /// Forgets the resources that were not seen; they are returned.
    pub(crate) fn keep(&mut self, seen: &BTreeSet<LeafId>) -> BTreeMap<LeafId, Guard> {
        let kept = std::mem::take(&mut self.guards);
        let (kept, gone): (BTreeMap<_, _>, _) = kept.into_iter().partition(|(leaf, _)| seen.contains(leaf));
        self.guards = kept;
        self.leaf_of.retain(|_, leaf| seen.contains(leaf));
        gone
    }

    /// The kernel has something of these leaves, so no new resource gets their numbers.
    pub(crate) fn set_held(&mut self, held: BTreeSet<LeafId>) {
        self.held = held;
    }

    /// The resource of a leaf.
    pub(crate) fn get(&self, leaf: LeafId) -> Option<&Guard> {
        self.guards.get(&leaf)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LeafId, &Guard)> {
        self.guards.iter().map(|(&leaf, guard)| (leaf, guard))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (LeafId, &mut Guard)> {
        self.guards.iter_mut().map(|(&leaf, guard)| (leaf, guard))
    }

    /// The next number that is free, so that each is used again as late as possible: packets or elements of
    /// the resource that had it before may still be in the kernel.
    fn free_leaf(&self) -> Option<LeafId> {
        let numbers = (1..=u16::MAX).map(|further| LeafId(self.last.0.wrapping_add(further)));
        let mut numbers = numbers.filter(|leaf| leaf.0 != 0);
        numbers.find(|leaf| !self.guards.contains_key(leaf) && !self.held.contains(leaf))
    }
}

impl Guard {
    /// How long its reads wait: the law's EWMA.
    pub(crate) fn wait(&self) -> Span {
        self.law.smoothed_wait()
    }

    /// Whether the delay has been at its ceiling for a while.
    pub(crate) fn is_at_ceiling(&self) -> bool {
        self.ceiling_reached
    }

    /// The delay of the next interval. In the last one it was `present`.
    pub(crate) fn step(&mut self, now: Instant, wait: ReadWait, present: Span) -> Span {
        self.last_wait = wait;
        let seen = WaitObservation { wait, threshold: self.threshold, reaches: self.reaches };
        let wanted = self.law.step(now, &seen).span();
        // Before it reaches somebody, a delay does not begin to rise.
        let delay = if self.reaches { risen(present, wanted) } else { Span::ZERO };
        self.law.limit(delay);
        self.held.unwrap_or(delay)
    }

    /// From now on the delay is this one, whatever the law says.
    pub(crate) const fn hold(&mut self, delay: Span) {
        self.held = Some(delay);
    }

    /// Whether the ceiling was reached or left, if that is news. It counts only while the delay is in force.
    pub(crate) fn ceiling_news(&mut self, now: Instant, in_force: bool) -> Option<bool> {
        let is_at = in_force && self.law.is_at_ceiling();
        if is_at == self.ceiling_reached {
            self.otherwise_since = None;
            return None;
        }
        let since = *self.otherwise_since.get_or_insert(now);
        (now.saturating_since(since) >= SETTLED).then(|| {
            (self.ceiling_reached, self.otherwise_since) = (is_at, None);
            is_at
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::resource_of;
    use crate::survey::DeviceNumber;

    fn guards() -> (Guards, Settings) {
        let settings = Settings::new(Span::from_millis(10));
        (Guards::new(OneSidedPid::new(settings.law).unwrap()), settings)
    }

    /// A resource of its own.
    fn resource(minor: u32) -> Resource {
        resource_of(DeviceNumber { major: 8, minor }, &BTreeMap::new())
    }

    #[test]
    fn a_number_is_given_again_as_late_as_possible_and_not_while_the_kernel_holds_it() {
        let (mut guards, settings) = guards();
        let admit = |guards: &mut Guards, minor| guards.admit(resource(minor), &settings);
        assert_eq!(admit(&mut guards, 1), Some((LeafId(1), true)));
        assert_eq!(admit(&mut guards, 1), Some((LeafId(1), false)));
        assert_eq!(guards.keep(&BTreeSet::new()).len(), 1);
        assert_eq!(admit(&mut guards, 1), Some((LeafId(2), true)));
        guards.last = LeafId(u16::MAX);
        guards.set_held([LeafId(1)].into());
        assert_eq!(admit(&mut guards, 2), Some((LeafId(3), true)));
    }

    #[test]
    fn resources_beyond_the_bound_get_no_leaf() {
        let (mut guards, settings) = guards();
        let most = u32::try_from(MOST_RESOURCES).unwrap();
        assert!((0..most).all(|minor| guards.admit(resource(minor), &settings).is_some()));
        assert_eq!(guards.admit(resource(most), &settings), None);
        assert_eq!(guards.admit(resource(0), &settings), Some((LeafId(1), false)));
    }

    #[test]
    fn the_ceiling_is_news_after_a_second_and_only_while_somebody_is_delayed() {
        let (mut guards, settings) = guards();
        guards.admit(resource(1), &settings);
        let (mut news, mut present) = (Vec::new(), Span::ZERO);
        let (_, guard) = guards.iter_mut().next().unwrap();
        guard.reaches = true;
        for tick in 0..80 {
            let now = Instant::ORIGIN + Span::from_millis(100 * tick);
            let wait = Span::from_millis(if (10..40).contains(&tick) { 500 } else { 1 });
            present = guard.step(now, ReadWait::Finished(wait), present);
            news.extend(guard.ceiling_news(now, tick >= 20).map(|is_at| (tick, is_at)));
        }
        let [(reached, true), (left, false)] = news[..] else { panic!("{news:?}") };
        assert!(reached == 30 && (50..70).contains(&left), "{news:?}");
    }

    #[test]
    fn a_law_that_reaches_nobody_has_not_begun_to_rise() {
        let (mut guards, settings) = guards();
        guards.admit(resource(1), &settings);
        let (_, guard) = guards.iter_mut().next().unwrap();
        let wait = ReadWait::Finished(Span::from_millis(49));
        let mut present = Span::ZERO;
        let delays = (0..40).map(|tick| {
            guard.reaches = tick >= 30;
            present = guard.step(Instant::ORIGIN + Span::from_millis(100 * tick), wait, present);
            present
        });
        let delays: Vec<_> = delays.collect();
        let (before, after) = delays.split_at(30);
        assert!(before.iter().all(|delay| delay.is_zero()), "{before:?}");
        assert_eq!((after[0], after.last()), (Span::from_millis(2), Some(&settings.law.ceiling)));
    }
}
