//! The map is a bijection, and a write costs what the literature says.

use proptest::prelude::*;

use super::row_write::{ColumnRange, RowWrite};
use super::*;

const UNIT: u64 = 16 * 1024;

fn geometries() -> impl Strategy<Value = Geometry> {
    let members = 3_u32..12;
    (0..4, members, 1_u64..5).prop_map(|(level, members, units)| match level {
        0 => Geometry::new(RaidLevel::Single, 1, units * 4096),
        1 => Geometry::new(RaidLevel::Raid0, members, units * 4096),
        2 => Geometry::new(RaidLevel::Raid1, members * 2, units * 4096),
        _ => Geometry::new(RaidLevel::Raid5, members, units * 4096),
    })
}

/// The place of the first copy of a byte.
fn place(geometry: &Geometry, offset: u64) -> (u32, u64) {
    let piece = geometry.pieces(offset, 1).next().unwrap();
    let member = geometry.data_member(piece.row, piece.column);
    (member, geometry.extent(member, piece.row, piece.from, 1).offset)
}

/// The byte at a place; `None` for a byte of parity. It does not use the code that it checks.
fn inverse(geometry: &Geometry, member: u32, offset: u64) -> Option<u64> {
    let (row, from) = (offset / geometry.stripe_unit, offset % geometry.stripe_unit);
    let (members, member) = (u64::from(geometry.members), u64::from(member));
    let column = match geometry.level {
        RaidLevel::Single | RaidLevel::Raid0 => member,
        RaidLevel::Raid1 => member / 2,
        RaidLevel::Raid5 => {
            let parity = members - 1 - row % members;
            if member == parity {
                return None;
            }
            (member + members - parity - 1) % members
        }
    };
    Some((row * u64::from(geometry.columns) + column) * geometry.stripe_unit + from)
}

proptest! {
    #[test]
    fn every_byte_has_one_place_and_every_place_but_parity_has_one_byte(
        geometry in geometries(),
        offset in 0_u64..(1 << 40),
        length in 1_u64..200_000,
    ) {
        let (member, at) = place(&geometry, offset);
        prop_assert!(member < geometry.members);
        prop_assert_eq!(inverse(&geometry, member, at), Some(offset));
        let mut next = offset;
        for piece in geometry.pieces(offset, length) {
            let start = (piece.row * u64::from(geometry.columns) + u64::from(piece.column)) * geometry.stripe_unit;
            prop_assert_eq!(start + piece.from, next);
            prop_assert!(piece.from + piece.length <= geometry.stripe_unit);
            next += piece.length;
        }
        prop_assert_eq!(next, offset + length);
    }

    #[test]
    fn parity_rotates_over_all_members(members in 3_u32..12, first in 0_u64..1_000) {
        let geometry = Geometry::new(RaidLevel::Raid5, members, UNIT);
        let rows = first..first + u64::from(members);
        let mut places: Vec<u32> = rows.map(|row| geometry.parity_member(row)).collect();
        places.sort_unstable();
        prop_assert_eq!(places, (0..members).collect::<Vec<_>>());
    }

    #[test]
    fn a_write_never_uses_a_failed_member_and_never_more_than_twice_of_each(
        members in 3_u32..9,
        row in 0_u64..100,
        failed in prop::option::of(0_u32..9),
        written in prop::collection::vec(prop::option::of((0_u64..4, 1_u64..5, any::<bool>())), 8),
    ) {
        let geometry = Geometry::new(RaidLevel::Raid5, members, UNIT);
        let ranges: Vec<_> = (0..geometry.columns).zip(written).filter_map(|(column, range)| {
            let (from, length, whole) = range?;
            let end = (from + length).min(4);
            Some(ColumnRange { column, from: from * 4096, end: end * 4096, whole: whole || end - from < 3 })
        }).collect();
        prop_assume!(!ranges.is_empty());
        let write = plan(&geometry, row, &ranges, failed);
        for operations in [&write.reads, &write.writes] {
            let mut used: Vec<u32> = operations.iter().map(|extent| extent.member).collect();
            used.sort_unstable();
            prop_assert!(used.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(used.iter().all(|member| *member < members && Some(*member) != failed));
        }
    }
}

fn plan(geometry: &Geometry, row: u64, ranges: &[ColumnRange], failed: Option<u32>) -> RowWrite {
    let mut write = RowWrite::default();
    write.plan(geometry, row, ranges, |member| Some(member) != failed);
    write
}

fn part(column: u32) -> ColumnRange {
    ColumnRange { column, from: 4096, end: 8192, whole: true }
}

fn whole(column: u32) -> ColumnRange {
    ColumnRange { column, from: 0, end: UNIT, whole: true }
}

fn cost(ranges: &[ColumnRange], failed: Option<u32>) -> (usize, usize) {
    let write = plan(&Geometry::new(RaidLevel::Raid5, 6, UNIT), 0, ranges, failed);
    (write.reads.len(), write.writes.len())
}

#[test]
fn a_small_write_reads_and_writes_data_and_parity() {
    let geometry = Geometry::new(RaidLevel::Raid5, 6, UNIT);
    let write = plan(&geometry, 1, &[part(0)], None);
    let extent = |member| Extent { member, offset: UNIT + 4096, length: 4096 };
    assert_eq!(write.reads, [extent(5), extent(4)]);
    assert_eq!(write.writes, [extent(5), extent(4)]);
}

#[test]
fn a_full_stripe_write_reads_nothing_and_writes_each_member_once() {
    assert_eq!(cost(&[0, 1, 2, 3, 4].map(whole), None), (0, 6));
    assert_eq!(cost(&[0, 1, 2, 3, 4].map(part), None), (0, 6));
}

#[test]
fn a_write_of_most_of_a_row_reads_the_rest_of_it() {
    assert_eq!(cost(&[0, 1].map(whole), None), (3, 3));
    assert_eq!(cost(&[0, 1, 2, 3].map(whole), None), (1, 5));
    assert_eq!(cost(&[whole(0), whole(1), whole(2), whole(3), part(4)], None), (1, 6));
}

#[test]
fn with_a_failed_member_a_write_does_what_is_left_to_do() {
    let (parity, data) = (5, 0);
    assert_eq!(cost(&[part(0)], Some(parity)), (0, 1));
    assert_eq!(cost(&[part(0)], Some(data)), (4, 1));
    assert_eq!(cost(&[part(1)], Some(data)), (2, 2));
    assert_eq!(cost(&[1, 2, 3, 4].map(whole), Some(data)), (5, 5));
    assert_eq!(cost(&[0, 1, 2, 3, 4].map(whole), Some(data)), (0, 5));
}

#[test]
fn a_mirrored_write_goes_to_both() {
    let geometry = Geometry::new(RaidLevel::Raid1, 4, UNIT);
    let members = |failed| -> Vec<u32> {
        plan(&geometry, 7, &[part(1)], failed).writes.iter().map(|extent| extent.member).collect()
    };
    assert_eq!((members(None), members(Some(2))), (vec![2, 3], vec![3]));
}
