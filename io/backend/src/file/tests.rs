//! Each kind of request with each descriptor, on a real file of a real disk.

use std::os::unix::fs::MetadataExt;

use weir_model::IoKind;

use crate::rig::{Rig, command, pattern, read, write};
use crate::{Device, DeviceRequest, Errno, Extent};

const SIZE: u64 = 1 << 20;

/// The bytes of disk space that the file takes.
fn allocated(rig: &Rig) -> u64 {
    std::fs::metadata(rig.path("disk")).unwrap().blocks() * 512
}

async fn rig_with_data() -> (Rig, Device) {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", SIZE);
    rig.ok(&mut device, DeviceRequest { fua: true, ..write(0, &pattern(1, 1 << 20)) }).await;
    (rig, device)
}

#[tokio::test]
async fn what_was_written_is_read_back_whatever_the_alignment() {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", SIZE);
    for (offset, length) in [(0, 4096), (8192, 65536), (100, 7), (4095, 2), (5000, 20_000), (SIZE - 1, 1)] {
        let bytes = pattern(offset, length);
        rig.ok(&mut device, write(offset, &bytes)).await;
        assert!(rig.bytes(&mut device, offset, u32::try_from(length).unwrap()).await == bytes);
    }
}

#[tokio::test]
async fn what_one_descriptor_wrote_the_other_reads() {
    let (rig, mut device) = rig_with_data().await;
    let mut model = pattern(1, 1 << 20);
    for (offset, length) in [(0, 8192), (4000, 200), (4096, 4096), (8191, 2), (0, 12_288), (12_000, 1000)] {
        let bytes = pattern(offset + 77, length);
        rig.ok(&mut device, write(offset, &bytes)).await;
        let first = usize::try_from(offset).unwrap();
        model[first..first + length].copy_from_slice(&bytes);
        assert!(rig.bytes(&mut device, 0, 16_384).await == model[..16_384], "direct");
        assert!(rig.bytes(&mut device, 1, 16_000).await == model[1..16_001], "buffered");
    }
}

#[tokio::test]
async fn the_tail_of_a_file_that_ends_within_a_block_is_served() {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", 3 * 4096 + 1808);
    rig.ok(&mut device, write(0, &pattern(3, 3 * 4096 + 1808))).await;
    assert!(rig.bytes(&mut device, 8192, 4096 + 1808).await == pattern(3, 14_096)[8192..]);
    assert!(rig.run(&mut device, read(8192, 8192)).await.result.is_err(), "beyond the end");
    assert_eq!(std::fs::metadata(rig.path("disk")).unwrap().len(), 3 * 4096 + 1808);
}

#[tokio::test]
async fn durable_writes_and_flushes_succeed() {
    let (rig, mut device) = rig_with_data().await;
    rig.ok(&mut device, DeviceRequest { fua: true, ..write(4096, &[1; 4096]) }).await;
    rig.ok(&mut device, DeviceRequest { fua: true, ..write(4097, &[2; 10]) }).await;
    rig.ok(&mut device, command(IoKind::Flush, 0, 0)).await;
    rig.ok(&mut device, command(IoKind::Cache, 0, 1 << 20)).await;
}

#[tokio::test]
async fn a_trimmed_range_is_a_hole_of_zeroes() {
    let (rig, mut device) = rig_with_data().await;
    assert_eq!(rig.extents(&mut device, 0, 1 << 20).await, [Extent::allocated(SIZE)]);
    rig.ok(&mut device, DeviceRequest { fua: true, ..command(IoKind::Trim, 65_536, 131_072) }).await;
    let (before, hole) = (Extent::allocated(65_536), Extent::unallocated(131_072));
    let after = Extent::allocated(SIZE - 196_608);
    assert_eq!(rig.extents(&mut device, 0, 1 << 20).await, [before, hole, after]);
    assert_eq!(rig.extents(&mut device, 70_000, 1000).await, [Extent::unallocated(1000)]);
    assert!(rig.bytes(&mut device, 65_536, 131_072).await.iter().all(|byte| *byte == 0));
    assert_eq!(allocated(&rig), SIZE - 131_072);
}

#[tokio::test]
async fn zeroes_free_the_space_and_with_no_hole_keep_it() {
    let (rig, mut device) = rig_with_data().await;
    let zeroes = |offset| command(IoKind::WriteZeroes, offset, 65_536);
    rig.ok(&mut device, DeviceRequest { no_hole: true, fast_zero: true, ..zeroes(0) }).await;
    assert_eq!(allocated(&rig), SIZE);
    rig.ok(&mut device, DeviceRequest { fast_zero: true, fua: true, ..zeroes(65_536) }).await;
    assert_eq!(allocated(&rig), SIZE - 65_536);
    assert!(rig.bytes(&mut device, 0, 131_072).await.iter().all(|byte| *byte == 0));
    assert!(rig.bytes(&mut device, 131_072, 4096).await == pattern(1, 1 << 20)[131_072..135_168]);
}

