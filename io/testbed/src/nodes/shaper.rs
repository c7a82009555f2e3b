//! What the nodes can do: the model of the experiments, imposed on real connections and files.
//!
//! Each connection to a node, and each of its open files, is a **stream**. A stream asks before it moves
//! bytes. Every [`TICK`] of the machine's time, each stream is given the bytes that it gets in that time by
//! the same rule as in simulated time (`weir_sim::transfers`): shares of what its node does, which falls with
//! the number of streams, and less if the host is crowded. Only a stream that has asked lately counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::RngExt;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use weir_clock::Clock;
use weir_model::{Instant, Span};
use weir_sim::transfers::{Taker, shares};
use weir_sim::{Prng, Seed};

/// How often bytes are given out, in the machine's time.
const TICK: Duration = Duration::from_millis(2);
/// A stream that does not wait, and has not asked for so long, counts no more.
const LATELY: Span = Span::from_secs(1);
/// A stream is woken for so many bytes, or for all that it wants.
const GRAIN: f64 = 4096.0;
/// How much a stream keeps that it has not used, in time.
const KEPT: Span = Span::from_millis(500);
/// How often what a node does sways.
const SWAYS: Span = Span::from_secs(1);

/// What the host and its nodes can do. Rates are in bytes a second of the clock.
#[derive(Clone, Default, Debug)]
pub(super) struct Shape {
    /// The most that one stream gets.
    pub(super) stream: f64,
    /// By how much of itself a stream's share may be smaller or larger.
    pub(super) spread: f64,
    /// By how much of itself what a node does may be less or more in a second.
    pub(super) sway: f64,
    /// How many streams the host serves before they slow one another down.
    pub(super) crowd: f64,
    pub(super) nodes: Vec<NodeShape>,
}

/// What a node can do.
#[derive(Clone, Debug)]
pub(super) struct NodeShape {
    pub(super) peak: f64,
    pub(super) overhead: f64,
    /// Which share of that others take.
    pub(super) others: f64,
}

/// Gives out what the nodes can do. Without a [`Shape`], everybody gets everything.
#[derive(Clone)]
pub(super) struct Shaper {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

struct State {
    shape: Option<Shape>,
    streams: BTreeMap<u64, Stream>,
    /// The number of the next stream.
    next: u64,
    weights: Prng,
    sways: Prng,
    /// What each node does in this second, as a part of what it usually does.
    swayed: Vec<f64>,
    swayed_at: Instant,
    given_at: Instant,
}

struct Stream {
    node: usize,
    /// From -1 to 1: whether its share is small or large.
    lot: f64,
    /// The bytes that it may move now.
    may: f64,
    /// How many bytes it waits for; zero: it does not wait.
    wants: f64,
    asked: Option<Instant>,
    wake: Arc<Notify>,
}

/// A stream, at the side of its bytes.
pub(super) struct Allowance {
    shaper: Shaper,
    number: u64,
    wake: Arc<Notify>,
}

impl Shaper {
    /// A shaper that gives out everything until it has a shape. It works as long as the runtime.
    pub(super) fn start(clock: Clock) -> Self {
        let now = clock.now();
        let random = || Seed(0).stream("");
        let state = State {
            shape: None,
            streams: BTreeMap::new(),
            next: 0,
            weights: random(),
            sways: random(),
            swayed: Vec::new(),
            swayed_at: now,
            given_at: now,
        };
        let shaper = Self { clock, state: Arc::new(Mutex::new(state)) };
        let giver = shaper.clone();
        tokio::spawn(async move {
            let mut ticks = interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let now = giver.clock.now();
                giver.state().give(now);
            }
        });
        shaper
    }

