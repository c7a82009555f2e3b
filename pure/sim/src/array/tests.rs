//! Tests of an array as a whole: its throughput, its operations on disks, and the failures that it survives.

mod cache;
mod faults;
mod random_load;
mod utilisation;

use std::num::NonZeroU32;

use weir_model::{Bandwidth, Instant, IoKind, Span};

use crate::array::{Array, ArrayOptions, Command, Finished, Layout};
use crate::cache::CacheOptions;
use crate::link::LinkOptions;
use crate::member::MemberOptions;
use crate::raid::RaidLevel;
use crate::random::Seed;
use crate::station::StationOptions;
use crate::unit::{DiskOperations, UnitOptions};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 1200 * MIB;
const SERVICE: Span = Span::from_millis(5);

/// Disks that do one operation after the other, each in 5 ms.
fn unit(raid: RaidLevel, members: u32) -> UnitOptions {
    let station = StationOptions { servers: NonZeroU32::MIN, service_time: SERVICE, exponential: false };
    UnitOptions {
        members,
        raid,
        stripe_unit: 16 * 1024,
        ..UnitOptions::bare(MemberOptions::Station(station), SIZE)
    }
}

fn array_of(unit: UnitOptions) -> Array {
    Array::new(&ArrayOptions { units: vec![unit], layout: Layout::Concatenated, ports: Vec::new() }, Seed(1))
}

/// An array and the time.
struct Rig {
    array: Array,
    now: Instant,
    tag: u32,
}

impl Rig {
    fn new(array: Array) -> Self {
        Self { array, now: Instant::ORIGIN, tag: 0 }
    }

    fn submit(&mut self, kind: IoKind, offset: u64, length: u32) -> u32 {
        self.tag += 1;
        self.array.submit(self.now, Command { tag: self.tag, kind, offset, length });
        self.tag
    }

    /// The next answer; `None` if nothing happens any more.
    fn next(&mut self) -> Option<Finished> {
        loop {
            if let Some(finished) = self.array.poll_finished() {
                return Some(finished);
            }
            let at = self.array.poll_timeout()?;
            assert!(at >= self.now, "time goes back");
            self.now = at;
            self.array.handle_timeout(at);
        }
    }

    /// Does one request, alone. Returns how long it took.
    fn alone(&mut self, kind: IoKind, offset: u64, length: u32) -> Span {
        let start = self.now;
        let tag = self.submit(kind, offset, length);
        assert_eq!(self.next(), Some(Finished { tag, ok: true }));
        self.now.since(start)
    }

    /// Runs until nothing happens any more. An answer without a request is an error.
    fn settle(&mut self) {
        assert_eq!(self.next(), None);
    }

    fn operations(&self, disks: usize) -> DiskOperations {
        let done = (0..disks).map(|disk| self.array.disk_operations(0, disk));
        done.fold(DiskOperations::default(), |sum, disk| DiskOperations {
            reads: sum.reads + disk.reads,
            writes: sum.writes + disk.writes,
        })
    }
}

/// Places all over the array, in steps of 4 KiB; the same each time.
fn places(size: u64) -> impl Iterator<Item = u64> {
    let mut state = 1_u64;
    std::iter::from_fn(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((state >> 20) % (size / 4096) * 4096)
    })
}

/// Random reads a second, with `depth` of them outstanding.
fn reads_per_second(array: Array, depth: u32) -> f64 {
    let mut places = places(array.size());
    let mut rig = Rig::new(array);
    for _ in 0..depth {
        rig.submit(IoKind::Read, places.next().unwrap(), 4096);
    }
    for _ in 0..20_000 {
        rig.next().unwrap();
        rig.submit(IoKind::Read, places.next().unwrap(), 4096);
    }
    20_000.0 / rig.now.since(Instant::ORIGIN).as_secs_f64()
}

#[test]
fn six_disks_read_six_times_as_fast_as_one() {
    let one = reads_per_second(array_of(unit(RaidLevel::Single, 1)), 32);
    let six = reads_per_second(array_of(unit(RaidLevel::Raid5, 6)), 6 * 32);
    assert!((190.0..=200.1).contains(&one), "{one}");
    assert!((5.7..=6.05).contains(&(six / one)), "{six} / {one}");
}

