//! The driver's loop.

use weir_engine::{Dispatch, Engine, Event, Request, VolumeConfig};
use weir_model::{Instant, Io, VolumeId};

use super::agenda::{Agenda, Entry};
use super::clients::Clients;
use super::gateway::{Gateway, number};
use super::messages::Messages;
use super::requests::Held;
use super::{Observer, Outcome, Spread};
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
    gateways: Vec<Gateway>,
    /// By volume: its gateway, and its number there.
    places: Vec<(usize, VolumeId)>,
    messages: Messages,
    array: Array,
    clients: Clients,
    agenda: Agenda,
    stages: Vec<Stage>,
    /// How many volumes are leaving.
    leaving: u32,
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
    pub(super) fn new(
        scenario: &Scenario,
        clients: Vec<Client>,
        spread: &Spread,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let now = Instant::ORIGIN;
        let gateway_of = |volume: usize| spread.gateways.get(volume).copied().unwrap_or_default();
        let count = 1 + (0..scenario.volumes.len()).map(gateway_of).max().unwrap_or_default();
        let mut gateways: Vec<_> = (0..count).map(|_| Gateway::new(now, scenario.engine)).collect();
        let mut places: Vec<(usize, VolumeId)> = Vec::new();
        for (index, volume) in scenario.volumes.iter().enumerate() {
            let first = volume.config.port_of.map(|of| places[of.0 as usize]);
            let gateway = first.map_or_else(|| gateway_of(index), |(gateway, _)| gateway);
            let port_of = first.map(|(_, number)| number);
            let config = VolumeConfig { port_of, ..volume.config.clone() };
            places.push((gateway, gateways[gateway].add(now, index, &config)));
        }
        Self {
            seed: scenario.seed,
            now,
            end: now + scenario.duration,
            starts: scenario.volumes.iter().map(|volume| volume.start).collect(),
            gateways,
            places,
            messages: Messages::new(count, spread.apart),
            array: Array::new(&scenario.array, Seed(scenario.seed)),
            clients: Clients::new(clients),
            agenda: Agenda::new(scenario),
            stages: vec![Stage::Present; scenario.volumes.len()],
            leaving: 0,
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
            self.gateways.iter_mut().try_for_each(|gateway| gateway.checkers.on_time(next))?;
            self.now = next;
            self.turn()?;
        }
        self.outcome.utilisation = self.array.utilisation(self.end);
        for gateway in 0..self.gateways.len() {
            let outstanding: Vec<(VolumeId, u32)> = self.outstanding(gateway).collect();
            self.outcome.outstanding += outstanding.iter().map(|(_, number)| u64::from(*number)).sum::<u64>();
            for (volume, _) in &outstanding {
                let spent = self.gateways[gateway].engine.time_spent(self.end, *volume, Engine::REMEMBERED);
                Checkers::on_spent(*volume, &spent)?;
            }
            self.gateways[gateway].checkers.at_end(self.end, outstanding.into_iter())?;
        }
        Ok(())
    }

    fn next_at(&self) -> Instant {
        let or_never = |at: Option<Instant>| at.unwrap_or(Instant::FAR_FUTURE);
        let asked = self.clients.next_at();
        let asked = if asked < self.end { asked } else { Instant::FAR_FUTURE };
        let engines = self.gateways.iter().map(|gateway| or_never(gateway.engine.poll_timeout()));
        let timers = engines.fold(or_never(self.array.poll_timeout()), Instant::min);
        asked.min(timers).min(self.agenda.next_at()).min(self.messages.next_at())
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
        while let Some((to, standing)) = self.messages.deliver(now) {
            self.gateways[to].engine.handle_standing(now, standing);
        }
        for place in 0..self.gateways.len() {
            let Gateway { engine, checkers, .. } = &mut self.gateways[place];
            if engine.poll_timeout().is_none_or(|at| at > now) {
                continue;
            }
            engine.handle_timeout(now);
            checkers.on_depth(engine.snapshot().depth_target);
            while let Some(id) = self.gateways[place].engine.poll_release() {
                self.reply(place, id.slot, true)?;
            }
        }
        loop {
            self.report()?;
            self.dispatch()?;
            if !self.take_finished()? {
                return self.gateways.iter_mut().try_for_each(|gateway| gateway.checkers.at_rest(now));
            }
        }
    }

    /// Gives the engine a request of a client.
    fn submit(&mut self, volume: usize, asked: Asked) -> Going {
        let Asked { kind, offset, length, by_thread } = asked;
        let (arrived, offset) = (self.now, self.starts[volume] + offset);
        let (gateway, owner) = self.places[volume];
        let Gateway { engine, checkers, requests, .. } = &mut self.gateways[gateway];
        let id = engine.handle_submit(self.now, Request { volume: owner, kind, offset, length });
        requests.insert(Held { id, volume: owner.0, by_thread });
        self.outcome.submitted += 1;
        self.observer.on_submit(self.now, number(volume), kind);
        checkers.on_submit(&Io { id, volume: owner, kind, offset, length, arrived })
    }

    /// Gives the array what the engine issues.
    fn dispatch(&mut self) -> Going {
        let gateways = tag_of(self.gateways.len());
        for (Gateway { engine, checkers, .. }, place) in self.gateways.iter_mut().zip(0..) {
            while let Dispatch::Issue(io) = engine.poll_dispatch(self.now) {
                checkers.on_issue(self.now, &io)?;
                let Io { id, kind, offset, length, .. } = io;
                let tag = id.slot * gateways + place;
                self.array.submit(self.now, Command { tag, kind, offset, length });
            }
        }
        Ok(())
    }

    /// Takes every answer of the array. Returns whether there was one.
    fn take_finished(&mut self) -> Going<bool> {
        let mut any = false;
        while let Some(Finished { tag, ok }) = self.array.poll_finished() {
            any = true;
            let gateways = tag_of(self.gateways.len());
            let (place, slot) = ((tag % gateways) as usize, tag / gateways);
            let Gateway { engine, checkers, requests, .. } = &mut self.gateways[place];
            checkers.on_answer(self.now, slot, ok)?;
            let id = requests.id(slot).expect("the checkers know what is at the array");
            if engine.handle_complete(self.now, id, ok).is_none() {
                self.reply(place, slot, ok)?;
            }
        }
        Ok(any)
    }

    /// Hands the reply to a request to its client.
    fn reply(&mut self, place: usize, slot: u32, ok: bool) -> Going {
        let gateway = &mut self.gateways[place];
        gateway.checkers.on_reply(self.now, slot)?;
        let held = gateway.requests.take(slot).expect("the checkers know what is answered");
        gateway.engine.handle_reply(self.now, held.id);
        gateway.checkers.on_split(gateway.engine.last_answered())?;
        let volume = gateway.index(VolumeId(held.volume));
        if held.by_thread {
            self.clients.on_answer(self.now, volume, ok);
        }
        if ok {
            self.outcome.answered += 1
        } else {
            self.outcome.failed += 1
        }
        if self.leaving > 0 {
            // The reply may have closed a window of a volume that is gone then.
            self.report()?;
            self.remove_if_empty(volume);
        }
        Ok(())
    }

    /// Takes every event of the engines.
    fn report(&mut self) -> Going {
        for (place, gateway) in self.gateways.iter_mut().enumerate() {
            while let Some(event) = gateway.engine.poll_event() {
                gateway.checkers.on_event(self.now, &event)?;
                self.observer.on_event(self.now, &gateway.renumbered(event));
                if let Event::Stands(standing) = event {
                    self.messages.send(self.now, place, standing);
                }
            }
        }
        Ok(())
    }

    /// How many requests each volume of a gateway has.
    fn outstanding(&self, gateway: usize) -> impl Iterator<Item = (VolumeId, u32)> {
        let is_left =
            move |volume: &usize| self.stages[*volume] != Stage::Removed && self.places[*volume].0 == gateway;
        let left = (0..self.stages.len()).filter(is_left).map(|volume| self.places[volume].1);
        left.map(move |id| (id, self.gateways[gateway].engine.outstanding(id)))
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
                    let (gateway, id) = self.places[volume];
                    let Gateway { engine, checkers, .. } = &mut self.gateways[gateway];
                    checkers.on_volume_changed(now, id, &config);
                    engine.set_volume(now, id, config);
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
        let (gateway, number) = self.places[volume];
        let Gateway { engine, checkers, requests, .. } = &mut self.gateways[gateway];
        for id in requests.of(number.0) {
            if engine.handle_abort(self.now, id) {
                checkers.on_abort(id)?;
                requests.take(id.slot);
                self.outcome.aborted += 1;
            }
        }
        // Reports the answered and aborted requests while the volume still exists.
        self.report()?;
        self.remove_if_empty(volume);
        Ok(())
    }

    fn remove_if_empty(&mut self, volume: usize) {
        let (gateway, id) = self.places[volume];
        let Gateway { engine, checkers, .. } = &mut self.gateways[gateway];
        if self.stages[volume] == Stage::Leaving && engine.outstanding(id) == 0 {
            engine.remove_volume(self.now, id);
            checkers.on_volume_removed(id);
            self.stages[volume] = Stage::Removed;
            self.leaving -= 1;
        }
    }
}

/// A request's tag at the array is its slot times this, and the index of its gateway.
fn tag_of(gateways: usize) -> u32 {
    u32::try_from(gateways).expect("a run has few gateways")
}
