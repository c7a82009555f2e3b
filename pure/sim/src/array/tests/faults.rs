//! Failed disks, rebuilding, stalls.

use super::*;

fn small(raid: RaidLevel, members: u32) -> UnitOptions {
    let rebuild_rate = Bandwidth::new(10 * MIB).unwrap();
    UnitOptions { size: Some(40 * MIB), rebuild_rate, ..unit(raid, members) }
}

#[test]
fn what_was_on_a_failed_disk_is_read_from_all_others() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid5, 6)));
    rig.array.fail_disk(rig.now, 0, 0);
    // In row 0 the parity is on disk 5 and the first data on disk 0; in row 5 the parity is on disk 0.
    assert_eq!(rig.alone(IoKind::Read, 0, 4096), SERVICE);
    assert_eq!(rig.operations(6), DiskOperations { reads: 5, writes: 0 });
    rig.alone(IoKind::Read, 16 * 1024, 4096);
    assert_eq!(rig.operations(6), DiskOperations { reads: 6, writes: 0 });
    rig.alone(IoKind::Write, 5 * 80 * 1024, 4096);
    assert_eq!(rig.operations(6), DiskOperations { reads: 6, writes: 1 });
}

#[test]
fn a_read_of_a_row_with_a_failed_disk_reads_each_other_disk_once() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid5, 6)));
    rig.array.fail_disk(rig.now, 0, 2);
    rig.alone(IoKind::Read, 0, 80 * 1024);
    assert_eq!(rig.operations(6), DiskOperations { reads: 5, writes: 0 });
}

#[test]
fn what_a_disk_was_asked_for_when_it_failed_is_done_by_the_others() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid5, 6)));
    let tags = [rig.submit(IoKind::Read, 0, 4096), rig.submit(IoKind::Write, 0, 4096)];
    rig.now = rig.now + Span::from_millis(1);
    rig.array.fail_disk(rig.now, 0, 0);
    let mut answered =
        [rig.next(), rig.next()].map(|finished| finished.map(|finished| (finished.tag, finished.ok)));
    answered.sort();
    assert_eq!(answered, tags.map(|tag| Some((tag, true))));
    rig.settle();
}

#[test]
fn more_failures_than_the_layout_survives_fail_the_requests() {
    for (raid, members, survives) in [
        (RaidLevel::Raid0, 4, 0),
        (RaidLevel::Raid1, 2, 1),
        (RaidLevel::Raid5, 6, 1),
        (RaidLevel::Single, 1, 0),
    ] {
        let mut rig = Rig::new(array_of(unit(raid, members)));
        for disk in 0..survives {
            rig.array.fail_disk(rig.now, 0, disk);
            rig.alone(IoKind::Read, 0, 4096);
        }
        let tag = rig.submit(IoKind::Read, 0, 80 * 1024);
        rig.array.fail_disk(rig.now, 0, survives);
        assert_eq!(rig.next(), Some(Finished { tag, ok: false }), "{raid:?}");
        let tag = rig.submit(IoKind::Write, 0, 4096);
        assert_eq!(rig.next(), Some(Finished { tag, ok: false }), "{raid:?}");
        rig.array.start_rebuild(rig.now, 0);
        rig.settle();
        assert!(!rig.array.is_healthy(0));
    }
}

#[test]
fn mirrored_pairs_survive_a_failure_in_each() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid1, 4)));
    rig.array.fail_disk(rig.now, 0, 0);
    rig.array.fail_disk(rig.now, 0, 3);
    rig.alone(IoKind::Read, 0, 64 * 1024);
    rig.alone(IoKind::Write, 0, 64 * 1024);
}

#[test]
fn a_rebuild_takes_the_size_of_a_disk_at_the_given_rate_and_ends_healthy() {
    for (raid, members, disk_size) in [(RaidLevel::Raid5, 6, 8_u32), (RaidLevel::Raid1, 2, 40)] {
        let mut rig = Rig::new(array_of(small(raid, members)));
        rig.array.fail_disk(rig.now, 0, 1);
        assert!(!rig.array.is_healthy(0));
        rig.array.start_rebuild(rig.now, 0);
        rig.settle();
        assert!(rig.array.is_healthy(0));
        let expected = f64::from(disk_size) / 10.0;
        let took = rig.now.since(Instant::ORIGIN).as_secs_f64();
        assert!((expected * 0.95..expected * 1.05).contains(&took), "{raid:?}: {took} s");
        let parts = u64::from(4 * disk_size);
        assert_eq!(rig.array.disk_operations(0, 1), DiskOperations { reads: 0, writes: parts });
    }
}

#[test]
fn what_is_rebuilt_is_read_from_the_new_disk() {
    let mut rig = Rig::new(array_of(small(RaidLevel::Raid5, 6)));
    rig.array.fail_disk(rig.now, 0, 0);
    rig.array.start_rebuild(rig.now, 0);
    rig.now = rig.now + Span::from_millis(395);
    rig.array.handle_timeout(rig.now);
    let before = rig.operations(6).reads;
    rig.alone(IoKind::Read, 0, 4096);
    assert_eq!(rig.operations(6).reads, before + 1);
    rig.alone(IoKind::Read, 39 * MIB / 80 / 1024 / 6 * 6 * 80 * 1024, 4096);
    assert!(rig.operations(6).reads >= before + 6);
}

#[test]
fn a_new_disk_that_fails_as_well_leaves_the_unit_as_it_was_before() {
    let mut rig = Rig::new(array_of(small(RaidLevel::Raid5, 6)));
    rig.array.fail_disk(rig.now, 0, 0);
    rig.array.start_rebuild(rig.now, 0);
    rig.now = rig.now + Span::from_millis(42);
    rig.array.fail_disk(rig.now, 0, 0);
    rig.alone(IoKind::Read, 0, 4096);
    rig.settle();
    rig.array.start_rebuild(rig.now, 0);
    rig.settle();
    assert!(rig.array.is_healthy(0));
}

#[test]
fn nothing_ends_while_the_array_stalls() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid5, 6)));
    rig.submit(IoKind::Read, 0, 4096);
    let until = Instant::ORIGIN + Span::from_secs(1);
    rig.array.stall(rig.now, until);
    rig.submit(IoKind::Read, 0, 4096);
    rig.submit(IoKind::Flush, 0, 0);
    let ends: Vec<Instant> = std::iter::from_fn(|| rig.next().map(|_| rig.now)).collect();
    assert_eq!(ends, [until, until, until + SERVICE]);
}

#[test]
fn a_driver_that_comes_late_does_not_make_the_disks_slower() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Single, 1)));
    for _ in 0..10 {
        rig.submit(IoKind::Read, 0, 4096);
    }
    rig.now = Instant::ORIGIN + Span::from_millis(51);
    rig.array.handle_timeout(rig.now);
    assert_eq!(std::iter::from_fn(|| rig.array.poll_finished()).count(), 10);
}
