//! In virtual time on a real file: when each request ends, and where its bytes go.

use std::future::poll_fn;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Poll;

use weir_model::{IoKind, Span};
use weir_sim::{MemberOptions, StationOptions};

use super::*;
use crate::rig::{Rig, command, pattern, read, write};
use crate::{BackendSpec, Device, OpenError, Token, open};

const MIB: u64 = 1 << 20;

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(millis)
}

/// 8 MiB on one server that takes 10 ms for a read or a write.
fn options() -> ArrayOptions {
    let (servers, service_time) = (NonZeroU32::MIN, Span::from_millis(10));
    let station = StationOptions { servers, service_time, exponential: false };
    ArrayOptions::bare(MemberOptions::Station(station), 8 * MIB)
}

fn spec(rig: &Rig, file: &str) -> BackendSpec {
    BackendSpec::Array { name: "a".to_owned(), array: Arc::new(options()), path: rig.path(file) }
}

fn volume(rig: &mut Rig, file: &str, size: u64) -> Device {
    open(&spec(rig, file), Some(size)).unwrap().attach(&mut rig.shard, Vec::new())
}

/// A volume of 1 MiB without the fault layer in front of it.
fn array_device(rig: &mut Rig, file: &str) -> ArrayDevice {
    let file = crate::file::open(&rig.path(file), Some(MIB)).unwrap().through_the_page_cache();
    let (ring_file, kept) = rig.shard.reactor.add_kept(file.descriptors, file.abilities);
    ArrayDevice::new(Rc::new(RefCell::new(SharedArray::new(&options()))), ring_file, kept, MIB)
}

/// Starts a request. It must not finish anything at once.
fn start(device: &mut Device, now: Instant, token: u64, request: DeviceRequest) {
    let mut finished = Vec::new();
    device.start(now, DeviceRequest { token: Token(token), ..request }, &mut finished);
    assert!(finished.is_empty());
}

