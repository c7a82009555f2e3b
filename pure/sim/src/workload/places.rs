//! Where requests go: anywhere, to popular places more often, or in runs.
//!
//! Places are numbered in units of the request's size, for each size apart. So with a mix of sizes, the
//! popular places of one size are not those of another.

use rand::RngExt;
use rand_distr::{Distribution, Zipf};

use super::scatter::Scatter;
use crate::random::Prng;
use crate::scenario::Locality;

/// Where the requests of one phase go.
#[derive(Debug)]
pub(super) struct Places {
    /// Bytes of the volume.
    volume: u64,
    /// By size: how many places there are.
    counts: Vec<u64>,
    pattern: Pattern,
}

#[derive(Debug)]
enum Pattern {
    Uniform,
    /// By size: how popular the places are, and which place has which rank.
    Zipf(Vec<(Zipf<f64>, Scatter)>),
    Runs {
        length: u32,
        left: u32,
        next: u64,
    },
}

impl Places {
    /// The places of a volume of `volume` bytes, for requests of these lengths, none of which is longer than
    /// the volume.
    ///
    /// # Panics
    /// If a Zipf exponent is below zero.
    pub(super) fn new(locality: Locality, volume: u64, lengths: &[u32], mut hot: Prng) -> Self {
        let counts: Vec<u64> = lengths.iter().map(|length| volume / u64::from(*length)).collect();
        let pattern = match locality {
            Locality::Uniform => Pattern::Uniform,
            Locality::Zipf(exponent) => {
                let ranked = |count: &u64| (zipf(*count, exponent), Scatter::new(*count, &mut hot));
                Pattern::Zipf(counts.iter().map(ranked).collect())
            }
            Locality::Runs(length) => Pattern::Runs { length, left: 0, next: 0 },
        };
        Self { volume, counts, pattern }
    }

    /// The offset of a request of this size and length, in bytes.
    pub(super) fn draw(&mut self, size: usize, length: u32, random: &mut Prng) -> u64 {
        let length = u64::from(length);
        match &mut self.pattern {
            Pattern::Uniform => random.random_range(0..self.counts[size]) * length,
            Pattern::Zipf(ranked) => {
                let (popularity, scatter) = &ranked[size];
                scatter.place(rank(popularity.sample(random), self.counts[size])) * length
            }
            Pattern::Runs { length: run, left, next } => {
                if *left == 0 || *next + length > self.volume {
                    *left = *run;
                    *next = random.random_range(0..self.counts[size]) * length;
                }
                let offset = *next;
                *left -= 1;
                *next += length;
                offset
            }
        }
    }
}

#[allow(clippy::cast_precision_loss)] // a volume of more than 2^53 requests has its rarest places rounded
fn zipf(count: u64, exponent: f64) -> Zipf<f64> {
    Zipf::new(count as f64, exponent).expect("a volume has a place, and the scenario was checked")
}

/// Converts a rank as it is drawn, from one, to an index from zero.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, and the bounds follow
fn rank(drawn: f64, count: u64) -> u64 {
    (drawn as u64).clamp(1, count) - 1
}
