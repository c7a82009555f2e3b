//! Mutated replies of other NBD servers to weir, over real sockets, many thousands of them.
//!
//! `weir-fuzz` tries the parsers on their own, faster and deeper. Here the parsers stand where they are used:
//! behind volumes whose clients keep asking. weir pauses for up to 2 s before it makes a broken link again.
//! So there are many volumes, each with a server of its own. No client asks for the block status, because
//! weir answers that without the server.
//!
//! | file | what it does |
//! |---|---|
//! | `server` | makes the servers' replies, and the mutations in them |
//! | `judge` | says what a reply means, by the specification |
//! | `volume` | makes the clients' requests; compares each answer with the server's to that very request |
//!
//! `WEIR_FUZZ_MESSAGES` sets how many messages are sent, and `WEIR_FUZZ_SEED` which.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use weir_fuzz::{Effort, Script};

use super::neighbour::Neighbour;
use crate::harness::{PATIENCE, RawClient, Scene, Server, command};
use volume::{KINDS, Request, Volume};

mod judge;
mod server;
mod volume;

const VOLUMES: u64 = 64;

/// The most requests of a client that are not answered.
const WINDOW: usize = 32;
/// A request of this length is sent alone, because nobody takes replies while it is sent.
const LONG: u32 = 64 << 10;

/// `limits.bytes_in_flight` of the server.
const IN_FLIGHT_KIB: u64 = 64 << 10;
/// The memory that the server may have resident in addition to that and to what it had before; as in
/// `mutated`.
const ALLOWANCE_KIB: u64 = 96 << 10;

/// The number of connections between two looks at the memory.
const LOOK_EACH: u64 = 64;

/// The state that all servers and clients share.
struct Attack {
    effort: Effort,
    /// Whether servers send mutated replies.
    is_on: AtomicBool,
    /// Messages of mutated scripts.
    messages: AtomicU64,
    scripts: AtomicU64,
    /// Requests that succeeded, and that failed.
    answered: [AtomicU64; 2],
    /// weir's mistakes, in words.
    faults: Mutex<Vec<String>>,
}

impl Attack {
    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    fn count(&self, script: &Script) {
        let said = script.pieces.iter().filter(|piece| !piece.is_empty()).count();
        self.messages.fetch_add(said as u64, Ordering::Relaxed);
        self.scripts.fetch_add(1, Ordering::Relaxed);
    }

    fn complain(&self, fault: String) {
        self.faults.lock().expect("nobody panics with it").push(fault);
    }

    fn assert_faultless(&self) {
        let faults = self.faults.lock().expect("nobody panics with it");
        assert!(faults.is_empty(), "{} faults, of which the first: {}", faults.len(), faults[0]);
    }
}

