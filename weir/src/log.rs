//! The log on standard error. No peer can drown the lines about others in it, nor fill a disk with it.
//!
//! Each line that a peer can cause has a field that names the other end: `peer`, `gateway` or `upstream`; or
//! `listener` if the other end is not known. The log limits lines with one of these fields, and all lines of
//! libraries. Each place in the code that writes such lines may write 20 at once, and then one every five
//! seconds.
//!
//! - Twenty lines show every host of a small cluster that comes back after a break of the network.
//! - One line in five seconds is 17,280 lines, or 3 MB, a day. A disk can take that for as long as an attack
//!   lasts.
//!
//! A line of its own says how many lines were left out. It comes ten seconds after the first of them at the
//! latest, and at the end of the program.
//!
//! A line that has no room, because nobody reads standard error, is left out too: to wait there would stop
//! the thread that has something to say. The next line that has room is preceded by one that says how many.
//!
//! Lines that the operator causes (a reload, a volume that ends), and lines about devices, are not limited.
//! `cargo xtask tidy` looks at each place that writes lines in the crates that see peers: the place has
//! such a field, or says why no peer reaches it.

mod allowance;

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use weir_clock::Clock;
use weir_model::Span;

use crate::say;

use allowance::{Allowance, LeftOut};

/// The fields that name the other end of a connection. `xtask/src/tidy/logged.rs` has the same list.
const PEERS: [&str; 4] = ["peer", "gateway", "upstream", "listener"];
const BURST: u32 = 20;
const EVERY: Span = Span::from_secs(5);
/// The longest time before the log reports lines that were left out.
const TOLD_AFTER: Duration = Duration::from_secs(10);

/// The log of the program. On drop, it reports the lines that were left out and not reported yet.
pub(crate) struct Log(Arc<Limited>);

/// The state that limits lines, and that wakes the thread which reports the lines left out.
struct Limited {
    clock: Clock,
    lines: Mutex<Allowance<Identifier>>,
    /// Notified when a line was left out.
    left_out: Condvar,
}

/// Logs from now on to standard error what is at least as important as `level`.
///
/// # Errors
/// If the system gives no thread.
pub(crate) fn start(level: LevelFilter) -> io::Result<Log> {
    let limited = Arc::new(Limited {
        clock: Clock::new(),
        lines: Mutex::new(Allowance::new(BURST, EVERY)),
        left_out: Condvar::new(),
    });
    let text = tracing_subscriber::fmt::layer()
        .with_writer(|| Unread)
        .log_internal_errors(false) // it would panic if standard error cannot be written
        .with_ansi(io::stderr().is_terminal());
    tracing_subscriber::registry().with(level).with(Limit(Arc::clone(&limited))).with(text).init();
    let telling = Arc::clone(&limited);
    thread::Builder::new().name("weir-log".to_owned()).spawn(move || telling.tell_now_and_then())?;
    Ok(Log(limited))
}

impl Drop for Log {
    fn drop(&mut self) {
        tell(self.0.lines().take_left_out());
    }
}

/// Standard error, on which no line waits for its reader.
struct Unread;

/// How many lines had no room.
static UNREAD: AtomicU64 = AtomicU64::new(0);

impl Write for Unread {
    /// Takes a whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let unread = UNREAD.swap(0, Ordering::Relaxed);
        let remark = format!("weir: nobody read {unread} lines of the log, and they were left out\n");
        let has_room = unread == 0 || say::at_once(remark.as_bytes());
        let left_out = if !has_room { unread + 1 } else { u64::from(!say::at_once(line)) };
        UNREAD.fetch_add(left_out, Ordering::Relaxed);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The layer before the layer that writes.
struct Limit(Arc<Limited>);

impl<S: Subscriber> Layer<S> for Limit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        !is_limited(event.metadata()) || self.0.admit(event)
    }
}

/// Whether the lines of this place in the code are limited. They are if a peer can cause them, which a field
/// shows; and if a library writes them, which has no such fields.
fn is_limited(place: &Metadata<'_>) -> bool {
    !place.target().starts_with("weir") || PEERS.iter().any(|peer| place.fields().field(peer).is_some())
}

impl Limited {
    fn admit(&self, event: &Event<'_>) -> bool {
        let message = || {
            let mut message = Message(String::new());
            event.record(&mut message);
            message.0
        };
        let admitted = self.lines().admit(self.clock.now(), event.metadata().callsite(), message);
        if !admitted {
            self.left_out.notify_one();
        }
        admitted
    }

    /// A poisoned lock is taken all the same: a panic elsewhere leaves nothing half done here.
    fn lines(&self) -> MutexGuard<'_, Allowance<Identifier>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_now_and_then(&self) {
        loop {
            let nothing = |lines: &mut Allowance<Identifier>| !lines.has_left_out();
            drop(self.left_out.wait_while(self.lines(), nothing).unwrap_or_else(PoisonError::into_inner));
            thread::sleep(TOLD_AFTER);
            let left_out = self.lines().take_left_out();
            tell(left_out);
        }
    }
}

/// The text of a line, without its fields.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

fn tell(left_out: Vec<LeftOut>) {
    for LeftOut { lines, like } in left_out {
        tracing::warn!(lines, like, "so many lines were left out of the log");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts the lines that get through.
    struct Counted(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Counted {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many of the lines that `write` writes get through.
    fn lines_of(write: impl Fn()) -> (usize, Vec<LeftOut>) {
        let counted = Arc::new(AtomicUsize::new(0));
        let limited = Arc::new(Limited {
            clock: Clock::new(),
            // This time is so long that no further line is allowed while a test runs.
            lines: Mutex::new(Allowance::new(BURST, Span::from_secs(1_000_000))),
            left_out: Condvar::new(),
        });
        let layers = tracing_subscriber::registry()
            .with(Limit(Arc::clone(&limited)))
            .with(Counted(Arc::clone(&counted)));
        tracing::subscriber::with_default(layers, write);
        let left_out = limited.lines().take_left_out();
        (counted.load(Ordering::Relaxed), left_out)
    }

    #[test]
    fn lines_that_name_a_peer_are_limited_and_counted() {
        let (written, left_out) = lines_of(|| {
            (0..1000).for_each(|number| tracing::info!(peer = number, "refused"));
            (0..1000).for_each(|number| tracing::info!(gateway = number, "lost {number}"));
        });
        assert_eq!(written, 40);
        let mut told: Vec<_> = left_out.into_iter().map(|left_out| (left_out.like, left_out.lines)).collect();
        told.sort();
        assert_eq!(told, [("lost 20".to_owned(), 980), ("refused".to_owned(), 980)]);
    }

    #[test]
    fn what_the_operator_causes_is_never_left_out() {
        let (written, left_out) =
            lines_of(|| (0..1000).for_each(|volume| tracing::info!(volume, "no longer served")));
        assert_eq!((written, left_out), (1000, vec![]));
    }

    #[test]
    fn a_librarys_lines_are_limited() {
        let (written, _) =
            lines_of(|| (0..1000).for_each(|_| tracing::info!(target: "hyper::server", "a line")));
        assert_eq!(written, 20);
    }
}
