//! The client's side of the protocol, for the load generator and for a backend that is another NBD server.
//!
//! A client library would copy every payload and keep a future for each request. Both users want the
//! opposite: a load generator to know as cheaply as possible which request was answered and how, and to throw
//! the bytes away; a backend to have them where they belong without another copy. So [`encode_request`]
//! appends to a buffer that holds many requests, and [`ReplyDecoder`] walks over whatever a read returned,
//! copies at most a header that is cut in two, and allocates nothing for a reply that comes in one piece. It
//! skips the data, or tells where in which read they belong.

mod coverage;
mod handshake;
mod reply;
mod request;
mod target;

pub use handshake::{ClientHandshake, Connecting, HandshakeError, RemoteExport};
pub use reply::{Awaited, Received, Reply, ReplyDecoder, ReplyError};
pub use request::{encode_request, request_header};
pub use target::{Address, Target, TargetError};
