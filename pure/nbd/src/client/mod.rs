//! The client's side of the protocol, for the load generator.
//!
//! A client library would hand out every payload and keep a future for each request. A load generator wants the
//! opposite: to know as cheaply as possible which request was answered and how, and to throw the bytes away. So
//! [`encode_request`] appends to a buffer that holds many requests, and [`ReplyDecoder`] walks over whatever a read
//! returned, copies at most a header that is cut in two, and allocates nothing for a reply that comes in one piece.

mod handshake;
mod reply;
mod request;

pub use handshake::{ClientHandshake, Connecting, HandshakeError, RemoteExport};
pub use reply::{Awaited, Reply, ReplyDecoder, ReplyError};
pub use request::encode_request;
