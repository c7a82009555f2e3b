//! A client that speaks the bare protocol. It is written from the specification, not from weir's own codec.
//! So a mistake on both sides would still show. It knows simple replies only; libnbd checks structured ones.
//!
//! The client counts the replies that the server owes. A reply without an outstanding request fails the test,
//! also a second reply to the same request.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;

use super::{PATIENCE, Server};

/// Command numbers, NBD protocol, "Request types".
pub(crate) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISCONNECT: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
}

/// Command flags, NBD protocol, "Command flags".
#[derive(Clone, Copy)]
pub(crate) struct Flags(pub(crate) u16);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const FUA: Self = Self(1);
}

/// A server's answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) cookie: u64,
    /// Zero, or an error number of the protocol.
    pub(crate) error: u32,
    /// The data of a read that succeeded.
    pub(crate) data: Vec<u8>,
}

/// A connection in the transmission phase.
pub(crate) struct RawClient {
    socket: Box<dyn Socket>,
    /// The number of data bytes in the reply to each outstanding request, by cookie.
    owed: BTreeMap<u64, usize>,
    next_cookie: u64,
    /// Bytes that the socket did not take.
    unsent: Vec<u8>,
}

/// TCP or Unix.
pub(crate) trait Socket: Read + Write + Send {
    fn set_blocking(&self, blocking: bool) -> io::Result<()>;

    fn end_sending(&self) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn set_blocking(&self, blocking: bool) -> io::Result<()> {
        self.set_nonblocking(!blocking)
    }

    fn end_sending(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Socket for UnixStream {
    fn set_blocking(&self, blocking: bool) -> io::Result<()> {
        self.set_nonblocking(!blocking)
    }

    fn end_sending(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// A connection over the Unix socket on which the client has sent nothing yet.
pub(crate) fn connect_silently(server: &Server) -> UnixStream {
    let socket = UnixStream::connect(&server.socket).expect("the server accepts");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket has a time limit");
    socket.set_write_timeout(Some(PATIENCE)).expect("a socket has a time limit");
    socket
}

/// Reads until the server has closed the connection.
pub(crate) fn ends(socket: &mut impl Read) {
    let mut buffer = [0; 4096];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("the server does not close the connection: {error}"),
        }
    }
}

impl RawClient {
    /// Connects to `export` over the Unix socket.
    ///
    /// # Panics
    /// If the server does not let it in.
    pub(crate) fn connect(server: &Server, export: &str) -> Self {
        Self::try_connect(server, export).expect("the server lets the client in")
    }

    /// Connects over the Unix socket.
    ///
    /// # Errors
    /// If the server closes the connection on the way, as it does if there is no such export.
    pub(crate) fn try_connect(server: &Server, export: &str) -> io::Result<Self> {
        Self::shake_hands(Box::new(connect_silently(server)), export)
    }

    /// Connects over TCP.
    pub(crate) fn connect_tcp(server: &Server, export: &str) -> Self {
        Self::try_connect_tcp(server, export).expect("the server lets the client in")
    }

    /// Connects over TCP.
    ///
    /// # Errors
    /// If the server closes the connection on the way.
    pub(crate) fn try_connect_tcp(server: &Server, export: &str) -> io::Result<Self> {
        let socket = TcpStream::connect(&server.tcp).expect("the server accepts");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket has a time limit");
        socket.set_write_timeout(Some(PATIENCE)).expect("a socket has a time limit");
        Self::shake_hands(Box::new(socket), export)
    }

    /// Connects by `NBD_OPT_EXPORT_NAME`, the shortest handshake.
    fn shake_hands(mut socket: Box<dyn Socket>, export: &str) -> io::Result<Self> {
        let mut greeting = [0; 18];
        socket.read_exact(&mut greeting)?;
        assert_eq!(&greeting, b"NBDMAGICIHAVEOPT\0\x03", "fixed newstyle, and no zeroes if the client likes");
        let length = u32::try_from(export.len()).expect("names are short");
        let mut hello = 3_u32.to_be_bytes().to_vec();
        hello.extend_from_slice(b"IHAVEOPT");
        hello.extend_from_slice(&1_u32.to_be_bytes());
        hello.extend_from_slice(&length.to_be_bytes());
        hello.extend_from_slice(export.as_bytes());
        socket.write_all(&hello)?;
        socket.read_exact(&mut [0; 10])?;
        Ok(Self { socket, owed: BTreeMap::new(), next_cookie: 1, unsent: Vec::new() })
    }

    /// Sends a request; `data` follows a write. Returns its cookie.
    pub(crate) fn send(&mut self, command: u16, flags: Flags, offset: u64, length: u32, data: &[u8]) -> u64 {
        let (cookie, request) = self.request(command, flags, offset, length, data);
        self.socket.write_all(&request).expect("the server takes requests");
        cookie
    }

    /// As [`RawClient::send`]. False if the server has ended the connection.
    pub(crate) fn try_send(&mut self, command: u16, offset: u64, length: u32, data: &[u8]) -> bool {
        let (_, request) = self.request(command, Flags::NONE, offset, length, data);
        self.socket.write_all(&request).is_ok()
    }

    /// Sends requests without data in one piece, so that the server reads them together. Returns their
    /// cookies.
    pub(crate) fn send_together(&mut self, requests: &[(u16, u64, u32)]) -> Vec<u64> {
        self.send_together_with(requests, &[])
    }

    /// As [`RawClient::send_together`]; `data` follows every write.
    pub(crate) fn send_together_with(&mut self, requests: &[(u16, u64, u32)], data: &[u8]) -> Vec<u64> {
        let of = |&(command, offset, length): &_| {
            let data = if command == command::WRITE { data } else { &[] };
            self.request(command, Flags::NONE, offset, length, data)
        };
        let (cookies, bytes): (Vec<_>, Vec<_>) = requests.iter().map(of).unzip();
        self.socket.write_all(&bytes.concat()).expect("the server takes requests");
        cookies
    }

    /// Sends as much of a request as the socket takes without waiting. False if it did not take all of it;
    /// the rest goes first the next time.
    pub(crate) fn send_without_waiting(
        &mut self,
        command: u16,
        offset: u64,
        length: u32,
        data: &[u8],
    ) -> bool {
        self.socket.set_blocking(false).expect("a socket can be set so");
        if self.unsent.is_empty() {
            self.unsent = self.request(command, Flags::NONE, offset, length, data).1;
        }
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(taken) => drop(self.unsent.drain(..taken)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the server takes requests: {error}"),
            }
        }
        self.socket.set_blocking(true).expect("a socket can be set so");
        self.unsent.is_empty()
    }

    /// Sends bytes that are no request.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        // The server may hang up meanwhile.
        let _ = self.socket.write_all(bytes);
    }

