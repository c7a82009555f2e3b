//! The requests of one phase: reads, writes or flushes, their sizes, and their places.

use std::num::NonZeroU32;

use rand::RngExt;
use weir_model::{Instant, IoKind};

use super::Asked;
use super::arrivals::Arrivals;
use super::places::Places;
use crate::random::{Prng, Seed};
use crate::scenario::Workload;

/// The random streams of a volume, one for each purpose.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) arrivals: Prng,
    kinds: Prng,
    sizes: Prng,
    offsets: Prng,
}

/// A phase's load that has begun.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) arrivals: Arrivals,
    reads: f64,
    sizes: Vec<Size>,
    places: Places,
    flush_every: Option<NonZeroU32>,
    /// Writes since the last flush.
    unflushed: u32,
}

/// One of the sizes that requests have.
#[derive(Clone, Copy, Debug)]
struct Size {
    length: u32,
    /// The share of the requests that have this size or one before it.
    up_to: f64,
}

impl Streams {
    pub(super) fn new(volume: &str, seed: Seed) -> Self {
        let stream = |purpose: &str| seed.stream(&format!("{volume}/{purpose}"));
        Self {
            arrivals: stream("arrivals"),
            kinds: stream("kinds"),
            sizes: stream("sizes"),
            offsets: stream("offsets"),
        }
    }
}

impl Load {
    /// `workload` begins on a volume of `size` bytes, while `busy` threads still wait for an answer. Its
    /// popular places follow from `hot`.
    pub(super) fn begin(
        now: Instant,
        workload: &Workload,
        size: u64,
        busy: u32,
        hot: &Prng,
        streams: &mut Streams,
    ) -> Self {
        let total: f64 = workload.sizes.iter().map(|(_, weight)| weight).sum();
        let mut up_to = 0.0;
        let sizes: Vec<Size> = workload
            .sizes
            .iter()
            .map(|&(length, weight)| {
                up_to += weight / total;
                Size { length, up_to }
            })
            .collect();
        let lengths: Vec<u32> = sizes.iter().map(|size| size.length).collect();
        Self {
            arrivals: Arrivals::begin(now, workload.arrivals, busy, &mut streams.arrivals),
            reads: workload.reads,
            places: Places::new(workload.locality, size, &lengths, hot.clone()),
            sizes,
            flush_every: workload.flush_every,
            unflushed: 0,
        }
    }

    /// The request that comes now.
    pub(super) fn ask(&mut self, streams: &mut Streams) -> Asked {
        let by_thread = self.arrivals.advance(&mut streams.arrivals);
        if self.flush_every.is_some_and(|writes| self.unflushed >= writes.get()) {
            self.unflushed = 0;
            return Asked { kind: IoKind::Flush, offset: 0, length: 0, by_thread };
        }
        let kind = if streams.kinds.random::<f64>() < self.reads { IoKind::Read } else { IoKind::Write };
        self.unflushed = self.unflushed.saturating_add(u32::from(kind == IoKind::Write));
        let size = self.draw_size(&mut streams.sizes);
        let length = self.sizes[size].length;
        let offset = self.places.draw(size, length, &mut streams.offsets);
        Asked { kind, offset, length, by_thread }
    }

    /// Which of the sizes the next request has.
    fn draw_size(&self, random: &mut Prng) -> usize {
        let last = self.sizes.len() - 1;
        if last == 0 {
            return 0;
        }
        let draw: f64 = random.random();
        self.sizes[..last].partition_point(|size| size.up_to <= draw)
    }
}
