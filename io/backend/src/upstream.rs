//! An export of another NBD server: weir as a shim before any server, or several gateways before one array.
//!
//! | file | what it does |
//! |---|---|
//! | `connect` | socket and handshake, in calls that may wait |
//! | `abilities` | checks what the server says about its export |
//! | `link` | the connections, and the attempts to connect while there are none |
//! | `table` | unfinished requests, and their pieces on the wire |
//! | `connection`, `socket` | bytes to a server, and from it |
//!
//! **Several connections** are made only if the server says that a flush on one covers the answers on all
//! (`NBD_FLAG_CAN_MULTI_CONN`); otherwise there is one. A request takes the connection that is least busy.
//!
//! **A server that goes away.** The device keeps the requests that were not answered, and sends them again,
//! in their order, when the server is back. That is safe even if the server had done them: the client has got
//! no answer, and its requests in flight have no order among themselves. A request waits fifteen seconds at
//! most, then it fails with an I/O error; the device keeps trying to connect. If the server comes back with
//! another size or other abilities than clients were told of, the device refuses it. (NBD cannot fence: a
//! server may still do later the requests that it received before a connection broke. No client of it can
//! help that.)
//!
//! **Changes that were answered and not flushed** may be lost, if the server had them in a volatile cache and
//! died. The client would never know: its next flush would succeed, at a server that has nothing to flush.
//!
//! - The device does not keep the data of such writes to write them again. That looks kinder, but is wrong if
//!   the server has other clients. Several gateways before one array are such clients to each other. Another
//!   client may have written there since, and an old write would then replace a newer one that was flushed.
//! - So the device reports the loss ([`take_loss`](BlockDevice::take_loss)), as the kernel's `fsync` does.
//!   Its driver then fails the next flush of *each connection*, once. Each connection counts, because a
//!   client with several connections may flush on any of them, and another client's flush must not use up the
//!   message.
//! - Writes with FUA do not fail: they say nothing about other writes.
//! - weir cannot tell a restarted server from a network that was down for a moment. So both count as a loss,
//!   unless everything that was answered had been flushed.
//!
//! **A server that breaks the protocol** loses its connections, like a server that goes away. The headers of
//! `connection` and `table` say what the device checks. It tries again after pauses that grow, so that such a
//! server cannot fill the log either.
//!
//! **A server without some abilities:**
//!
//! - Without FUA, a write that asks for it is followed by a flush.
//! - Without flush, each write is sent with FUA. Without both, weir does not know what is durable, and each
//!   loss of the server counts.
//! - Without write zeroes, the device writes them. Without trim and cache, which are advice, it does nothing.
//! - Reads and writes that are longer than the server takes are split.
//! - weir tells its own clients the server's smallest block, and refuses requests that are not multiples of
//!   it. If weir read the rest, changed it and wrote it back, it would lose another client's write in
//!   between.
//! - The device does not ask which parts are allocated: all are.

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;

use weir_model::Instant;
use weir_nbd::client::Target;

use crate::{BlockDevice, DeviceRequest, Finished, OpenError, Properties, Reactor, Token};

mod abilities;
mod connect;
mod connection;
mod link;
mod socket;
mod table;

pub use connect::ConnectError;
pub(crate) use link::Link;

use connect::Established;

/// A server that is connected to.
#[derive(Debug)]
pub(crate) struct OpenUpstream {
    target: Target,
    most: NonZeroU32,
    established: Established,
}

/// An export of a server, on the thread that drives it.
#[derive(Debug)]
pub(crate) struct UpstreamDevice {
    link: Rc<RefCell<Link>>,
    properties: Properties,
}

/// Connects to an export, `most` times if the server allows that.
pub(crate) fn open(target: &Target, most: NonZeroU32) -> Result<OpenUpstream, OpenError> {
    let refused = |source| OpenError::Upstream { target: target.to_string(), source };
    let established = connect::connect(target, most).map_err(refused)?;
    let (upstream, connections) = (target.to_string(), established.connections.len());
    tracing::info!(upstream, connections, size = established.abilities.size, "connected");
    if !established.abilities.read_only && !established.abilities.flush {
        let fua = established.abilities.fua;
        tracing::warn!(
            upstream,
            fua,
            "the server knows no flush; only it knows when a write without FUA is durable"
        );
    }
    Ok(OpenUpstream { target: target.clone(), most, established })
}

impl OpenUpstream {
    /// The properties that the device will have.
    pub(crate) fn properties(&self) -> Properties {
        self.established.abilities.properties()
    }

    /// Makes the device, for the driver of `reactor`.
    pub(crate) fn attach(self, reactor: &Reactor) -> UpstreamDevice {
        let properties = self.properties();
        let link = Rc::new(RefCell::new(Link::new(self.target, self.most, self.established)));
        reactor.add_link(&link);
        UpstreamDevice { link, properties }
    }
}

impl BlockDevice for UpstreamDevice {
    fn properties(&self) -> Properties {
        self.properties
    }

    fn start(&mut self, now: Instant, request: DeviceRequest, finished: &mut Vec<Finished>) {
        self.link.borrow_mut().start(now, request, finished);
    }

    fn poll_finished(&mut self, now: Instant, finished: &mut Vec<Finished>) {
        self.link.borrow_mut().handle_time(now, finished);
    }

    /// Never `None`, because a server may go away at any time.
    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.link.borrow().poll_timeout())
    }

    fn take_loss(&mut self) -> bool {
        self.link.borrow_mut().take_loss()
    }

    fn abandon(&mut self, token: Token) {
        self.link.borrow_mut().abandon(token);
    }
}

#[cfg(test)]
mod tests;
