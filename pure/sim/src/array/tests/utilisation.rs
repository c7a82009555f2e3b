//! The utilisation that an array reports.

use super::*;

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9
}

#[test]
fn members_are_as_busy_as_the_busiest_of_them() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid0, 4)));
    rig.alone(IoKind::Read, 0, 4096);
    rig.alone(IoKind::Read, 0, 4096);
    rig.alone(IoKind::Read, 16 * 1024, 4096);
    let utilisation = rig.array.utilisation(rig.now + SERVICE);
    assert!(close(utilisation.members, 0.5), "{utilisation:?}");
    assert!(close(utilisation.port, 0.0) && close(utilisation.nvram_full, 0.0), "{utilisation:?}");
}

#[test]
fn a_disk_that_has_failed_is_not_busy_any_more() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid5, 6)));
    rig.submit(IoKind::Read, 0, 4096);
    rig.array.fail_disk(rig.now + Span::from_millis(1), 0, 0);
    let late = rig.array.utilisation(Instant::ORIGIN + Span::from_millis(1));
    assert!(close(late.members, 1.0), "{late:?}");
    assert!(rig.next().is_some_and(|answer| answer.ok));
    let busy = rig.array.utilisation(Instant::ORIGIN + Span::from_millis(10)).members;
    // The other five disks answer: they begin after 1 ms, and take 5 ms.
    assert!(close(busy, 0.5), "{busy}");
}

#[test]
fn a_port_is_as_busy_as_its_busier_direction() {
    let port = LinkOptions { bandwidth: Bandwidth::new(1_000_000).unwrap(), overhead: Span::ZERO };
    let unit = unit(RaidLevel::Raid0, 4);
    let options = ArrayOptions { units: vec![unit], layout: Layout::Concatenated, ports: vec![port] };
    let mut rig = Rig::new(Array::new(&options, Seed(1)));
    // The write takes 5 ms inwards and 5 ms at the disk; the read takes 5 ms at the disk and 10 ms outwards.
    rig.alone(IoKind::Write, 0, 5_000);
    rig.alone(IoKind::Read, 0, 10_000);
    let port = rig.array.utilisation(rig.now).port;
    assert!(close(port, 10.0 / 25.0), "{port}");
}

#[test]
fn nvram_is_full_while_a_write_waits_for_room() {
    let cache = CacheOptions { nvram: MIB, destages: 12, ..CacheOptions::NONE };
    let mut rig = Rig::new(array_of(UnitOptions { cache, ..unit(RaidLevel::Raid5, 6) }));
    rig.alone(IoKind::Write, 0, 4096);
    rig.alone(IoKind::Write, 4096, 4 << 20);
    let waited = rig.now.since(Instant::ORIGIN);
    let full = rig.array.utilisation(Instant::ORIGIN + waited.saturating_mul(4)).nvram_full;
    assert!(close(full, 0.25), "{full}");
}
