//! A random order of the places of a volume, without a table of them.
//!
//! If popular places lay side by side, a disk would hardly have to seek between them. No real load is like
//! that. A table of all places in random order would have an entry for each place of the volume: 268 million
//! for a terabyte. This is a Feistel network over the next power of four, walked until it lands within the
//! range (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). It is a permutation by
//! construction, whatever the function in its rounds.

use rand::RngExt;

use crate::random::Prng;

const ROUNDS: usize = 4;

/// A permutation of `0..count`.
#[derive(Clone, Debug)]
pub(super) struct Scatter {
    count: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Scatter {
    /// A permutation of `0..count`, drawn from `random`.
    pub(super) fn new(count: u64, random: &mut Prng) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2), keys: std::array::from_fn(|_| random.random()) }
    }

    /// The place of `rank`, which must be below the count.
    pub(super) fn place(&self, rank: u64) -> u64 {
        let mut place = self.permuted(rank);
        while place >= self.count {
            place = self.permuted(place);
        }
        place
    }

    fn permuted(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mixed(right ^ key) & mask));
        }
        (left << self.half_bits) | right
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood, 2014).
const fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;

    #[test]
    fn every_place_is_taken_once() {
        for count in [1, 2, 3, 5, 16, 17, 1_000, 4_097] {
            let scatter = Scatter::new(count, &mut Seed(count).stream("places"));
            let mut places: Vec<u64> = (0..count).map(|rank| scatter.place(rank)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn popular_places_do_not_lie_side_by_side() {
        let count = 1 << 20;
        let scatter = Scatter::new(count, &mut Seed(1).stream("places"));
        let near = (1..1_000).filter(|rank| scatter.place(*rank).abs_diff(scatter.place(rank - 1)) < 1_000);
        assert!(near.count() < 10);
    }
}
