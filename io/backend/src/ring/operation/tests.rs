//! Each turn that a request can take, without a kernel.

use super::*;
use crate::rig::{command, read, write};

const FILE: Abilities = Abilities { direct: true, block_device: false, punch_hole: true, zero_range: true };
const DISK: Abilities = Abilities { block_device: true, ..FILE };
const NEITHER: Abilities = Abilities { punch_hole: false, zero_range: false, ..FILE };

fn begin(request: DeviceRequest, file: &Abilities) -> Operation {
    match Operation::begin(request, file) {
        Beginning::Kernel(operation) => operation,
        other => panic!("not for the kernel: {other:?}"),
    }
}

fn at_once(request: DeviceRequest, file: &Abilities) -> Finished {
    match Operation::begin(request, file) {
        Beginning::AtOnce(finished) => finished,
        other => panic!("not done at once: {other:?}"),
    }
}

#[test]
fn direct_io_is_for_requests_whose_offset_and_length_are_aligned() {
    for (offset, length, aligned) in
        [(0, 4096, true), (8192, 12288, true), (512, 4096, false), (4096, 512, false), (1, 1, false)]
    {
        let step = begin(read(offset, length), &FILE).step(&FILE);
        assert_eq!(step, Step::Read { skip: 0, offset, length, direct: aligned });
        let cached = Abilities { direct: false, ..FILE };
        let step = begin(read(offset, length), &cached).step(&cached);
        assert_eq!(step, Step::Read { skip: 0, offset, length, direct: false });
    }
}

#[test]
fn a_short_transfer_goes_on_where_it_stopped() {
    let mut file = FILE;
    let mut operation = begin(write(8192, &[1; 12288]), &file);
    assert_eq!(operation.advance(Ok(4096), &mut file), None);
    let rest = Step::Write { skip: 4096, offset: 12288, length: 8192, direct: true, durable: false };
    assert_eq!(operation.step(&file), rest);
    assert_eq!(operation.advance(Ok(100), &mut file), None);
    let rest = Step::Write { skip: 4196, offset: 12388, length: 8092, direct: false, durable: false };
    assert_eq!(operation.step(&file), rest);
    assert_eq!(operation.advance(Ok(8092), &mut file), Some(Ok(())));
}

#[test]
fn what_was_interrupted_is_done_again() {
    let mut file = FILE;
    let mut operation = begin(read(0, 4096), &file);
    let step = operation.step(&file);
    for errno in [Errno::INTR, Errno::AGAIN] {
        assert_eq!(operation.advance(Err(errno), &mut file), None);
        assert_eq!(operation.step(&file), step);
    }
    assert_eq!(operation.advance(Err(Errno::IO), &mut file), Some(Err(Errno::IO)));
}

#[test]
fn a_device_that_never_does_a_step_fails_the_request_and_does_not_keep_the_thread_busy() {
    let mut file = FILE;
    for errno in [Errno::INTR, Errno::AGAIN] {
        let mut operation = begin(write(0, &[1; 8192]), &file);
        for round in 0..2 {
            for attempt in 0..ATTEMPTS {
                assert_eq!(operation.advance(Err(errno), &mut file), None, "attempt {attempt}");
            }
            // What goes on between counts as a new beginning.
            assert_eq!(operation.advance(Ok(4096 - round), &mut file), None);
        }
        for _ in 0..ATTEMPTS {
            assert_eq!(operation.advance(Err(errno), &mut file), None);
        }
        assert_eq!(operation.advance(Err(errno), &mut file), Some(Err(errno)));
    }
}

#[test]
fn a_read_past_the_end_of_a_file_that_was_cut_off_is_filled_with_zeroes() {
    let mut file = FILE;
    let mut operation = begin(read(0, 100), &file);
    assert_eq!(operation.advance(Ok(60), &mut file), None);
    assert_eq!(operation.advance(Ok(0), &mut file), Some(Ok(())));
    let buffer = operation.request.buffer.unwrap();
    assert_eq!((&buffer[..60], &buffer[60..]), (&[0xee; 60][..], &[0; 40][..]));
}

#[test]
fn a_write_that_takes_nothing_fails() {
    let mut file = FILE;
    assert_eq!(begin(write(0, &[1; 100]), &file).advance(Ok(0), &mut file), Some(Err(Errno::IO)));
}

