//! Servers with one queue before them: the device of queueing theory.
//!
//! **Modelled**: k servers, first come first served, a service time that is constant or exponentially
//! distributed. **Not modelled**: anything that depends on where a request goes or how long it is. It is
//! calibrated by no real device. Its waiting times are known in closed form (M/M/k, M/D/1), and tests check
//! the simulation against them.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use rand_distr::{Distribution, Exp1};
use weir_model::{Instant, Span};

use crate::member_io::{MemberIo, Started};
use crate::random::Prng;

/// The description of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StationOptions {
    /// How many requests it serves at a time.
    pub servers: NonZeroU32,
    /// How long it takes for each request, on average.
    pub service_time: Span,
    /// Whether the times of requests are exponentially distributed. Otherwise each takes the same time.
    pub exponential: bool,
}

/// A station.
#[derive(Debug)]
pub struct Station {
    options: StationOptions,
    random: Prng,
    free: u32,
    waiting: VecDeque<u32>,
}

impl Station {
    /// A station that is idle.
    pub fn new(options: StationOptions, random: Prng) -> Self {
        Self { options, random, free: options.servers.get(), waiting: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, now: Instant, io: MemberIo, started: &mut Vec<Started>) {
        if self.free == 0 {
            self.waiting.push_back(io.tag);
        } else {
            self.free -= 1;
            started.push(self.begin(now, io.tag));
        }
    }

    pub(crate) fn finish(&mut self, now: Instant, _tag: u32, started: &mut Vec<Started>) {
        match self.waiting.pop_front() {
            Some(tag) => started.push(self.begin(now, tag)),
            None => self.free += 1,
        }
    }

    pub(crate) fn outstanding(&self) -> usize {
        (self.options.servers.get() - self.free) as usize + self.waiting.len()
    }

    fn begin(&mut self, now: Instant, tag: u32) -> Started {
        let mean = self.options.service_time;
        let factor: f64 = if self.options.exponential { Exp1.sample(&mut self.random) } else { 1.0 };
        Started { tag, ends: now + Span::from_secs_f64(mean.as_secs_f64() * factor) }
    }
}
