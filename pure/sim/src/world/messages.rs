//! What gateways tell one another of their promises, by way of a controller in the middle.

use std::collections::VecDeque;

use weir_engine::{Standing, Standings};
use weir_model::{Instant, Span};

/// When a message arrives, the gateway that it comes from or goes to, and what it says.
type OnItsWay = (Instant, usize, Standing);

/// Standings on their way, and what the controller has heard.
#[derive(Debug)]
pub(super) struct Messages {
    gateways: usize,
    /// How long a message takes from a gateway to the controller, and from there to another gateway.
    half: Span,
    /// On their way to the controller, and from it.
    up: VecDeque<OnItsWay>,
    down: VecDeque<OnItsWay>,
    heard: Standings<usize>,
}

impl Messages {
    /// Gateways, and how long a message takes from one to another.
    pub(super) fn new(gateways: usize, apart: Span) -> Self {
        let half = Span::from_nanos(apart.as_nanos() / 2);
        let (up, down, heard) = (VecDeque::new(), VecDeque::new(), Standings::default());
        Self { gateways, half, up, down, heard }
    }

    /// A gateway says how its promises stand.
    pub(super) fn send(&mut self, now: Instant, from: usize, standing: Standing) {
        self.up.push_back((now + self.half, from, standing));
    }

    /// When the next message arrives.
    pub(super) fn next_at(&self) -> Instant {
        let first = |queue: &VecDeque<OnItsWay>| queue.front().map(|(at, ..)| *at);
        first(&self.up).into_iter().chain(first(&self.down)).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// The next gateway that hears how all others stand.
    pub(super) fn deliver(&mut self, now: Instant) -> Option<(usize, Standing)> {
        while let Some((at, from, standing)) = arrived(now, &mut self.up) {
            self.heard.set(at, from, standing);
            let others = (0..self.gateways).filter(|gateway| *gateway != from);
            let heard = &self.heard;
            self.down.extend(others.map(|to| (at + self.half, to, heard.beside(at, &to))));
        }
        let (_, to, standing) = arrived(now, &mut self.down)?;
        Some((to, standing))
    }
}

/// The next message that has arrived. All take equally long, so the first is the first to arrive.
fn arrived(now: Instant, queue: &mut VecDeque<OnItsWay>) -> Option<OnItsWay> {
    queue.front().is_some_and(|(at, ..)| *at <= now).then(|| queue.pop_front()).flatten()
}
