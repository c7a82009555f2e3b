//! The promises of a device on another server, tested against servers of every kind.

use std::future::poll_fn;
use std::io::Read;
use std::sync::mpsc::channel;

use weir_model::{IoKind, Span};
use weir_nbd::wire::{command, command_flag, error, transmission_flag as flag};

use super::link::{HELD_AT_MOST, LONGEST_PAUSE};
use super::*;
use crate::rig::{Rig, command as ask, pattern, read, write};
use crate::{Attach, BackendSpec, BlockErrorKind, Device, Errno, Token};
use fake::{Act, Asked, Fake, Offer, chunk, reply};

mod fake;

const START: Instant = Instant::ORIGIN;

/// A device on a server that does what `decide` says.
fn serve(rig: &mut Rig, offer: Offer, decide: impl FnMut(&Asked) -> Act + Send + 'static) -> (Fake, Device) {
    let fake = Fake::new(rig.path("server"), offer, decide);
    let device = attach(&fake, &mut rig.shard, 4);
    (fake, device)
}

fn attach(fake: &Fake, shard: &mut Attach, connections: u32) -> Device {
    let target = format!("nbd+unix:///?socket={}", fake.path.display()).parse().unwrap();
    let spec = BackendSpec::Upstream { target, connections: connections.try_into().unwrap() };
    crate::open(&spec, None).unwrap().attach(shard, Vec::new())
}

/// Hangs up at the `n`-th request, counted from one, and serves all others.
fn hang_up_at(n: usize) -> impl FnMut(&Asked) -> Act + Send + 'static {
    let mut seen = 0;
    move |_| {
        seen += 1;
        if seen == n { Act::HangUp } else { Act::Serve }
    }
}

