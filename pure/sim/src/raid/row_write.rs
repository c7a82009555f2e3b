//! Plans the operations that write parts of one row.
//!
//! RAID-5 has three ways to come to the new parity. *Read-modify-write* reads the data that will be
//! overwritten, and the old parity. *Reconstruct-write* reads the data that will not be overwritten. A
//! *full-stripe write* reads nothing. The plan takes the way that reads from fewer members, and
//! read-modify-write if they are equal.
//!
//! With a failed member there is no choice: its data cannot be read, and data for it only go into the parity.
//! Parity is one range, from the first to the last byte that any column writes. If the failed column writes
//! less than that, the old parity beyond it would have to be read as well. The model leaves that out, because
//! it is rare.

use super::{Extent, Geometry, RaidLevel};

/// The range of bytes that is written of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ColumnRange {
    pub(crate) column: u32,
    /// The first byte, counted from the beginning of the stripe unit.
    pub(crate) from: u64,
    pub(crate) end: u64,
    /// Whether the whole range is written. Otherwise, some bytes in between keep their content.
    pub(crate) whole: bool,
}

/// The operations of a write: all reads come before the first write.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct RowWrite {
    pub(crate) reads: Vec<Extent>,
    pub(crate) writes: Vec<Extent>,
}

impl RowWrite {
    /// Plans to write `ranges` of `row`. The ranges are not empty, and their columns rise. `works` says which
    /// members work.
    pub(crate) fn plan(
        &mut self,
        geometry: &Geometry,
        row: u64,
        ranges: &[ColumnRange],
        works: impl Fn(u32) -> bool,
    ) {
        self.reads.clear();
        self.writes.clear();
        for range in ranges {
            let member = geometry.data_member(row, range.column);
            let copies = if geometry.level == RaidLevel::Raid1 { 2 } else { 1 };
            for member in (member..member + copies).filter(|member| works(*member)) {
                self.writes.push(geometry.extent(member, row, range.from, range.end - range.from));
            }
        }
        if geometry.level == RaidLevel::Raid5 {
            self.plan_parity(geometry, row, ranges, works);
        } else {
            self.fill_holes(geometry, row, ranges, works);
        }
    }

    /// Without parity, only the unwritten bytes between written bytes have to be read.
    fn fill_holes(
        &mut self,
        geometry: &Geometry,
        row: u64,
        ranges: &[ColumnRange],
        works: impl Fn(u32) -> bool,
    ) {
        for range in ranges.iter().filter(|range| !range.whole) {
            let first = geometry.data_member(row, range.column);
            let member = if works(first) { first } else { first + 1 };
            self.reads.push(geometry.extent(member, row, range.from, range.end - range.from));
        }
    }

    fn plan_parity(
        &mut self,
        geometry: &Geometry,
        row: u64,
        ranges: &[ColumnRange],
        works: impl Fn(u32) -> bool,
    ) {
        let parity = geometry.parity_member(row);
        if !works(parity) {
            let holes = ranges.iter().filter(|range| !range.whole);
            self.reads.extend(holes.map(|range| data_extent(geometry, row, *range)));
            return;
        }
        let from = ranges.iter().map(|range| range.from).min().unwrap_or(0);
        let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        let given = |range: &&ColumnRange| range.whole && range.from == from && range.end == end;
        let reconstruct_reads = geometry.columns as usize - ranges.iter().filter(given).count();
        let failed = (0..geometry.columns).find(|column| !works(geometry.data_member(row, *column)));
        let reconstruct = match failed {
            None => reconstruct_reads < ranges.len() + 1,
            Some(failed) => ranges.iter().any(|range| range.column == failed),
        };
        if reconstruct {
            let mut rest = ranges.iter().peekable();
            for column in 0..geometry.columns {
                let range = rest.next_if(|range| range.column == column);
                if Some(column) != failed && !range.is_some_and(|range| given(&range)) {
                    self.reads.push(geometry.extent(
                        geometry.data_member(row, column),
                        row,
                        from,
                        end - from,
                    ));
                }
            }
        } else {
            self.reads.extend(ranges.iter().map(|range| data_extent(geometry, row, *range)));
            self.reads.push(geometry.extent(parity, row, from, end - from));
        }
        self.writes.push(geometry.extent(parity, row, from, end - from));
    }
}

fn data_extent(geometry: &Geometry, row: u64, range: ColumnRange) -> Extent {
    geometry.extent(geometry.data_member(row, range.column), row, range.from, range.end - range.from)
}
