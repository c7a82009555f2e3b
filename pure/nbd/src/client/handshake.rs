//! The client's side of the handshake: fixed newstyle, `GO`, and what older servers need instead.
//!
//! The order is:
//!
//! 1. the greeting;
//! 2. `STRUCTURED_REPLY`, if the caller wants it;
//! 3. `GO`, which gives the block sizes, or an error that says what is wrong;
//! 4. `EXPORT_NAME`, for a server that does not know `GO`.
//!
//! If there is no such export, the client asks the server which exports there are before it gives up: a
//! person who mistyped the name wants to know that.

use thiserror::Error;

use crate::BlockSizes;
use crate::wire::{self, client_flag, handshake_flag, info, option, option_reply};

/// The longest reply to an option that is accepted. An export's longest name and its longest description fit,
/// with room for what a future reply may add.
const MAX_OPTION_REPLY: u32 = 64 * 1024;
/// How many replies to one option are accepted.
const MAX_REPLIES: u32 = 10_000;
/// Bytes of exports' names that are kept for an error message. Nobody would read more.
const MAX_NAMES: usize = 4096;
/// The eight bytes after the magic, from a server that only speaks the old style, without options.
const OLD_STYLE_MAGIC: u64 = 0x0000_4202_8186_1253;

/// The client's side of a handshake. It does no I/O: [`ClientHandshake::handle_input`] takes bytes from the
/// server, and [`ClientHandshake::take_output`] gives bytes for the server. The caller must send these after
/// each call, also after an error.
#[derive(Debug)]
pub struct ClientHandshake {
    name: String,
    want_structured: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    step: Step,
    no_zeroes: bool,
    structured: bool,
    size_and_flags: Option<(u64, u16)>,
    block: Option<BlockSizes>,
    /// The exports that the server listed, for an error message, and how many were left out.
    names: Vec<String>,
    more_names: u32,
    replies: u32,
}

/// What the client waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Greeting,
    StructuredReply,
    Go,
    ExportName,
    List,
}

/// How far the handshake is.
#[derive(Debug, PartialEq, Eq)]
pub enum Connecting {
    /// More has to come from the server.
    NeedMore,
    /// Requests may be sent.
    Ready {
        /// The export that the client is connected to.
        export: RemoteExport,
        /// Bytes that already belong to the transmission phase.
        rest: Vec<u8>,
    },
}

/// What a server told about the export that was chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteExport {
    /// Its name, as it was asked for.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// [`wire::transmission_flag`]s.
    pub flags: u16,
    /// Its block sizes, if the server told them.
    pub block: Option<BlockSizes>,
    /// Whether structured replies were negotiated.
    pub structured_replies: bool,
}

/// Why there is no session.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum HandshakeError {
    /// The name cannot be sent.
    #[error("an export's name may have at most 4096 bytes, this one has {0}")]
    NameTooLong(usize),
    /// The peer is no NBD server.
    #[error("this is no NBD server: it starts with {0:#018x} where NBDMAGIC is expected")]
    NotNbd(u64),
    /// The server speaks only the old style: it is from before 2010, or was configured so.
    #[error("the server speaks the old style of NBD, without options; accepted: newstyle")]
    OldStyle,
    /// A style that is not known.
    #[error("the server greets with {0:#018x} where IHAVEOPT is expected")]
    UnknownStyle(u64),
    /// There is no such export.
    #[error("there is no export {wanted:?}; {}", existing(.names.as_deref(), *.more))]
    UnknownExport {
        /// The name that was asked for.
        wanted: String,
        /// The names of the exports that there are, if the server lists them: the first few thousand bytes.
        names: Option<Vec<String>>,
        /// How many more exports there are.
        more: u32,
    },
    /// The server refuses to serve the export.
    #[error("the server refuses to serve export {wanted:?}: {}", refusal(*.reply, .message))]
    Refused {
        /// The name that was asked for.
        wanted: String,
        /// The type of the server's reply.
        reply: u32,
        /// The server's message, on one line; may be empty.
        message: String,
    },
    /// A reply that makes no sense.
    #[error("the server sent {0}")]
    BadReply(&'static str),
    /// The connection ended too early.
    #[error("the server closed the connection during the handshake{}", if *.naming { ": there may be no export of this name" } else { "" })]
    Closed {
        /// Whether the server closed in answer to `EXPORT_NAME`. That is how a server says "no such export"
        /// there.
        naming: bool,
    },
}