/// Treats the first request with `act`, and serves all others.
fn at_first(act: impl Fn(&Asked) -> Act + Send + 'static) -> impl FnMut(&Asked) -> Act + Send + 'static {
    let mut seen = false;
    move |asked| if std::mem::replace(&mut seen, true) { Act::Serve } else { act(asked) }
}

/// Drives the device until `count` requests have finished, from the given instant on. Time passes only in the
/// pauses between attempts to connect. Returns the instant at the end.
async fn drive(
    rig: &Rig,
    device: &mut Device,
    mut now: Instant,
    finished: &mut Vec<Finished>,
    count: usize,
) -> Instant {
    poll_fn(|cx| {
        device.poll_finished(now, finished);
        rig.shard.reactor.poll_finished(cx, finished);
        if finished.len() >= count {
            return std::task::Poll::Ready(());
        }
        let due = device.poll_timeout().expect("it may always go away");
        if now < due && due <= now + LONGEST_PAUSE {
            now = due;
            cx.waker().wake_by_ref();
        }
        std::task::Poll::Pending
    })
    .await;
    now
}

async fn run(rig: &Rig, device: &mut Device, request: DeviceRequest) -> Finished {
    let mut finished = Vec::new();
    device.start(START, request, &mut finished);
    drive(rig, device, START, &mut finished, 1).await;
    finished.remove(0)
}

fn flush() -> DeviceRequest {
    ask(IoKind::Flush, 0, 0)
}

#[tokio::test]
async fn every_kind_of_request_reaches_the_server_with_its_flags() {
    let mut rig = Rig::new();
    let (fake, mut device) = serve(&mut rig, Offer::default(), |_| Act::Serve);
    let data = pattern(1, 9000);
    rig.ok(&mut device, write(4096, &data)).await;
    assert_eq!(rig.bytes(&mut device, 4096, 9000).await, data);
    rig.ok(&mut device, DeviceRequest { fua: true, ..write(0, &data[..512]) }).await;
    rig.ok(&mut device, flush()).await;
    rig.ok(&mut device, ask(IoKind::Trim, 4096, 512)).await;
    rig.ok(&mut device, ask(IoKind::Cache, 0, 512)).await;
    let zeroes = ask(IoKind::WriteZeroes, 0, 1 << 20);
    rig.ok(&mut device, DeviceRequest { no_hole: true, fast_zero: true, ..zeroes }).await;
    let zero_flags = command_flag::NO_HOLE | command_flag::FAST_ZERO;
    assert_eq!(
        fake.log(),
        [
            (command::WRITE, 0, 4096, 9000),
            (command::READ, 0, 4096, 9000),
            (command::WRITE, command_flag::FUA, 0, 512),
            (command::FLUSH, 0, 0, 0),
            (command::TRIM, 0, 4096, 512),
            (command::CACHE, 0, 0, 512),
            (command::WRITE_ZEROES, zero_flags, 0, 1 << 20),
        ]
    );
    assert!(fake.bytes.lock().unwrap().iter().all(|byte| *byte == 0));
}

#[tokio::test]
async fn requests_longer_than_the_server_takes_are_split_and_those_that_it_cannot_take_are_refused() {
    let mut rig = Rig::new();
    let offer = Offer { block: Some([512, 4096, 8192]), ..Offer::default() };
    let (fake, mut device) = serve(&mut rig, offer, |_| Act::Serve);
    let properties = device.properties();
    assert_eq!((properties.minimum_block, properties.preferred_block), (512, 4096));
    let data = pattern(2, 20_480);
    rig.ok(&mut device, write(1024, &data)).await;
    assert_eq!(rig.bytes(&mut device, 1024, 20_480).await, data);
    let parts = [(1024, 8192), (9216, 8192), (17_408, 4096)];
    let expected: Vec<_> = [command::WRITE, command::READ]
        .into_iter()
        .flat_map(|kind| parts.map(|(offset, length)| (kind, 0, offset, length)))
        .collect();
    assert_eq!(fake.log(), expected);
    for unaligned in [read(256, 512), read(512, 256), write(1, &data[..512])] {
        assert_eq!(rig.run(&mut device, unaligned).await.result.unwrap_err().errno, Errno::INVAL);
    }
    assert_eq!(fake.log().len(), 6);
}

#[tokio::test]
async fn a_server_without_fua_is_asked_for_a_flush_and_one_without_flush_for_fua() {
    let mut rig = Rig::new();
    let without = |ability: u16| Offer { flags: Offer::default().flags & !ability, ..Offer::default() };
    let (fake, mut device) = serve(&mut rig, without(flag::SEND_FUA), |_| Act::Serve);
    rig.ok(&mut device, DeviceRequest { fua: true, ..write(0, &[1; 512]) }).await;
    assert_eq!(fake.log(), [(command::WRITE, 0, 0, 512), (command::FLUSH, 0, 0, 0)]);
    let mut rig = Rig::new();
    let (fake, mut device) = serve(&mut rig, without(flag::SEND_FLUSH), |_| Act::Serve);
    rig.ok(&mut device, write(0, &[1; 512])).await;
    rig.ok(&mut device, flush()).await;
    assert_eq!(fake.log(), [(command::WRITE, command_flag::FUA, 0, 512)]);
}

#[tokio::test]
async fn what_a_server_cannot_do_is_done_by_hand_or_refused() {
    let mut rig = Rig::new();
    let offer = Offer { size: 4 << 20, flags: flag::HAS_FLAGS | flag::SEND_FLUSH, ..Offer::default() };
    let (fake, mut device) = serve(&mut rig, offer, |_| Act::Serve);
    rig.ok(&mut device, write(0, &pattern(3, 4 << 20))).await;
    rig.ok(&mut device, ask(IoKind::Trim, 0, 512)).await;
    rig.ok(&mut device, ask(IoKind::Cache, 0, 512)).await;
    let zeroes = ask(IoKind::WriteZeroes, 100, 3 << 20);
    let fast = DeviceRequest { fast_zero: true, ..ask(IoKind::WriteZeroes, 0, 512) };
    assert_eq!(rig.run(&mut device, fast).await.result.unwrap_err().errno, Errno::OPNOTSUPP);
    rig.ok(&mut device, zeroes).await;
    assert!(fake.log().iter().all(|(command, ..)| *command == command::WRITE));
    let bytes = fake.bytes.lock().unwrap();
    assert!(bytes[..100].iter().all(|byte| *byte != 0));
    assert!(bytes[100..100 + (3 << 20)].iter().all(|byte| *byte == 0));
    assert!(bytes[100 + (3 << 20)..].iter().all(|byte| *byte != 0));
}

#[tokio::test]
async fn a_read_only_export_is_not_written_to() {
    let mut rig = Rig::new();
    let offer = Offer { flags: Offer::default().flags | flag::READ_ONLY, ..Offer::default() };
    let (fake, mut device) = serve(&mut rig, offer, |_| Act::Serve);
    assert!(device.properties().read_only);
    let refused = rig.run(&mut device, write(0, &[1; 512])).await.result.unwrap_err();
    assert_eq!(refused.kind, BlockErrorKind::Permission);
    assert_eq!(fake.log(), []);
}

#[tokio::test]
async fn errors_of_the_server_keep_their_kind() {
    let mut rig = Rig::new();
    let errors = [error::PERM, error::IO, error::NOMEM, error::INVAL, error::NOSPC, error::OVERFLOW, 77];
    let mut next = errors.into_iter();
    let (_fake, mut device) = serve(&mut rig, Offer::default(), move |_| Act::Fail(next.next().unwrap()));
    for expected in [Errno::PERM, Errno::IO, Errno::NOMEM, Errno::INVAL, Errno::NOSPC, Errno::IO, Errno::IO] {
        let failed = rig.run(&mut device, write(0, &[1; 512])).await;
        assert_eq!(failed.result.unwrap_err().errno, expected);
    }
}

#[tokio::test]
async fn several_connections_are_made_only_where_a_flush_covers_all_of_them() {
    for (flags, expected) in [(0, 1), (flag::CAN_MULTI_CONN, 3)] {
        let mut rig = Rig::new();
        let offer = Offer { flags: Offer::default().flags | flags, ..Offer::default() };
        let fake = Fake::new(rig.path("server"), offer, |_| Act::Serve);
        let mut device = attach(&fake, &mut rig.shard, 3);
        let reads = (0..30).map(|_| read(0, 4096)).collect();
        rig.run_all(&mut device, reads).await;
        let mut used: Vec<_> = fake.asked.lock().unwrap().iter().map(|asked| asked.connection).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), expected);
    }
}

