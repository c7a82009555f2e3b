//! The handshake of one connection, from its start to the shard of the export that the client chose, within
//! the time for it.

use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use tokio::time::timeout;
use weir_nbd::{HandshakeLimits, Handshaking, ServerHandshake, Session};

use crate::exports::Place;
use crate::front::{Front, Handshake, Permit};
use crate::shard::NewConnection;
use crate::stream::{Socket, Stream};

/// Bytes read at a time; a handshake is a few hundred.
const READ: usize = 4096;

/// Takes a connection through its handshake. `None` if the handshake fails; the reason is logged.
pub(crate) async fn negotiate(
    stream: Stream,
    peer: String,
    listener: usize,
    handshake: Handshake,
    front: &Front,
    within: Duration,
) -> Option<(Place, NewConnection)> {
    let outcome = timeout(within, shake_hands(stream, &peer, handshake, front)).await;
    match outcome {
        Ok(Ok(Some(Settled { place, session, rest, socket, permit }))) => {
            tracing::debug!(peer, export = session.export.name, "connected");
            let Place { pool, volume, .. } = place;
            Some((place, NewConnection { socket, peer, session, rest, pool, volume, listener, permit }))
        }
        Ok(Ok(None)) => None,
        Ok(Err(error)) => {
            tracing::debug!(peer, %error, "the handshake ended early");
            None
        }
        Err(_) => {
            tracing::info!(peer, after = ?within, "the handshake took too long");
            None
        }
    }
}

/// The result of a handshake.
struct Settled {
    place: Place,
    session: Session,
    rest: Vec<u8>,
    socket: Socket,
    permit: Permit,
}

async fn shake_hands(
    stream: Stream,
    peer: &str,
    handshake: Handshake,
    front: &Front,
) -> io::Result<Option<Settled>> {
    let mut server = ServerHandshake::new(HandshakeLimits::default());
    let mut input = [0; READ];
    let mut length = 0;
    loop {
        let table = front.exports();
        let received = input.get(..length).unwrap_or_default();
        let outcome = server.handle_input(received, &*table);
        let said = server.take_output();
        match outcome {
            Handshaking::NeedMore => {
                write_all(&stream, &said).await?;
                let mut into = [IoSliceMut::new(&mut input)];
                length = std::future::poll_fn(|cx| stream.poll_read(cx, &mut into)).await?;
                if length == 0 {
                    return Ok(None);
                }
            }
            Handshaking::Drain => {
                write_all(&stream, &said).await?;
                length = 0;
            }
            Handshaking::Closed(reason) => {
                write_all(&stream, &said).await?;
                return Err(io::Error::other(reason.to_string()));
            }
            Handshaking::Ready { session, rest } => {
                let Some(place) = table.place(&session.export.name) else { return Ok(None) };
                // Before the client hears that it is let in.
                let Some(permit) = handshake.settle(peer, &session.export.name) else { return Ok(None) };
                write_all(&stream, &said).await?;
                return Ok(Some(Settled { place, session, rest, socket: stream.into_socket()?, permit }));
            }
        }
    }
}

async fn write_all(stream: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = stream.try_write(&[IoSlice::new(bytes)])?;
        bytes = bytes.get(written..).unwrap_or_default();
        if !bytes.is_empty() {
            std::future::poll_fn(|cx| stream.poll_writable(cx)).await?;
        }
    }
    Ok(())
}
