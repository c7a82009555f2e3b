//! Failures of members, and the rebuilding of the members that replace them.

use weir_model::{Instant, Span};

use crate::array::event::{Event, Turn};
use crate::raid::{Extent, RaidLevel};

use super::Unit;
use super::job::{Kind, Phase, RebuildPart};
use super::members::{Health, LostOperation};

/// Bytes of a member that are rebuilt at a time. They are enough that the arm's way to them matters little,
/// and few enough that no request waits for long behind them.
const PART: u64 = 256 * 1024;

/// The rebuilding of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rebuild {
    member: u32,
    generation: u16,
    /// When the next part may begin: earlier would be faster than the given rate.
    next_at: Instant,
}

impl Unit {
    /// Marks a member as failed. Returns the operations that it had not done.
    pub(super) fn lose_member(&mut self, now: Instant, member: u32) -> Vec<LostOperation> {
        if self.members.health(member) == Health::Failed {
            return Vec::new();
        }
        let lost = self.members.fail(now, member);
        let ails = |member| self.members.health(member) != Health::Works;
        self.lost |= match self.geometry.level {
            RaidLevel::Single | RaidLevel::Raid0 => true,
            RaidLevel::Raid1 => ails(member ^ 1),
            RaidLevel::Raid5 => (0..self.geometry.members).filter(|member| ails(*member)).count() > 1,
        };
        if self.lost || self.rebuild.is_some_and(|rebuild| rebuild.member == member) {
            self.rebuild = None;
        }
        lost
    }

    pub(super) fn replace_failed(&mut self, turn: &mut Turn<'_>) {
        if self.lost || self.rebuild.is_some() {
            return;
        }
        let Some(member) = self.members.first_failed() else { return };
        self.members.replace(member);
        let generation = self.members.generation(member);
        self.rebuild = Some(Rebuild { member, generation, next_at: turn.now });
        self.rebuild_next(turn, generation);
    }

    /// Begins the next part, if the member of this generation is still being rebuilt.
    pub(super) fn rebuild_next(&mut self, turn: &mut Turn<'_>, generation: u16) {
        let used = self.size.div_ceil(self.geometry.row_bytes()) * self.geometry.stripe_unit;
        let Some(rebuild) = self.rebuild.as_mut().filter(|rebuild| rebuild.generation == generation) else {
            return;
        };
        let member = rebuild.member;
        let Health::Rebuilding { up_to } = self.members.health(member) else { return };
        let length = u32::try_from((used - up_to).min(PART)).expect("a part is short");
        let pace = u64::from(length) * 1_000_000_000 / self.options.rebuild_rate.get();
        rebuild.next_at = turn.now.max(rebuild.next_at) + Span::from_nanos(pace);
        let part = RebuildPart { member, generation, offset: up_to, length };
        let job = self.new_job(Kind::Rebuild { part, phase: Phase::Reads });
        self.read_from_others(turn, job, Extent { member, offset: up_to, length });
    }

    pub(super) fn rebuild_phase_ended(
        &mut self,
        turn: &mut Turn<'_>,
        place: u32,
        part: RebuildPart,
        phase: Phase,
    ) {
        let RebuildPart { member, generation, offset, length } = part;
        let current = self.rebuild.filter(|rebuild| rebuild.generation == generation);
        let Some(Rebuild { next_at, .. }) = current.filter(|_| self.jobs[place].ok) else {
            self.end_job(place);
            return;
        };
        if phase == Phase::Reads {
            self.jobs[place].kind = Kind::Rebuild { part, phase: Phase::Writes };
            self.issue(turn, place, Extent { member, offset, length }, true);
            return;
        }
        self.end_job(place);
        let up_to = offset + u64::from(length);
        let used = self.size.div_ceil(self.geometry.row_bytes()) * self.geometry.stripe_unit;
        if up_to >= used {
            self.members.set_health(member, Health::Works);
            self.rebuild = None;
        } else {
            self.members.set_health(member, Health::Rebuilding { up_to });
            let at = turn.now.max(next_at);
            turn.events.push(at, Event::RebuildDue { unit: self.number, generation });
        }
    }
}