#[tokio::test]
async fn zeroes_of_any_range_change_no_neighbour() {
    let (rig, mut device) = rig_with_data().await;
    rig.ok(&mut device, command(IoKind::WriteZeroes, 5001, 70_002)).await;
    let mut model = pattern(1, 1 << 20);
    model[5001..75_003].fill(0);
    assert!(rig.bytes(&mut device, 0, 1 << 20).await == model);
}

fn cut_off(rig: &Rig, size: u64) {
    std::fs::OpenOptions::new().write(true).open(rig.path("disk")).unwrap().set_len(size).unwrap();
}

#[tokio::test]
async fn a_file_that_was_cut_off_has_no_zeroes_beyond_its_end_but_errors() {
    let beyond = [(4096, 8192), (4000, 5000), (SIZE - 4096, 4096), (SIZE - 1, 1)];
    for (offset, length) in beyond {
        let requests = [
            (read(offset, length), true),
            (command(IoKind::BlockStatus, offset, length), true),
            (command(IoKind::WriteZeroes, offset, length), true),
            (command(IoKind::Trim, offset, length), true),
            (command(IoKind::Flush, 0, 0), true),
            (write(offset, &vec![1; length as usize]), false),
        ];
        for (request, notices) in requests {
            let (rig, mut device) = rig_with_data().await;
            cut_off(&rig, 6000);
            if !notices {
                let noticed = rig.run(&mut device, read(SIZE - 1, 1)).await.result.unwrap_err();
                assert_eq!(noticed.errno, Errno::IO);
            }
            let what = format!("{:?} of {length} bytes at {offset}", request.kind);
            let failed = rig.run(&mut device, request).await.result.expect_err(&what);
            assert_eq!(failed.errno, Errno::IO, "{what}");
            let left = rig.bytes(&mut device, 0, 6000).await;
            assert!(left == pattern(1, 1 << 20)[..6000], "after a {what}");
            assert_eq!(std::fs::metadata(rig.path("disk")).unwrap().len(), 6000);
        }
    }
}

#[tokio::test]
async fn what_was_cut_off_stays_lost_when_the_file_has_grown_again() {
    let (rig, mut device) = rig_with_data().await;
    cut_off(&rig, 6000);
    assert!(rig.run(&mut device, command(IoKind::Flush, 0, 0)).await.result.is_err());
    cut_off(&rig, SIZE);
    assert!(rig.run(&mut device, read(8192, 4096)).await.result.is_err());
    assert!(rig.run(&mut device, command(IoKind::Flush, 0, 0)).await.result.is_err(), "whoever asks");
    drop(device);
    let mut rig = rig;
    let mut device = rig.file("disk", SIZE);
    assert!(rig.bytes(&mut device, 8192, 4096).await == [0; 4096], "somebody has opened it as it is");
}

#[tokio::test]
async fn a_sparse_file_is_whole() {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", 1 << 40);
    assert!(rig.bytes(&mut device, (1 << 40) - 4096, 4096).await == [0; 4096]);
    assert!(rig.bytes(&mut device, (1 << 39) - 1, 3).await == [0; 3]);
    let all = rig.extents(&mut device, 1 << 39, u32::MAX).await;
    assert_eq!(all, [Extent::unallocated(u32::MAX.into())]);
    rig.ok(&mut device, command(IoKind::Flush, 0, 0)).await;
}

#[tokio::test]
async fn a_thousand_requests_at_once_each_do_their_part() {
    let mut rig = Rig::new();
    let mut device = rig.file("disk", 4 << 20);
    let block = |n: u64| pattern(n, if n.is_multiple_of(3) { 4096 } else { 1500 });
    let writes = (0..1000).map(|n| write(n * 4096, &block(n))).collect();
    assert!(rig.run_all(&mut device, writes).await.iter().all(|done| done.result.is_ok()));
    let length = |n| u32::try_from(block(n).len()).unwrap();
    let reads = (0..1000).map(|n| read(n * 4096, length(n))).collect();
    for done in rig.run_all(&mut device, reads).await {
        done.result.unwrap();
        assert!(done.buffer.unwrap()[..] == block(done.token.0));
    }
}
