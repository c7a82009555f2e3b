//! A server can only end its own connection, whatever it sends.

use std::future::poll_fn;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::task::Poll;

use proptest::prelude::*;
use weir_model::{Instant, IoKind};
use weir_nbd::client::Awaited;

use super::*;
use crate::DeviceRequest;
use crate::rig::{command, read, write};

/// More bytes than a socket takes while its peer does not read.
const LONG: u32 = 1 << 20;
/// The content of read buffers before they are answered, and the content of writes.
const BEFORE: u8 = 0xee;
const WRITTEN: u8 = 0x77;

/// Something that a server may say about one of the requests, or about no request.
#[derive(Clone, Debug)]
struct Said {
    about: prop::sample::Index,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Simple { error: u32, data: bool },
    Data { start: u32, length: u32, done: bool },
    Hole { start: u32, length: u32, done: bool },
    Error { text: u16, done: bool },
    None,
    Noise(Vec<u8>),
}

fn said() -> impl Strategy<Value = Said> {
    let (place, done) = ((0..3_u32, 0..3_u32), any::<bool>());
    let ranged = (place, done).prop_map(|((start, length), done)| (start * 512, (length + 1) * 512, done));
    let what = prop_oneof![
        3 => (prop_oneof![3 => Just(0), 1 => 0..6_u32], any::<bool>())
            .prop_map(|(error, data)| What::Simple { error, data }),
        3 => ranged.clone().prop_map(|(start, length, done)| What::Data { start, length, done }),
        2 => ranged.prop_map(|(start, length, done)| What::Hole { start, length, done }),
        1 => (0..5000_u16, any::<bool>()).prop_map(|(text, done)| What::Error { text, done }),
        2 => Just(What::None),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(What::Noise),
    ];
    (any::<prop::sample::Index>(), what).prop_map(|(about, what)| Said { about, what })
}

fn chunk(cookie: u64, done: bool, kind: u16, payload: &[u8]) -> Vec<u8> {
    let head = [0x668e_33ef_u32.to_be_bytes(), [0, u8::from(done), 0, 0]].concat();
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&head[..6], &kind.to_be_bytes(), &cookie.to_be_bytes(), &length, payload].concat()
}

impl Said {
    fn bytes(&self, asked: &[(u64, Awaited)]) -> Vec<u8> {
        let (cookie, awaited) = *self.about.get(asked);
        let at = |start: u32| (awaited.offset + u64::from(start)).to_be_bytes();
        match &self.what {
            What::Simple { error, data } => {
                let data = if *data { awaited.data as usize } else { 0 };
                let head = [0x6744_6698_u32, *error].map(u32::to_be_bytes).concat();
                [&head[..], &cookie.to_be_bytes(), &vec![1; data]].concat()
            }
            What::Data { start, length, done } => {
                chunk(cookie, *done, 1, &[&at(*start)[..], &vec![2; *length as usize]].concat())
            }
            What::Hole { start, length, done } => {
                chunk(cookie, *done, 2, &[&at(*start)[..], &length.to_be_bytes()].concat())
            }
            What::Error { text, done } => {
                let head = [&5_u32.to_be_bytes()[..], &text.to_be_bytes()].concat();
                chunk(cookie, *done, 1 << 15 | 1, &[&head[..], &vec![b'x'; usize::from(*text)]].concat())
            }
            What::None => chunk(cookie, true, 0, &[]),
            What::Noise(noise) => noise.clone(),
        }
    }
}

