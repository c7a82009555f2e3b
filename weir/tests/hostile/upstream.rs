//! A server behind weir that breaks the protocol, or does not answer. Only its own volume may suffer.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use rustix::process::Signal;

use crate::harness::{RawClient, Scene, Server, bytes, command, status, wait_until};

use super::neighbour::Neighbour;

const SIMPLE: u32 = 0x6744_6698;
const CHUNK: u32 = 0x668e_33ef;
/// The flags of an export (NBD protocol, "Transmission flags"): there are flags, and flush. No write zeroes.
const FLAGS: u16 = 1 | 1 << 2;

/// A server that treats each of its connections as the test says.
struct Upstream {
    address: String,
}

/// One connection to that server, in the transmission phase, with structured replies.
struct Wire {
    socket: TcpStream,
    /// The number of connections before it.
    number: usize,
}

/// A received request, without the data of a write.
struct Request {
    command: u16,
    cookie: u64,
    offset: u64,
    length: u32,
}

impl Upstream {
    /// Listens. `serve` is called on a thread for each connection.
    fn start(size: u64, serve: impl Fn(Wire) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it listens").to_string();
        let serve = Arc::new(serve);
        thread::spawn(move || {
            for (number, socket) in listener.incoming().enumerate() {
                let serve = Arc::clone(&serve);
                // weir may end a connection at any time. The tests themselves look for what it must not do.
                thread::spawn(move || Wire::shake_hands(socket?, number, size).and_then(|wire| serve(wire)));
            }
        });
        Self { address }
    }

    /// The text of a volume of this name on it.
    fn volume(&self, name: &str) -> String {
        format!("[volume.{name}]\npool = \"p\"\nbackend = \"nbd://{}/\"\n", self.address)
    }
}

impl Wire {
    /// Shakes hands: fixed newstyle, with structured replies and `GO`.
    fn shake_hands(socket: TcpStream, number: usize, size: u64) -> io::Result<Self> {
        let mut wire = Self { socket, number };
        wire.say(&[b"NBDMAGICIHAVEOPT\0\x03"])?;
        wire.array::<4>()?;
        loop {
            wire.array::<8>()?;
            let [option, length] = [wire.array()?, wire.array()?].map(u32::from_be_bytes);
            wire.skip(length.into())?;
            let reply = |kind: u32, data: &[u8]| {
                let fields = [option, kind, u32::try_from(data.len()).unwrap()].map(u32::to_be_bytes);
                [&0x0003_e889_0455_65a9_u64.to_be_bytes()[..], &fields.concat(), data].concat()
            };
            if option == 7 {
                let export = [&[0; 2][..], &size.to_be_bytes(), &FLAGS.to_be_bytes()].concat();
                wire.say(&[&reply(3, &export), &reply(1, &[])])?;
                return Ok(wire);
            }
            wire.say(&[&reply(1, &[])])?;
        }
    }

    fn request(&mut self) -> io::Result<Request> {
        assert_eq!(u32::from_be_bytes(self.array()?), 0x2560_9513, "weir keeps to the protocol");
        self.array::<2>()?;
        Ok(Request {
            command: u16::from_be_bytes(self.array()?),
            cookie: u64::from_be_bytes(self.array()?),
            offset: u64::from_be_bytes(self.array()?),
            length: u32::from_be_bytes(self.array()?),
        })
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.socket.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        io::copy(&mut (&self.socket).take(length), &mut io::sink()).map(drop)
    }

    fn say(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.socket.write_all(&parts.concat())
    }

    /// Serves requests correctly, with `bytes` as the export's content.
    fn serve(mut self, bytes: &Mutex<Vec<u8>>) -> io::Result<()> {
        loop {
            let request = self.request()?;
            let place = usize::try_from(request.offset).unwrap();
            match request.command {
                command::READ => {
                    let data = bytes.lock().unwrap()[place..][..request.length as usize].to_vec();
                    self.say(&[&request.chunk(
                        true,
                        1,
                        &[&request.offset.to_be_bytes()[..], &data].concat(),
                    )])?;
                }
                command::WRITE => {
                    let mut data = vec![0; request.length as usize];
                    self.socket.read_exact(&mut data)?;
                    bytes.lock().unwrap()[place..][..data.len()].copy_from_slice(&data);
                    self.say(&[&request.simple(0)])?;
                }
                command::DISCONNECT => return Ok(()),
                _ => self.say(&[&request.simple(0)])?,
            }
        }
    }

