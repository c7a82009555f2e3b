//! A request of a connection, and the content of made-up ones.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weir_model::{Instant, Span};

use crate::{LoadSpec, Pattern, Share};

/// One of a connection's sequences of random numbers. Each purpose has its own, so that one does not shift
/// another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    /// Random numbers for the content of requests.
    Workload,
    /// Random numbers for the arrivals of requests.
    Arrivals,
}

/// The random numbers of one connection for one purpose.
pub(crate) fn stream(seed: u64, connection: u32, purpose: Stream) -> Pcg64 {
    let number = u64::from(connection) * 2 + purpose as u64;
    // An odd factor: every stream of a seed gets a different value, and `seed_from_u64` spreads it over the
    // state.
    Pcg64::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A read or a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Operation {
    /// Whether it is a read; otherwise it is a write.
    pub(crate) read: bool,
    /// First byte.
    pub(crate) offset: u64,
    /// Number of bytes.
    pub(crate) length: u32,
}

/// A request that is to be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Next {
    /// Its latency counts from here.
    pub(crate) since: Instant,
    /// By how much the request is late, if it is.
    pub(crate) late: Option<Span>,
    pub(crate) operation: Operation,
}

/// The sequence of a connection's operations.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    rng: Pcg64,
    read_percent: u8,
    block_bytes: u32,
    start: u64,
    blocks: u64,
    /// The next block of a sequential pattern.
    next: Option<u64>,
}

impl Workload {
    /// The operations of the connection `share` on `blocks` blocks, from `spec.offset` on. There must be at
    /// least one block.
    pub(crate) fn new(spec: &LoadSpec, share: Share, blocks: u64) -> Self {
        assert!(blocks > 0, "a workload needs a block to go to");
        let first = u128::from(blocks) * u128::from(share.index) / u128::from(share.of);
        let first = u64::try_from(first).expect("below the number of blocks");
        Self {
            rng: stream(spec.seed, share.index, Stream::Workload),
            read_percent: spec.read_percent,
            block_bytes: spec.block_bytes,
            start: spec.offset,
            blocks,
            next: (spec.pattern == Pattern::Sequential).then_some(first),
        }
    }

    /// The next operation, on one block.
    #[inline]
    pub(crate) fn next_operation(&mut self) -> Operation {
        let read = match self.read_percent {
            0 => false,
            100 => true,
            percent => self.rng.random_range(0..100) < percent,
        };
        let block = match &mut self.next {
            None => self.rng.random_range(0..self.blocks),
            Some(next) => {
                let block = *next;
                *next = if block + 1 == self.blocks { 0 } else { block + 1 };
                block
            }
        };
        let length = self.block_bytes;
        Operation { read, offset: self.start + block * u64::from(length), length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LoadSpec {
        let mut spec = LoadSpec::new("nbd://server/".parse().unwrap());
        spec.offset = 512;
        spec
    }

    fn first(spec: &LoadSpec, index: u32, count: usize) -> Vec<Operation> {
        let mut workload = Workload::new(spec, Share { index, of: 2 }, 8);
        (0..count).map(|_| workload.next_operation()).collect()
    }

    #[test]
    fn equal_seeds_give_equal_requests_and_connections_differ() {
        let spec = LoadSpec { read_percent: 50, ..spec() };
        assert_eq!(first(&spec, 0, 100), first(&spec, 0, 100));
        assert_ne!(first(&spec, 0, 100), first(&spec, 1, 100));
        assert_ne!(first(&spec, 0, 100), first(&LoadSpec { seed: 2, ..spec }, 0, 100));
    }

    #[test]
    fn random_requests_reach_every_block_and_keep_the_mix() {
        let operations = first(&LoadSpec { read_percent: 70, ..spec() }, 0, 10_000);
        for block in 0..8 {
            assert!(operations.iter().any(|op| op.offset == 512 + block * 4096));
        }
        assert!(operations.iter().all(|op| op.offset < 512 + 8 * 4096));
        let reads = operations.iter().filter(|op| op.read).count();
        assert!((6_771..=7_229).contains(&reads), "{reads} reads: five standard deviations off");
    }

    #[test]
    fn sequential_requests_start_at_equal_distances_and_wrap() {
        let spec = LoadSpec { pattern: Pattern::Sequential, ..spec() };
        let blocks = |index| -> Vec<u64> {
            first(&spec, index, 5).iter().map(|op| (op.offset - 512) / 4096).collect()
        };
        assert_eq!((blocks(0), blocks(1)), (vec![0, 1, 2, 3, 4], vec![4, 5, 6, 7, 0]));
    }
}
