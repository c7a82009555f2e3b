//! Blocks that were written and are not on disk yet, by rows.
//!
//! The blocks of a row share one parity. Destaged together, they share the reading and writing of that
//! parity. A block that is overwritten while it is destaged needs room twice, because the data on their way
//! to the disk must not change.

use std::collections::VecDeque;

use weir_model::Instant;

use super::table::Table;

/// A row's place in the NVRAM.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct RowId(u32);

/// A row that has blocks in NVRAM.
#[derive(Clone, Copy, Debug)]
struct Row {
    number: u64,
    /// When it came into the queue.
    queued_at: Instant,
    queued: bool,
    dirty: u32,
    destaging: u32,
}

/// The NVRAM of a unit.
#[derive(Debug)]
pub(crate) struct Nvram {
    capacity: u64,
    used: u64,
    row_blocks: u64,
    /// How many words a row's bit map has.
    words: usize,
    index: Table,
    rows: Vec<Row>,
    /// Two bit maps for each row: its dirty blocks, and the blocks that are being destaged.
    maps: Vec<u64>,
    free: Vec<u32>,
    /// Rows that are dirty and not being destaged, the oldest first.
    queue: VecDeque<u32>,
}

impl Nvram {
    /// NVRAM for `capacity` blocks, with `row_blocks` blocks in a row.
    pub(crate) fn new(capacity: u64, row_blocks: u64) -> Self {
        let words = usize::try_from(row_blocks.div_ceil(64)).expect("a row's blocks fit into memory");
        Self {
            capacity,
            used: 0,
            row_blocks,
            words,
            index: Table::new(),
            rows: Vec::new(),
            maps: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    /// How many blocks it holds.
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Takes as many of these blocks as there is room for, from the first on. Returns how many.
    pub(crate) fn write(&mut self, now: Instant, first: u64, count: u64) -> u64 {
        let mut block = first;
        while block < first + count {
            let (number, in_row) = (block / self.row_blocks, block % self.row_blocks);
            let row_end = (first + count).min(block - in_row + self.row_blocks);
            let Some(row) = self.row_for_write(number) else { break };
            let taken = self.mark_dirty(row, in_row, row_end - block);
            block += taken;
            self.settle(now, row);
            if block < row_end {
                break;
            }
        }
        block - first
    }

    /// Whether it holds all of these blocks.
    pub(crate) fn holds(&self, first: u64, count: u64) -> bool {
        let mut row = (u64::MAX, None);
        (first..first + count).all(|block| {
            let number = block / self.row_blocks;
            if row.0 != number {
                row = (number, self.index.find(number));
            }
            row.1.is_some_and(|row| {
                let (word, bit) = place_of(block % self.row_blocks);
                let at = self.map(row) + word;
                (self.maps[at] | self.maps[at + self.words]) & bit != 0
            })
        })
    }

    /// When the oldest row of the queue came into it.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.queue.front().map(|row| self.rows[*row as usize].queued_at)
    }

    /// Begins to destage the oldest row; `None` if no row waits.
    pub(crate) fn begin_destage(&mut self) -> Option<RowId> {
        let row = self.queue.pop_front()?;
        let entry = &mut self.rows[row as usize];
        entry.queued = false;
        entry.destaging = std::mem::take(&mut entry.dirty);
        let at = self.map(row);
        for word in at..at + self.words {
            self.maps[word + self.words] = std::mem::take(&mut self.maps[word]);
        }
        Some(RowId(row))
    }

    /// The number of a row that is being destaged.
    pub(crate) fn row_number(&self, row: RowId) -> u64 {
        self.rows[row.0 as usize].number
    }

    /// The blocks of a row that are being destaged, counted from its beginning, in order.
    pub(crate) fn destaging(&self, row: RowId) -> impl Iterator<Item = u64> {
        let at = self.map(row.0) + self.words;
        (0_u64..).zip(&self.maps[at..at + self.words]).flat_map(|(number, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(number * 64 + u64::from(bit))
            })
        })
    }

    /// The blocks of this row that were being destaged are on disk.
    pub(crate) fn end_destage(&mut self, now: Instant, row: RowId) {
        let at = self.map(row.0) + self.words;
        self.maps[at..at + self.words].fill(0);
        let entry = &mut self.rows[row.0 as usize];
        self.used -= u64::from(std::mem::take(&mut entry.destaging));
        if entry.dirty > 0 {
            self.settle(now, row.0);
        } else {
            self.forget(row.0);
        }
    }

    /// The row's place; `None` if it has none and there is no room.
    fn row_for_write(&mut self, number: u64) -> Option<u32> {
        if let Some(row) = self.index.find(number) {
            return Some(row);
        }
        if self.used >= self.capacity {
            return None;
        }
        let entry = Row { number, queued_at: Instant::ORIGIN, queued: false, dirty: 0, destaging: 0 };
        let row = if let Some(row) = self.free.pop() {
            self.rows[row as usize] = entry;
            row
        } else {
            self.rows.push(entry);
            self.maps.resize(self.maps.len() + 2 * self.words, 0);
            u32::try_from(self.rows.len() - 1).expect("NVRAM has fewer than 2^32 rows")
        };
        self.index.insert(number, row);
        Some(row)
    }

    /// Marks blocks of a row as dirty while there is room. Returns how many of them are dirty now.
    fn mark_dirty(&mut self, row: u32, first: u64, count: u64) -> u64 {
        let at = self.map(row);
        for block in first..first + count {
            let (word, bit) = place_of(block);
            if self.maps[at + word] & bit != 0 {
                continue;
            }
            if self.used >= self.capacity {
                return block - first;
            }
            self.maps[at + word] |= bit;
            self.used += 1;
            self.rows[row as usize].dirty += 1;
        }
        count
    }

    /// Puts a row into the queue if it is dirty, not there yet, and not being destaged.
    fn settle(&mut self, now: Instant, row: u32) {
        let entry = &mut self.rows[row as usize];
        if entry.dirty > 0 && entry.destaging == 0 && !entry.queued {
            entry.queued = true;
            entry.queued_at = now;
            self.queue.push_back(row);
        }
    }

    fn forget(&mut self, row: u32) {
        self.index.remove(self.rows[row as usize].number);
        self.free.push(row);
    }

    const fn map(&self, row: u32) -> usize {
        row as usize * 2 * self.words
    }
}