    /// Closes the sending side. The client can still read replies.
    pub(crate) fn end_sending(&mut self) {
        self.socket.end_sending().expect("a connected socket has two sides");
    }

    /// The next reply.
    ///
    /// # Panics
    /// If there is none, or it belongs to no outstanding request.
    pub(crate) fn receive(&mut self) -> Reply {
        self.receive_or_end().expect("the connection ended before a reply")
    }

    /// The next reply, or `None` if the server ended the connection.
    pub(crate) fn receive_or_end(&mut self) -> Option<Reply> {
        let mut header = [0; 16];
        match self.socket.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset].contains(&error.kind()) => {
                return None;
            }
            Err(error) => panic!("no reply, {} outstanding: {error}", self.owed.len()),
        }
        assert_eq!(header[..4], 0x6744_6698_u32.to_be_bytes(), "the magic of a simple reply");
        let error = u32::from_be_bytes(header[4..8].try_into().unwrap());
        let cookie = u64::from_be_bytes(header[8..].try_into().unwrap());
        let owed = self.owed.remove(&cookie);
        let length = owed.unwrap_or_else(|| panic!("cookie {cookie} was answered twice, or never sent"));
        let mut data = vec![0; if error == 0 { length } else { 0 }];
        self.socket.read_exact(&mut data).expect("the data of a read follows its reply");
        Some(Reply { cookie, error, data })
    }

    /// Waits for the first byte of a reply. After that the client cannot read any more; it can still send,
    /// and close.
    pub(crate) fn taste(&mut self) {
        self.socket.read_exact(&mut [0]).expect("there is a reply");
    }

    /// All replies until the server ends the connection.
    pub(crate) fn receive_to_end(&mut self) -> Vec<Reply> {
        std::iter::from_fn(|| self.receive_or_end()).collect()
    }

    /// How many requests are not answered.
    pub(crate) fn outstanding(&self) -> usize {
        self.owed.len()
    }

    /// Sends a request, and waits for its reply, which must be the next.
    pub(crate) fn ask(&mut self, command: u16, flags: Flags, offset: u64, length: u32, data: &[u8]) -> Reply {
        let cookie = self.send(command, flags, offset, length, data);
        let reply = self.receive();
        assert_eq!(reply.cookie, cookie);
        reply
    }

    /// Reads.
    ///
    /// # Panics
    /// If the read fails.
    pub(crate) fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        let reply = self.ask(command::READ, Flags::NONE, offset, length, &[]);
        assert_eq!(reply.error, 0, "a read at {offset}");
        reply.data
    }

    /// Writes.
    ///
    /// # Panics
    /// If the write fails.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        let length = u32::try_from(data.len()).expect("writes are short");
        assert_eq!(
            self.ask(command::WRITE, Flags::NONE, offset, length, data).error,
            0,
            "a write at {offset}"
        );
    }

    /// Flushes.
    ///
    /// # Panics
    /// If the flush fails.
    pub(crate) fn flush(&mut self) {
        assert_eq!(self.ask(command::FLUSH, Flags::NONE, 0, 0, &[]).error, 0);
    }

    /// Sends the disconnect command, and waits until the server has closed the connection.
    pub(crate) fn disconnect(mut self) {
        self.send(command::DISCONNECT, Flags::NONE, 0, 0, &[]);
        assert!(self.receive_or_end().is_none(), "nothing is said after a goodbye");
    }

    fn request(
        &mut self,
        command: u16,
        flags: Flags,
        offset: u64,
        length: u32,
        data: &[u8],
    ) -> (u64, Vec<u8>) {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
        bytes.extend_from_slice(&flags.0.to_be_bytes());
        bytes.extend_from_slice(&command.to_be_bytes());
        bytes.extend_from_slice(&cookie.to_be_bytes());
        bytes.extend_from_slice(&offset.to_be_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(data);
        if command != command::DISCONNECT {
            self.owed.insert(cookie, if command == command::READ { length as usize } else { 0 });
        }
        (cookie, bytes)
    }
}
