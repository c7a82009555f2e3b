//! The NBD protocol without sockets: bytes to commands, and back.
//!
//! This crate does not read or write a socket, wait, or know the time. A driver does, and calls three
//! families of functions, in the order below. Source of all rules: `doc/proto.md` of the
//! NetworkBlockDevice/nbd project.
//!
//! 1. **Handshake.** [`ServerHandshake`] takes bytes, and answers options (fixed newstyle) until the client
//!    has chosen an export. After each [`ServerHandshake::handle_input`], the driver sends what
//!    [`ServerHandshake::take_output`] gives, whatever the outcome. The greeting is there from the start. The
//!    result is a [`Session`], and the bytes that already belong to the next phase.
//! 2. **Requests.** [`parse_request`] judges each header of [`REQUEST_LENGTH`] bytes by the session. The
//!    driver then executes the request (after it has read a write's payload), or skips the payload and
//!    refuses, or closes. A [`Command`] is inside the export, and has no flag that was not negotiated, so no
//!    other code has to check it again.
//! 3. **Replies**, in any order, exactly one for each request except a disconnect: [`push_error`] for a
//!    request that failed; otherwise [`read_reply()`] for a read, [`block_status_reply`] for a block status,
//!    and [`push_done`] for all others.
//!
//! Not supported: TLS, the old style, extended headers, resizing. [`client`] is the client's side, for a load
//! generator and a backend.
//!
//! Example, the start of a session: greeting, `NBD_OPT_GO` without structured replies, and one read.
//!
//! ```
//! use weir_nbd::*;
//!
//! struct OneExport;
//! impl Exports for OneExport {
//!     fn names(&self) -> Vec<String> {
//!         vec!["db".to_owned()]
//!     }
//!     fn find(&self, name: &str) -> Option<ExportInfo> {
//!         (name == "db").then(|| ExportInfo {
//!             name: "db".to_owned(),
//!             description: String::new(),
//!             size: 1 << 20,
//!             read_only: false,
//!             fast_zero: false,
//!             multi_conn: true,
//!             block: BlockSizes::default(),
//!         })
//!     }
//! }
//!
//! // What the client sends: its flags, GO with a name and no information requests, and already a request.
//! let go = [&2_u32.to_be_bytes()[..], b"db", &0_u16.to_be_bytes()].concat();
//! let request = [
//!     &wire::REQUEST_MAGIC.to_be_bytes()[..],
//!     &0_u16.to_be_bytes(),
//!     &wire::command::READ.to_be_bytes(),
//!     &77_u64.to_be_bytes(),
//!     &4096_u64.to_be_bytes(),
//!     &512_u32.to_be_bytes(),
//! ]
//! .concat();
//! let sent = [
//!     &wire::client_flag::FIXED_NEWSTYLE.to_be_bytes()[..],
//!     &wire::OPTION_MAGIC.to_be_bytes(),
//!     &wire::option::GO.to_be_bytes(),
//!     &8_u32.to_be_bytes(),
//!     &go,
//!     &request,
//! ]
//! .concat();
//!
//! // The driver, with the socket left out.
//! let mut handshake = ServerHandshake::new(HandshakeLimits::default());
//! let mut socket = handshake.take_output();
//! assert!(socket.starts_with(b"NBDMAGICIHAVEOPT"));
//! let outcome = handshake.handle_input(&sent, &OneExport);
//! socket.extend(handshake.take_output());
//! let Handshaking::Ready { session, rest } = outcome else { panic!("{outcome:?}") };
//!
//! let header = rest.first_chunk().expect("a whole request was sent");
//! let Parsed::Execute(command) = parse_request(&session, header) else { panic!() };
//! assert_eq!((command.kind, command.offset, command.length), (CommandKind::Read, 4096, 512));
//!
//! let data = [7; 512]; // from the device
//! socket.clear();
//! for piece in read_reply(&session, &command, &data) {
//!     socket.extend_from_slice(&piece.header);
//!     socket.extend_from_slice(&data[piece.data]);
//! }
//! assert_eq!(socket.len(), wire::SIMPLE_REPLY_LENGTH + 512);
//! ```

// Every byte comes from a peer. So each expression that may panic says why it does not.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

#[cfg_attr(
    not(test),
    allow(clippy::expect_used, clippy::indexing_slicing, reason = "counted in xtask/panics.txt")
)]
pub mod client;
mod command;
mod error;
mod export;
mod fields;
#[cfg(test)]
mod fixtures;
mod handshake;
mod read_reply;
mod reply;
mod request;
pub mod wire;

pub use command::{Command, CommandKind};
pub use error::{CloseReason, NbdError};
pub use export::{BlockSizes, ExportInfo, Exports, Session};
pub use handshake::{HandshakeLimits, Handshaking, ServerHandshake};
pub use read_reply::{HeaderBytes, Piece, ReadPlan, read_reply};
pub use reply::{block_status_reply, push_done, push_error};
pub use request::{Parsed, parse_request};
pub use wire::REQUEST_LENGTH;
