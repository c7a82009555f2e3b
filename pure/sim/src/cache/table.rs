//! The index of the caches: from a block's or a row's number to its place.
//!
//! Three alternatives failed. A dense table has an entry for each block of the unit, so it would be larger
//! than the cache by the ratio of disks to memory. A `BTreeMap` costs several cache misses for each look-up.
//! The hash map of the standard library has another order in each process. This table is the smallest thing
//! that costs one miss: open addressing with linear probing (Knuth, volume 3, 6.4, algorithm L, with deletion
//! by algorithm R). It is hashed by a multiplication, and never iterated.

/// An empty cell. No key is as large, because keys are numbers of blocks or of rows.
const EMPTY: u64 = u64::MAX;
/// 2^64 divided by the golden ratio: Fibonacci hashing (Knuth, volume 3, 6.4).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A map from numbers below `2^64 - 1` to places.
#[derive(Debug)]
pub(crate) struct Table {
    /// Their number is a power of two. At most half of them are used.
    cells: Vec<(u64, u32)>,
    used: usize,
    shift: u32,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self::with_bits(6)
    }

    fn with_bits(bits: u32) -> Self {
        Self { cells: vec![(EMPTY, 0); 1 << bits], used: 0, shift: u64::BITS - bits }
    }

    pub(crate) fn find(&self, key: u64) -> Option<u32> {
        let (found, value) = self.cells[self.cell_of(key)];
        (found == key).then_some(value)
    }

    /// Maps `key`, which is not in the table, to `value`.
    pub(crate) fn insert(&mut self, key: u64, value: u32) {
        if self.used * 2 >= self.cells.len() {
            self.grow();
        }
        let cell = self.cell_of(key);
        debug_assert!(self.cells[cell].0 == EMPTY && key != EMPTY, "{key} is in the table already");
        self.cells[cell] = (key, value);
        self.used += 1;
    }

    /// Removes `key`, which is in the table.
    pub(crate) fn remove(&mut self, key: u64) {
        let mask = self.cells.len() - 1;
        let mut hole = self.cell_of(key);
        debug_assert!(self.cells[hole].0 == key, "{key} is not in the table");
        let mut next = hole;
        // Entries that the removed key pushed on move back. Otherwise a look-up for them would end at the
        // hole.
        loop {
            next = (next + 1) & mask;
            let (found, _) = self.cells[next];
            if found == EMPTY {
                break;
            }
            let from_home = next.wrapping_sub(self.home_of(found)) & mask;
            if from_home >= (next.wrapping_sub(hole) & mask) {
                self.cells[hole] = self.cells[next];
                hole = next;
            }
        }
        self.cells[hole] = (EMPTY, 0);
        self.used -= 1;
    }

    /// The cell of `key`, or the empty cell where it would be.
    fn cell_of(&self, key: u64) -> usize {
        let mask = self.cells.len() - 1;
        let mut cell = self.home_of(key);
        while self.cells[cell].0 != key && self.cells[cell].0 != EMPTY {
            cell = (cell + 1) & mask;
        }
        cell
    }

    #[allow(clippy::cast_possible_truncation)] // the shift leaves fewer bits than the table has
    fn home_of(&self, key: u64) -> usize {
        (key.wrapping_mul(MULTIPLIER) >> self.shift) as usize
    }

    fn grow(&mut self) {
        let old = std::mem::replace(self, Self::with_bits(u64::BITS - self.shift + 1));
        for (key, value) in old.cells.into_iter().filter(|(key, _)| *key != EMPTY) {
            self.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_table_is_a_map(keys in prop::collection::vec(0_u64..400, 0..2_000)) {
            let mut table = Table::new();
            let mut map = BTreeMap::new();
            for (i, key) in (0..).zip(keys) {
                if map.remove(&key).is_some() {
                    table.remove(key);
                } else {
                    map.insert(key, i);
                    table.insert(key, i);
                }
            }
            for key in 0..400 {
                prop_assert_eq!(table.find(key), map.get(&key).copied());
            }
        }
    }
}
