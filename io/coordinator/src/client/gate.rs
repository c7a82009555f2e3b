//! The gate before each piece of data: whether it may move now, and how fast.

use tokio::sync::watch;
use tokio::time::sleep;
use weir_clock::Clock;
use weir_model::{Bandwidth, Instant, Span};

/// How far ahead of its pace a transfer may be after a wait, so that single late pieces are made up for.
const SLACK: Span = Span::from_millis(200);
/// How much a transfer moves at once at a slow pace, in time and in bytes. A whole piece at 1 MB/s would be a
/// second of standstill, and then a jerk.
const AT_ONCE: Span = Span::from_millis(100);
const LEAST_AT_ONCE: u64 = 16 << 10;

/// What the session says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Signal {
    /// Whether data may move.
    pub(super) is_open: bool,
    /// Whether the coordinator knows that the replica may become visible.
    pub(super) may_finish: bool,
    /// The most that may move in a second.
    pub(super) pace: Option<Bandwidth>,
}

/// The gate, at the side of the data.
#[derive(Debug)]
pub(super) struct Gate {
    clock: Clock,
    signal: watch::Receiver<Signal>,
    /// When the next piece is due, at the pace.
    due: Instant,
}

impl Gate {
    /// A gate that follows a signal.
    pub(super) fn new(clock: Clock, signal: watch::Receiver<Signal>) -> Self {
        Self { clock, signal, due: clock.now() }
    }

    /// How many of so many bytes are to move at once.
    pub(super) fn at_once(&self, bytes: usize) -> usize {
        let pace = self.signal.borrow().pace;
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let least = |pace: Bandwidth| (pace.get() as f64 * AT_ONCE.as_secs_f64()) as u64;
        let most = pace.map_or(u64::MAX, |pace| least(pace).max(LEAST_AT_ONCE));
        bytes.min(usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// Waits until the next piece, of so many bytes, may move. It waits for ever if the session has ended.
    pub(super) async fn pass(&mut self, bytes: usize) {
        loop {
            let signal = *self.signal.borrow_and_update();
            let now = self.clock.now();
            let Some(pace) = signal.pace.filter(|_| signal.is_open) else {
                if signal.is_open {
                    self.due = now;
                    return;
                }
                self.changed().await;
                continue;
            };
            #[allow(clippy::cast_precision_loss)] // a piece has a mebibyte
            let takes = Span::from_secs_f64(bytes as f64 / pace.get() as f64);
            // The piece before may have moved at a lower pace: nobody waits for that any more.
            self.due = self.due.min(now + takes);
            let wait = self.due.saturating_since(now);
            if wait.is_zero() {
                let late = now.saturating_since(self.due);
                let from = if late > SLACK { now } else { self.due };
                self.due = from + takes;
                return;
            }
            tokio::select! {
                () = sleep(self.clock.takes(wait)) => {}
                () = self.changed() => {}
            }
        }
    }

    /// Waits until the replica may become visible. It waits for ever if the session has ended.
    pub(super) async fn may_finish(&mut self) {
        loop {
            let signal = *self.signal.borrow_and_update();
            if signal.is_open && signal.may_finish {
                return;
            }
            self.changed().await;
        }
    }

    async fn changed(&mut self) {
        if self.signal.changed().await.is_err() {
            std::future::pending::<()>().await; // whoever holds the signal ends this task, too
        }
    }
}
