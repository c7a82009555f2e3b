//! Which bytes of a read have come, if they come in several chunks.
//!
//! A sum of lengths is not enough. A server that sends one half of a read twice, and the other half never,
//! has sent as many bytes as were asked for. The caller would then take old bytes of its buffer for the
//! second half. The chunks of one read may come in any order, but must not overlap (NBD protocol, "Structured
//! reply types").

/// The most runs of bytes that are kept of a read. Bounds the memory that a server can make weir use by
/// sending every other byte first. A server that sends 32 MiB in chunks of 64 KiB makes no more runs than
/// this, in whatever order.
const MOST_RUNS: usize = 256;

/// The bytes of one read that have come. Allocates nothing as long as each chunk begins where the one before
/// it ends.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// The run that the last chunk belongs to; empty before the first.
    current: Run,
    /// All other runs, in order; no two are adjacent.
    others: Vec<Run>,
    bytes: u32,
}

/// Bytes from `start` to before `end`.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    start: u32,
    end: u32,
}

/// Why a chunk cannot be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Misplaced {
    /// Some of its bytes have come before.
    Twice,
    /// It would be one run too many.
    Scattered,
}

impl Coverage {
    /// How many bytes have come.
    pub(super) const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Adds a chunk that lies within the read.
    pub(super) fn add(&mut self, start: u32, length: u32) -> Result<(), Misplaced> {
        let new = Run { start, end: start + length };
        let place = self.others.partition_point(|run| run.start < new.start);
        let (before, after) = self.others.split_at(place);
        let is_known = |run: Option<&Run>| run.is_some_and(|run| run.start < new.end && new.start < run.end);
        if is_known(Some(&self.current)) || is_known(before.last()) || is_known(after.first()) {
            return Err(Misplaced::Twice);
        }
        if new.start == self.current.end {
            self.current.end = new.end;
        } else if new.end == self.current.start {
            self.current.start = new.start;
        } else {
            self.begin_run(new)?;
        }
        self.join_neighbours();
        self.bytes += length;
        Ok(())
    }

    fn begin_run(&mut self, new: Run) -> Result<(), Misplaced> {
        let old = std::mem::replace(&mut self.current, new);
        if old.start < old.end {
            if self.others.len() + 1 >= MOST_RUNS {
                return Err(Misplaced::Scattered);
            }
            let place = self.others.partition_point(|run| run.start < old.start);
            self.others.insert(place, old);
        }
        Ok(())
    }

    /// Joins the current run with the runs that it now touches.
    fn join_neighbours(&mut self) {
        let place = self.others.partition_point(|run| run.start < self.current.start);
        if self.others.get(place).is_some_and(|after| after.start == self.current.end) {
            self.current.end = self.others.remove(place).end;
        }
        if let Some(place) = place.checked_sub(1)
            && self.others.get(place).is_some_and(|before| before.end == self.current.start)
        {
            self.current.start = self.others.remove(place).start;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_more_runs_are_kept_than_the_bound() {
        let mut coverage = Coverage::default();
        let added = (0..).map(|n| coverage.add(2 * n, 1)).take_while(Result::is_ok).count();
        assert_eq!(added, MOST_RUNS);
        assert_eq!(coverage.others.len(), MOST_RUNS - 1);
    }

    #[test]
    fn chunks_in_order_are_one_run() {
        let mut coverage = Coverage::default();
        assert!((0..1000).all(|n| coverage.add(8 * n, 8).is_ok()));
        assert!(coverage.others.is_empty());
        assert_eq!(coverage.bytes(), 8000);
    }

    proptest! {
        #[test]
        fn a_byte_is_taken_once_whatever_the_order(
            chunks in prop::collection::vec((0..60_u32, 1..9_u32), 0..40),
        ) {
            let (mut coverage, mut seen) = (Coverage::default(), [false; 80]);
            for (start, length) in chunks {
                let place = start as usize..(start + length) as usize;
                let fits = seen[place.clone()].iter().all(|seen| !seen);
                prop_assert_eq!(coverage.add(start, length), if fits { Ok(()) } else { Err(Misplaced::Twice) });
                if fits {
                    seen[place].fill(true);
                }
                let count = seen.iter().filter(|seen| **seen).count();
                prop_assert_eq!(coverage.bytes() as usize, count);
            }
        }
    }
}
