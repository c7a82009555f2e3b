//! Claims about what is allocated when. The properties in `file::props` show that the bytes are right.

use super::*;
use crate::rig::{command, read, write};

const C: u32 = CHUNK;

fn extents(device: &mut MemoryDevice, offset: u64, length: u32) -> Vec<Extent> {
    device.execute(command(IoKind::BlockStatus, offset, length)).extents
}

/// How many chunks were written.
fn chunks(device: &MemoryDevice) -> u32 {
    device.written.iter().map(|bits| bits.count_ones()).sum()
}

#[test]
fn what_was_never_written_reads_as_zeroes_and_is_a_hole() {
    let mut device = MemoryDevice::new(1 << 40).unwrap();
    let done = device.execute(read((1 << 40) - 4096, 4096));
    assert!(done.buffer.unwrap().iter().all(|byte| *byte == 0));
    assert_eq!(extents(&mut device, 5, 1 << 30), [Extent::unallocated(1 << 30)]);
    assert_eq!(chunks(&device), 0);
}

#[test]
fn only_the_chunks_of_a_write_are_allocated() {
    let mut device = MemoryDevice::new(16 * u64::from(C)).unwrap();
    device.execute(write(2 * u64::from(C) - 1, &[1, 2]));
    let chunk = u64::from(C);
    assert_eq!(
        extents(&mut device, 0, 4 * C),
        [Extent::unallocated(chunk), Extent::allocated(2 * chunk), Extent::unallocated(chunk)]
    );
}

#[test]
fn trimming_a_whole_chunk_frees_it_and_trimming_a_part_zeroes_it() {
    let mut device = MemoryDevice::new(16 * u64::from(C)).unwrap();
    device.execute(write(0, &vec![9; 2 * C as usize]));
    device.execute(command(IoKind::Trim, 0, C + 100));
    assert_eq!(chunks(&device), 1);
    let bytes = device.execute(read(u64::from(C), 200)).buffer.unwrap();
    assert_eq!((&bytes[..100], &bytes[100..]), (&[0; 100][..], &[9; 100][..]));
}

#[test]
fn zeroes_without_a_hole_are_allocated() {
    let mut device = MemoryDevice::new(16 * u64::from(C)).unwrap();
    device.execute(DeviceRequest { no_hole: true, ..command(IoKind::WriteZeroes, 0, C) });
    assert_eq!(extents(&mut device, 0, C), [Extent::allocated(C.into())]);
    device.execute(command(IoKind::WriteZeroes, 0, C));
    assert_eq!(extents(&mut device, 0, C), [Extent::unallocated(C.into())]);
}

#[test]
fn the_extents_of_one_answer_are_bounded() {
    let mut device = MemoryDevice::new(4096 * u64::from(C)).unwrap();
    for chunk in (0..2000).step_by(2) {
        device.execute(write(chunk * u64::from(C), &[1]));
    }
    assert_eq!(extents(&mut device, 0, 2000 * C).len(), MAX_EXTENTS);
}

#[test]
fn a_device_that_no_address_space_has_room_for_is_refused() {
    assert!(MemoryDevice::new(1 << 60).is_err());
}
