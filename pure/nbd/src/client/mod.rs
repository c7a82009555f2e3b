//! The client's side of the protocol, for the load generator and for a backend that is another NBD server.
//!
//! A client library would copy every payload, and keep a future for each request. Neither user wants that. A
//! load generator wants to know as cheaply as possible which request was answered and how, and throws the
//! bytes away. A backend wants the bytes where they belong, without another copy.
//!
//! So [`encode_request`] appends to a buffer that holds many requests. [`ReplyDecoder`] walks over the bytes
//! that a read returned. It copies at most a header that is cut in two, and allocates nothing for a reply
//! that comes in one piece. It skips the data, or tells where in which read they belong.

mod coverage;
mod handshake;
mod reply;
mod request;
mod target;

pub use handshake::{ClientHandshake, Connecting, HandshakeError, RemoteExport};
pub use reply::{Awaited, Received, Reply, ReplyDecoder, ReplyError};
pub use request::{encode_request, request_header};
pub use target::{Address, Target, TargetError};
