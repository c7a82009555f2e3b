//! The server behind a volume. It sends mutated replies, on some connections more often than on others.
//!
//! Its replies to the requests that have come together are a script, as in the other mutated messages. A
//! connection mutates one script in 1, 4, 16 or 64, each as often as the others. With one in 1, the
//! connection soon ends. With one in 64, the mutation meets a link that has worked, with many requests under
//! way.

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use socket2::{Domain, SockAddr, Socket, Type};
use weir_fuzz::{Script, mutate, targets, transcripts};

use super::Attack;
use super::judge::{Asked, Judge};
use super::volume::{SIZE, Volume, any_data};
use crate::harness::command;

/// How long a server waits for further requests after a mutated reply. weir may be waiting too: for the rest
/// of a message that was cut off, or for an answer that was left out.
const IDLE: Duration = Duration::from_millis(100);

/// The most requests that are answered together.
const BATCH: usize = 32;

/// How many scripts of a connection are kept, to be sent again at the wrong time.
const KEPT: usize = 8;

/// The errors that a server may answer with (NBD protocol, "Error values").
const ERRORS: [u32; 8] = [1, 5, 12, 22, 28, 75, 95, 108];

/// Listens for a volume, over TCP or at `path`, and returns the URI. A Unix socket takes less at a time. So a
/// server can answer a request before weir has sent all of it.
pub(super) fn start(
    attack: &Arc<Attack>,
    volume: &Arc<Volume>,
    path: &str,
    ended: &Sender<()>,
) -> io::Result<String> {
    let is_tcp = volume.number % 8 < 4;
    let socket = Socket::new(if is_tcp { Domain::IPV4 } else { Domain::UNIX }, Type::STREAM, None)?;
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    socket.bind(&if is_tcp { anywhere.into() } else { SockAddr::unix(path)? })?;
    socket.listen(128)?;
    let uri = match socket.local_addr()?.as_socket() {
        Some(address) => format!("nbd://{address}/"),
        None => format!("nbd+unix:///?socket={path}"),
    };
    let (attack, volume, ended) = (Arc::clone(attack), Arc::clone(volume), ended.clone());
    thread::spawn(move || {
        for number in 0.. {
            let (connection, _) = socket.accept()?;
            let session = Session::new(Arc::clone(&attack), Arc::clone(&volume), number, connection);
            let ended = ended.clone();
            thread::spawn(move || {
                // weir may end a connection at any time, and so may the server.
                let _ = session.run();
                let _ = ended.send(()); // nobody listens once the test is over
            });
        }
        io::Result::Ok(())
    });
    Ok(uri)
}

/// One connection.
struct Session {
    attack: Arc<Attack>,
    volume: Arc<Volume>,
    socket: BufReader<Socket>,
    random: Pcg64Mcg,
    structured: bool,
    judge: Judge,
    /// One in this many scripts is mutated.
    one_in: u32,
    /// Whether a mutated script was sent.
    is_tainted: bool,
    /// Scripts from which mutations take messages.
    others: Vec<Script>,
}