/// Lets the array's time pass to `now`, and waits for the file. Returns the requests that are then done, by
/// token.
async fn done(rig: &Rig, device: &mut Device, now: Instant, count: usize) -> Vec<Finished> {
    let mut finished = Vec::new();
    poll_fn(|cx| {
        rig.shard.reactor.poll_finished(cx, &mut finished);
        device.poll_finished(now, &mut finished);
        if finished.len() < count { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    assert_eq!(finished.len(), count);
    finished.sort_by_key(|done| done.token);
    finished
}

#[tokio::test]
async fn a_request_is_answered_when_the_array_has_finished_it_and_its_bytes_are_in_the_file() {
    let mut rig = Rig::new();
    let mut device = volume(&mut rig, "v", MIB);
    let bytes = pattern(1, 10_000);
    start(&mut device, at(0), 0, write(5_000, &bytes));
    assert_eq!(device.poll_timeout(), Some(at(10)));
    done(&rig, &mut device, at(9), 0).await;
    let [written] = &done(&rig, &mut device, at(10), 1).await[..] else { panic!("one was written") };
    assert!(written.result.is_ok());
    assert!(std::fs::read(rig.path("v")).unwrap()[5_000..15_000] == bytes);
    start(&mut device, at(20), 1, read(5_000, 10_000));
    let answers = done(&rig, &mut device, at(30), 1).await;
    assert!(answers[0].buffer.as_ref().unwrap()[..] == bytes);
    assert_eq!(device.poll_timeout(), None);
}

/// Waits until the file has finished `count` requests of a volume, while the array's time stands still.
async fn file_done(rig: &Rig, device: &ArrayDevice, count: usize) {
    poll_fn(|cx| {
        rig.shard.reactor.poll_finished(cx, &mut Vec::new());
        if device.kept.borrow().len() < count { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

#[tokio::test]
async fn the_file_is_done_before_the_array_and_the_answer_waits_for_the_array() {
    let mut rig = Rig::new();
    let mut device = array_device(&mut rig, "v");
    device.start(at(0), DeviceRequest { token: Token(9), ..write(512, &[7; 512]) }, &mut Vec::new());
    file_done(&rig, &device, 1).await;
    assert!(std::fs::read(rig.path("v")).unwrap()[512..1024] == [7; 512]);
    assert_eq!(device.poll_timeout(), Some(at(10)));
    let mut finished = Vec::new();
    device.poll_finished(at(9), &mut finished);
    assert!(finished.is_empty());
    device.poll_finished(at(10), &mut finished);
    assert_eq!((finished.len(), finished[0].token), (1, Token(9)));
}

#[tokio::test]
async fn a_file_that_is_slower_than_the_array_is_waited_for() {
    let mut rig = Rig::new();
    let mut device = array_device(&mut rig, "v");
    device.start(at(0), DeviceRequest { token: Token(9), ..read(0, 512) }, &mut Vec::new());
    let mut finished = Vec::new();
    // The kernel has got nothing so far.
    device.poll_finished(at(10), &mut finished);
    assert!(finished.is_empty());
    assert_eq!(device.poll_timeout(), Some(Instant::FAR_FUTURE), "time alone finishes nothing");
    file_done(&rig, &device, 1).await;
    assert_eq!(device.poll_timeout(), Some(Instant::ORIGIN));
    device.poll_finished(at(10), &mut finished);
    assert_eq!((finished.len(), device.poll_timeout()), (1, None));
}

#[tokio::test]
async fn a_volume_is_a_sparse_file_that_is_there_again_next_time() {
    let mut rig = Rig::new();
    let mut device = volume(&mut rig, "v", MIB);
    start(&mut device, at(0), 0, write(0, &[7; 512]));
    start(&mut device, at(0), 1, command(IoKind::Flush, 0, 0));
    assert_eq!(done(&rig, &mut device, at(20), 2).await.len(), 2);
    assert!(open(&spec(&rig, "v"), Some(MIB)).is_err(), "it is locked while it is served");
    drop(device);
    let metadata = std::fs::metadata(rig.path("v")).unwrap();
    assert_eq!(metadata.len(), MIB);
    assert!(std::os::unix::fs::MetadataExt::blocks(&metadata) * 512 < MIB);
    let mut again = volume(&mut rig, "v", MIB);
    start(&mut again, at(30), 0, read(0, 512));
    assert!(done(&rig, &mut again, at(40), 1).await[0].buffer.as_ref().unwrap()[..] == [7; 512]);
}

#[tokio::test]
async fn the_volumes_of_an_array_wait_for_each_other_and_get_their_own_answers() {
    let mut rig = Rig::new();
    let (mut one, mut other) = (volume(&mut rig, "1", MIB), volume(&mut rig, "2", MIB));
    start(&mut one, at(0), 1, read(0, 4096));
    start(&mut other, at(0), 2, read(0, 4096));
    assert_eq!(done(&rig, &mut one, at(19), 1).await[0].token, Token(1));
    assert_eq!((one.poll_timeout(), other.poll_timeout()), (None, Some(at(20))));
    // The first device that looks moves the array on; the other device is told to look at once.
    done(&rig, &mut one, at(20), 0).await;
    assert_eq!(other.poll_timeout(), Some(Instant::ORIGIN));
    assert_eq!(done(&rig, &mut other, at(20), 1).await[0].token, Token(2));
    assert_eq!(other.poll_timeout(), None);
}

#[tokio::test]
async fn a_driver_that_looks_late_costs_the_array_no_time() {
    let mut rig = Rig::new();
    let mut device = volume(&mut rig, "v", MIB);
    for token in 0..3 {
        start(&mut device, at(0), token, read(0, 4096));
    }
    assert_eq!(done(&rig, &mut device, at(25), 2).await.len(), 2);
    assert_eq!(device.poll_timeout(), Some(at(30)));
}

#[tokio::test]
async fn a_volume_that_goes_with_requests_at_the_array_disturbs_no_other() {
    let mut rig = Rig::new();
    let (mut one, mut other) = (volume(&mut rig, "1", MIB), volume(&mut rig, "2", MIB));
    start(&mut one, at(0), 1, read(0, 4096));
    start(&mut other, at(0), 2, read(0, 4096));
    drop(one);
    assert_eq!(done(&rig, &mut other, at(20), 1).await[0].token, Token(2));
    let mut next = volume(&mut rig, "1", MIB);
    start(&mut next, at(30), 3, read(0, 4096));
    assert_eq!(done(&rig, &mut next, at(40), 1).await[0].token, Token(3));
}

#[tokio::test]
async fn every_kind_is_answered() {
    let mut rig = Rig::new();
    let mut device = volume(&mut rig, "v", MIB);
    for (token, kind) in (0..).zip(IoKind::ALL) {
        let request = match kind {
            IoKind::Read => read(0, 512),
            IoKind::Write => write(0, &[7; 512]),
            kind => command(kind, 0, 512),
        };
        start(&mut device, at(0), token, request);
    }
    assert!(done(&rig, &mut device, at(70), 7).await.iter().all(|done| done.result.is_ok()));
}

#[test]
fn each_volume_has_a_part_of_the_array_and_the_first_gap_is_taken() {
    let mut shared = SharedArray::new(&options());
    let keys: Vec<usize> = [2, 3, 2].into_iter().map(|size| shared.add(size * MIB)).collect();
    shared.leave(keys[1]);
    shared.add(MIB);
    let places: Vec<u64> = shared.volumes.iter().map(|(_, share)| share.place.start / MIB).collect();
    assert_eq!(places, [0, 2, 5]);
}

#[tokio::test]
async fn a_volume_that_does_not_fit_is_refused_before_its_file_is_made() {
    let rig = Rig::new();
    let refused = |size| open(&spec(&rig, "v"), size).map(drop).unwrap_err();
    let error = refused(Some(9 * MIB));
    assert!(matches!(error, OpenError::ArraySmaller { .. }));
    assert_eq!(
        error.to_string(),
        "array a stores 8388608 bytes, fewer than the size of 9437184 bytes; accepted is a size of at most 8388608 bytes"
    );
    assert!(matches!(refused(None), OpenError::SizeNeeded { .. }));
    assert!(!rig.path("v").exists());
}