#[test]
fn striping_over_two_units_doubles_what_one_can() {
    let six = unit(RaidLevel::Raid5, 6);
    let layout = Layout::Striped { unit_bytes: 64 * 1024 };
    let two = ArrayOptions { units: vec![six.clone(), six.clone()], layout, ports: Vec::new() };
    let two = Array::new(&two, Seed(1));
    assert_eq!(two.size(), 2 * SIZE);
    let ratio = reads_per_second(two, 2 * 6 * 32) / reads_per_second(array_of(six), 6 * 32);
    assert!((1.9..=2.1).contains(&ratio), "{ratio}");
}

#[test]
fn a_small_write_costs_four_operations_in_two_phases() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid5, 6)));
    for place in places(SIZE).take(1_000) {
        assert_eq!(rig.alone(IoKind::Write, place, 4096), SERVICE + SERVICE);
    }
    assert_eq!(rig.operations(6), DiskOperations { reads: 2_000, writes: 2_000 });
}

#[test]
fn a_full_stripe_write_costs_an_operation_on_each_disk() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid5, 6)));
    for row in 0..100 {
        assert_eq!(rig.alone(IoKind::Write, row * 80 * 1024, 80 * 1024), SERVICE);
    }
    assert_eq!(rig.operations(6), DiskOperations { reads: 0, writes: 600 });
}

#[test]
fn mirrored_disks_share_the_reads_and_do_all_writes() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid1, 2)));
    for place in places(SIZE).take(100) {
        rig.alone(IoKind::Read, place, 4096);
        rig.alone(IoKind::Write, place, 4096);
    }
    for disk in 0..2 {
        assert_eq!(rig.array.disk_operations(0, disk), DiskOperations { reads: 50, writes: 100 });
    }
}

#[test]
fn a_long_read_is_one_operation_on_each_disk_where_the_parts_are_adjacent() {
    let mut rig = Rig::new(array_of(unit(RaidLevel::Raid0, 4)));
    assert_eq!(rig.alone(IoKind::Read, 0, 1024 * 1024), SERVICE);
    assert_eq!(rig.operations(4), DiskOperations { reads: 4, writes: 0 });
}

#[test]
fn ports_and_controllers_take_their_time() {
    let bandwidth = Bandwidth::new(100_000_000).unwrap();
    let port = LinkOptions { bandwidth, overhead: Span::from_micros(20) };
    let overhead = Span::from_micros(100);
    let unit = UnitOptions { overhead, ..unit(RaidLevel::Raid0, 2) };
    let options = ArrayOptions { units: vec![unit], layout: Layout::Concatenated, ports: vec![port, port] };
    let mut rig = Rig::new(Array::new(&options, Seed(1)));
    let data = Span::from_micros(20 + 80);
    assert_eq!(rig.alone(IoKind::Read, 0, 8_000), SERVICE + overhead + data);
    assert_eq!(rig.alone(IoKind::Write, 0, 8_000), SERVICE + overhead + data);
    for cheap in [IoKind::Trim, IoKind::WriteZeroes, IoKind::Cache, IoKind::BlockStatus, IoKind::Flush] {
        assert_eq!(rig.alone(cheap, 0, 0), overhead);
    }
}

#[test]
fn requests_share_a_port_and_not_two() {
    let bandwidth = Bandwidth::new(1_000_000).unwrap();
    let ports = vec![LinkOptions { bandwidth, overhead: Span::ZERO }; 2];
    let unit = unit(RaidLevel::Raid0, 4);
    let mut rig = Rig::new(Array::new(
        &ArrayOptions { units: vec![unit], layout: Layout::Concatenated, ports },
        Seed(1),
    ));
    for column in 0..4 {
        rig.submit(IoKind::Read, column * 16 * 1024, 10_000);
    }
    let ends: Vec<Span> = std::iter::from_fn(|| rig.next().map(|_| rig.now.since(Instant::ORIGIN))).collect();
    assert_eq!(ends, [15, 15, 25, 25].map(Span::from_millis));
}
