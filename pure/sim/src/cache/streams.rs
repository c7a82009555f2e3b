//! Finds sequential readers: keeps the readers seen last, and where each would go on.

/// How many readers are told apart. Storage controllers keep a few. Each costs a comparison for each read.
const READERS: usize = 16;
/// How many reads must follow one another before anything is read ahead.
const PROOF: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Reader {
    next: u64,
    reads: u32,
    ahead: u64,
}

/// The readers seen last.
#[derive(Debug)]
pub(crate) struct Streams {
    readers: [Reader; READERS],
    replace: usize,
    distance: u64,
}

impl Streams {
    /// Keeps `distance` blocks read ahead of a sequential reader.
    pub(crate) const fn new(distance: u64) -> Self {
        Self { readers: [Reader { next: u64::MAX, reads: 0, ahead: 0 }; READERS], replace: 0, distance }
    }

    /// `count` blocks from `first` on are read. Returns the blocks to read ahead: the first, and how many.
    pub(crate) fn read(&mut self, first: u64, count: u64) -> Option<(u64, u64)> {
        if self.distance == 0 {
            return None;
        }
        let next = first + count;
        let Some(reader) = self.readers.iter_mut().find(|reader| reader.next == first) else {
            self.readers[self.replace] = Reader { next, reads: 1, ahead: next };
            self.replace = (self.replace + 1) % READERS;
            return None;
        };
        *reader = Reader { next, reads: reader.reads.saturating_add(1), ahead: reader.ahead.max(next) };
        // Reads ahead at least half of the distance, so that the disks get few long reads, and not many short
        // ones.
        let wanted = next + self.distance;
        if reader.reads < PROOF || wanted - reader.ahead < self.distance.div_ceil(2) {
            return None;
        }
        let from = std::mem::replace(&mut reader.ahead, wanted);
        Some((from, wanted - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_read_in_a_row_starts_a_prefetch_that_stays_ahead() {
        let mut streams = Streams::new(8);
        assert_eq!(streams.read(100, 2), None);
        assert_eq!(streams.read(102, 2), None);
        assert_eq!(streams.read(104, 2), Some((106, 8)));
        assert_eq!(streams.read(106, 2), None);
        assert_eq!(streams.read(108, 2), Some((114, 4)));
    }

    #[test]
    fn random_reads_start_none() {
        let mut streams = Streams::new(8);
        assert!((0..1_000).all(|i| streams.read(i * 7 % 997 * 10, 1).is_none()));
    }
}