#[tokio::test]
async fn what_was_not_answered_is_sent_again_in_its_order_when_the_server_is_back() {
    let mut rig = Rig::new();
    let (fake, mut device) = serve(&mut rig, Offer::default(), hang_up_at(3));
    let mut finished = Vec::new();
    for number in 0..5 {
        let request = write(number * 512, &[u8::try_from(number).unwrap(); 512]);
        device.start(START, DeviceRequest { token: Token(number), ..request }, &mut finished);
    }
    drive(&rig, &mut device, START, &mut finished, 5).await;
    assert!(finished.iter().all(|done| done.result.is_ok()));
    let again: Vec<_> = {
        let asked = fake.asked.lock().unwrap();
        asked.iter().filter(|asked| asked.connection == 1).map(|asked| asked.offset / 512).collect()
    };
    assert_eq!(again, (5 - again.len() as u64..5).collect::<Vec<_>>());
    assert!(again.len() >= 3, "the third was not answered");
    let bytes = fake.bytes.lock().unwrap();
    assert!((0..5).all(|number| bytes[usize::from(number) * 512] == number));
}

#[tokio::test]
async fn a_loss_is_told_once_and_only_if_something_answered_was_not_flushed() {
    let mut rig = Rig::new();
    let (_fake, mut device) = serve(&mut rig, Offer::default(), |asked| {
        if asked.command == command::READ && asked.connection == 0 { Act::HangUp } else { Act::Serve }
    });
    run(&rig, &mut device, write(0, &[1; 512])).await.result.unwrap();
    run(&rig, &mut device, flush()).await.result.unwrap();
    run(&rig, &mut device, DeviceRequest { fua: true, ..write(0, &[2; 512]) }).await.result.unwrap();
    assert_eq!(run(&rig, &mut device, write(512, &[1; 512])).await.result, Ok(()));
    assert!(!device.take_loss(), "the server is there");
    assert_eq!(run(&rig, &mut device, flush()).await.result, Ok(()));
    let mut finished = Vec::new();
    device.start(START, read(0, 512), &mut finished);
    run_until_down(&rig, &mut device).await;
    assert!(!device.take_loss(), "it went away with nothing unflushed");
    device.start(START, write(0, &[3; 512]), &mut finished);
    drive(&rig, &mut device, START, &mut finished, 2).await;
    assert!(finished.iter().all(|done| done.result.is_ok()));
    assert!(!device.take_loss(), "what was not answered was sent again");
}

