//! Maps a range of an array's bytes to bytes of its units.

use super::options::{ArrayOptions, Layout};

/// Part of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) unit: usize,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// The map of an array.
#[derive(Debug)]
pub(super) enum Map {
    /// One unit.
    One,
    /// Units one after the other: where each ends.
    Concatenated(Vec<u64>),
    /// `unit_bytes` bytes of each of `units` units in turn.
    Striped { unit_bytes: u64, units: u64 },
}

impl Map {
    pub(super) fn new(options: &ArrayOptions) -> Self {
        match options.layout {
            _ if options.units.len() == 1 => Self::One,
            Layout::Concatenated => Self::Concatenated(
                options
                    .units
                    .iter()
                    .scan(0, |end, unit| {
                        *end += unit.bytes();
                        Some(*end)
                    })
                    .collect(),
            ),
            Layout::Striped { unit_bytes } => Self::Striped { unit_bytes, units: options.units.len() as u64 },
        }
    }

    /// Puts the parts of a range into `parts`, one for each unit. A unit has one part, because pieces that
    /// are in turn on the units are adjacent on each unit.
    pub(super) fn split(&self, offset: u64, length: u64, parts: &mut Vec<Part>) {
        parts.clear();
        let end = offset + length;
        let mut at = offset;
        while at < end {
            let part = self.part_at(at, end - at);
            at += part.length;
            match parts.iter_mut().find(|earlier| earlier.unit == part.unit) {
                Some(earlier) => earlier.length += part.length,
                None => parts.push(part),
            }
        }
    }

    #[allow(clippy::cast_possible_truncation)] // below the number of units
    fn part_at(&self, offset: u64, rest: u64) -> Part {
        match self {
            Self::One => Part { unit: 0, offset, length: rest },
            Self::Concatenated(ends) => {
                let unit = ends.partition_point(|end| *end <= offset);
                let start = if unit == 0 { 0 } else { ends[unit - 1] };
                Part { unit, offset: offset - start, length: rest.min(ends[unit] - offset) }
            }
            Self::Striped { unit_bytes, units } => {
                let (turn, within) = (offset / unit_bytes, offset % unit_bytes);
                let unit = (turn % units) as usize;
                Part {
                    unit,
                    offset: turn / units * unit_bytes + within,
                    length: rest.min(unit_bytes - within),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(map: &Map, offset: u64, length: u64) -> Vec<(usize, u64, u64)> {
        let mut parts = Vec::new();
        map.split(offset, length, &mut parts);
        parts.into_iter().map(|Part { unit, offset, length }| (unit, offset, length)).collect()
    }

    #[test]
    fn units_follow_one_another() {
        let map = Map::Concatenated(vec![100, 150, 400]);
        assert_eq!(split(&map, 90, 70), [(0, 90, 10), (1, 0, 50), (2, 0, 10)]);
        assert_eq!(split(&map, 150, 1), [(2, 0, 1)]);
    }

    #[test]
    fn a_range_over_striped_units_is_one_range_of_each() {
        let map = Map::Striped { unit_bytes: 10, units: 2 };
        assert_eq!(split(&map, 25, 30), [(0, 15, 15), (1, 10, 15)]);
        assert_eq!(split(&map, 7, 3), [(0, 7, 3)]);
    }
}
