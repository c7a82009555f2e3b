//! Maps the bytes of a logical unit to its members, and plans which members' bytes a write has to read and
//! write.
//!
//! **Modelled**: a single member, and three layouts.
//!
//! - RAID-0: striping.
//! - RAID-1: mirrored pairs, with striping over the pairs; with more than two members also called RAID-0/1 or
//!   1+0.
//! - RAID-5: striping with rotating parity (Patterson, Gibson, Katz, SIGMOD 1988), placed left-symmetrically
//!   (Lee, Katz, ASPLOS 1991): a run of as many stripe units as there are members touches each member once. A
//!   small write reads and writes data and parity, in four operations; see [`row_write`].
//!
//! The code knows neither time nor the kind of the members.
//!
//! **Not modelled**: `AutoRAID`'s moves between RAID-1 and RAID-5; a second parity; the time to compute
//! parity.
//!
//! **Calibration**: the `FC60` and VA-7100 of the papers. HP's manual of the `FC60` describes RAID-5 over at
//! most six disks, with the four operations of a small write. Its example has a stripe segment of 16 KiB.

pub(crate) mod row_write;
#[cfg(test)]
mod tests;

/// How a logical unit puts data on its members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RaidLevel {
    /// One member, without redundancy.
    Single,
    /// Stripe units on one member after the other. Survives no failure.
    Raid0,
    /// Pairs of members with the same content, striped over the pairs. Survives one failure in each pair.
    Raid1,
    /// In each row, all members but one have a stripe unit of data, and that one has their parity. The
    /// members have the parity in turn. Survives one failure.
    Raid5,
}

/// The map of a logical unit.
///
/// A row is one stripe unit on each member. A column is one of the row's stripe units of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) level: RaidLevel,
    pub(crate) members: u32,
    pub(crate) stripe_unit: u64,
    pub(crate) columns: u32,
}

/// Part of a stripe unit of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) row: u64,
    pub(crate) column: u32,
    /// The first byte, counted from the beginning of the stripe unit.
    pub(crate) from: u64,
    pub(crate) length: u64,
}

/// A range of a member's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Extent {
    pub(crate) member: u32,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

impl Geometry {
    pub(crate) const fn new(level: RaidLevel, members: u32, stripe_unit: u64) -> Self {
        let columns = match level {
            RaidLevel::Single | RaidLevel::Raid0 => members,
            RaidLevel::Raid1 => members / 2,
            RaidLevel::Raid5 => members.saturating_sub(1),
        };
        Self { level, members, stripe_unit, columns }
    }

    /// Bytes of data in a row.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.stripe_unit * u64::from(self.columns)
    }

    /// The parts of stripe units that make up a range of the unit's bytes, in order.
    pub(crate) fn pieces(&self, offset: u64, length: u64) -> impl Iterator<Item = Piece> + use<> {
        let (unit, columns) = (self.stripe_unit, u64::from(self.columns));
        let (mut chunk, mut from, mut rest) = (offset / unit, offset % unit, length);
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let length = rest.min(unit - from);
            #[allow(clippy::cast_possible_truncation)] // below the number of columns
            let piece = Piece { row: chunk / columns, column: (chunk % columns) as u32, from, length };
            (chunk, from, rest) = (chunk + 1, 0, rest - length);
            Some(piece)
        })
    }

    /// The member that has a column's data; with pairs, the first member of the pair.
    pub(crate) fn data_member(&self, row: u64, column: u32) -> u32 {
        match self.level {
            RaidLevel::Single | RaidLevel::Raid0 => column,
            RaidLevel::Raid1 => 2 * column,
            RaidLevel::Raid5 => {
                let member = self.parity_member(row) + 1 + column;
                if member < self.members { member } else { member - self.members }
            }
        }
    }

    /// The member that has a row's parity in RAID-5.
    pub(crate) fn parity_member(&self, row: u64) -> u32 {
        #[allow(clippy::cast_possible_truncation)] // below the number of members
        let turn = (row % u64::from(self.members)) as u32;
        self.members - 1 - turn
    }

    /// The bytes on a member of a part of a row.
    pub(crate) fn extent(&self, member: u32, row: u64, from: u64, length: u64) -> Extent {
        let length = u32::try_from(length).expect("a stripe unit is shorter than 4 GiB");
        Extent { member, offset: row * self.stripe_unit + from, length }
    }
}
