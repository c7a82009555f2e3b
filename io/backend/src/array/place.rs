//! The place of a volume on an array.

use std::ops::Range;

use weir_sim::Seed;

/// The seed of an array's random draws. It is the same at each start, as a real array is the same.
pub const ARRAY_SEED: Seed = Seed(1);

/// The bytes that a volume of `size` gets on an array of `capacity`, beside the volumes that have `taken`
/// theirs: the first gap that is large enough. If there is none, the volume shares the array's end with
/// others.
///
/// Simulated time and a gateway both use this function, so that the heads travel equally far in both.
///
/// # Panics
/// If the volume is larger than the array.
pub fn array_place(taken: impl IntoIterator<Item = Range<u64>>, size: u64, capacity: u64) -> Range<u64> {
    assert!(size <= capacity, "a volume of {size} bytes on an array of {capacity}");
    let mut taken: Vec<Range<u64>> = taken.into_iter().collect();
    taken.sort_by_key(|place| place.start);
    let mut start = 0;
    for place in taken {
        if place.start.saturating_sub(start) >= size {
            break;
        }
        start = place.end.max(start);
    }
    let start = start.min(capacity - size);
    start..start + size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gap_is_taken_and_the_end_is_shared_if_there_is_none() {
        assert_eq!(array_place([], 3, 8), 0..3);
        assert_eq!(array_place([2..5, 0..2], 3, 8), 5..8);
        assert_eq!(array_place([5..7, 0..2], 3, 8), 2..5);
        assert_eq!(array_place([0..2, 2..7], 4, 8), 4..8);
        assert_eq!(array_place([0..6, 0..2], 1, 8), 6..7);
    }
}