#[test]
fn no_mutated_reply_answers_another_request_harms_a_neighbour_or_takes_more_memory_than_the_limits() {
    let attack = Arc::new(Attack {
        effort: Effort::from_environment(3_000),
        is_on: AtomicBool::new(false),
        messages: AtomicU64::new(0),
        scripts: AtomicU64::new(0),
        answered: Default::default(),
        faults: Mutex::default(),
    });
    let volumes: Vec<_> = (0..VOLUMES).map(|number| Arc::new(Volume::new(number))).collect();
    let (scene, (ended, ends)) = (Scene::new(), channel());
    let table = |volume: &Arc<Volume>| {
        let name = volume.name();
        let uri = server::start(&attack, volume, &scene.text(&name), &ended).expect("it listens");
        format!("[volume.{name}]\npool = \"p\"\nbackend = \"{uri}\"\n")
    };
    let tables: String = volumes.iter().map(table).collect();
    let server = scene.serve(&format!(
        "[limits]\nbytes_per_connection = \"32MiB\"\nbytes_in_flight = \"64MiB\"\n[pool.p]\n\
         [volume.good]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1MiB\"\n{tables}"
    ));
    let neighbour = Neighbour::start(&server, "good");
    neighbour.works_for(10);
    let most_kib = server.resident_kib() + IN_FLIGHT_KIB + ALLOWANCE_KIB;

    attack.is_on.store(true, Ordering::Release);
    let connect = |volume: &Arc<Volume>| Client::new(&attack, volume, &server);
    let clients: Vec<_> = volumes.iter().map(connect).map(|it| thread::spawn(|| it.run())).collect();
    let (mut connections, mut worst_kib) = (0, 0);
    while attack.messages.load(Ordering::Relaxed) < attack.effort.messages {
        ends.recv_timeout(PATIENCE).expect("connections are broken, and made again");
        connections += 1;
        if connections % LOOK_EACH == 0 {
            worst_kib = worst_kib.max(server.resident_kib());
            assert!(worst_kib <= most_kib, "{worst_kib} KiB are resident after {connections} connections");
            attack.assert_faultless();
            assert!(!clients.iter().any(JoinHandle::is_finished), "a client got no answer");
            neighbour.works_for(1);
        }
    }
    attack.is_on.store(false, Ordering::Release);
    for client in clients {
        client.join().expect("each request is answered, and once the server is good again each succeeds");
    }
    attack.assert_faultless();
    let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
    println!(
        "seed {}: {} messages in {} scripts over {connections} connections; {:?} requests succeeded and \
         failed; {worst_kib} KiB resident at the worst, of {most_kib}",
        attack.effort.seed,
        load(&attack.messages),
        load(&attack.scripts),
        attack.answered.each_ref().map(load),
    );
    neighbour.works_for(10);
    neighbour.finish();
    server.stop();
}

/// The client of a volume.
struct Client {
    attack: Arc<Attack>,
    volume: Arc<Volume>,
    socket: RawClient,
    /// The requests that are not answered, by cookie.
    asked: BTreeMap<u64, Request>,
    /// The number of the next request.
    next: u64,
    random: Pcg64Mcg,
    /// Requests that failed, without flushes: a flush fails after each loss.
    failed: u64,
}

impl Client {
    fn new(attack: &Arc<Attack>, volume: &Arc<Volume>, server: &Server) -> Self {
        Self {
            attack: Arc::clone(attack),
            volume: Arc::clone(volume),
            socket: RawClient::connect(server, &volume.name()),
            asked: BTreeMap::new(),
            next: 1,
            random: Pcg64Mcg::seed_from_u64(attack.effort.seed ^ !volume.number),
            failed: 0,
        }
    }

    /// Sends requests for as long as the attack lasts. The requests after it must succeed.
    fn run(mut self) {
        while self.attack.is_on() {
            while self.asked.len() < WINDOW {
                self.ask();
            }
            self.take_answers(WINDOW / 2);
        }
        self.take_answers(0);
        let before = self.failed;
        for _ in 0..KINDS {
            self.ask();
        }
        self.take_answers(0);
        assert_eq!(self.failed, before, "the server keeps to the protocol, and a request fails");
    }

    fn ask(&mut self) {
        let request = self.volume.request(self.next, &mut self.random);
        self.next += 1;
        let is_long = request.length >= LONG;
        if is_long {
            self.take_answers(0);
        }
        let Request { command, flags, offset, length, .. } = request;
        let cookie = self.socket.send(command, flags, offset, length, request.data());
        self.asked.insert(cookie, request);
        if is_long {
            self.take_answers(0);
        }
    }

    /// Takes answers until at most `left` are still to come.
    fn take_answers(&mut self, left: usize) {
        while self.asked.len() > left {
            let reply = self.socket.receive();
            let request = self.asked.remove(&reply.cookie).expect("it knows what it is owed");
            if let Some(fault) = request.fault_of(reply.error, &reply.data, &self.volume) {
                self.attack.complain(fault);
            }
            let has_failed = reply.error != 0;
            self.attack.answered[usize::from(has_failed)].fetch_add(1, Ordering::Relaxed);
            self.failed += u64::from(has_failed && request.command != command::FLUSH);
            let offsets = self.asked.values().map(|request| request.offset);
            self.volume.forget_before(offsets.filter(|offset| *offset > 0).min().unwrap_or(0));
        }
    }
}
