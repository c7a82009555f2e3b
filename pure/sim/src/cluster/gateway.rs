//! A gateway: a machine with a clock, its clients, and the process that serves them. The process may be dead.

use weir_model::{Instant, Span};

use super::clock::Clock;
use super::device::Asked;
use super::net::Net;
use super::process::{InForce, Process};
use super::surroundings::{Going, Surroundings};
use crate::check::Breach;

/// A gateway.
pub(super) struct Gateway {
    number: usize,
    clock: Clock,
    interval: Span,
    /// Its volumes, in the order of their numbers at the engine: the name, and how many requests the clients
    /// keep outstanding.
    volumes: Vec<(String, u32)>,
    process: Option<Process>,
    /// How many processes there were.
    runs: u64,
    /// Until when it does nothing, because it is paused or was not started again yet.
    idle_until: Instant,
}

impl Gateway {
    pub(super) fn new(number: usize, clock: Clock, interval: Span, volumes: Vec<(String, u32)>) -> Self {
        Self { number, clock, interval, volumes, process: None, runs: 0, idle_until: Instant::ORIGIN }
    }

    pub(super) fn set_load(&mut self, volume: usize, outstanding: u32) {
        self.volumes[volume].1 = outstanding;
        if let Some(process) = &mut self.process {
            process.is_dirty = true;
        }
    }

    pub(super) fn pause(&mut self, until: Instant) {
        self.idle_until = self.idle_until.max(until);
        if let Some(process) = &mut self.process {
            process.awake_since = self.clock.shows(self.idle_until);
        }
    }

    /// Its process dies. Returns how many requests it had not answered.
    pub(super) fn crash(&mut self, until: Instant) -> u64 {
        self.idle_until = until;
        self.process.take().map_or(0, |process| process.outstanding())
    }

    /// Whether its process runs at this instant.
    pub(super) fn is_awake(&self, now: Instant) -> bool {
        self.process.is_some() && now >= self.idle_until
    }

    /// How many requests are neither answered nor aborted.
    pub(super) fn outstanding(&self) -> u64 {
        self.process.as_ref().map_or(0, Process::outstanding)
    }

    /// Whether the controller's grants are in force.
    pub(super) fn is_granted(&self, now: Instant) -> bool {
        self.process.as_ref().is_some_and(|process| process.is_granted(self.clock.shows(now)))
    }

    /// What each of its volumes may do; `None` while there is no process.
    pub(super) fn in_force(&self, now: Instant) -> impl Iterator<Item = Option<InForce>> {
        let shown = self.clock.shows(now);
        (0..self.volumes.len()).map(move |volume| {
            self.process.as_ref().map(|process| process.in_force(shown, volume, &self.volumes[volume].0))
        })
    }

    /// The array has finished a request.
    pub(super) fn handle_finished(&mut self, asked: Asked, ok: bool) {
        if let Some(process) = self.process.as_mut().filter(|process| process.run == asked.run) {
            process.handle_finished(asked, ok);
        }
    }

    pub(super) fn next_at(&self, now: Instant, net: &mut Net) -> Instant {
        let Some(process) = &self.process else { return self.idle_until };
        let next = if process.is_dirty { now } else { process.next_at(self.clock, net) };
        self.idle_until.max(next)
    }

    /// Does everything that it can do now.
    pub(super) fn turn(&mut self, around: &mut Surroundings<'_>) -> Going {
        if around.now < self.idle_until {
            return Ok(());
        }
        let shown = self.clock.shows(around.now);
        let process = match &mut self.process {
            Some(process) => process,
            none => {
                self.runs += 1;
                let run = self.runs * 1_000 + self.number as u64;
                none.insert(Process::new(shown, self.number, run, self.interval, &self.volumes))
            }
        };
        let turn = process.turn(shown, &self.volumes, around);
        turn.map_err(|what| Box::new(Breach::AtGateway { gateway: self.number, what }))
    }
}
