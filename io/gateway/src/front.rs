//! The front: accepts peers and takes them through their handshake, on the thread of the gateway's handle.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{AbortHandle, JoinHandle, spawn_local};

use crate::exports::ExportTable;
use crate::listen::Listener;
use crate::negotiate::negotiate;
use crate::newcomers::{Origin, Ticket};
use crate::places::{Full, Places};
use crate::shard::Command;
use crate::spec::Limits;
use crate::stream::Stream;

/// How long a listener rests when the system has no descriptors or no memory left: peers wait in its backlog
/// meanwhile.
const REST: Duration = Duration::from_millis(100);

/// What the acceptors share with the handle.
pub(crate) struct Front {
    exports: RwLock<Arc<ExportTable>>,
    state: Mutex<State>,
    /// Told when the last client has gone.
    all_gone: Notify,
}

struct State {
    places: Places,
    handshake_timeout: Duration,
    /// The tasks of unfinished handshakes.
    handshakes: HashMap<Ticket, AbortHandle>,
}

/// A place for a handshake: free again when it is dropped.
pub(crate) struct Handshake {
    front: Arc<Front>,
    ticket: Ticket,
    origin: Origin,
}

/// A client's place: free again, and no longer counted, when it is dropped.
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

    /// The volumes that clients can choose from now.
    pub(crate) fn exports(&self) -> Arc<ExportTable> {
        Arc::clone(&self.exports.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Other volumes, and other limits, from now on.
    pub(crate) fn set(&self, exports: ExportTable, limits: Limits) {
        let mut state = self.state();
        state.places.set_limits(limits);
        state.places.set_served(exports.volumes().map(str::to_owned).collect());
        state.handshake_timeout = limits.handshake_timeout.into();
        *self.exports.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(exports);
    }

    /// How many are connected, those still negotiating included.
    pub(crate) fn connected(&self) -> u64 {
        self.state().places.connected()
    }

    /// Returns when nobody is connected.
    pub(crate) async fn wait_until_all_are_gone(&self) {
        while self.connected() > 0 {
            self.all_gone.notified().await;
        }
    }

    /// Accepts clients on the listener of this number.
    pub(crate) fn accept_on(
        self: &Arc<Self>,
        number: usize,
        listener: Listener,
        shards: Vec<UnboundedSender<Command>>,
    ) -> JoinHandle<()> {
        let front = Arc::clone(self);
        spawn_local(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, peer, origin)) => front.begin(number, &shards, (stream, peer, origin)),
                    Err(error) if is_of_one_peer(&error) => {
                        tracing::info!(listener = %listener.local_address(), %error, "a connection ended at once");
                    }
                    Err(error) => {
                        tracing::warn!(listener = %listener.local_address(), %error, "cannot accept a connection");
                        tokio::time::sleep(REST).await;
                    }
                }
            }
        })
    }

    /// Begins the handshake of a peer.
    fn begin(
        self: &Arc<Self>,
        listener: usize,
        shards: &[UnboundedSender<Command>],
        (stream, peer, origin): (Stream, String, Origin),
    ) {
        let mut state = self.state();
        let (ticket, given_up) = match state.places.begin(origin) {
            Ok(begun) => begun,
            Err(full) => {
                drop(state); // a log that takes its time holds up nobody who leaves
                return log_refusal(&peer, full);
            }
        };
        if let Some((ticket, _)) = given_up {
            state.handshakes.remove(&ticket).iter().for_each(AbortHandle::abort);
        }
        let handshake = Handshake { front: Arc::clone(self), ticket, origin };
        let (front, shards, within) = (Arc::clone(self), shards.to_vec(), state.handshake_timeout);
        let task = spawn_local(async move {
            let done = negotiate(stream, peer, listener, handshake, &front, within).await;
            if let Some((place, connection)) = done
                && let Some(shard) = shards.get(place.shard)
            {
                let _ = shard.send(Command::Connect(connection));
            }
        });
        state.handshakes.insert(ticket, task.abort_handle());
        drop(state);
        if let Some((_, origin)) = given_up {
            tracing::info!(peer = %origin, "limits.handshakes are unfinished: the oldest gives way to a new one");
        }
    }

    /// Nothing panics while it has the lock.
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
    /// The handshake has led to a client of this volume; `None` if there is no place for it, which is logged.
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

/// Whether an error of `accept` is about the connection that was to be accepted, and not about all that will
/// be: `accept(2)`, "Error handling". A peer can cause such errors at will, so nobody rests for them.
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
