//! The blocks that were read, and those that are being read. The least recently used block goes first.

use super::table::Table;

/// No entry, or no request.
const NONE: u32 = u32::MAX;

/// Whether the cache has a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lookup {
    Here,
    /// This request is reading it.
    Coming(u32),
    Missing,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    block: u64,
    /// The request that is reading it, or [`NONE`].
    coming: u32,
    newer: u32,
    older: u32,
}

/// The read cache of a unit.
#[derive(Debug)]
pub(crate) struct ReadCache {
    capacity: usize,
    index: Table,
    entries: Vec<Entry>,
    newest: u32,
    oldest: u32,
}

impl ReadCache {
    /// A read cache for `capacity` blocks.
    pub(crate) fn new(capacity: u64) -> Self {
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX).min(NONE as usize);
        Self { capacity, index: Table::new(), entries: Vec::new(), newest: NONE, oldest: NONE }
    }

    /// Whether the cache has room for no block.
    pub(crate) const fn is_absent(&self) -> bool {
        self.capacity == 0
    }

    /// A block is asked for.
    pub(crate) fn look_up(&mut self, block: u64) -> Lookup {
        let Some(entry) = self.index.find(block) else { return Lookup::Missing };
        self.unlink(entry);
        self.link_newest(entry);
        match self.entries[entry as usize].coming {
            NONE => Lookup::Here,
            request => Lookup::Coming(request),
        }
    }

    /// `request` begins to read a block, which is missing.
    pub(crate) fn expect(&mut self, block: u64, request: u32) {
        let new = Entry { block, coming: request, newer: NONE, older: NONE };
        let entry = if self.entries.len() < self.capacity {
            self.entries.push(new);
            u32::try_from(self.entries.len() - 1).unwrap_or(NONE)
        } else {
            let oldest = self.oldest;
            self.unlink(oldest);
            self.index.remove(self.entries[oldest as usize].block);
            self.entries[oldest as usize] = new;
            oldest
        };
        self.index.insert(block, entry);
        self.link_newest(entry);
    }

    /// `request` has read a block, which is now in the cache, unless it was evicted in the meantime. A block
    /// that could not be read counts as read, too: its unit is lost, and every read of it fails alike.
    pub(crate) fn arrived(&mut self, block: u64, request: u32) {
        if let Some(entry) = self.index.find(block) {
            let entry = &mut self.entries[entry as usize];
            if entry.coming == request {
                entry.coming = NONE;
            }
        }
    }

    fn unlink(&mut self, entry: u32) {
        let Entry { newer, older, .. } = self.entries[entry as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, entry: u32) {
        let older = std::mem::replace(&mut self.newest, entry);
        let this = &mut self.entries[entry as usize];
        (this.newer, this.older) = (NONE, older);
        match older {
            NONE => self.oldest = entry,
            older => self.entries[older as usize].newer = entry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_block_goes_first() {
        let mut cache = ReadCache::new(2);
        for block in [1, 2] {
            cache.expect(block, 7);
            assert_eq!(cache.look_up(block), Lookup::Coming(7));
            cache.arrived(block, 7);
        }
        assert_eq!(cache.look_up(1), Lookup::Here);
        cache.expect(3, 8);
        assert_eq!(
            [1, 2, 3].map(|block| cache.look_up(block)),
            [Lookup::Here, Lookup::Missing, Lookup::Coming(8)]
        );
    }

    #[test]
    fn a_block_that_went_before_it_arrived_stays_away() {
        let mut cache = ReadCache::new(1);
        cache.expect(1, 7);
        cache.expect(2, 8);
        cache.arrived(1, 7);
        assert_eq!(cache.look_up(1), Lookup::Missing);
        cache.arrived(2, 7);
        assert_eq!(cache.look_up(2), Lookup::Coming(8));
    }
}
