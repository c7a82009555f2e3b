//! The front: the peers that are connected or in their handshake, and the volumes that they can choose from.
//! It lives on the thread of the gateway's handle. `accept` takes peers in.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use weir_newcomers::{Origin, Ticket};

use crate::exports::ExportTable;
use crate::places::{Full, Places};
use crate::spec::Limits;

mod accept;

/// The state that the acceptors share with the handle.
pub(crate) struct Front {
    exports: RwLock<Arc<ExportTable>>,
    state: Mutex<State>,
    /// Notified when the last client has gone.
    all_gone: Notify,
}

struct State {
    places: Places,
    handshake_timeout: Duration,
    /// The tasks of unfinished handshakes.
    handshakes: HashMap<Ticket, AbortHandle>,
}

/// A place for a handshake; dropping it frees the place.
pub(crate) struct Handshake {
    front: Arc<Front>,
    ticket: Ticket,
    origin: Origin,
}

/// A client's place; dropping it frees the place.
pub(crate) struct Permit {
    front: Arc<Front>,
    origin: Origin,
    volume: String,
}

impl Front {
    pub(crate) fn new(limits: Limits) -> Self {
        let places = Places::new(limits);
        let handshake_timeout = limits.handshake_timeout.into();
        let state = Mutex::new(State { places, handshake_timeout, handshakes: HashMap::new() });
        Self { exports: RwLock::default(), state, all_gone: Notify::new() }
    }

    /// The volumes that clients can choose from at present.
    pub(crate) fn exports(&self) -> Arc<ExportTable> {
        Arc::clone(&self.exports.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the volumes and the limits.
    pub(crate) fn set(&self, exports: ExportTable, limits: Limits) {
        let mut state = self.state();
        state.places.set_limits(limits);
        state.places.set_served(exports.volumes().map(str::to_owned).collect());
        state.handshake_timeout = limits.handshake_timeout.into();
        *self.exports.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(exports);
    }

    /// How many peers are connected, unfinished handshakes included.
    pub(crate) fn connected(&self) -> u64 {
        self.state().places.connected()
    }

    /// Returns when no peer is connected.
    pub(crate) async fn wait_until_all_are_gone(&self) {
        while self.connected() > 0 {
            self.all_gone.notified().await;
        }
    }

    /// Locks the state. No code panics while it has the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_if_all_are_gone(&self, state: &State) {
        if state.places.connected() == 0 {
            self.all_gone.notify_one();
        }
    }
}

impl Handshake {
    /// Makes the peer a client of this volume. `None` if there is no place for the client, which is logged.
    pub(crate) fn settle(self, peer: &str, volume: &str) -> Option<Permit> {
        let settled = self.front.state().places.settle(self.ticket, self.origin, volume);
        match settled {
            Ok(()) => {
                let front = Arc::clone(&self.front);
                Some(Permit { front, origin: self.origin, volume: volume.to_owned() })
            }
            Err(full) => {
                log_refusal(peer, full);
                None
            }
        }
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let mut state = self.front.state();
        state.places.end(self.ticket, self.origin);
        state.handshakes.remove(&self.ticket);
        self.front.tell_if_all_are_gone(&state);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.front.state();
        state.places.leave(self.origin, &self.volume);
        self.front.tell_if_all_are_gone(&state);
    }
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a place at {} for {}", self.volume, self.origin)
    }
}

fn log_refusal(peer: &str, full: Full) {
    tracing::warn!(peer, "refused: {full}");
}

/// Whether an error of `accept` concerns only the connection that was to be accepted, and not all later ones
/// too: `accept(2)`, "Error handling". A peer can cause such errors at will, so a listener does not rest
/// after one.
pub fn is_of_one_peer(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let of_all = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::INVAL, Errno::BADF];
    Errno::from_io_error(error).is_some_and(|errno| !of_all.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_gone_before_it_is_accepted_gives_no_rest_to_the_listener() {
        for (errno, of_one) in [(103, true), (71, true), (113, true), (24, false), (23, false), (12, false)] {
            assert_eq!(is_of_one_peer(&io::Error::from_raw_os_error(errno)), of_one, "{errno}");
        }
        assert!(!is_of_one_peer(&io::Error::other("of nobody knows whom")));
    }
}
