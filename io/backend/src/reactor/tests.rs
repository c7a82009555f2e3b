//! More requests than there is room for, and requests that no client waits for any more.

use std::future::poll_fn;

use weir_model::{Instant, IoKind};

use super::*;
use crate::rig::{Rig, command, pattern, read, write};
use crate::{BackendSpec, BlockDevice, Device, Token, open};

const BLOCK: u32 = 4096;

fn start_reads(device: &mut Device, count: u64, length: u32) -> Vec<Finished> {
    let mut finished = Vec::new();
    for token in 0..count {
        let request = read(token % 64 * u64::from(length), length);
        device.start(Instant::ORIGIN, DeviceRequest { token: Token(token), ..request }, &mut finished);
    }
    finished
}

#[tokio::test]
async fn more_requests_than_the_ring_has_room_for_are_all_done() {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", 64 * u64::from(BLOCK));
    let data = pattern(5, 64 * BLOCK as usize);
    rig.ok(&mut device, write(0, &data)).await;
    let mut finished = start_reads(&mut device, 10_000, BLOCK);
    {
        let ring = rig.shard.reactor.ring.borrow();
        assert!(ring.waiting() > 0, "some wait for room");
    }
    rig.shard.reactor.submit();
    rig.wait_for(10_000, &mut finished).await;
    let mut tokens: Vec<_> = finished.iter().map(|done| done.token.0).collect();
    tokens.sort_unstable();
    assert!(tokens.into_iter().eq(0..10_000));
    for done in finished {
        let first = (done.token.0 % 64) as usize * BLOCK as usize;
        assert!(done.buffer.unwrap()[..] == data[first..first + BLOCK as usize]);
    }
}

#[tokio::test]
async fn what_the_kernel_has_finished_is_there_before_the_descriptor_says_so() {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", 1 << 20);
    let mut finished = start_reads(&mut device, 1, BLOCK);
    rig.shard.reactor.ring.borrow().submit_and_wait();
    poll_fn(|cx| {
        rig.shard.reactor.poll_finished(cx, &mut finished);
        Poll::Ready(())
    })
    .await;
    assert_eq!(finished.len(), 1);
}

#[tokio::test]
async fn dropping_everything_with_requests_in_flight_is_sound_and_frees_the_file() {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", 64 << 17);
    assert!(start_reads(&mut device, 500, 1 << 17).is_empty());
    rig.shard.reactor.submit();
    let path = rig.path("disk");
    assert!(open(&BackendSpec::File { path: path.clone() }, None).is_err(), "it is in use");
    let finished = start_reads(&mut device, 5_000, BLOCK);
    drop(device);
    let directory = rig.take_apart();
    assert!(finished.is_empty() && open(&BackendSpec::File { path }, None).is_ok());
    drop(directory);
}

#[tokio::test]
async fn the_requests_of_a_device_that_is_gone_still_finish_and_then_its_file_is_free() {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", 64 << 17);
    let mut finished = start_reads(&mut device, 100, 1 << 17);
    drop(device);
    rig.wait_for(100, &mut finished).await;
    assert!(finished.iter().all(|done| done.result.is_ok()));
    assert!(open(&BackendSpec::File { path: rig.path("disk") }, None).is_ok());
}

#[tokio::test]
async fn a_question_asked_after_the_poll_wakes_the_task_that_polled() {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", 1 << 20);
    let mut finished = Vec::new();
    let mut asked = false;
    poll_fn(|cx| {
        rig.shard.reactor.poll_finished(cx, &mut finished);
        if !asked {
            asked = true;
            device.start(Instant::ORIGIN, command(IoKind::BlockStatus, 0, BLOCK), &mut finished);
        }
        if finished.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    assert!(finished[0].extents[0].hole);
}

#[tokio::test]
async fn files_beyond_the_table_of_the_kernel_are_served_by_their_descriptors() {
    let mut rig = Rig::new();
    let mut devices: Vec<_> = (0..10).map(|n| rig.file(&format!("disk{n}"), 1 << 20)).collect();
    rig.shard.reactor.ring.borrow_mut().forget_file_table();
    devices.push(rig.file("beyond", 1 << 20));
    for (n, device) in (0..).zip(&mut devices) {
        rig.ok(device, write(0, &[n; 4096])).await;
        rig.ok(device, write(5000, &[n; 10])).await;
    }
    for (n, device) in (0..).zip(&mut devices) {
        assert_eq!(rig.bytes(device, 0, 4096).await, [n; 4096]);
    }
}

#[tokio::test]
async fn zeroes_that_nobody_waits_for_any_more_end_after_the_step_that_is_under_way() {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", 64 << 20);
    rig.ok(&mut device, write(2 << 20, &[1; 4096])).await;
    rig.shard.reactor.change_abilities(|file| file.punch_hole = false);
    let mut finished = Vec::new();
    let zeroes = command(IoKind::WriteZeroes, 0, 64 << 20);
    device.start(Instant::ORIGIN, DeviceRequest { token: Token(5), ..zeroes }, &mut finished);
    device.abandon(Token(4)); // there is none
    device.abandon(Token(5));
    rig.shard.reactor.submit();
    rig.wait_for(1, &mut finished).await;
    assert_eq!(finished[0].result.unwrap_err().errno, crate::Errno::CANCELED);
    assert_eq!(rig.bytes(&mut device, 2 << 20, 4096).await, [1; 4096]);
}

#[tokio::test]
async fn zeroes_that_are_written_one_by_one_reach_the_end() {
    let mut rig = Rig::new();
    let size = 5 * u64::from(operation::ZEROES) + 5000;
    let mut device = rig.file("disk", size);
    let all = u32::try_from(size).unwrap();
    rig.ok(&mut device, write(0, &pattern(1, all as usize))).await;
    rig.shard.reactor.change_abilities(|file| {
        file.punch_hole = false;
        file.zero_range = false;
    });
    rig.ok(&mut device, DeviceRequest { fua: true, ..command(IoKind::WriteZeroes, 100, all - 200) }).await;
    let bytes = rig.bytes(&mut device, 0, all).await;
    let (first, last) =
        (bytes.iter().take_while(|b| **b != 0).count(), bytes.iter().rev().take_while(|b| **b != 0).count());
    assert_eq!((first, last), (100, 100));
    assert!(bytes[100..bytes.len() - 100].iter().all(|byte| *byte == 0));
    let fast = DeviceRequest { fast_zero: true, ..command(IoKind::WriteZeroes, 0, BLOCK) };
    let refused = rig.run(&mut device, fast).await.result.unwrap_err();
    assert_eq!(refused.errno, crate::Errno::OPNOTSUPP);
}