#[test]
fn force_unit_access_makes_a_write_durable_and_follows_zeroes_with_a_sync() {
    let mut file = FILE;
    let durable = DeviceRequest { fua: true, ..write(0, &[1; 4096]) };
    let step = begin(durable, &file).step(&file);
    assert_eq!(step, Step::Write { skip: 0, offset: 0, length: 4096, direct: true, durable: true });

    for kind in [IoKind::Trim, IoKind::WriteZeroes] {
        let mut operation = begin(DeviceRequest { fua: true, ..command(kind, 0, 4096) }, &file);
        assert_eq!(operation.advance(Ok(0), &mut file), None);
        assert_eq!(operation.step(&file), Step::Sync);
        assert_eq!(operation.advance(Ok(0), &mut file), Some(Ok(())));
        assert_eq!(begin(command(kind, 0, 4096), &file).advance(Ok(0), &mut file), Some(Ok(())));
    }
}

#[test]
fn zeroes_that_the_file_cannot_make_are_written_and_it_is_not_asked_again() {
    let mut file = FILE;
    let zeroes = || DeviceRequest { fua: true, ..command(IoKind::WriteZeroes, 4000, 10_000) };
    let mut operation = begin(zeroes(), &file);
    assert_eq!(operation.advance(Err(Errno::OPNOTSUPP), &mut file), None);
    assert_eq!(file, Abilities { punch_hole: false, ..FILE });
    for step in [(4000, 96, false), (4096, 8192, true), (12288, 1712, false)] {
        let (offset, length, direct) = step;
        assert_eq!(operation.step(&file), Step::WriteZeroes { offset, length, direct });
        assert_eq!(operation.advance(Ok(length), &mut file), None);
    }
    assert_eq!(operation.step(&file), Step::Sync);
    assert!(matches!(begin(zeroes(), &file).step(&file), Step::WriteZeroes { .. }));
}

#[test]
fn no_hole_has_an_ability_of_its_own() {
    let mut file = FILE;
    let zeroes = DeviceRequest { no_hole: true, ..command(IoKind::WriteZeroes, 0, 4096) };
    let mut operation = begin(zeroes, &file);
    let mode = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
    assert_eq!(operation.step(&file), Step::Allocate { offset: 0, length: 4096, mode });
    assert_eq!(operation.advance(Err(Errno::OPNOTSUPP), &mut file), None);
    assert_eq!(file, Abilities { zero_range: false, ..FILE });
}

#[test]
fn fast_zeroes_that_cannot_be_fast_are_refused() {
    let zeroes = || DeviceRequest { fast_zero: true, ..command(IoKind::WriteZeroes, 0, 4096) };
    let mut file = FILE;
    let refused = begin(zeroes(), &file).advance(Err(Errno::OPNOTSUPP), &mut file);
    assert_eq!(refused, Some(Err(Errno::OPNOTSUPP)));
    assert_eq!(at_once(zeroes(), &file).result.unwrap_err().errno, Errno::OPNOTSUPP);
}

#[test]
fn a_trim_that_has_no_effect_succeeds() {
    let mut file = FILE;
    let trim = || command(IoKind::Trim, 0, 4096);
    assert_eq!(begin(trim(), &file).advance(Err(Errno::OPNOTSUPP), &mut file), Some(Ok(())));
    assert!(at_once(trim(), &NEITHER).result.is_ok());
}

#[test]
fn a_block_device_is_never_asked_for_parts_of_its_blocks() {
    assert!(at_once(command(IoKind::Trim, 100, 4096), &DISK).result.is_ok());
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let step = begin(command(IoKind::Trim, 100, 10_000), &DISK).step(&DISK);
    assert_eq!(step, Step::Allocate { offset: 4096, length: 4096, mode });
    let step = begin(command(IoKind::WriteZeroes, 100, 1000), &DISK).step(&DISK);
    assert_eq!(step, Step::WriteZeroes { offset: 100, length: 1000, direct: false });
    let fast = DeviceRequest { fast_zero: true, ..command(IoKind::WriteZeroes, 100, 1000) };
    assert_eq!(at_once(fast, &DISK).result.unwrap_err().errno, Errno::OPNOTSUPP);
    let all = at_once(command(IoKind::BlockStatus, 100, 1000), &DISK).extents;
    assert_eq!(all, [Extent::allocated(1000)]);
}

#[test]
fn no_single_write_of_zeroes_is_longer_than_the_zeroes_at_hand() {
    let step = begin(command(IoKind::WriteZeroes, 0, u32::MAX), &NEITHER).step(&NEITHER);
    assert_eq!(step, Step::WriteZeroes { offset: 0, length: ZEROES, direct: true });
}

#[test]
fn reading_ahead_is_advice_and_needs_a_page_cache() {
    assert!(at_once(command(IoKind::Cache, 0, 4096), &FILE).result.is_ok());
    let mut cached = Abilities { direct: false, ..FILE };
    let mut operation = begin(command(IoKind::Cache, 0, 4096), &cached);
    assert_eq!(operation.step(&cached), Step::WillNeed { offset: 0, length: 4096 });
    assert_eq!(operation.advance(Err(Errno::INVAL), &mut cached), Some(Ok(())));
}