impl ClientHandshake {
    /// A handshake for the export `name`; the empty name stands for the server's default.
    /// `structured_replies`: whether to ask for structured replies.
    ///
    /// # Errors
    /// If the name is longer than the protocol allows.
    pub fn new(name: &str, structured_replies: bool) -> Result<Self, HandshakeError> {
        if name.len() > wire::MAX_STRING {
            return Err(HandshakeError::NameTooLong(name.len()));
        }
        Ok(Self {
            name: name.to_owned(),
            want_structured: structured_replies,
            input: Vec::new(),
            output: Vec::new(),
            step: Step::Greeting,
            no_zeroes: false,
            structured: false,
            size_and_flags: None,
            block: None,
            names: Vec::new(),
            more_names: 0,
            replies: 0,
        })
    }

    /// Takes bytes that the server sent.
    ///
    /// # Errors
    /// If there will be no session. The caller then sends what [`ClientHandshake::take_output`] gives, and
    /// closes.
    pub fn handle_input(&mut self, input: &[u8]) -> Result<Connecting, HandshakeError> {
        self.input.extend_from_slice(input);
        loop {
            let ready = match self.step {
                Step::Greeting => self.greeting()?,
                Step::ExportName => self.export_name_reply()?,
                Step::StructuredReply | Step::Go | Step::List => self.option_reply()?,
            };
            match ready {
                Progress::NeedMore => return Ok(Connecting::NeedMore),
                Progress::Step => {}
                Progress::Ready(export) => {
                    return Ok(Connecting::Ready { export, rest: std::mem::take(&mut self.input) });
                }
            }
        }
    }

    /// Why there is no session, if the server closes the connection now.
    pub fn handle_end(&self) -> HandshakeError {
        match self.step {
            Step::List => self.unknown_export(None),
            step => HandshakeError::Closed { naming: step == Step::ExportName },
        }
    }

    /// The bytes to send to the server now; may be empty.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// NBD protocol, "Newstyle negotiation".
    fn greeting(&mut self) -> Result<Progress, HandshakeError> {
        let mut fields = Fields(&self.input);
        let Some(magic) = fields.u64() else { return Ok(Progress::NeedMore) };
        if magic != wire::NBD_MAGIC {
            return Err(HandshakeError::NotNbd(magic));
        }
        let Some(style) = fields.u64() else { return Ok(Progress::NeedMore) };
        match style {
            wire::OPTION_MAGIC => {}
            OLD_STYLE_MAGIC => return Err(HandshakeError::OldStyle),
            other => return Err(HandshakeError::UnknownStyle(other)),
        }
        let Some(server) = fields.u16() else { return Ok(Progress::NeedMore) };
        self.input.drain(..wire::GREETING_LENGTH);
        let fixed = server & handshake_flag::FIXED_NEWSTYLE != 0;
        self.no_zeroes = server & handshake_flag::NO_ZEROES != 0;
        let client = if fixed { client_flag::FIXED_NEWSTYLE } else { 0 }
            | if self.no_zeroes { client_flag::NO_ZEROES } else { 0 };
        self.output.extend_from_slice(&client.to_be_bytes());
        match (fixed, self.want_structured) {
            (false, _) => self.ask_export_name(),
            (true, true) => self.ask(option::STRUCTURED_REPLY, &[], Step::StructuredReply),
            (true, false) => self.ask_go(),
        }
        Ok(Progress::Step)
    }

    /// NBD protocol, "Newstyle negotiation", the answer to `EXPORT_NAME`.
    fn export_name_reply(&mut self) -> Result<Progress, HandshakeError> {
        let zeroes = if self.no_zeroes { 0 } else { wire::EXPORT_NAME_ZEROES };
        let length = 8 + 2 + zeroes;
        let mut fields = Fields(&self.input);
        let (Some(size), Some(flags)) = (fields.u64(), fields.u16()) else { return Ok(Progress::NeedMore) };
        if self.input.len() < length {
            return Ok(Progress::NeedMore);
        }
        self.input.drain(..length);
        self.size_and_flags = Some((size, flags));
        self.ready()
    }