    /// Sends nothing and reads nothing until weir has ended the connection.
    fn fall_silent(self) {
        thread::park();
        drop(self);
    }
}

impl Request {
    fn simple(&self, error: u32) -> Vec<u8> {
        [&SIMPLE.to_be_bytes()[..], &error.to_be_bytes(), &self.cookie.to_be_bytes()].concat()
    }

    fn chunk(&self, done: bool, kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap();
        let head = [&CHUNK.to_be_bytes()[..], &u16::from(done).to_be_bytes(), &kind.to_be_bytes()].concat();
        [&head[..], &self.cookie.to_be_bytes(), &length.to_be_bytes(), payload].concat()
    }
}

/// A misdeed of a server: what it does instead of an answer to the first request of its first connection.
struct Misdeed {
    command: u16,
    /// Whether it does so before it has read the data.
    too_early: bool,
    says: fn(&Request) -> Vec<u8>,
    /// The text in weir's log.
    logged: &'static str,
}

const fn misdeed(command: u16, says: fn(&Request) -> Vec<u8>, logged: &'static str) -> Misdeed {
    Misdeed { command, too_early: false, says, logged }
}

const MISDEEDS: [Misdeed; 8] = [
    Misdeed {
        too_early: true,
        ..misdeed(command::WRITE, |asked| asked.simple(0), "before it had taken all of that request")
    },
    misdeed(
        command::WRITE,
        |asked| Request { cookie: !asked.cookie, ..*asked }.simple(0),
        "which no outstanding request has",
    ),
    misdeed(
        command::READ,
        |asked| asked.chunk(true, 1, &[&asked.offset.to_be_bytes()[..], &[0; 4096]].concat()).repeat(2),
        "which no outstanding request has",
    ),
    misdeed(command::WRITE, |asked| asked.chunk(true, 1, &[0; 24]), "which nothing asked for"),
    misdeed(
        command::READ,
        |asked| asked.chunk(true, 1, &[&(asked.offset + 1).to_be_bytes()[..], &[0; 4096]].concat()),
        "outside of the read",
    ),
    misdeed(
        command::READ,
        |asked| asked.chunk(false, 1, &[&asked.offset.to_be_bytes()[..], &[0; 2048]].concat()).repeat(2),
        "some of which it had sent before",
    ),
    misdeed(
        command::READ,
        |asked| asked.chunk(true, 1 << 15 | 1, &[&5_u32.to_be_bytes()[..], &[0xff; 60_000]].concat()),
        "which that type does not allow",
    ),
    misdeed(command::READ, |_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "with magic"),
];

const MIB: usize = 1 << 20;
/// More than the sockets between two processes hold.
const LONG: usize = 16 * MIB;

impl Misdeed {
    /// A server that does the misdeed on its first connection, and serves on the later ones.
    fn upstream(&'static self) -> Upstream {
        let content = Arc::new(Mutex::new(vec![0; LONG]));
        Upstream::start(LONG as u64, move |mut wire| {
            if wire.number > 0 {
                return wire.serve(&content);
            }
            let request = wire.request()?;
            if request.command == command::WRITE && !self.too_early {
                wire.skip(request.length.into())?;
            }
            wire.say(&[&(self.says)(&request)])?;
            wire.fall_silent();
            Ok(())
        })
    }

    /// Makes a client of the volume send the request that meets the misdeed. The client must not notice it.
    fn provoke(&self, server: &Server, volume: &str) {
        let mut client = RawClient::connect(server, volume);
        if self.command == command::READ {
            assert_eq!(client.read(0, 4096), [0; 4096]);
        }
        let data = bytes(3, LONG);
        client.write(0, &data);
        assert!(client.read(0, u32::try_from(LONG).unwrap()) == data, "{volume} has what was written");
        client.flush();
    }
}

#[test]
fn a_server_that_breaks_the_protocol_breaks_its_link_and_neither_the_gateway_nor_its_clients() {
    let scene = Scene::new();
    let upstreams = MISDEEDS.each_ref().map(Misdeed::upstream);
    let volumes: String =
        (0..).zip(&upstreams).map(|(n, it): (u32, _)| it.volume(&format!("v{n}"))).collect();
    let memory = "[volume.w]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";
    let server = scene.serve(&format!("[pool.p]\n{memory}{volumes}"));
    let neighbour = Neighbour::start(&server, "w");
    for (number, misdeed) in MISDEEDS.iter().enumerate() {
        let before = server.log_length();
        misdeed.provoke(&server, &format!("v{number}"));
        server.wait_for_log(before, misdeed.logged);
    }
    neighbour.works_for(20);
    neighbour.finish();
    server.stop();
}

