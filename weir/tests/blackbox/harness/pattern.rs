//! Data that a test can make again for a comparison.

/// `length` bytes that look random, the same for the same seed (SplitMix64).
pub(crate) fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        out.extend_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    out.truncate(length);
    out
}

/// A block of 4 KiB with its number and its stamp in every 16 bytes.
pub(crate) fn block(number: u64, stamp: u64) -> Vec<u8> {
    let mut piece = number.to_le_bytes().to_vec();
    piece.extend_from_slice(&stamp.to_le_bytes());
    piece.repeat(4096 / 16)
}