    /// NBD protocol, "Fixed newstyle negotiation": one reply to the option that was sent last.
    fn option_reply(&mut self) -> Result<Progress, HandshakeError> {
        let mut fields = Fields(&self.input);
        let (Some(magic), Some(option), Some(kind), Some(length)) =
            (fields.u64(), fields.u32(), fields.u32(), fields.u32())
        else {
            return Ok(Progress::NeedMore);
        };
        if magic != wire::OPTION_REPLY_MAGIC {
            return Err(HandshakeError::BadReply("a reply to an option without the magic of one"));
        }
        let asked = match self.step {
            Step::StructuredReply => option::STRUCTURED_REPLY,
            Step::Go => option::GO,
            _ => option::LIST,
        };
        if option != asked {
            return Err(HandshakeError::BadReply("a reply to an option that was not asked"));
        }
        self.replies += 1;
        if length > MAX_OPTION_REPLY || self.replies > MAX_REPLIES {
            return Err(HandshakeError::BadReply("a reply to an option that is too long"));
        }
        let Some(data) = fields.take(length as usize) else {
            self.replies -= 1; // it will be looked at again
            return Ok(Progress::NeedMore);
        };
        let data = data.to_vec();
        self.input.drain(..wire::OPTION_REPLY_HEADER_LENGTH + data.len());
        match self.step {
            Step::StructuredReply => self.structured_reply_answer(kind),
            Step::Go => self.go_answer(kind, &data),
            _ => self.list_answer(kind, &data),
        }
    }

    fn structured_reply_answer(&mut self, kind: u32) -> Result<Progress, HandshakeError> {
        if kind != option_reply::ACK && kind & option_reply::ERROR_BIT == 0 {
            return Err(HandshakeError::BadReply("an answer to STRUCTURED_REPLY that is neither yes nor no"));
        }
        self.structured = kind == option_reply::ACK;
        self.ask_go();
        Ok(Progress::Step)
    }

    fn go_answer(&mut self, kind: u32, data: &[u8]) -> Result<Progress, HandshakeError> {
        match kind {
            option_reply::ACK => return self.ready(),
            option_reply::INFO => self.take_info(data)?,
            option_reply::ERR_UNSUP => self.ask_export_name(),
            option_reply::ERR_UNKNOWN => self.ask(option::LIST, &[], Step::List),
            kind if kind & option_reply::ERROR_BIT != 0 => {
                self.abort();
                let message = one_line(data);
                return Err(HandshakeError::Refused { wanted: self.name.clone(), reply: kind, message });
            }
            _ => {
                return Err(HandshakeError::BadReply("an answer to GO of a type that does not belong there"));
            }
        }
        Ok(Progress::Step)
    }

    fn take_info(&mut self, data: &[u8]) -> Result<(), HandshakeError> {
        let mut fields = Fields(data);
        match fields.u16() {
            Some(info::EXPORT) => {
                let (Some(size), Some(flags)) = (fields.u64(), fields.u16()) else {
                    return Err(HandshakeError::BadReply("NBD_INFO_EXPORT cut short"));
                };
                self.size_and_flags = Some((size, flags));
            }
            Some(info::BLOCK_SIZE) => {
                let (Some(minimum), Some(preferred), Some(maximum)) =
                    (fields.u32(), fields.u32(), fields.u32())
                else {
                    return Err(HandshakeError::BadReply("NBD_INFO_BLOCK_SIZE cut short"));
                };
                self.block = Some(BlockSizes { minimum, preferred, maximum });
            }
            Some(_) => {}
            None => return Err(HandshakeError::BadReply("NBD_REP_INFO without a type")),
        }
        Ok(())
    }