#[test]
fn a_server_that_never_keeps_to_the_protocol_is_no_business_of_another_volume() {
    let scene = Scene::new();
    let upstream = Upstream::start(LONG as u64, |mut wire| {
        let request = wire.request()?;
        let misdeed = &MISDEEDS[wire.number % MISDEEDS.len()];
        wire.say(&[&(misdeed.says)(&request), &request.simple(0)])?;
        wire.fall_silent();
        Ok(())
    });
    let memory = "[volume.w]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";
    let server = scene.serve(&format!("[pool.p]\n{memory}{}", upstream.volume("v")));
    let neighbour = Neighbour::start(&server, "w");
    let mut client = RawClient::connect(&server, "v");
    for number in 0..100 {
        client.send(command::WRITE, crate::harness::Flags::NONE, number * 4096, 4096, &bytes(number, 4096));
    }
    for _ in 0..4 {
        let before = server.log_length();
        server.wait_for_log(before, "lost the server");
        neighbour.works_for(50);
    }
    neighbour.finish();
}

/// Keeps a server's threads waiting until it is opened.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn wait(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |open| !*open).unwrap());
    }

    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

/// The longest range of zeroes that a client can ask for, in whole blocks.
const MOST_ZEROES: u32 = u32::MAX - 4095;

/// A server of 8 GiB without write zeroes. It reads nothing until the gate is open, and counts the writes
/// from then on.
fn reluctant(gate: &Arc<Gate>, writes: &Arc<Mutex<u64>>) -> Upstream {
    let (gate, writes) = (Arc::clone(gate), Arc::clone(writes));
    Upstream::start(8 << 30, move |mut wire| {
        gate.wait();
        loop {
            let request = wire.request()?;
            match request.command {
                command::WRITE => {
                    *writes.lock().unwrap() += 1;
                    wire.skip(request.length.into())?;
                }
                command::DISCONNECT => return Ok(()),
                _ => {}
            }
            wire.say(&[&request.simple(0)])?;
        }
    })
}

/// A server with the volume `v` on `upstream`, without a bound on its requests there, and with `w` in memory.
fn serve_beside_memory(scene: &Scene, upstream: &Upstream) -> Server {
    let memory = "[volume.w]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n";
    scene.serve(&format!("[pool.p]\ncontrol = \"none\"\n{memory}{}", upstream.volume("v")))
}

fn at_device(server: &Server) -> u64 {
    status(server)["pools"][0]["in_flight"].as_u64().expect("it is a number")
}

#[test]
fn zeroes_for_a_server_that_can_only_write_them_take_no_memory_before_they_are_written() {
    let (scene, gate, writes) = (Scene::new(), Arc::default(), Arc::default());
    let upstream = reluctant(&gate, &writes);
    let server = serve_beside_memory(&scene, &upstream);
    let neighbour = Neighbour::start(&server, "w");
    neighbour.works_for(50);
    let before = server.resident_kib();
    let mut client = RawClient::connect(&server, "v");
    client.send_together(&[(command::WRITE_ZEROES, 0, MOST_ZEROES); 500]);
    wait_until("the zeroes are at the server", || at_device(&server) > 2);
    neighbour.works_for(200);
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 48 << 10, "14 kB of requests took {grown} KiB");
    neighbour.finish();
}

#[test]
fn zeroes_whose_client_has_left_are_not_written_and_do_not_hold_up_the_end() {
    let (scene, gate, writes) = (Scene::new(), Arc::<Gate>::default(), Arc::<Mutex<u64>>::default());
    let upstream = reluctant(&gate, &writes);
    let server = serve_beside_memory(&scene, &upstream);
    let mut client = RawClient::connect(&server, "v");
    client.send_together(&[(command::WRITE_ZEROES, 0, MOST_ZEROES); 16]);
    wait_until("the zeroes are at the server", || at_device(&server) > 0);
    drop(client);
    wait_until("weir knows that the client has left", || status(&server)["connections"] == 0);
    server.signal(Signal::TERM);
    gate.open();
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("did not finish in time"), "{log}");
    let written = *writes.lock().unwrap();
    assert!(written < 16 * 4096 / 8, "{written} MiB were written that nobody waited for");
}