/// Runs until the device has noticed that its connections are gone.
async fn run_until_down(rig: &Rig, device: &mut Device) {
    poll_fn(|cx| {
        rig.shard.reactor.poll_finished(cx, &mut Vec::new());
        let is_up = device.poll_timeout() == Some(Instant::FAR_FUTURE);
        if is_up { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
}

#[tokio::test]
async fn a_write_that_was_answered_after_a_flush_was_sent_is_not_covered_by_it() {
    let mut rig = Rig::new();
    let (mut kept, mut writes) = (0, 0);
    // The flush is answered after the second write.
    let (_fake, mut device) = serve(&mut rig, Offer::default(), move |asked| match asked.command {
        command::FLUSH => {
            kept = asked.cookie;
            Act::Keep
        }
        command::WRITE => {
            writes += 1;
            if writes == 2 {
                Act::Say([reply(asked.cookie, 0, &[]), reply(kept, 0, &[])].concat())
            } else {
                Act::Serve
            }
        }
        _ => Act::HangUp,
    });
    run(&rig, &mut device, write(0, &[1; 512])).await.result.unwrap();
    let requests = vec![flush(), write(512, &[2; 512])];
    assert!(rig.run_all(&mut device, requests).await.iter().all(|done| done.result.is_ok()));
    device.start(START, read(0, 512), &mut Vec::new());
    run_until_down(&rig, &mut device).await;
    assert!(device.take_loss());
    assert!(!device.take_loss(), "once");
}

#[tokio::test]
async fn a_request_waits_for_a_server_that_is_away_only_so_long() {
    let mut rig = Rig::new();
    let (fake, mut device) = serve(&mut rig, Offer::default(), |_| Act::HangUp);
    std::fs::remove_file(&fake.path).unwrap(); // nobody gets in again
    let mut finished = Vec::new();
    device.start(START, read(0, 512), &mut finished);
    run_until_down(&rig, &mut device).await;
    let later = START + Span::from_secs(5);
    device.start(later, DeviceRequest { token: Token(1), ..flush() }, &mut finished);
    device.poll_finished(START + HELD_AT_MOST - Span::from_millis(1), &mut finished);
    assert!(finished.is_empty());
    device.poll_finished(START + HELD_AT_MOST, &mut finished);
    assert_eq!(finished.remove(0).result.unwrap_err().errno, Errno::TIMEDOUT);
    assert!(finished.is_empty());
    device.poll_finished(later + HELD_AT_MOST, &mut finished);
    assert_eq!(finished.remove(0).token, Token(1));
    assert!(device.poll_timeout().is_some(), "it goes on trying");
}

#[tokio::test]
async fn a_server_that_came_back_with_another_size_is_refused_until_it_is_as_before() {
    let mut rig = Rig::new();
    let (fake, mut device) = serve(&mut rig, Offer::default(), hang_up_at(1));
    fake.offer.lock().unwrap().size /= 2;
    let mut finished = Vec::new();
    device.start(START, read(0, 512), &mut finished);
    let mut attempts = 0;
    let mut now = START;
    while finished.is_empty() {
        // Waits until the next attempt is due, or the server is back.
        let due = poll_fn(|cx| {
            rig.shard.reactor.poll_finished(cx, &mut finished);
            match device.poll_timeout().unwrap() {
                due if due < START + HELD_AT_MOST || !finished.is_empty() => std::task::Poll::Ready(due),
                _ => std::task::Poll::Pending,
            }
        })
        .await;
        if attempts == 3 {
            assert_eq!(fake.log().len(), 1, "nothing was asked of it");
            fake.offer.lock().unwrap().size *= 2;
        }
        if finished.is_empty() {
            assert!(due > now || attempts == 0, "there are pauses between attempts");
            now = due;
            device.poll_finished(now, &mut finished);
            attempts += 1;
        }
    }
    assert!(attempts > 3);
    assert_eq!(finished[0].result, Ok(()));
}

#[tokio::test]
async fn a_server_that_makes_no_sense_or_shuts_down_is_left_and_asked_again() {
    let first_time: [fn(&Asked) -> Act; 6] = [
        |_| Act::Say(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        |asked| Act::Say(reply(asked.cookie + 1, 0, &[])),
        |asked| Act::Say(chunk(asked.cookie, true, 1 << 40, &[1; 512])),
        |asked| Act::Say(chunk(asked.cookie, true, 0, &[1; 100])),
        |asked| Act::Say(reply(asked.cookie, error::SHUTDOWN, &[])),
        |_| Act::HangUp,
    ];
    for act in first_time {
        let mut rig = Rig::new();
        let (fake, mut device) = serve(&mut rig, Offer::default(), at_first(act));
        fake.bytes.lock().unwrap()[..512].fill(7);
        let done = run(&rig, &mut device, read(0, 512)).await;
        assert_eq!(done.result, Ok(()));
        assert_eq!(done.buffer.unwrap()[..], [7; 512]);
    }
}

#[tokio::test]
async fn no_bytes_of_a_server_do_more_than_end_the_connection() {
    let mut rig = Rig::new();
    let offer = Offer { structured: true, ..Offer::default() };
    let mut seen = 0_u64;
    let (_fake, mut device) = serve(&mut rig, offer, move |asked| {
        seen += 1;
        if seen.is_multiple_of(2) {
            return Act::Say(chunk(asked.cookie, true, asked.offset, &[9; 512]));
        }
        // Noise that gets past the first check more often than other noise would.
        let byte =
            |at: u64| (seen * 0x9e37_79b9 + at * 0x85eb_ca6b).wrapping_mul(0xc2b2_ae35).to_be_bytes()[4];
        let noise: Vec<_> = (0..seen % 97).map(byte).collect();
        let head = match seen % 3 {
            0 => chunk(asked.cookie, false, asked.offset + seen % 512, &noise),
            1 => {
                [&0x668e_33ef_u32.to_be_bytes()[..], &[0, byte(0) & 1, byte(1) & 0x80, byte(2) & 7]].concat()
            }
            _ => reply(asked.cookie ^ (seen % 4), 0, &noise),
        };
        Act::LastWords([&head[..], &asked.cookie.to_be_bytes(), &noise].concat())
    });
    let mut now = START;
    for _ in 0..200 {
        let mut finished = Vec::new();
        device.start(now, read(0, 512), &mut finished);
        now = drive(&rig, &mut device, now, &mut finished, 1).await;
        let done = finished.remove(0);
        assert_eq!((done.result, &done.buffer.unwrap()[..]), (Ok(()), &[9; 512][..]));
    }
}

#[tokio::test]
async fn a_reply_that_comes_twice_answers_nobody_else() {
    let mut rig = Rig::new();
    let twice = |asked: &Asked| Act::Say([reply(asked.cookie, 0, &[]), reply(asked.cookie, 0, &[])].concat());
    let (_fake, mut device) = serve(&mut rig, Offer::default(), at_first(twice));
    run(&rig, &mut device, write(0, &[1; 512])).await.result.unwrap();
    run_until_down(&rig, &mut device).await;
    run(&rig, &mut device, write(512, &[1; 512])).await.result.unwrap();
}

#[tokio::test]
async fn a_read_that_a_server_answers_with_one_half_twice_is_asked_again() {
    let mut rig = Rig::new();
    let offer = Offer { structured: true, ..Offer::default() };
    let (fake, mut device) = serve(&mut rig, offer, |asked| {
        let half = |last, at| chunk(asked.cookie, last, asked.offset + at, &[5; 512]);
        let second = if asked.connection == 0 { 0 } else { 512 };
        Act::Say([half(false, 0), half(true, second)].concat())
    });
    let done = run(&rig, &mut device, read(4096, 1024)).await;
    assert_eq!((done.result, &done.buffer.unwrap()[..]), (Ok(()), &[5; 1024][..]));
    assert_eq!(fake.log().len(), 2);
}

#[tokio::test]
async fn an_answer_to_a_write_that_was_not_taken_is_not_believed_and_sends_nobody_elses_data() {
    let mut rig = Rig::new();
    let too_early = |asked: &Asked| Act::TooEarly(reply(asked.cookie, 0, &[]));
    let offer = Offer { size: 32 << 20, ..Offer::default() };
    let (fake, mut device) = serve(&mut rig, offer, at_first(too_early));
    let mut finished = Vec::new();
    device.start(START, write(0, &[0xaa; 8 << 20]), &mut finished);
    run_until_down(&rig, &mut device).await;
    // This request would take the place of the first, if the first had been answered.
    let other = DeviceRequest { token: Token(1), ..write(16 << 20, &[0xbb; 8 << 20]) };
    device.start(START, other, &mut finished);
    drive(&rig, &mut device, START, &mut finished, 2).await;
    assert!(finished.iter().all(|done| done.result.is_ok()));
    let mut left = Vec::new();
    let mut socket = fake.left.lock().unwrap().take().expect("one was answered too early");
    socket.read_to_end(&mut left).unwrap();
    assert!(left.len() < 8 << 20 && left.iter().all(|byte| *byte == 0xaa));
    let bytes = fake.bytes.lock().unwrap();
    assert!(bytes[..8 << 20].iter().all(|byte| *byte == 0xaa), "it was sent again");
    assert!(bytes[16 << 20..24 << 20].iter().all(|byte| *byte == 0xbb));
}

#[tokio::test]
async fn zeroes_that_nobody_waits_for_any_more_end_after_the_few_pieces_that_are_under_way() {
    let mut rig = Rig::new();
    let offer = Offer { size: 64 << 20, flags: flag::HAS_FLAGS | flag::SEND_FLUSH, ..Offer::default() };
    let ((say, heard), (allow, allowed)) = (channel(), channel());
    let mut cookies = Vec::new();
    let (fake, mut device) = serve(&mut rig, offer, move |asked| {
        if asked.command != command::WRITE {
            return Act::Serve;
        }
        cookies.push(asked.cookie);
        if cookies.len() < 4 {
            return Act::Keep;
        }
        say.send(()).unwrap();
        allowed.recv().unwrap();
        Act::Say(cookies.drain(..).flat_map(|cookie| reply(cookie, 0, &[])).collect())
    });
    let mut finished = Vec::new();
    let zeroes = || ask(IoKind::WriteZeroes, 0, 64 << 20);
    device.start(START, DeviceRequest { token: Token(7), ..zeroes() }, &mut finished);
    let send_until_heard = poll_fn(|cx| {
        rig.shard.reactor.poll_finished(cx, &mut finished);
        cx.waker().wake_by_ref();
        if heard.try_recv().is_ok() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    });
    send_until_heard.await;
    device.abandon(Token(6)); // there is none
    device.abandon(Token(7));
    allow.send(()).unwrap();
    drive(&rig, &mut device, START, &mut finished, 1).await;
    assert_eq!(finished.remove(0).result.unwrap_err().errno, Errno::CANCELED);
    rig.ok(&mut device, flush()).await;
    let mib = 1 << 20;
    let pieces = (0..4).map(|n| (command::WRITE, 0, n * u64::from(mib), mib));
    assert!(fake.log().into_iter().eq(pieces.chain([(command::FLUSH, 0, 0, 0)])), "{:?}", fake.log());
    // The pieces that a client still waits for are all written.
    drop(allow);
    fake.bytes.lock().unwrap().fill(9);
    let (fake, mut device) = serve_again(&mut rig, &fake);
    rig.ok(&mut device, zeroes()).await;
    assert_eq!(fake.log().len(), 64);
    assert!(fake.bytes.lock().unwrap().iter().all(|byte| *byte == 0));
}

/// A server like `fake` that serves every request, with a volume on it.
fn serve_again(rig: &mut Rig, fake: &Fake) -> (Fake, Device) {
    let offer = fake.offer.lock().unwrap().clone();
    let again = Fake::new(rig.path("another"), offer, |_| Act::Serve);
    *again.bytes.lock().unwrap() = fake.bytes.lock().unwrap().clone();
    let device = attach(&again, &mut rig.shard, 4);
    (again, device)
}

#[tokio::test]
async fn a_request_of_which_one_piece_failed_asks_for_no_more() {
    let mut rig = Rig::new();
    let offer = Offer { block: Some([512, 4096, 512]), ..Offer::default() };
    let (fake, mut device) = serve(&mut rig, offer, at_first(|_| Act::Fail(error::NOSPC)));
    let failed = rig.run(&mut device, write(0, &pattern(1, 512 * 100))).await.result.unwrap_err();
    assert_eq!(failed.errno, Errno::NOSPC);
    assert_eq!(fake.log().len(), 4);
}

#[tokio::test]
async fn what_nobody_waits_for_does_not_wait_for_a_server_that_is_away() {
    let mut rig = Rig::new();
    let (fake, mut device) = serve(&mut rig, Offer::default(), |_| Act::HangUp);
    std::fs::remove_file(&fake.path).unwrap();
    let mut finished = Vec::new();
    device.start(START, read(0, 512), &mut finished);
    run_until_down(&rig, &mut device).await;
    for token in 1..4 {
        device.start(START, DeviceRequest { token: Token(token), ..flush() }, &mut finished);
    }
    [0, 2].into_iter().for_each(|token| device.abandon(Token(token)));
    assert!(device.poll_timeout().unwrap() <= START);
    device.poll_finished(START, &mut finished);
    assert_eq!(finished.iter().map(|done| done.token.0).collect::<Vec<_>>(), [0, 2]);
    let canceled = |done: &Finished| done.result.is_err_and(|error| error.errno == Errno::CANCELED);
    assert!(finished.iter().all(canceled), "which tells of no loss");
}

#[tokio::test]
async fn a_server_that_answers_once_and_breaks_off_is_tried_again_after_growing_pauses() {
    let mut rig = Rig::new();
    let mut last = usize::MAX;
    let (_fake, mut device) = serve(&mut rig, Offer::default(), move |asked| {
        let is_first = std::mem::replace(&mut last, asked.connection) != asked.connection;
        if is_first { Act::Serve } else { Act::HangUp }
    });
    let mut now = START;
    for _ in 0..6 {
        let mut finished = Vec::new();
        device.start(now, read(0, 512), &mut finished);
        now = drive(&rig, &mut device, now, &mut finished, 1).await;
        assert_eq!(finished[0].result, Ok(()));
    }
    assert_eq!(now, START + Span::from_millis(100 + 200 + 400 + 800));
    // After connections that lasted, the pauses start anew: the first attempt is made at once.
    now = now + LONGEST_PAUSE;
    let mut finished = Vec::new();
    device.start(now, read(0, 512), &mut finished);
    assert_eq!(drive(&rig, &mut device, now, &mut finished, 1).await, now);
}

#[tokio::test]
async fn a_large_read_is_whole_and_so_is_a_large_write() {
    let mut rig = Rig::new();
    let (_fake, mut device) = serve(&mut rig, Offer { size: 16 << 20, ..Offer::default() }, |_| Act::Serve);
    let data = pattern(9, 15 << 20);
    rig.ok(&mut device, write(77, &data)).await;
    assert_eq!(rig.bytes(&mut device, 77, 15 << 20).await, data);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let target: Target = "nbd+unix:///disk?socket=/nonexistent/nbd.sock".parse().unwrap();
    let error = open(&target, NonZeroU32::MIN).unwrap_err().to_string();
    assert_eq!(
        error,
        "nbd+unix:///disk?socket=/nonexistent/nbd.sock: cannot connect: No such file or directory (os error 2)"
    );
}