/// A connection with requests, of which the socket has not taken the last; and the server's end of it.
fn connection(structured: bool) -> (Connection, UnixStream, Table, Vec<(u64, Awaited)>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let negotiated = Negotiated { socket: ours.into(), structured_replies: structured };
    let (mut connection, mut table) = (Connection::new(0, negotiated).unwrap(), Table::default());
    let long = vec![WRITTEN; LONG as usize];
    let requests = [
        (read(0, 512), CommandKind::Read),
        (read(8192, 1536), CommandKind::Read),
        (write(4096, &long[..512]), CommandKind::Write),
        (command(IoKind::Flush, 0, 0), CommandKind::Flush),
        (write(0, &long), CommandKind::Write),
        (read(0, 1024), CommandKind::Read),
    ];
    let mut asked = Vec::new();
    for (request, kind) in requests {
        let DeviceRequest { offset, length, .. } = request;
        let awaited = Awaited { offset, data: if kind == CommandKind::Read { length } else { 0 } };
        let key = table.add(Instant::ORIGIN, request);
        let cookie = table.add_piece(key, 0, 0, awaited, None);
        let data = match kind {
            CommandKind::Write => Data::Of { request: key, start: 0, length },
            _ => Data::None,
        };
        connection.push(&Command { cookie, ..Command::new(kind, 0, offset, length) }, data);
        asked.push((cookie, awaited));
    }
    (connection, theirs, table, asked)
}

/// Lets the server say `bytes` and no more. Returns the pieces that it answered, and how the connection
/// ended.
async fn hear(
    connection: &mut Connection,
    mut server: UnixStream,
    table: &mut Table,
    bytes: Vec<u8>,
) -> (Vec<(Piece, u32)>, Lost) {
    let speaker = std::thread::spawn(move || {
        let _ = server.write_all(&bytes); // the other end may have gone
        server.shutdown(Shutdown::Write).unwrap();
        server
    });
    let (mut scratch, mut answered) = (vec![0; 1024], Vec::new());
    let lost = poll_fn(|cx| {
        if let Err(lost) = connection.send(cx, table, &[]) {
            return Poll::Ready(lost);
        }
        match connection.receive(cx, &mut scratch, table, &mut answered) {
            Ok(()) => Poll::Pending,
            Err(lost) => Poll::Ready(lost),
        }
    })
    .await;
    // The rest of the server's bytes reaches nobody.
    drop(std::mem::replace(&mut connection.socket, closed()));
    speaker.join().unwrap();
    (answered, lost)
}

fn closed() -> Socket {
    let (socket, _) = UnixStream::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    Socket::new(socket.into()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_of_a_server_answer_what_it_has_not_taken_or_reach_another_requests_memory(
        structured: bool,
        said in prop::collection::vec(said(), 0..12),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut in any::<prop::sample::Index>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _entered = runtime.enter();
        let (mut connection, server, mut table, asked) = connection(structured);
        let mut bytes: Vec<u8> = said.iter().flat_map(|said| said.bytes(&asked)).collect();
        for (place, value) in flips.into_iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
            let place = place.index(bytes.len());
            bytes[place] ^= value;
        }
        bytes.truncate(cut.index(2 * bytes.len() + 1)); // every other stream is whole
        let (answered, _) = runtime.block_on(hear(&mut connection, server, &mut table, bytes));
        let mut requests: Vec<_> = answered.iter().map(|(piece, _)| piece.request).collect();
        requests.sort_unstable();
        let count = requests.len();
        requests.dedup();
        prop_assert_eq!(requests.len(), count, "each is answered once");
        prop_assert!(requests.iter().all(|request| *request < 4), "the fifth was not taken, nor the sixth sent");
        for (key, request) in &table.requests {
            let Some(buffer) = &request.inner.buffer else { continue };
            match request.inner.kind {
                IoKind::Write => prop_assert!(buffer.iter().all(|byte| *byte == WRITTEN)),
                _ => {
                    let succeeded = answered.iter().any(|(piece, error)| (piece.request, *error) == (key, 0));
                    // A message that was taken for data may have such a byte in its length; none has eight.
                    let is_whole = buffer.windows(8).all(|bytes| bytes != [BEFORE; 8]);
                    prop_assert!(is_whole || !succeeded, "a read that succeeds is filled");
                    prop_assert!(key < 4 || buffer.iter().all(|byte| *byte == BEFORE));
                }
            }
        }
    }
}