impl Session {
    fn new(attack: Arc<Attack>, volume: Arc<Volume>, number: u64, socket: Socket) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(attack.effort.seed ^ volume.number << 48 ^ number);
        let structured = random.random();
        Self {
            attack,
            volume,
            socket: BufReader::with_capacity(64 << 10, socket),
            structured,
            judge: Judge::new(structured),
            one_in: [1, 4, 16, 64][random.random_range(0..4)],
            is_tainted: false,
            others: transcripts::of_servers(),
            random,
        }
    }

    fn run(mut self) -> io::Result<()> {
        let _ = self.socket.get_ref().set_tcp_nodelay(true); // if it is TCP
        if self.attack.is_on() && self.random.random_ratio(1, 4) {
            return self.shake_hands_wrongly();
        }
        self.shake_hands()?;
        loop {
            let batch = match self.batch() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                batch => batch?,
            };
            if self.is_tainted && !self.attack.is_on() {
                return Ok(());
            }
            let mut script = self.answers(&batch);
            if !self.attack.is_on() || !self.random.random_ratio(1, self.one_in) {
                self.say(&script)?;
                self.keep(script);
                continue;
            }
            if self.random.random_ratio(1, 4) {
                self.exchange_cookies(&mut script);
            }
            mutate(&mut script, &self.others, words(), &mut self.random);
            self.taint(&script)?;
            self.say(&script)?;
        }
    }

    /// Shakes hands, from the greeting to the answer to `GO`.
    fn shake_hands(&mut self) -> io::Result<()> {
        let messages = self.handshake();
        self.write(&messages[0])?;
        self.array::<4>()?;
        loop {
            self.array::<8>()?;
            let [option, length] = [self.array()?, self.array()?].map(u32::from_be_bytes);
            self.data(length)?;
            match option {
                7 => return self.write(&messages[2..].concat()),
                8 => self.write(&messages[1])?,
                _ => self.write(&transcripts::option_reply(option, 0x8000_0001, &[]))?,
            }
        }
    }

    /// The messages of a handshake.
    fn handshake(&self) -> Vec<Vec<u8>> {
        let offer = self.volume.offer;
        let export = [&[0; 2][..], &SIZE.to_be_bytes(), &offer.flags.to_be_bytes()].concat();
        let sizes = [1, 4096, offer.longest].map(u32::to_be_bytes).concat();
        vec![
            transcripts::greeting(),
            transcripts::option_reply(8, if self.structured { 1 } else { 0x8000_0001 }, &[]),
            transcripts::option_reply(7, 3, &export),
            transcripts::option_reply(7, 3, &[&3_u16.to_be_bytes()[..], &sizes].concat()),
            transcripts::option_reply(7, 1, &[]),
        ]
    }

    /// Sends a mutated handshake without reading, and then nothing more.
    fn shake_hands_wrongly(&mut self) -> io::Result<()> {
        let mut script = Script::new(self.handshake());
        mutate(&mut script, &self.others, words(), &mut self.random);
        self.taint(&script)?;
        for piece in &script.pieces {
            self.write(piece)?;
        }
        io::copy(&mut self.socket, &mut io::sink()).map(drop)
    }

    /// Notes that a mutated script is about to be sent.
    fn taint(&mut self, script: &Script) -> io::Result<()> {
        self.attack.count(script);
        self.is_tainted = true;
        self.socket.get_ref().set_read_timeout(Some(IDLE))
    }

    /// The next request, and the requests that have come with it.
    fn batch(&mut self) -> io::Result<Vec<Asked>> {
        let mut batch = Vec::new();
        while batch.is_empty() || (batch.len() < BATCH && self.socket.buffer().len() >= 28) {
            batch.extend(self.request()?);
        }
        Ok(batch)
    }

    /// The next request, unless it was answered before its data had come.
    fn request(&mut self) -> io::Result<Option<Asked>> {
        let magic = u32::from_be_bytes(self.array()?);
        self.array::<2>()?;
        let asked = Asked {
            command: u16::from_be_bytes(self.array()?),
            cookie: u64::from_be_bytes(self.array()?),
            offset: u64::from_be_bytes(self.array()?),
            length: u32::from_be_bytes(self.array()?),
        };
        if magic != 0x2560_9513 {
            self.attack.complain(format!("{}: a request with magic {magic:#x}", self.volume.name()));
        }
        if asked.command == command::DISCONNECT {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if let Err(fault) = self.judge.ask(asked) {
            self.attack.complain(fault);
        }
        let is_write = asked.command == command::WRITE;
        let is_early = is_write && self.attack.is_on() && self.random.random_ratio(1, 2 * self.one_in);
        if is_early {
            let script = Script::new(vec![transcripts::simple_reply(0, asked.cookie, &[])]);
            self.taint(&script)?;
            self.say(&script)?;
        }
        let data = if is_write { self.data(asked.length)? } else { Vec::new() };
        if let Some(fault) = self.volume.fault_of(&asked, &data) {
            self.attack.complain(fault);
        }
        Ok((!is_early).then_some(asked))
    }

    /// Answers that keep to the protocol. The chunks of structured replies come in any order.
    fn answers(&mut self, batch: &[Asked]) -> Script {
        let mut replies: Vec<_> = batch.iter().map(|asked| self.reply(asked).into_iter()).collect();
        let mut pieces = Vec::new();
        while !replies.is_empty() {
            let at = self.random.random_range(0..replies.len());
            match replies[at].next() {
                Some(piece) => pieces.push(piece),
                None => drop(replies.swap_remove(at)),
            }
        }
        Script::new(pieces)
    }

    fn reply(&mut self, asked: &Asked) -> Vec<Vec<u8>> {
        let random = &mut self.random;
        let (cookie, is_read) = (asked.cookie, asked.command == command::READ);
        let error = match self.attack.is_on() && random.random_ratio(1, 8 * self.one_in) {
            true => ERRORS[random.random_range(0..ERRORS.len())],
            false => 0,
        };
        if !self.structured || (!is_read && random.random()) {
            let data = if is_read && error == 0 { any_data(asked.length, random) } else { &[] };
            return vec![transcripts::simple_reply(error, cookie, data)];
        }
        let failed = [&error.to_be_bytes()[..], &2_u16.to_be_bytes(), b"no"].concat();
        let end = || transcripts::chunk(1, 0, cookie, &[]);
        if !is_read {
            return vec![if error == 0 { end() } else { transcripts::chunk(1, 0x8001, cookie, &failed) }];
        }
        let data = any_data(asked.length, random);
        let at = |start: u32| (asked.offset + u64::from(start)).to_be_bytes();
        let content = |flags, from: u32, data: &[u8]| {
            transcripts::chunk(flags, 1, cookie, &[&at(from)[..], data].concat())
        };
        let cut = random.random_range(0..asked.length);
        let (front, back) = data.split_at(cut as usize);
        let hole = [&at(0)[..], &cut.to_be_bytes()].concat();
        match random.random_range(0..4) {
            _ if error != 0 => vec![content(0, cut, back), transcripts::chunk(1, 0x8001, cookie, &failed)],
            1 if cut > 0 => vec![content(0, cut, back), content(0, 0, front), end()],
            2 if cut > 0 => vec![transcripts::chunk(0, 2, cookie, &hole), content(1, cut, back)],
            _ => vec![content(1, 0, data)],
        }
    }

    /// Makes two messages answer each other's requests. The cookie stands at the same place in each kind of
    /// reply.
    fn exchange_cookies(&mut self, script: &mut Script) {
        let count = script.pieces.len();
        let [one, other] = [0; 2].map(|_| self.random.random_range(0..count));
        let [first, second] = [one, other].map(|at| script.pieces[at][8..16].to_vec());
        script.pieces[one][8..16].copy_from_slice(&second);
        script.pieces[other][8..16].copy_from_slice(&first);
    }

    /// Sends a script. The answers in it are noted first, because the client may get them at once.
    fn say(&mut self, script: &Script) -> io::Result<()> {
        self.volume.say(self.judge.hear(&script.joined()));
        if self.random.random() {
            return self.write(&script.joined());
        }
        script.pieces.iter().try_for_each(|piece| self.write(piece))
    }

    fn keep(&mut self, script: Script) {
        if script.length() > 4096 {
            return;
        }
        if self.others.len() < transcripts::of_servers().len() + KEPT {
            self.others.push(script);
        } else {
            let at = self.random.random_range(0..self.others.len());
            self.others[at] = script;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.get_mut().write_all(bytes)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.socket.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn data(&mut self, length: u32) -> io::Result<Vec<u8>> {
        let mut data = vec![0; length as usize];
        self.socket.read_exact(&mut data)?;
        Ok(data)
    }
}

/// The words of the servers' language.
fn words() -> &'static [&'static [u8]] {
    targets::by_name("nbd-client").expect("it is in the list").words
}
