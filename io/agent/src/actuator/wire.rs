//! One question to the kernel and its answer, over netlink (netlink(7), rtnetlink(7)).
//!
//! The kernel works off a request before `send` returns, and its answers are in the socket by then. So the
//! sockets never block, and an answer that is missing is an error at once.

use std::fmt;
use std::io;

use netlink_packet_core::{
    ErrorBuffer, NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE,
    NLMSG_ERROR, NetlinkBuffer,
};
use netlink_sys::{Socket, SocketAddr, protocols};
use rustix::io::Errno;

use super::attributes::{attribute, text};

/// The length of a message's head, `struct nlmsghdr`.
const HEAD: usize = 16;
/// linux/netlink.h, `enum nlmsgerr_attrs`: the kernel's reason in words.
const NLMSGERR_ATTR_MSG: u16 = 1;
/// The kernel makes the parts of a long answer at most 32 KiB long.
const LONGEST_ANSWER: usize = 1 << 16;
/// How often a dump is repeated if something changed while the kernel wrote it.
const REPEATS: u32 = 5;

/// linux/netfilter/nfnetlink.h: the begin and the end of a transaction, and whose it is.
const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
const NFNL_SUBSYS_NFTABLES: u16 = 10;

/// A message to the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// What it is to do, in words for an error.
    pub what: String,
    /// Its type.
    pub kind: u16,
    /// Its flags, without those that every message has.
    pub flags: u16,
    /// All that follows the head.
    pub body: Vec<u8>,
    /// The kernel module without which the kernel does not know what the message is about.
    pub needs: Option<&'static str>,
}

/// What is asked of the kernel at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// A question to traffic control, or a change of it.
    Queues(Message),
    /// A question to nf_tables.
    Look(Message),
    /// Changes of nf_tables, of which the kernel does all or none.
    Transaction(Vec<Message>),
    /// The same, but the kernel only says whether it would do them, as for `nft --check`.
    Trial(Vec<Message>),
}

/// The kernel's answer to a question: the type and the body of each message.
pub type Answer = Vec<(u16, Vec<u8>)>;

/// The kernel refused something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What it was to do.
    pub what: String,
    /// Why not.
    pub errno: Errno,
    /// The kernel's reason in words, often empty.
    pub said: String,
    /// The kernel module that is needed for it.
    pub needs: Option<&'static str>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, errno, said, .. } = self;
        let reason = io::Error::from(*errno);
        if said.is_empty() { write!(f, "{what}: {reason}") } else { write!(f, "{what}: {said} ({reason})") }
    }
}

impl std::error::Error for Refusal {}

/// The way to the kernel. Tests put something in between that fails.
pub trait Wire {
    /// Asks, and waits for the answer, which is empty for a change.
    ///
    /// # Errors
    /// If the kernel refuses, or the answer makes no sense.
    fn ask(&mut self, request: &Request) -> Result<Answer, Refusal>;
}

/// The two sockets of the agent. The kernel removes the agent's table when the second one closes.
pub struct Sockets {
    queues: Socket,
    tables: Socket,
    sequence: u32,
}

impl Sockets {
    /// Opens both sockets, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the kernel has no netlink for traffic control or for nf_tables.
    pub fn open() -> Result<Self, Refusal> {
        let open = |protocol, what: &str, needs| {
            let opened = || {
                let mut socket = Socket::new(protocol)?;
                socket.bind_auto()?;
                socket.set_non_blocking(true)?;
                socket.set_ext_ack(true)?; // reasons in words
                socket.set_cap_ack(true)?; // no copy of what was asked
                Ok(socket)
            };
            opened().map_err(|error| {
                let what = format!("open a netlink socket for {what}");
                Refusal { what, errno: errno(&error), said: String::new(), needs: Some(needs) }
            })
        };
        Ok(Self {
            queues: open(protocols::NETLINK_ROUTE, "traffic control", "sch_htb")?,
            tables: open(protocols::NETLINK_NETFILTER, "nftables", "nf_tables")?,
            sequence: 0,
        })
    }

    fn ask_once(&mut self, request: &Request) -> Result<Heard, Refusal> {
        let (socket, messages) = match request {
            Request::Queues(message) => (&self.queues, std::slice::from_ref(message)),
            Request::Look(message) => (&self.tables, std::slice::from_ref(message)),
            Request::Transaction(messages) | Request::Trial(messages) => (&self.tables, messages.as_slice()),
        };
        let Some(last) = messages.last() else { return Ok(Heard::default()) };
        let first = self.sequence.wrapping_add(1);
        let bytes = serialize(request, messages, first);
        let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        self.sequence = self.sequence.wrapping_add(count).wrapping_add(2); // and the frame of a transaction
        let failed = |error: &io::Error| refusal(last, errno(error), String::new());
        socket.send_to(&bytes, &SocketAddr::new(0, 0), 0).map_err(|error| failed(&error))?;

        let is_dump = last.flags & NLM_F_DUMP == NLM_F_DUMP;
        let mut heard = Heard::default();
        let mut buffer = Vec::with_capacity(LONGEST_ANSWER);
        // A transaction that failed may have several answers; all of them are there.
        while !(is_dump && heard.is_done) {
            buffer.clear();
            match socket.recv(&mut buffer, 0) {
                Ok(_) => heard.read(&buffer, first, messages)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(failed(&error)),
            }
        }
        match heard.refusal.take() {
            Some(refusal) => Err(refusal),
            None if heard.is_done => Ok(heard),
            None => Err(refusal(last, Errno::BADMSG, "the kernel did not answer".to_owned())),
        }
    }
}

