//! A server that does what a test tells it to: the test sets its abilities, and decides about each request.
//! It is written from the specification, without weir's own server side. So a mistake on both sides would
//! still show.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use weir_nbd::wire::{command, info, option, option_reply, transmission_flag as flag};

/// The server's statement about its export.
#[derive(Clone)]
pub(super) struct Offer {
    pub(super) size: usize,
    pub(super) flags: u16,
    /// Minimum, preferred, maximum.
    pub(super) block: Option<[u32; 3]>,
    pub(super) structured: bool,
}

impl Default for Offer {
    /// Every ability except structured replies, on one connection.
    fn default() -> Self {
        let flags = flag::HAS_FLAGS
            | flag::SEND_FLUSH
            | flag::SEND_FUA
            | flag::SEND_TRIM
            | flag::SEND_WRITE_ZEROES
            | flag::SEND_FAST_ZERO
            | flag::SEND_CACHE;
        Self { size: 1 << 20, flags, block: None, structured: false }
    }
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    /// The number of its connection, from zero.
    pub(super) connection: usize,
    pub(super) command: u16,
    pub(super) flags: u16,
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// What the server does with a request.
pub(super) enum Act {
    Serve,
    Fail(u32),
    /// Sends these bytes instead of a reply.
    Say(Vec<u8>),
    /// Sends these bytes instead of a reply, and nothing after them.
    LastWords(Vec<u8>),
    /// Sends these bytes instead of a reply, before it took the data of a write. Then it reads nothing more:
    /// see [`Fake::left`].
    TooEarly(Vec<u8>),
    HangUp,
    Keep,
}

type Decide = Box<dyn FnMut(&Asked) -> Act + Send>;

/// The server, for as long as the process lives.
pub(super) struct Fake {
    pub(super) path: PathBuf,
    pub(super) offer: Arc<Mutex<Offer>>,
    pub(super) asked: Arc<Mutex<Vec<Asked>>>,
    pub(super) bytes: Arc<Mutex<Vec<u8>>>,
    /// The last connection that was answered too early, with all bytes that were not read from it.
    pub(super) left: Arc<Mutex<Option<UnixStream>>>,
}

impl Fake {
    /// Listens at `path`.
    pub(super) fn new(
        path: PathBuf,
        offer: Offer,
        decide: impl FnMut(&Asked) -> Act + Send + 'static,
    ) -> Self {
        let listener = UnixListener::bind(&path).unwrap();
        let bytes = Arc::new(Mutex::new(vec![0; offer.size]));
        let (offer, asked) = (Arc::new(Mutex::new(offer)), Arc::new(Mutex::new(Vec::new())));
        let left = Arc::new(Mutex::new(None));
        let fake = Self {
            path,
            offer: Arc::clone(&offer),
            asked: Arc::clone(&asked),
            bytes: Arc::clone(&bytes),
            left: Arc::clone(&left),
        };
        let decide: Arc<Mutex<Decide>> = Arc::new(Mutex::new(Box::new(decide)));
        thread::spawn(move || {
            for (connection, socket) in listener.incoming().enumerate() {
                let offer = offer.lock().unwrap().clone();
                let (asked, bytes, decide) = (Arc::clone(&asked), Arc::clone(&bytes), Arc::clone(&decide));
                let left = Arc::clone(&left);
                thread::spawn(move || {
                    let mut session =
                        Session { connection, socket: socket.unwrap(), offer, asked, bytes, left, decide };
                    session.shake_hands().and_then(|()| session.serve())
                });
            }
        });
        fake
    }

    /// The requests so far: command, flags, offset, length.
    pub(super) fn log(&self) -> Vec<(u16, u16, u64, u32)> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|asked| (asked.command, asked.flags, asked.offset, asked.length)).collect()
    }
}

struct Session {
    connection: usize,
    socket: UnixStream,
    offer: Offer,
    asked: Arc<Mutex<Vec<Asked>>>,
    bytes: Arc<Mutex<Vec<u8>>>,
    left: Arc<Mutex<Option<UnixStream>>>,
    decide: Arc<Mutex<Decide>>,
}