#[allow(clippy::cast_possible_truncation)] // a row's blocks fit into memory
const fn place_of(block: u64) -> (usize, u64) {
    ((block / 64) as usize, 1 << (block % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ORIGIN;

    fn blocks(nvram: &Nvram, row: RowId) -> Vec<u64> {
        nvram.destaging(row).collect()
    }

    #[test]
    fn overwrites_coalesce_and_adjacent_blocks_of_a_row_are_destaged_together() {
        let mut nvram = Nvram::new(100, 80);
        assert_eq!(nvram.write(NOW, 81, 2), 2);
        assert_eq!(nvram.write(NOW, 82, 2), 2);
        assert_eq!(nvram.write(NOW, 159, 2), 2);
        assert_eq!(nvram.used(), 5);
        let row = nvram.begin_destage().unwrap();
        assert_eq!((nvram.row_number(row), blocks(&nvram, row)), (1, vec![1, 2, 3, 79]));
        nvram.end_destage(NOW, row);
        assert_eq!(nvram.used(), 1);
        assert!(nvram.holds(160, 1) && !nvram.holds(159, 2));
    }

    #[test]
    fn a_block_that_is_overwritten_while_it_is_destaged_is_destaged_again() {
        let mut nvram = Nvram::new(100, 80);
        nvram.write(NOW, 0, 1);
        let row = nvram.begin_destage().unwrap();
        nvram.write(NOW, 0, 1);
        assert_eq!((nvram.used(), nvram.begin_destage()), (2, None));
        nvram.end_destage(NOW, row);
        assert!(nvram.holds(0, 1));
        let row = nvram.begin_destage().unwrap();
        nvram.end_destage(NOW, row);
        assert_eq!((nvram.used(), nvram.holds(0, 1), nvram.begin_destage()), (0, false, None));
    }

    #[test]
    fn a_write_that_finds_no_room_is_taken_in_part() {
        let mut nvram = Nvram::new(10, 8);
        assert_eq!(nvram.write(NOW, 0, 12), 10);
        assert_eq!(nvram.write(NOW, 100, 1), 0);
        assert_eq!(nvram.write(NOW, 2, 3), 3);
        let row = nvram.begin_destage().unwrap();
        nvram.end_destage(NOW, row);
        assert_eq!(nvram.write(NOW, 10, 2), 2);
    }
}
