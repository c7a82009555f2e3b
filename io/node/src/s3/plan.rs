//! How large the parts of an upload are.
//!
//! S3 takes at most 10,000 parts, each of 5 MiB or more but for the last. Parts wait in memory until they are
//! sent, so they are as small as the number allows.

/// The most parts of an upload.
const MOST_PARTS: u64 = 10_000;
/// The smallest part that is sent, in bytes, but for the last.
const SMALLEST: u64 = 8 << 20;
/// After this many parts of an object of unknown size, the parts become twice as large.
const DOUBLING: usize = 1_000;
/// The most parts in flight.
const MOST_IN_FLIGHT: u64 = 4;
/// The most bytes in flight, unless a single part is larger.
const MOST_BYTES: u64 = 128 << 20;

/// The bytes of part number `index`, counted from 0, of an object that has `bytes` bytes.
pub(super) fn part_size(index: usize, bytes: Option<u64>) -> u64 {
    match bytes {
        // Whole MiB, so that they are the same after a resume and easy to read.
        Some(bytes) => bytes.div_ceil(MOST_PARTS).next_multiple_of(1 << 20).max(SMALLEST),
        None => SMALLEST << (index / DOUBLING).min(9),
    }
}

/// How many parts of this size may be in flight.
pub(super) fn in_flight(part: u64) -> usize {
    usize::try_from((MOST_BYTES / part.max(1)).clamp(1, MOST_IN_FLIGHT)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_object_needs_more_parts_than_s3_takes() {
        for bytes in [0, 1, 8 << 20, 80 << 30, (80 << 30) + 1, 5 << 40, 48 << 40] {
            let part = part_size(0, Some(bytes));
            assert!(bytes.div_ceil(part) <= MOST_PARTS && part >= SMALLEST, "{bytes}");
        }
        assert_eq!(part_size(0, Some(80 << 30)), 9 << 20);
        let all: u64 = (0..10_000).map(|index| part_size(index, None)).sum();
        assert!(all >= 5 << 40, "{all} bytes of unknown size");
    }

    #[test]
    fn few_large_parts_are_in_flight() {
        assert_eq!([8 << 20, 32 << 20, 64 << 20, 1 << 30].map(in_flight), [4, 4, 2, 1]);
    }
}
