//! What gateways tell one another of their promises, by way of the controller in the middle.

use std::collections::VecDeque;

use weir_engine::Standing;
use weir_leases::{Connection, Hello, Messenger};
use weir_model::{Instant, Span};

/// When a message arrives, the gateway that it comes from or goes to, and what it says.
type OnItsWay = (Instant, usize, Standing);

/// Standings on their way, and the controller.
#[derive(Debug)]
pub(super) struct Messages {
    /// How long a message takes from a gateway to the controller, and from there to another gateway.
    half: Span,
    /// On their way to the controller, and from it.
    up: VecDeque<OnItsWay>,
    down: VecDeque<OnItsWay>,
    /// `None`: there is one gateway.
    controller: Option<Controller>,
}

/// The real controller, and the stream of each gateway to it.
#[derive(Debug)]
struct Controller {
    messenger: Messenger,
    streams: Vec<Connection>,
}

impl Messages {
    /// Gateways, which are all connected, and how long a message takes from one to another.
    pub(super) fn new(gateways: usize, apart: Span) -> Self {
        let half = Span::from_nanos(apart.as_nanos() / 2);
        let controller = (gateways > 1).then(|| Controller::of(gateways));
        Self { half, up: VecDeque::new(), down: VecDeque::new(), controller }
    }

    /// A gateway says how its promises stand. The only one says it to nobody.
    pub(super) fn send(&mut self, now: Instant, from: usize, standing: Standing) {
        if self.controller.is_some() {
            self.up.push_back((now + self.half, from, standing));
        }
    }

    /// When the next message arrives, or the controller has something to do.
    pub(super) fn next_at(&self) -> Instant {
        let first = |queue: &VecDeque<OnItsWay>| queue.front().map(|(at, ..)| *at);
        let due = self.controller.as_ref().map(|controller| controller.messenger.poll_timeout());
        [first(&self.up), first(&self.down), due].into_iter().flatten().min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// The next gateway that hears how all others stand.
    pub(super) fn deliver(&mut self, now: Instant) -> Option<(usize, Standing)> {
        if let Some(controller) = &mut self.controller {
            while let Some((_, from, standing)) = arrived(now, &mut self.up) {
                controller.messenger.handle_standing(now, controller.streams[from], standing);
            }
            controller.messenger.handle_timeout(now);
            let half = self.half;
            let told = std::iter::from_fn(|| controller.poll_message(now));
            self.down.extend(told.map(|(to, standing)| (now + half, to, standing)));
        }
        let (_, to, standing) = arrived(now, &mut self.down)?;
        Some((to, standing))
    }
}

impl Controller {
    fn of(gateways: usize) -> Self {
        let names: Vec<_> = (0..gateways).map(|place| format!("gateway{place}")).collect();
        let mut messenger = Messenger::new(Instant::ORIGIN, names.clone());
        let hello = Hello { run: 1, is_of_promises: true, ..Hello::default() };
        let connect = |name: &String| {
            let connected = messenger.handle_connected(Instant::ORIGIN, name, &hello);
            connected.expect("it is named, and has connected once")
        };
        let streams = names.iter().map(connect).collect();
        Self { messenger, streams }
    }

    fn poll_message(&mut self, now: Instant) -> Option<(usize, Standing)> {
        let (to, standing) = self.messenger.poll_message(now)?;
        let place = self.streams.iter().position(|stream| *stream == to);
        Some((place.expect("it is a gateway's stream"), standing))
    }
}

/// The next message that has arrived. All take equally long, so the first is the first to arrive.
fn arrived(now: Instant, queue: &mut VecDeque<OnItsWay>) -> Option<OnItsWay> {
    queue.front().is_some_and(|(at, ..)| *at <= now).then(|| queue.pop_front()).flatten()
}
