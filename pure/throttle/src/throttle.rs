//! The state machine of packet delay: facts come in, and what the kernel is to hold comes out.
//!
//! Its driver calls [`Throttle::handle_counters`] in each interval of the law, [`Throttle::handle_survey`]
//! once a second, and [`Throttle::handle_present`] whenever it has read what the kernel holds. After each of
//! them it applies the [`plan`](crate::plan()) that leads from what is present to what is
//! [`wanted`](Throttle::wanted), and fetches the notices.
//!
//! A resource's law watches in each interval, whether it has members or not: reads may wait for too long
//! before the first writer is a member, and then it is delayed at once. Members are decided at each survey.

use std::collections::{BTreeMap, BTreeSet};

use weir_control::OneSidedPid;
use weir_model::{Instant, Span};

use crate::guards::Guards;
use crate::kernel::{LeafId, Present, Wanted};
use crate::members::{Decision, Lists, Standing, decide};
use crate::meters::Meters;
use crate::notice::{Notice, Notices};
use crate::placement::{LeafState, Placement};
use crate::report::{Guarded, InitiatorReport, OutOfReach, Report, ResourceReport};
use crate::roster::Roster;
use crate::settings::{Settings, SettingsError, Unknown};
use crate::survey::{BlockCounters, DeviceNumber, Survey};
use crate::writers::{Writer, Writers};

/// Everything that decides for `weir throttle`.
#[derive(Debug)]
pub struct Throttle {
    settings: Settings,
    guards: Guards,
    leaves: BTreeMap<LeafId, LeafState>,
    /// The last survey, as it was given.
    survey: Option<Survey>,
    roster: Roster,
    lists: Lists,
    meters: Meters,
    writers: Writers,
    decision: Decision,
    /// The members without a connection that can be delayed.
    unreached: BTreeSet<Writer>,
    /// The interfaces on which nothing can be delayed.
    lacking: BTreeSet<String>,
    /// Whether there was no survey since the settings were put in force.
    has_new_settings: bool,
    /// What was last said to be unknown.
    unknown: BTreeSet<Unknown>,
    placement: Placement,
    wanted: Wanted,
    notices: Notices,
}

