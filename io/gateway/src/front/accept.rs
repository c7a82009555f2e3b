//! Accepts peers, and begins their handshakes: the part of the front that knows the shards.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{AbortHandle, JoinHandle, spawn_local};
use weir_newcomers::Origin;

use super::{Front, Handshake, is_of_one_peer, log_refusal};
use crate::listen::Listener;
use crate::negotiate::negotiate;
use crate::shard::Command;
use crate::stream::Stream;

/// How long a listener rests when the system has no descriptors or no memory left. Meanwhile, peers wait in
/// its backlog.
const REST: Duration = Duration::from_millis(100);

impl Front {
    /// Accepts clients on the listener with this number.
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
}
