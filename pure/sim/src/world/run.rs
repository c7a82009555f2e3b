//! The driver's loop.

use weir_engine::{Dispatch, Engine, Request};
use weir_model::{Instant, Io, VolumeId};

use super::agenda::{Agenda, Entry};
use super::clients::Clients;
use super::requests::{Held, Requests};
use super::{Observer, Outcome};
use crate::array::{Array, Command, Finished};
use crate::check::{Breach, Checkers, Violation};
use crate::random::Seed;
use crate::scenario::{FaultKind, Scenario};
use crate::workload::{Asked, Client};

/// The result of a step; an error stops the run.
type Going<T = ()> = Result<T, Box<Breach>>;

/// A run that has begun.
pub(super) struct Run<'a> {
    seed: u64,
    now: Instant,
    end: Instant,
    /// By volume: its first byte on the array.
    starts: Vec<u64>,
    engine: Engine,
    array: Array,
    clients: Clients,
    agenda: Agenda,
    requests: Requests,
    stages: Vec<Stage>,
    /// How many volumes are leaving.
    leaving: u32,
    checkers: Checkers,
    observer: &'a mut dyn Observer,
    outcome: Outcome,
}

/// The stage of a volume's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Present,
    /// It will be removed when its last request is answered.
    Leaving,
    Removed,
}

impl<'a> Run<'a> {
    pub(super) fn new(scenario: &Scenario, clients: Vec<Client>, observer: &'a mut dyn Observer) -> Self {
        let now = Instant::ORIGIN;
        let mut engine = Engine::new(now, scenario.engine);
        let mut checkers = Checkers::new(now, scenario.engine, engine.snapshot().depth_target);
        for volume in &scenario.volumes {
            engine.add_volume(now, volume.config.clone());
            checkers.on_volume_added(now, &volume.config);
        }
        Self {
            seed: scenario.seed,
            now,
            end: now + scenario.duration,
            starts: scenario.volumes.iter().map(|volume| volume.start).collect(),
            engine,
            array: Array::new(&scenario.array, Seed(scenario.seed)),
            clients: Clients::new(clients),
            agenda: Agenda::new(scenario),
            requests: Requests::default(),
            stages: vec![Stage::Present; scenario.volumes.len()],
            leaving: 0,
            checkers,
            observer,
            outcome: Outcome::default(),
        }
    }

    pub(super) fn finish(mut self) -> Result<Outcome, Violation> {
        match self.turns() {
            Ok(()) => Ok(self.outcome),
            Err(what) => Err(Violation { seed: self.seed, at: self.now, what }),
        }
    }

    /// Takes turn after turn, until nothing happens before the end.
    fn turns(&mut self) -> Going {
        loop {
            let next = self.next_at();
            if next > self.end {
                break;
            }
            self.checkers.on_time(next)?;
            self.now = next;
            self.turn()?;
        }
        let outstanding: Vec<(VolumeId, u32)> = self.outstanding().collect();
        self.outcome.outstanding = outstanding.iter().map(|(_, number)| u64::from(*number)).sum();
        self.outcome.utilisation = self.array.utilisation(self.end);
        self.checkers.at_end(self.end, outstanding.into_iter())
    }

    fn next_at(&self) -> Instant {
        let or_never = |at: Option<Instant>| at.unwrap_or(Instant::FAR_FUTURE);
        let asked = self.clients.next_at();
        let asked = if asked < self.end { asked } else { Instant::FAR_FUTURE };
        let timers = or_never(self.array.poll_timeout()).min(or_never(self.engine.poll_timeout()));
        asked.min(timers).min(self.agenda.next_at())
    }

    /// Lets everything happen that happens now.
    fn turn(&mut self) -> Going {
        let now = self.now;
        if self.array.poll_timeout().is_some_and(|at| at <= now) {
            self.array.handle_timeout(now);
            self.take_finished()?;
        }
        while let Some(entry) = self.agenda.pop_due(now) {
            self.follow(entry)?;
        }
        if now < self.end {
            while let Some((volume, asked)) = self.clients.ask(now) {
                self.submit(volume, asked)?;
            }
        }
        if self.engine.poll_timeout().is_some_and(|at| at <= now) {
            self.engine.handle_timeout(now);
            self.checkers.on_depth(self.engine.snapshot().depth_target);
            while let Some(id) = self.engine.poll_release() {
                self.reply(id.slot, true)?;
            }
        }
        loop {
            self.report()?;
            self.dispatch()?;
            if !self.take_finished()? {
                return self.checkers.at_rest(now);
            }
        }
    }

