//! Write amplification: how much more is programmed than is written, because blocks are erased as a whole.
//!
//! **Modelled**: nothing is copied as long as there are blocks that were never used. From then on, each block
//! that is made free holds pages that are still valid, and these are copied. For each byte written,
//! `a / (a + W(-a exp(-a)))` bytes are programmed. Here `a` is the flash over the valid bytes, and W is
//! Lambert's function. The formula holds if writes are spread evenly over what has been written, and if
//! garbage collection always takes the block with the fewest valid pages. Source: Xiang and Kurkoski, "An
//! improved analytical expression for write amplification in NAND flash", ICNC 2012. Example: 2.36 at a =
//! 1.3, where 2.35 was measured.
//!
//! **Not modelled**: hot and cold data, and sequential overwriting; both copy less.
//!
//! The blocks themselves are not simulated. A table of where each of 10^8 pages is would cost half a gigabyte
//! for each flash disk, and the formula gives its result within a percent.

use super::{MAPPED, SsdOptions};

/// Levels of fullness for which the formula is computed beforehand.
const LEVELS: u64 = 1_024;

/// Copies are counted in this many parts of a unit.
const PARTS: u64 = 1 << 16;

/// The pages that have been written, and the copies that a write costs.
#[derive(Debug)]
pub(super) struct Amplification {
    /// A bit for each mapped page that has been written; empty when all have.
    valid: Vec<u64>,
    valid_pages: u64,
    pages: u64,
    /// Bytes that can be programmed before the first block has to be made free.
    fresh: u64,
    /// Copies for each unit written, in [`PARTS`], by level of fullness.
    copies: Box<[u64]>,
    /// Parts of a copy that is not due yet.
    due: u64,
}

impl Amplification {
    pub(super) fn new(options: &SsdOptions) -> Self {
        let flash = options.capacity + options.spare;
        let pages = options.capacity.div_ceil(MAPPED);
        let copies = (0..=LEVELS).map(|level| copies(flash, options.capacity * level / LEVELS)).collect();
        let words = usize::try_from(pages.div_ceil(64)).unwrap_or(usize::MAX);
        let (valid, valid_pages, fresh) =
            if options.full { (Vec::new(), pages, 0) } else { (vec![0; words], 0, flash) };
        Self { valid, valid_pages, pages, fresh, copies, due: 0 }
    }

    /// These bytes are written.
    pub(super) fn written(&mut self, offset: u64, end: u64) {
        if self.valid_pages == self.pages {
            return;
        }
        for page in offset / MAPPED..end.div_ceil(MAPPED) {
            let word = usize::try_from(page / 64).unwrap_or(usize::MAX);
            let bit = 1 << (page % 64);
            self.valid_pages += u64::from(self.valid[word] & bit == 0);
            self.valid[word] |= bit;
        }
    }

    /// A unit of `unit` bytes is programmed. Returns how many units have to be copied for it.
    pub(super) fn programmed(&mut self, unit: u64) -> u64 {
        if self.fresh > 0 {
            self.fresh = self.fresh.saturating_sub(unit);
            return 0;
        }
        let level = self.valid_pages * LEVELS / self.pages;
        self.due +=
            usize::try_from(level).ok().and_then(|level| self.copies.get(level)).copied().unwrap_or(0);
        let copies = self.due / PARTS;
        self.due %= PARTS;
        copies
    }

    /// Whether blocks have to be made free before they can be programmed.
    pub(super) fn collects(&self) -> bool {
        self.fresh == 0
    }
}

/// Copies for each unit written, in [`PARTS`].
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a ratio, 0 to 100
fn copies(flash: u64, valid: u64) -> u64 {
    let ratio = flash as f64 / valid.max(1) as f64;
    ((amplification(ratio) - 1.0) * PARTS as f64).round() as u64
}

/// Bytes programmed for each byte written, for this ratio of the flash to the valid bytes, above 1.
fn amplification(ratio: f64) -> f64 {
    // W(-a exp(-a)) is the root above -1 of w exp(w) = -a exp(-a); the other root is -a. With w = -x, it is x
    // = a exp(x - a). Iterated from zero, that rises to the smaller root.
    let mut root = 0.0;
    for _ in 0..20_000 {
        let next = ratio * f64::exp(root - ratio);
        if next - root < 1e-9 {
            break;
        }
        root = next;
    }
    ratio / (ratio - root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_amplification_is_that_of_the_paper() {
        assert!((amplification(1.3) - 2.36).abs() < 0.005, "{}", amplification(1.3));
        assert!((amplification(50.0) - 1.0).abs() < 1e-6);
        assert!((5.0..6.5).contains(&amplification(1.0995)), "{}", amplification(1.0995));
    }
}
