//! The handshake of one connection, within its time, up to the shard that serves the export it chose.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::time::timeout;
use weir_nbd::{HandshakeLimits, Handshaking, ServerHandshake, Session};

use crate::connection::Permit;
use crate::exports::{ExportTable, Place};
use crate::shard::NewConnection;
use crate::stream::{Socket, Stream};

/// Bytes read at a time; a handshake is a few hundred.
const READ: usize = 4096;

/// Takes a connection through its handshake. `None` if it did not get through; the reason is logged.
pub(crate) async fn negotiate(
    stream: Stream,
    peer: String,
    listener: usize,
    permit: Permit,
    exports: &RwLock<Arc<ExportTable>>,
    within: Duration,
) -> Option<(Place, NewConnection)> {
    let outcome = timeout(within, shake_hands(stream, exports)).await;
    match outcome {
        Ok(Ok(Some((place, session, rest, socket)))) => {
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

type Settled = (Place, Session, Vec<u8>, Socket);

async fn shake_hands(stream: Stream, exports: &RwLock<Arc<ExportTable>>) -> io::Result<Option<Settled>> {
    let mut handshake = ServerHandshake::new(HandshakeLimits::default());
    let mut input = [0; READ];
    let mut length = 0;
    loop {
        let table = Arc::clone(&exports.read().expect("nothing panics while it holds the table"));
        let outcome = handshake.handle_input(&input[..length], &*table);
        write_all(&stream, &handshake.take_output()).await?;
        match outcome {
            Handshaking::NeedMore => {
                let mut into = [IoSliceMut::new(&mut input)];
                length = std::future::poll_fn(|cx| stream.poll_read(cx, &mut into)).await?;
                if length == 0 {
                    return Ok(None);
                }
            }
            Handshaking::Drain => length = 0,
            Handshaking::Closed(reason) => return Err(io::Error::other(reason.to_string())),
            Handshaking::Ready { session, rest } => {
                let place = table.place(&session.export.name);
                let socket = stream.into_socket()?;
                return Ok(place.map(|place| (place, session, rest, socket)));
            }
        }
    }
}

async fn write_all(stream: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = stream.try_write(&[IoSlice::new(bytes)])?;
        bytes = &bytes[written..];
        if !bytes.is_empty() {
            std::future::poll_fn(|cx| stream.poll_writable(cx)).await?;
        }
    }
    Ok(())
}