    /// From now on, the nodes do this; `None`: whatever is asked.
    pub(super) fn set(&self, shape: Option<Shape>, seed: Seed) {
        let now = self.clock.now();
        let mut state = self.state();
        state.swayed = vec![1.0; shape.as_ref().map_or(0, |shape| shape.nodes.len())];
        (state.weights, state.sways) = (seed.stream("shares of streams"), seed.stream("sway of nodes"));
        (state.shape, state.swayed_at, state.given_at) = (shape, now, now);
        for stream in state.streams.values_mut() {
            stream.may = 0.0;
            stream.wake.notify_one();
        }
    }

    /// A stream to or from a node.
    pub(super) fn open(&self, node: usize) -> Allowance {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let lot = 2.0 * state.weights.random::<f64>() - 1.0;
        let wake = Arc::new(Notify::new());
        let stream = Stream { node, lot, may: 0.0, wants: 0.0, asked: None, wake: Arc::clone(&wake) };
        state.streams.insert(number, stream);
        Allowance { shaper: self.clone(), number, wake }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Allowance {
    /// How many of so many bytes may move; it waits until some may.
    pub(super) async fn take(&self, most: usize) -> usize {
        loop {
            {
                let mut state = self.shaper.state();
                let is_shaped = state.shape.is_some();
                let Some(stream) = state.streams.get_mut(&self.number).filter(|_| is_shaped) else {
                    return most;
                };
                stream.asked = Some(self.shaper.clock.now());
                #[allow(clippy::cast_precision_loss)] // the bytes of a buffer
                let wants = (most as f64).min(GRAIN);
                stream.wants = wants;
                if stream.may >= wants {
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as above
                    let gets = (stream.may as usize).min(most);
                    #[allow(clippy::cast_precision_loss)]
                    {
                        stream.may -= gets as f64;
                    }
                    stream.wants = 0.0;
                    return gets;
                }
            }
            self.wake.notified().await;
        }
    }

    /// Waits until so many bytes may move.
    pub(super) async fn take_all(&self, bytes: usize) {
        let mut left = bytes;
        while left > 0 {
            left -= self.take(left).await;
        }
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        self.shaper.state().streams.remove(&self.number);
    }
}

impl State {
    /// Gives each stream what it gets since the last time.
    #[allow(clippy::cast_precision_loss)] // a few hundred streams
    fn give(&mut self, now: Instant) {
        let passed = now.saturating_since(self.given_at).as_secs_f64();
        self.given_at = now;
        let Some(shape) = &self.shape else { return };
        while now.saturating_since(self.swayed_at) >= SWAYS {
            self.swayed_at = self.swayed_at + SWAYS;
            for swayed in &mut self.swayed {
                *swayed = 1.0 + shape.sway * (2.0 * self.sways.random::<f64>() - 1.0);
            }
        }
        let lately = |asked: Instant| now.saturating_since(asked) <= LATELY;
        let counts = |stream: &Stream| stream.wants > 0.0 || stream.asked.is_some_and(lately);
        let all = self.streams.values().filter(|stream| counts(stream)).count();
        let above = (all as f64 - shape.crowd).max(0.0) / shape.crowd;
        let host = 1.0 / (1.0 + above * above);
        for (place, node) in shape.nodes.iter().enumerate() {
            let here = |stream: &&mut Stream| stream.node == place && counts(stream);
            let mut streams: Vec<_> = self.streams.values_mut().filter(here).collect();
            let takers: Vec<_> = streams
                .iter()
                .map(|stream| Taker { weight: 1.0 + shape.spread * stream.lot, most: shape.stream })
                .collect();
            let crowded = 1.0 + node.overhead * (takers.len().max(1) - 1) as f64;
            let does = node.peak * (1.0 - node.others) * self.swayed[place] / crowded;
            for (stream, rate) in streams.iter_mut().zip(shares(does, &takers)) {
                let rate = rate * host;
                let most = (rate * KEPT.as_secs_f64()).max(GRAIN);
                stream.may = (stream.may + rate * passed).min(most);
                if stream.wants > 0.0 && stream.may >= stream.wants {
                    stream.wake.notify_one();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