impl Wire for Sockets {
    fn ask(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let mut repeats = 0;
        loop {
            let heard = self.ask_once(request)?;
            if !heard.is_torn || repeats == REPEATS {
                return Ok(heard.answer);
            }
            repeats += 1;
        }
    }
}

/// What the kernel has answered so far.
#[derive(Default)]
struct Heard {
    answer: Answer,
    refusal: Option<Refusal>,
    is_done: bool,
    /// Something changed during the dump, so an entry may be missing.
    is_torn: bool,
}

impl Heard {
    /// Reads a datagram. Messages with a number before `first` answer an earlier request, which was given up.
    fn read(&mut self, mut bytes: &[u8], first: u32, messages: &[Message]) -> Result<(), Refusal> {
        let Some(last) = messages.last() else { return Ok(()) };
        while !bytes.is_empty() {
            let garbled = |_| refusal(last, Errno::BADMSG, "the kernel's answer is cut off".to_owned());
            let message = NetlinkBuffer::new_checked(bytes).map_err(garbled)?;
            let length = usize::try_from(message.length()).unwrap_or(usize::MAX);
            bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
            let number = message.sequence_number().wrapping_sub(first);
            // A transaction's own frame comes before its first message.
            if number > u32::MAX / 2 && number != u32::MAX {
                continue;
            }
            self.is_torn |= message.flags() & NLM_F_DUMP_INTR != 0;
            let about = usize::try_from(number).ok().and_then(|number| messages.get(number)).unwrap_or(last);
            match message.message_type() {
                NLMSG_ERROR | NLMSG_DONE => self.read_end(&message, about),
                kind => self.answer.push((kind, message.payload().to_vec())),
            }
        }
        Ok(())
    }

    /// Reads an error, an acknowledgement or the end of a dump. Each has a negative errno or 0 in front.
    fn read_end(&mut self, message: &NetlinkBuffer<&[u8]>, about: &Message) {
        self.is_done = true;
        let Ok(end) = ErrorBuffer::new_checked(message.payload()) else { return };
        let Some(code) = end.code() else { return };
        let is_error = message.message_type() == NLMSG_ERROR;
        let attributes = end.payload().get(if is_error { HEAD } else { 0 }..).unwrap_or_default();
        let has_attributes = message.flags() & NLM_F_ACK_TLVS != 0;
        let said = attribute(attributes, NLMSGERR_ATTR_MSG).filter(|_| has_attributes).map(text);
        let refused = refusal(about, Errno::from_raw_os_error(code.get().abs()), said.unwrap_or_default());
        self.refusal.get_or_insert(refused);
    }
}

fn refusal(about: &Message, errno: Errno, said: String) -> Refusal {
    Refusal { what: about.what.clone(), errno, said, needs: about.needs }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The bytes of a request, whose first message gets the number `first`.
fn serialize(request: &Request, messages: &[Message], first: u32) -> Vec<u8> {
    let is_transaction = matches!(request, Request::Transaction(_) | Request::Trial(_));
    let frame = [0, 0, NFNL_SUBSYS_NFTABLES.to_be_bytes()[0], NFNL_SUBSYS_NFTABLES.to_be_bytes()[1]];
    let mut bytes = Vec::new();
    if is_transaction {
        put(&mut bytes, NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, first.wrapping_sub(1), &frame);
    }
    let mut number = first;
    for (at, message) in messages.iter().enumerate() {
        // The end of a dump, and the answer to the last message of a transaction, show that all is done.
        let is_dump = message.flags & NLM_F_DUMP == NLM_F_DUMP && !is_transaction;
        let ack = if is_dump || at + 1 < messages.len() { 0 } else { NLM_F_ACK };
        put(&mut bytes, message.kind, NLM_F_REQUEST | ack | message.flags, number, &message.body);
        number = number.wrapping_add(1);
    }
    // Without its end, the kernel takes a transaction back.
    if matches!(request, Request::Transaction(_)) {
        put(&mut bytes, NFNL_MSG_BATCH_END, NLM_F_REQUEST, number, &frame);
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, kind: u16, flags: u16, number: u32, body: &[u8]) {
    let length = u32::try_from(HEAD + body.len()).unwrap_or(u32::MAX);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(number.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes()); // the kernel knows the sender
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}
