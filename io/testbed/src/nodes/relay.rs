//! A connection to a server, as slow as its node is to be.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::shaper::{Allowance, Shaper};

/// How many bytes are read before they are handed on.
const BUFFER: usize = 16 << 10;

/// How many bytes the kernel takes for the relay.
const RECEIVED: u32 = 16 << 10;
/// How many clients may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// Listens at a port of its own, and hands on each connection to `server`, as a stream of a node.
///
/// # Errors
/// If there is no port.
pub(super) async fn start(shaper: Shaper, node: usize, server: SocketAddr) -> anyhow::Result<SocketAddr> {
    let listener = listen().context("a port for a relay")?;
    let address = listener.local_addr().context("the address of a relay")?;
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let shaper = shaper.clone();
            tokio::spawn(async move {
                // A client that cannot be connected sees its connection end.
                let Ok(server) = TcpStream::connect(server).await else { return };
                let _ = (client.set_nodelay(true), server.set_nodelay(true)); // slower, and right all the same
                let allowance = shaper.open(node);
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::join!(
                    hand_on(from_client, to_server, &allowance),
                    hand_on(from_server, to_client, &allowance)
                );
            });
        }
    });
    Ok(address)
}

fn listen() -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(RECEIVED)?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    socket.listen(BACKLOG)
}

/// Hands on what one side sends, until one side ends.
async fn hand_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, allowance: &Allowance) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(length) = from.read(&mut buffer).await
        && length > 0
    {
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            let may = allowance.take(rest.len()).await;
            let (now, later) = rest.split_at(may);
            if to.write_all(now).await.is_err() {
                return;
            }
            rest = later;
        }
    }
    let _ = to.shutdown().await; // the other side may have ended before
}