impl Session {
    fn shake_hands(&mut self) -> io::Result<()> {
        self.socket.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
        self.array::<4>()?;
        loop {
            self.array::<8>()?;
            let asked = u32::from_be_bytes(self.array()?);
            let length = u32::from_be_bytes(self.array()?);
            self.bytes(length)?;
            match asked {
                option::STRUCTURED_REPLY if self.offer.structured => {
                    self.option_reply(asked, option_reply::ACK, &[])?
                }
                option::GO => {
                    let (size, flags) = (self.offer.size as u64, self.offer.flags);
                    let export = [&info::EXPORT.to_be_bytes()[..], &size.to_be_bytes(), &flags.to_be_bytes()];
                    self.option_reply(asked, option_reply::INFO, &export.concat())?;
                    if let Some(block) = self.offer.block {
                        let sizes = block.map(u32::to_be_bytes).concat();
                        let told = [&info::BLOCK_SIZE.to_be_bytes()[..], &sizes].concat();
                        self.option_reply(asked, option_reply::INFO, &told)?;
                    }
                    return self.option_reply(asked, option_reply::ACK, &[]);
                }
                _ => self.option_reply(asked, option_reply::ERR_UNSUP, &[])?,
            }
        }
    }

    fn option_reply(&mut self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let length = u32::try_from(data.len()).unwrap();
        let fields = [option, kind, length].map(u32::to_be_bytes).concat();
        self.socket.write_all(&[&0x0003_e889_0455_65a9_u64.to_be_bytes()[..], &fields, data].concat())
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            assert_eq!(u32::from_be_bytes(self.array()?), 0x2560_9513);
            let asked = Asked {
                connection: self.connection,
                flags: u16::from_be_bytes(self.array()?),
                command: u16::from_be_bytes(self.array()?),
                cookie: u64::from_be_bytes(self.array()?),
                offset: u64::from_be_bytes(self.array()?),
                length: u32::from_be_bytes(self.array()?),
            };
            if asked.command == command::DISC {
                return Ok(());
            }
            self.asked.lock().unwrap().push(asked);
            let act = (*self.decide.lock().unwrap())(&asked);
            if let Act::TooEarly(bytes) = act {
                *self.left.lock().unwrap() = Some(self.socket.try_clone()?);
                return self.socket.write_all(&bytes);
            }
            let data = if asked.command == command::WRITE { self.bytes(asked.length)? } else { Vec::new() };
            match act {
                Act::Serve => {
                    let data = self.execute(&asked, &data);
                    self.socket.write_all(&reply(asked.cookie, 0, &data))?;
                }
                Act::Fail(error) => self.socket.write_all(&reply(asked.cookie, error, &[]))?,
                Act::Say(bytes) => self.socket.write_all(&bytes)?,
                Act::LastWords(bytes) => return self.socket.write_all(&bytes),
                Act::HangUp => return Ok(()),
                Act::Keep | Act::TooEarly(_) => {}
            }
        }
    }

    fn execute(&mut self, asked: &Asked, data: &[u8]) -> Vec<u8> {
        let mut bytes = self.bytes.lock().unwrap();
        let start = usize::try_from(asked.offset).unwrap();
        let range = &mut bytes[start..][..asked.length as usize];
        match asked.command {
            command::READ => return range.to_vec(),
            command::WRITE => range.copy_from_slice(data),
            command::WRITE_ZEROES | command::TRIM => range.fill(0),
            _ => {}
        }
        Vec::new()
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.socket.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn bytes(&mut self, length: u32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        self.socket.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// A simple reply.
pub(super) fn reply(cookie: u64, error: u32, data: &[u8]) -> Vec<u8> {
    [&0x6744_6698_u32.to_be_bytes()[..], &error.to_be_bytes(), &cookie.to_be_bytes(), data].concat()
}

/// A chunk of a structured reply with data.
pub(super) fn chunk(cookie: u64, last: bool, offset: u64, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len() + 8).unwrap();
    let head = [&0x668e_33ef_u32.to_be_bytes()[..], &u16::from(last).to_be_bytes(), &1_u16.to_be_bytes()];
    [&head.concat()[..], &cookie.to_be_bytes(), &length.to_be_bytes(), &offset.to_be_bytes(), data].concat()
}
