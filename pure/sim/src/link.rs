//! A port of an array and the link behind it.
//!
//! **Modelled**: two directions. Each carries one command's data at a time, in the order in which they come,
//! at a given bandwidth, with a fixed time for each command. The data of a read go out, and those of a write
//! come in.
//!
//! **Calibration**: Fibre Channel at 1 Gbit/s carries 100 MB/s each way (1.0625 GBd, 8b/10b; FC-PH). The
//! arrays of the papers have that.
//!
//! **Not modelled**: frames, buffer credits, arbitration on a loop, and commands and replies without data,
//! which take far less time than the data.

use weir_model::{Bandwidth, Instant, Span};

/// The description of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkOptions {
    /// Bytes a second in each direction.
    pub bandwidth: Bandwidth,
    /// How long each command with data occupies the link, in addition to its data.
    pub overhead: Span,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    options: LinkOptions,
    free_at: Instant,
    /// For how long it will have carried data by `free_at`.
    busy: Span,
}

impl Link {
    pub(crate) const fn new(options: LinkOptions) -> Self {
        Self { options, free_at: Instant::ORIGIN, busy: Span::ZERO }
    }

    /// Data of this length are ready to be sent. Returns when their last byte has arrived.
    pub(crate) fn transfer(&mut self, now: Instant, length: u32) -> Instant {
        // 2^32 bytes times 10^9 fits into 64 bits.
        let data = Span::from_nanos(u64::from(length) * 1_000_000_000 / self.options.bandwidth.get());
        let takes = self.options.overhead + data;
        self.busy += takes;
        self.free_at = self.free_at.max(now) + takes;
        self.free_at
    }

    /// For how long it has carried data by now.
    pub(crate) fn busy(&self, now: Instant) -> Span {
        let ahead = self.free_at.saturating_since(now);
        Span::from_nanos(self.busy.as_nanos() - ahead.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_one_after_the_other() {
        let bandwidth = Bandwidth::new(100_000_000).unwrap();
        let mut link = Link::new(LinkOptions { bandwidth, overhead: Span::from_micros(10) });
        let at = |micros| Instant::ORIGIN + Span::from_micros(micros);
        assert_eq!(link.transfer(at(0), 4_000), at(50));
        assert_eq!(link.transfer(at(20), 4_000), at(100));
        assert_eq!(link.busy(at(30)), Span::from_micros(30));
        assert_eq!(link.transfer(at(500), 1_000), at(520));
        assert_eq!(link.busy(at(600)), Span::from_micros(120));
    }
}