impl Throttle {
    /// Nothing is known yet, and nothing is delayed.
    ///
    /// # Errors
    /// If the settings cannot be.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let guards = Guards::new(OneSidedPid::new(settings.law)?);
        Ok(Self {
            settings,
            guards,
            leaves: BTreeMap::new(),
            survey: None,
            roster: Roster::default(),
            lists: Lists::default(),
            meters: Meters::default(),
            writers: Writers::default(),
            decision: Decision::default(),
            unreached: BTreeSet::new(),
            lacking: BTreeSet::new(),
            has_new_settings: true,
            unknown: BTreeSet::new(),
            placement: Placement::default(),
            wanted: Wanted::default(),
            notices: Notices::default(),
        })
    }

    /// What was found on the host: once a second, and complete each time. Decides anew who is a member.
    pub fn handle_survey(&mut self, now: Instant, survey: &Survey) {
        for (device, bytes) in self.meters.take_written() {
            self.writers.handle_written(device, bytes);
        }
        // Sessions come and go seldom, and to arrange a survey costs several times as much as all else.
        let is_same = self.survey.as_ref().is_some_and(|before| survey.is_same_but_for_counters(before));
        if is_same {
            self.roster.take_counters(survey);
        } else {
            self.follow(survey);
            self.survey = Some(survey.clone());
        }
        if !is_same || self.has_new_settings {
            self.tell_of_unknown(survey);
        }
        self.writers.handle_survey(now, &self.roster, self.settings.rate_smoothing);
        let limit_of = |leaf| self.guards.get(leaf).map_or(u64::MAX, |guard| guard.write_limit);
        let lacking = &self.lacking;
        let decision = decide(&self.lists, &self.roster, &self.writers, limit_of, lacking, &self.decision);
        let decided_before = std::mem::replace(&mut self.decision, decision);
        let reached: BTreeSet<_> = self.decision.eligible.values().flatten().copied().collect();
        self.guards.iter_mut().for_each(|(leaf, guard)| guard.reaches = reached.contains(&leaf));
        self.placement.set_eligible(std::mem::take(&mut self.decision.eligible));
        self.tell_of_members(&decided_before);
        self.place(now);
        self.follow_interfaces();
    }

    /// The counters of [`devices_to_read`](Self::devices_to_read), in each interval of the law. A device that
    /// is missing could not be read. Decides the delays anew.
    pub fn handle_counters(&mut self, now: Instant, counters: &BTreeMap<DeviceNumber, BlockCounters>) {
        let reads = self.meters.handle_counters(now, counters);
        for (leaf, guard) in self.guards.iter_mut() {
            let wait = reads.get(&leaf).copied().unwrap_or_default().wait();
            let leaf = self.leaves.entry(leaf).or_insert(LeafState::IDLE);
            leaf.set_delay(now, guard.step(now, wait, leaf.delay));
        }
        self.place(now);
        self.tell_of_ceilings(now);
    }

    /// Delays nobody until the next survey: who writes is not known.
    pub fn delay_nobody(&mut self, now: Instant) {
        self.guards.iter_mut().for_each(|(_, guard)| guard.reaches = false);
        self.placement.set_eligible(BTreeMap::new());
        self.place(now);
    }

    /// What the kernel holds.
    pub fn handle_present(&mut self, present: &Present) {
        self.leaves.values_mut().for_each(|leaf| leaf.has_packets = false);
        let mut held: BTreeSet<_> = present.members.values().map(|&(leaf, _)| leaf).collect();
        for (leaf, &(_, has_packets)) in present.interfaces.values().flatten() {
            held.insert(*leaf);
            if let Some(leaf) = self.leaves.get_mut(leaf) {
                leaf.has_packets |= has_packets;
            }
        }
        self.guards.set_held(held);
    }

    /// The interfaces that lack the agent's root queue and cannot have it, for instance because somebody has
    /// set another one. From the next survey on, a connection through one of them is a member's no more: its
    /// packets would pass by, or enter a class of somebody's with the number of a leaf.
    pub fn set_lacking(&mut self, interfaces: BTreeSet<String>) {
        self.lacking = interfaces;
    }

    /// The devices whose counters are to be read in each interval.
    pub fn devices_to_read(&self) -> impl Iterator<Item = DeviceNumber> {
        self.meters.devices()
    }

    /// What the kernel is to hold.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Puts other settings in force. Delays stay where they are, and change from there. Who is delayed is
    /// decided anew at the next survey.
    ///
    /// # Errors
    /// If the settings cannot be. Then nothing has changed.
    pub fn set_settings(&mut self, settings: Settings) -> Result<(), SettingsError> {
        settings.check()?;
        self.guards.set_settings(&settings)?;
        self.lists = Lists::new(&settings, &self.roster);
        self.settings = settings;
        self.has_new_settings = true;
        self.unknown.clear();
        Ok(())
    }

    /// From now on the delay of the resource of that name is this one, whatever its law says.
    pub(crate) fn hold(&mut self, now: Instant, resource: &str, delay: Span) {
        for (leaf, guard) in self.guards.iter_mut().filter(|(_, guard)| guard.name == resource) {
            guard.hold(delay);
            self.leaves.entry(leaf).or_insert(LeafState::IDLE).set_delay(now, delay);
        }
        self.place(now);
    }

    /// Each resource with what its law saw and decided last.
    pub fn guarded(&self) -> impl Iterator<Item = Guarded<'_>> {
        self.guards.iter().map(|(leaf, guard)| Guarded {
            id: &guard.id,
            wait: guard.wait(),
            threshold: guard.threshold,
            delay: self.wanted.leaves.get(&leaf).map_or(Span::ZERO, |leaf| leaf.delay),
        })
    }

    /// The oldest notice that was not fetched yet.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.poll()
    }

    /// The state of everything.
    pub fn report(&self) -> Report {
        let out_of_reach = self.roster.out_of_reach.iter();
        let mut resources: BTreeMap<LeafId, ResourceReport> = self
            .guards
            .iter()
            .map(|(leaf, guard)| {
                let report = ResourceReport {
                    id: guard.id.clone(),
                    name: guard.name.clone(),
                    wait: guard.wait(),
                    last_wait: guard.last_wait.finished(),
                    threshold: guard.threshold,
                    delay: self.wanted.leaves.get(&leaf).map_or(Span::ZERO, |leaf| leaf.delay),
                    ceiling_reached: guard.is_at_ceiling(),
                    write_limit: guard.write_limit,
                    initiators: Vec::new(),
                };
                (leaf, report)
            })
            .collect();
        for (writer, &standing) in &self.decision.standings {
            let initiator = InitiatorReport {
                name: writer.1.to_string(),
                rate: self.writers.rate(writer),
                standing,
                connections: self.decision.reached.get(writer).copied().unwrap_or_default(),
            };
            if let Some(report) = resources.get_mut(&writer.0) {
                report.initiators.push(initiator);
            }
        }
        Report {
            resources: resources.into_values().collect(),
            out_of_reach: out_of_reach
                .map(|(target, why)| OutOfReach { target: target.clone(), why: why.clone() })
                .collect(),
            left_out: self.roster.left_out,
        }
    }

    /// Follows what is another than in the survey before.
    fn follow(&mut self, survey: &Survey) {
        let before = self.take_roster(survey);
        self.follow_devices(&before);
        self.lists = Lists::new(&self.settings, &self.roster);
        self.tell_of_survey(&before);
    }

    /// Arranges a survey, and follows the resources that come and go; the roster before.
    fn take_roster(&mut self, survey: &Survey) -> Roster {
        let mut seen = BTreeSet::new();
        let before = std::mem::take(&mut self.roster);
        self.roster = Roster::new(survey, &before, |resource| {
            let (leaf, is_new) = self.guards.admit(resource, &self.settings)?;
            seen.insert(leaf);
            if let Some(guard) = self.guards.get(leaf).filter(|_| is_new) {
                let (resource, threshold) = (guard.name.clone(), guard.threshold);
                self.notices.push(Notice::ResourceAppeared { resource, threshold });
            }
            Some(leaf)
        });
        for (leaf, guard) in self.guards.keep(&seen) {
            self.leaves.remove(&leaf);
            self.notices.push(Notice::ResourceVanished { resource: guard.name });
        }
        before
    }

    /// A device that is another one than before, by its name or by its resource, is measured anew.
    fn follow_devices(&mut self, before: &Roster) {
        let luns = &self.roster.luns;
        let is_same = |number| before.luns.get(&number) == luns.get(&number);
        luns.keys()
            .copied()
            .filter(|&number| !is_same(number))
            .for_each(|number| self.writers.forget(number));
        self.meters.follow(luns, is_same);
    }

    /// Places the connections of members, and writes into what is wanted what has changed.
    fn place(&mut self, now: Instant) {
        for change in self.placement.update(now, &self.leaves) {
            if let Some(leaf) = change.from.and_then(|leaf| self.wanted.leaves.get_mut(&leaf)) {
                leaf.members.remove(&change.connection);
            }
            if let Some(leaf) = change.to {
                self.wanted.leaves.entry(leaf).or_default().members.insert(change.connection);
            }
        }
        // A leaf is wanted from its first member on until its resource is gone.
        self.wanted.leaves.retain(|leaf, _| self.guards.get(*leaf).is_some());
        for (leaf, wanted) in &mut self.wanted.leaves {
            let delay = self.leaves.get(leaf).map_or(Span::ZERO, |leaf| leaf.delay);
            wanted.delay = if wanted.members.is_empty() { Span::ZERO } else { delay };
        }
    }

    /// An interface is wanted for as long as a connection at a portal leads through it, whether anybody is
    /// delayed or not. To exchange a root queue loses the packets in it, so it is exchanged when an initiator
    /// logs in, and not when it writes the most.
    fn follow_interfaces(&mut self) {
        self.wanted.interfaces = self.roster.connections.values().flatten().cloned().collect();
    }

    fn tell_of_ceilings(&mut self, now: Instant) {
        for (leaf, guard) in self.guards.iter_mut() {
            let in_force = self.wanted.leaves.get(&leaf).is_some_and(|leaf| !leaf.members.is_empty());
            let Some(is_reached) = guard.ceiling_news(now, in_force) else { continue };
            let resource = guard.name.clone();
            self.notices.push(if is_reached {
                let (wait, threshold) = (guard.wait(), guard.threshold);
                Notice::CeilingReached { resource, wait, threshold, ceiling: self.settings.law.ceiling }
            } else {
                Notice::CeilingLeft { resource }
            });
        }
    }

    fn tell_of_members(&mut self, before: &Decision) {
        let was_member = |writer: &Writer| before.standings.get(writer).is_some_and(|was| was.is_member());
        for (writer, standing) in self.decision.members().filter(|(writer, _)| !was_member(writer)) {
            if let Some(guard) = self.guards.get(writer.0) {
                self.notices.push(Notice::MemberJoined {
                    resource: guard.name.clone(),
                    initiator: writer.1.to_string(),
                    rate: self.writers.rate(writer),
                    forced: standing == Standing::Forced,
                });
            }
        }
        for (writer, _) in before.members() {
            let is_member = self.decision.standings.get(writer).is_some_and(|standing| standing.is_member());
            // With a resource that has vanished, all of its members left. That was said already.
            if let Some(guard) = self.guards.get(writer.0).filter(|_| !is_member) {
                let (resource, initiator) = (guard.name.clone(), writer.1.to_string());
                self.notices.push(Notice::MemberLeft { resource, initiator });
            }
        }
        let unreached = self.decision.members().map(|(writer, _)| writer);
        let unreached = unreached.filter(|writer| self.decision.reached.get(writer) == Some(&0));
        let unreached: BTreeSet<_> = unreached.cloned().collect();
        for writer in unreached.difference(&self.unreached) {
            if let Some(guard) = self.guards.get(writer.0) {
                let (resource, initiator) = (guard.name.clone(), writer.1.to_string());
                self.notices.push(Notice::MemberOutOfReach { resource, initiator });
            }
        }
        self.unreached = unreached;
    }

    fn tell_of_survey(&mut self, before: &Roster) {
        for (target, why) in &self.roster.out_of_reach {
            if before.out_of_reach.get(target) != Some(why) {
                let (target, why) = (target.clone(), why.clone());
                self.notices.push(Notice::TargetOutOfReach { target, why });
            }
        }
        for target in before.out_of_reach.keys().filter(|&name| !self.roster.out_of_reach.contains_key(name))
        {
            self.notices.push(Notice::TargetNoLonger { target: target.clone() });
        }
        if self.roster.left_out != before.left_out {
            self.notices.push(Notice::LeftOut(self.roster.left_out));
        }
    }

    /// Says once what the settings name and is not there. Initiators come and go, so they are looked for only
    /// when the settings are new.
    fn tell_of_unknown(&mut self, survey: &Survey) {
        let is_new = std::mem::take(&mut self.has_new_settings);
        let is_told = |unknown: &Unknown| is_new || matches!(unknown, Unknown::Resource(_));
        let unknown: BTreeSet<_> = self.settings.unknown_in(survey).into_iter().filter(is_told).collect();
        for unknown in unknown.difference(&self.unknown) {
            self.notices.push(Notice::Unknown(unknown.clone()));
        }
        self.unknown = unknown;
    }
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