    fn list_answer(&mut self, kind: u32, data: &[u8]) -> Result<Progress, HandshakeError> {
        if kind == option_reply::SERVER {
            let mut fields = Fields(data);
            let name = fields.u32().and_then(|length| fields.take(length as usize));
            let name = name.ok_or(HandshakeError::BadReply("an entry of the list of exports cut short"))?;
            let kept: usize = self.names.iter().map(|name| name.len() + 1).sum();
            if kept + name.len() < MAX_NAMES && self.more_names == 0 {
                self.names.push(String::from_utf8_lossy(name).into_owned());
            } else {
                self.more_names += 1;
            }
            return Ok(Progress::Step);
        }
        self.abort();
        let names = (kind == option_reply::ACK).then(|| std::mem::take(&mut self.names));
        Err(self.unknown_export(names))
    }

    fn unknown_export(&self, names: Option<Vec<String>>) -> HandshakeError {
        HandshakeError::UnknownExport { wanted: self.name.clone(), names, more: self.more_names }
    }

    fn ready(&mut self) -> Result<Progress, HandshakeError> {
        let (size, flags) =
            self.size_and_flags.ok_or(HandshakeError::BadReply("an answer to GO without NBD_INFO_EXPORT"))?;
        Ok(Progress::Ready(RemoteExport {
            name: self.name.clone(),
            size,
            flags,
            block: self.block,
            structured_replies: self.structured,
        }))
    }

    /// NBD protocol, `NBD_OPT_GO`: the name, then which facts are wanted. Size and flags always come.
    fn ask_go(&mut self) {
        let mut data = Vec::with_capacity(8 + self.name.len());
        data.extend_from_slice(&length_of(self.name.as_bytes()).to_be_bytes());
        data.extend_from_slice(self.name.as_bytes());
        data.extend_from_slice(&1u16.to_be_bytes());
        data.extend_from_slice(&info::BLOCK_SIZE.to_be_bytes());
        self.ask(option::GO, &data, Step::Go);
    }

    fn ask_export_name(&mut self) {
        let name = self.name.clone().into_bytes();
        self.ask(option::EXPORT_NAME, &name, Step::ExportName);
    }

    /// A client that gives up during option haggling must say so.
    fn abort(&mut self) {
        let step = self.step;
        self.ask(option::ABORT, &[], step);
    }

    fn ask(&mut self, option: u32, data: &[u8], next: Step) {
        self.output.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
        self.output.extend_from_slice(&option.to_be_bytes());
        self.output.extend_from_slice(&length_of(data).to_be_bytes());
        self.output.extend_from_slice(data);
        self.step = next;
        self.replies = 0;
    }
}

enum Progress {
    NeedMore,
    Step,
    Ready(RemoteExport),
}

/// Takes integers off the front of a slice.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}

fn length_of(data: &[u8]) -> u32 {
    u32::try_from(data.len()).expect("a name has at most 4,096 bytes")
}

fn existing(names: Option<&[String]>, more: u32) -> String {
    match (names, more) {
        (None, _) => "the server does not tell which there are".to_owned(),
        (Some([]), 0) => "the server has none".to_owned(),
        (Some(names), more) => {
            let mut all: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            if more > 0 {
                all.push(format!("{more} more"));
            }
            format!("the server has {}", all.join(", "))
        }
    }
}

/// A server's message for people, as a part of one line: no longer than the protocol allows, and without
/// control characters.
fn one_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text.get(..wire::MAX_STRING).unwrap_or(text));
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn refusal(reply: u32, message: &str) -> String {
    let reason = match reply {
        option_reply::ERR_POLICY => "its policy forbids it",
        option_reply::ERR_TLS_REQD => "it requires TLS, which is not supported here",
        option_reply::ERR_SHUTDOWN => "it is shutting down",
        option_reply::ERR_BLOCK_SIZE_REQD => "it requires a client that keeps to its block sizes",
        option_reply::ERR_INVALID => "it finds the request invalid",
        option_reply::ERR_PLATFORM => "its platform does not support it",
        option_reply::ERR_TOO_BIG => "it finds the request too big",
        other => return with_message(&format!("reply type {other:#010x}"), message),
    };
    with_message(reason, message)
}

fn with_message(reason: &str, message: &str) -> String {
    if message.is_empty() { reason.to_owned() } else { format!("{reason} ({message})") }
}

#[cfg(test)]
mod tests;
