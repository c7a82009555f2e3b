//! How much a shard begins before it looks at its sockets. The tests count the looks of the real runtime, so
//! they do not depend on the speed of the machine.

use std::cell::Cell;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use weir_backend::{BackendSpec, open};
use weir_engine::{EngineConfig, VolumeConfig};
use weir_model::{SloGoal, Span};
use weir_nbd::wire::{GREETING_LENGTH, NBD_MAGIC, OPTION_MAGIC, REQUEST_MAGIC, SIMPLE_REPLY_LENGTH};
use weir_nbd::wire::{client_flag, command, option};

use super::*;
use crate::address::Address;
use crate::exports::{ExportTable, LARGEST_REQUEST, Place};
use crate::front::Front;
use crate::listen::Listener;
use crate::shard::NewVolume;

const MINUTE: Span = Span::from_secs(60);

const LIMITS: Limits = Limits {
    connections: 1,
    handshakes: 1,
    connections_per_address: 1,
    connections_per_volume: 1,
    connections_kept: 1,
    handshake_timeout: MINUTE,
    requests_per_connection: 16,
    bytes_per_connection: 64 << 20,
    bytes_in_flight: 64 << 20,
    reply_timeout: MINUTE,
    shutdown_timeout: MINUTE,
};

/// Serves a volume in memory named `v`, with a front on the same thread.
async fn serve_memory(size: u64, listener: Listener) {
    let (commands, received) = unbounded_channel();
    let shard = set_up(Clock::new(), LIMITS, LIMITS.bytes_in_flight, Estate::default()).unwrap();
    spawn_local(serve(Rc::new(RefCell::new(shard)), received));
    let send = |command| assert!(commands.send(command).is_ok());

    let (answer, pool) = oneshot::channel();
    let (name, config) = ("p".to_owned(), EngineConfig::default());
    send(Command::AddPool { name, config, ports: Vec::new(), recorder: None, answer });
    let pool = pool.await.unwrap();

    let opened = open(&BackendSpec::Memory, Some(size)).unwrap();
    let properties = opened.properties();
    let (name, config, faults) = ("v".to_owned(), VolumeConfig::default(), Vec::new());
    let volume = Box::new(NewVolume { name, opened, config, goal: SloGoal::default(), faults });
    let (answer, added) = oneshot::channel();
    send(Command::AddVolume { pool, volume, answer });
    let volume = added.await.unwrap();

    let mut exports = ExportTable::default();
    exports.insert("v", "", properties, Place { shard: 0, pool, volume });
    let front = Arc::new(Front::new(LIMITS));
    front.set(exports, LIMITS);
    front.accept_on(0, listener, vec![commands]);
}

/// The bytes that a client sends that chooses `v` and asks for zeroes this many times.
fn session(requests: usize, length: u32) -> Vec<u8> {
    let flags = client_flag::FIXED_NEWSTYLE | client_flag::NO_ZEROES;
    let mut bytes = flags.to_be_bytes().to_vec();
    bytes.extend(OPTION_MAGIC.to_be_bytes());
    bytes.extend([option::EXPORT_NAME, 1].map(u32::to_be_bytes).concat());
    bytes.extend(b"v");
    for _ in 0..requests {
        bytes.extend(REQUEST_MAGIC.to_be_bytes());
        bytes.extend([0, command::WRITE_ZEROES].map(u16::to_be_bytes).concat());
        bytes.extend([0_u64; 2].map(u64::to_be_bytes).concat()); // cookie and offset
        bytes.extend(length.to_be_bytes());
    }
    bytes
}

/// How often the thread looks at its sockets until a client has got this many ranges of zeroes. The client
/// asks for all of them at once.
fn looks(requests: usize, length: u32) -> u64 {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        serve_memory(length.into(), Listener::bind(Address::Unix(path.clone())).unwrap()).await;
        let mut client = UnixStream::connect(path).await.unwrap();
        client.write_all(&session(requests, length)).await.unwrap();

        let looks = Rc::new(Cell::new(0));
        let counted = Rc::clone(&looks);
        spawn_local(async move {
            loop {
                yield_now().await; // the runtime looks at the sockets once
                counted.set(counted.get() + 1);
            }
        });
        let size_and_flags = 8 + 2;
        let mut answer = vec![0; GREETING_LENGTH + size_and_flags + requests * SIMPLE_REPLY_LENGTH];
        client.read_exact(&mut answer).await.unwrap();
        assert!(answer.starts_with(&NBD_MAGIC.to_be_bytes()));
        looks.get()
    })
}

#[test]
fn between_two_looks_at_the_sockets_no_more_than_one_piece_of_long_requests_is_begun() {
    let pieces = 100;
    let looks = looks(8, pieces * LARGEST_REQUEST);
    assert!(looks + 1 >= 8 * u64::from(pieces), "{looks} looks for 8 requests of {pieces} pieces");
}

#[test]
fn between_two_looks_at_the_sockets_no_more_than_one_large_request_of_a_backlog_is_begun() {
    let requests = 50 * LIMITS.requests_per_connection as usize;
    let looks = looks(requests, LARGEST_REQUEST);
    assert!(looks + 1 >= requests as u64, "{looks} looks for {requests} requests");
}
