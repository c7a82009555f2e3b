//! Asks the kernel a question over a netlink socket and reads its answer.
//!
//! The kernel answers within the call that sends the question, so there is nothing to wait for. A timeout of
//! a second stands for the kernel that does not.

use std::io;
use std::time::Duration;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// The size of a read: the kernel sends no more than that at a time if a reader has room for it
/// (`netlink_dump` in net/netlink/af_netlink.c).
const READ_BYTES: usize = 32 << 10;

/// Says how long a message is even if there is no room for it (`man 2 recv`).
const MSG_TRUNC: i32 = 0x20;

/// How long the kernel may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// A netlink socket for questions.
pub(super) struct Inquiry {
    socket: Socket,
    number: u32,
    buffer: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum InquiryError {
    /// The kernel refuses.
    #[error("{0}")]
    Refused(Errno),
    /// The answer is none.
    #[error("an answer that is none: {0}")]
    Unfit(String),
}

impl From<io::Error> for InquiryError {
    fn from(error: io::Error) -> Self {
        Self::Refused(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

impl Inquiry {
    /// A socket of this protocol, such as `NETLINK_ROUTE`.
    pub(super) fn new(protocol: isize) -> Result<Self, InquiryError> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).map_err(InquiryError::Refused)?;
        Ok(Self { socket, number: 0, buffer: Vec::with_capacity(READ_BYTES) })
    }

    /// Sends a question and gives each message of the answer to `take`. With `all`, the answer is a list.
    pub(super) fn ask<M>(
        &mut self,
        question: M,
        all: bool,
        mut take: impl FnMut(M),
    ) -> Result<(), InquiryError>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        self.number = self.number.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | if all { NLM_F_DUMP } else { 0 };
        header.sequence_number = self.number;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(question));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            self.buffer.clear();
            let length = self.socket.recv(&mut self.buffer, MSG_TRUNC)?;
            if length > self.buffer.len() {
                return Err(InquiryError::Unfit(format!("{length} bytes at a time")));
            }
            if self.read(all, &mut take)? {
                return Ok(());
            }
        }
    }

    /// Reads the messages in the buffer. Says whether the answer is complete.
    fn read<M: NetlinkDeserializable>(
        &self,
        all: bool,
        take: &mut impl FnMut(M),
    ) -> Result<bool, InquiryError> {
        let mut rest = &*self.buffer;
        while !rest.is_empty() {
            let message = NetlinkMessage::<M>::deserialize(rest);
            let message = message.map_err(|error| InquiryError::Unfit(error.to_string()))?;
            let length = usize::try_from(message.header.length).unwrap_or(usize::MAX);
            // Messages are aligned to four bytes.
            rest = rest.get(length.max(1).next_multiple_of(4)..).unwrap_or_default();
            if message.header.sequence_number != self.number {
                continue; // of a question before, whose answer was too late
            }
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(true),
                NetlinkPayload::Error(error) => {
                    return match error.code {
                        None => Ok(true),
                        Some(_) => Err(error.to_io().into()),
                    };
                }
                NetlinkPayload::InnerMessage(inner) => {
                    take(inner);
                    if !all {
                        return Ok(true);
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }
}
