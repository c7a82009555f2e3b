//! Each course that a request can take, without a kernel.

use super::*;
use crate::rig::{command, read, write};

const FILE: Abilities = Abilities {
    direct: true,
    block_device: false,
    punch_hole: true,
    zero_range: true,
    size: 1 << 40,
    end: 1 << 40,
};
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
fn a_step_that_is_never_done_is_not_tried_for_ever() {
    let mut file = FILE;
    let mut operation = begin(read(0, 8192), &file);
    for _ in 0..TRIES {
        assert_eq!(operation.advance(Err(Errno::AGAIN), &mut file), None);
    }
    assert_eq!(operation.advance(Ok(4096), &mut file), None, "what goes on may take its time");
    for _ in 0..TRIES {
        assert_eq!(operation.advance(Err(Errno::AGAIN), &mut file), None);
    }
    assert_eq!(operation.advance(Err(Errno::AGAIN), &mut file), Some(Err(Errno::AGAIN)));
}

#[test]
fn a_read_past_the_end_of_a_file_that_was_cut_off_fails_and_so_does_all_that_reaches_there() {
    let mut file = FILE;
    let mut operation = begin(read(4096, 100), &file);
    assert_eq!(operation.advance(Ok(60), &mut file), None);
    assert!(operation.raises_doubt(Ok(0)) && !operation.raises_doubt(Ok(40)));
    assert_eq!(operation.advance(Ok(0), &mut file), Some(Err(Errno::IO)));
    assert_eq!(file, Abilities { end: 4156, ..FILE });
    let fails = |request| assert_eq!(at_once(request, &file).result.unwrap_err().errno, Errno::IO);
    fails(read(4100, 100));
    fails(write(4156, &[1]));
    for kind in [IoKind::Trim, IoKind::WriteZeroes, IoKind::BlockStatus, IoKind::Cache] {
        fails(command(kind, 4096, 61));
    }
    fails(command(IoKind::Flush, 0, 0));
    begin(read(4096, 60), &file);
    begin(write(0, &[1; 4096]), &file);
}

#[test]
fn a_flush_of_a_file_that_was_cut_off_meanwhile_fails() {
    let mut file = FILE;
    let flush = begin(command(IoKind::Flush, 0, 0), &file);
    assert!(flush.raises_doubt(Ok(0)));
    for (end, outcome) in [(FILE.size, Ok(())), (FILE.size - 1, Err(Errno::IO))] {
        file.end = end;
        let mut flush = begin(command(IoKind::Flush, 0, 0), &FILE);
        assert_eq!(flush.advance(Ok(0), &mut file), Some(outcome));
    }
}

#[test]
fn zeroes_that_nobody_waits_for_are_written_no_further() {
    let mut file = NEITHER;
    let mut operation = begin(command(IoKind::WriteZeroes, 0, 3 * ZEROES), &file);
    assert!(operation.is_long());
    assert_eq!(operation.advance(Ok(ZEROES), &mut file), None);
    operation.abandon();
    assert_eq!(operation.advance(Ok(ZEROES), &mut file), Some(Err(Errno::CANCELED)));
    let mut last = begin(command(IoKind::WriteZeroes, 0, ZEROES), &file);
    last.abandon();
    assert_eq!(last.advance(Ok(ZEROES), &mut file), Some(Ok(())));
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