    /// Gives the engine a request of a client.
    fn submit(&mut self, volume: usize, asked: Asked) -> Going {
        let Asked { kind, offset, length, by_thread } = asked;
        let (owner, arrived, offset) = (number(volume), self.now, self.starts[volume] + offset);
        let id = self.engine.handle_submit(self.now, Request { volume: owner, kind, offset, length });
        self.requests.insert(Held { id, volume: owner.0, by_thread });
        self.outcome.submitted += 1;
        self.observer.on_submit(self.now, owner, kind);
        self.checkers.on_submit(&Io { id, volume: owner, kind, offset, length, arrived })
    }

    /// Gives the array what the engine issues.
    fn dispatch(&mut self) -> Going {
        while let Dispatch::Issue(io) = self.engine.poll_dispatch(self.now) {
            self.checkers.on_issue(self.now, &io)?;
            let Io { id, kind, offset, length, .. } = io;
            self.array.submit(self.now, Command { tag: id.slot, kind, offset, length });
        }
        Ok(())
    }

    /// Takes every answer of the array. Returns whether there was one.
    fn take_finished(&mut self) -> Going<bool> {
        let mut any = false;
        while let Some(Finished { tag, ok }) = self.array.poll_finished() {
            any = true;
            self.checkers.on_answer(self.now, tag, ok)?;
            let id = self.requests.id(tag).expect("the checkers know what is at the array");
            if self.engine.handle_complete(self.now, id, ok).is_none() {
                self.reply(tag, ok)?;
            }
        }
        Ok(any)
    }

    /// Hands the reply to a request to its client.
    fn reply(&mut self, tag: u32, ok: bool) -> Going {
        self.checkers.on_reply(self.now, tag)?;
        let held = self.requests.take(tag).expect("the checkers know what is answered");
        self.engine.handle_reply(self.now, held.id);
        if held.by_thread {
            self.clients.on_answer(self.now, held.volume as usize, ok);
        }
        if ok {
            self.outcome.answered += 1
        } else {
            self.outcome.failed += 1
        }
        if self.leaving > 0 {
            // The reply may have closed a window of a volume that is gone then.
            self.report()?;
            self.remove_if_empty(held.volume as usize);
        }
        Ok(())
    }

    /// Takes every event of the engine.
    fn report(&mut self) -> Going {
        while let Some(event) = self.engine.poll_event() {
            self.checkers.on_event(self.now, &event)?;
            self.observer.on_event(self.now, &event);
        }
        Ok(())
    }

    fn outstanding(&self) -> impl Iterator<Item = (VolumeId, u32)> {
        let left = (0..self.stages.len()).filter(|volume| self.stages[*volume] != Stage::Removed);
        left.map(|volume| (number(volume), self.engine.outstanding(number(volume))))
    }
}

/// The faults and changes of a scenario.
impl Run<'_> {
    fn follow(&mut self, entry: Entry) -> Going {
        let now = self.now;
        match entry {
            Entry::Fault(FaultKind::DiskFails { unit, disk }) => self.array.fail_disk(now, unit, disk),
            Entry::Fault(FaultKind::Rebuild { unit }) => self.array.start_rebuild(now, unit),
            Entry::Fault(FaultKind::Stall(span)) => self.array.stall(now, now + span),
            Entry::Fault(FaultKind::VolumeRemoved { volume }) => return self.begin_removal(volume),
            Entry::Change { volume, config } => {
                if self.stages[volume] != Stage::Removed {
                    self.checkers.on_volume_changed(now, number(volume), &config);
                    self.engine.set_volume(now, number(volume), config);
                }
            }
        }
        Ok(())
    }

    /// Stops the clients of a volume, and aborts its queued requests. Its requests at the array will be
    /// answered.
    fn begin_removal(&mut self, volume: usize) -> Going {
        if self.stages[volume] != Stage::Present {
            return Ok(());
        }
        self.stages[volume] = Stage::Leaving;
        self.leaving += 1;
        self.clients.stop(volume);
        for id in self.requests.of(number(volume).0) {
            if self.engine.handle_abort(self.now, id) {
                self.checkers.on_abort(id)?;
                self.requests.take(id.slot);
                self.outcome.aborted += 1;
            }
        }
        // Reports the answered and aborted requests while the volume still exists.
        self.report()?;
        self.remove_if_empty(volume);
        Ok(())
    }

    fn remove_if_empty(&mut self, volume: usize) {
        let id = number(volume);
        if self.stages[volume] == Stage::Leaving && self.engine.outstanding(id) == 0 {
            self.engine.remove_volume(self.now, id);
            self.checkers.on_volume_removed(id);
            self.stages[volume] = Stage::Removed;
            self.leaving -= 1;
        }
    }
}

fn number(volume: usize) -> VolumeId {
    VolumeId(u32::try_from(volume).expect("a scenario has fewer than 2^32 volumes"))
}
