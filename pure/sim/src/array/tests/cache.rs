//! The storage controller's memory, seen from outside the array.

use super::*;

fn cached(nvram: u64) -> UnitOptions {
    let cache = CacheOptions { nvram, destages: 12, ..CacheOptions::NONE };
    UnitOptions { cache, ..unit(RaidLevel::Raid5, 6) }
}

#[test]
fn writes_are_acknowledged_at_once_until_nvram_is_full_and_then_at_the_pace_of_the_disks() {
    let mut rig = Rig::new(array_of(cached(4 * MIB)));
    let mut places = places(SIZE);
    for _ in 0..1_024 {
        let took = rig.alone(IoKind::Write, places.next().unwrap(), 4096);
        assert_eq!(took, Span::ZERO);
    }
    let start = rig.now;
    for place in places.take(3_000) {
        rig.alone(IoKind::Write, place, 4096);
    }
    // Each write is four operations of 5 ms, on six disks: 300 writes a second, if all disks were always
    // busy.
    let rate = 3_000.0 / rig.now.since(start).as_secs_f64();
    assert!((200.0..=300.0).contains(&rate), "{rate}");
}

#[test]
fn nvram_that_is_full_at_the_start_takes_a_write_only_when_another_is_on_disk() {
    let full = CacheOptions { filled: 1.0, ..cached(MIB).cache };
    let mut rig = Rig::new(array_of(UnitOptions { cache: full, ..cached(0) }));
    assert!(rig.alone(IoKind::Write, 8192, 4096) >= SERVICE);
    let half = CacheOptions { filled: 0.5, ..cached(MIB).cache };
    let mut rig = Rig::new(array_of(UnitOptions { cache: half, ..cached(0) }));
    let took: Vec<_> = places(SIZE).take(128).map(|place| rig.alone(IoKind::Write, place, 4096)).collect();
    assert_eq!(took, [Span::ZERO; 128]);
    assert!(rig.alone(IoKind::Write, 8 * MIB, 4096) >= SERVICE);
}

#[test]
fn nvram_is_filled_by_at_most_a_block_of_each_row() {
    let problem = |filled| {
        let cache = CacheOptions { filled, ..cached(64 * MIB).cache };
        UnitOptions { cache, ..cached(0) }.check().unwrap_err().to_string()
    };
    for filled in [-0.1, 1.1, f64::NAN, 1.0] {
        let found =
            format!("found NVRAM filled by {filled}; accepted: 0 to 1, with one block for each row at most");
        assert!(problem(filled).starts_with(&found), "{}", problem(filled));
    }
}

#[test]
fn a_write_that_is_longer_than_nvram_is_taken_piece_by_piece() {
    let mut rig = Rig::new(array_of(cached(MIB)));
    assert!(rig.alone(IoKind::Write, 4096, 4 << 20) > SERVICE);
    assert_eq!(rig.alone(IoKind::Flush, 0, 0), Span::ZERO);
}

#[test]
fn below_low_water_nothing_is_destaged_before_its_time() {
    let cache = CacheOptions { flush_after: Some(Span::from_secs(10)), ..cached(4 * MIB).cache };
    let mut rig = Rig::new(array_of(UnitOptions { cache, ..cached(0) }));
    for place in places(SIZE).take(100) {
        rig.alone(IoKind::Write, place, 4096);
    }
    assert_eq!(rig.array.poll_timeout(), Some(Instant::ORIGIN + Span::from_secs(10)));
    rig.settle();
    assert_eq!(rig.operations(6), DiskOperations { reads: 200, writes: 200 });
}

#[test]
fn sequential_writes_are_destaged_as_full_stripes() {
    let mut rig = Rig::new(array_of(cached(4 * MIB)));
    for block in 0..20_000 {
        rig.alone(IoKind::Write, block * 4096, 4096);
    }
    let DiskOperations { reads, writes } = rig.operations(6);
    assert!(reads * 20 < writes, "{reads} reads, {writes} writes");
}

#[test]
fn what_is_in_nvram_is_read_from_there() {
    let mut rig = Rig::new(array_of(cached(4 * MIB)));
    rig.alone(IoKind::Write, 8192, 8192);
    assert_eq!(rig.alone(IoKind::Read, 8192, 4096), Span::ZERO);
    assert_eq!(rig.alone(IoKind::Read, 4096, 8192), SERVICE);
}

#[test]
fn a_block_that_was_read_is_read_from_memory() {
    let cache = CacheOptions { read_cache: MIB, ..CacheOptions::NONE };
    let mut rig = Rig::new(array_of(UnitOptions { cache, ..unit(RaidLevel::Raid5, 6) }));
    assert_eq!(rig.alone(IoKind::Read, 4096, 8192), SERVICE);
    assert_eq!(rig.alone(IoKind::Read, 8192, 512), Span::ZERO);
    assert_eq!(rig.alone(IoKind::Read, 8192, 8192), SERVICE);
    assert_eq!(rig.operations(6).reads, 2);
}

#[test]
fn two_readers_of_one_block_wait_for_one_operation() {
    let cache = CacheOptions { read_cache: MIB, ..CacheOptions::NONE };
    let mut rig = Rig::new(array_of(UnitOptions { cache, ..unit(RaidLevel::Raid5, 6) }));
    rig.submit(IoKind::Read, 0, 4096);
    rig.submit(IoKind::Read, 0, 8192);
    assert!(rig.next().is_some() && rig.next().is_some());
    rig.settle();
    assert_eq!((rig.operations(6).reads, rig.now), (2, Instant::ORIGIN + SERVICE + SERVICE));
}

#[test]
fn a_sequential_reader_finds_its_data_in_memory() {
    let cache = CacheOptions { read_cache: 8 * MIB, prefetch: 320 * 1024, ..CacheOptions::NONE };
    let mut rig = Rig::new(array_of(UnitOptions { cache, ..unit(RaidLevel::Raid5, 6) }));
    let hits = (0..1_000).filter(|block| rig.alone(IoKind::Read, block * 4096, 4096).is_zero()).count();
    assert!(hits > 900, "{hits}");
    while rig.next().is_some() {}
}

#[test]
fn a_flush_without_nvram_waits_for_the_writes_before_it() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid5, 6)));
    let write = rig.submit(IoKind::Write, 0, 4096);
    let flush = rig.submit(IoKind::Flush, 0, 0);
    let later = rig.submit(IoKind::Write, 0, 4096);
    let order: Vec<u32> = std::iter::from_fn(|| rig.next().map(|finished| finished.tag)).collect();
    assert_eq!(order, [write, flush, later]);
}
