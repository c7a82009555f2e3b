//! Mutates a script, as a careless or a malicious peer would.
//!
//! Bits flip. Messages are cut off, repeated, left out, put in another order, and mixed with those of other
//! scripts. Fields become numbers at which arithmetic goes wrong. Most results are still a sequence of
//! well-formed messages with one fault, because only such a sequence gets past the first check of a parser.

use rand::{Rng, RngExt};

use crate::script::{MOST_BYTES, Script};

/// The numbers at which arithmetic goes wrong, besides powers of two and their neighbours.
const ODD: [u64; 6] = [0, 1, u64::MAX, 1 << 63, 0x7fff_ffff_ffff_ffff, 0xffff_fff8];

/// The most pieces that a script grows to.
const MOST_PIECES: usize = 256;

/// Changes `script` in one to four ways. `others` lend it pieces; `words` are the words of its language.
pub fn mutate(script: &mut Script, others: &[Script], words: &[&[u8]], random: &mut impl Rng) {
    for _ in 0..=below(random, 4) {
        change(script, others, words, random);
    }
    script.pieces.truncate(MOST_PIECES);
    let mut left = MOST_BYTES;
    for piece in &mut script.pieces {
        piece.truncate(left);
        left -= piece.len();
    }
}

fn change(script: &mut Script, others: &[Script], words: &[&[u8]], random: &mut impl Rng) {
    let count = script.pieces.len();
    if count == 0 {
        script.pieces.push(borrowed(others, random).unwrap_or_default());
        return;
    }
    let at = below(random, count);
    match below(random, 16) {
        0..=5 => change_bytes(&mut script.pieces[at], words, random),
        6 => {
            let keep = below(random, script.pieces[at].len() + 1);
            script.pieces[at].truncate(keep);
        }
        7 => {
            let piece = script.pieces[at].clone();
            let times = 1 + below(random, if piece.len() < 256 { 20 } else { 2 });
            script.pieces.splice(at..at, std::iter::repeat_n(piece, times));
        }
        8 => drop(script.pieces.remove(at)),
        9 => script.pieces.swap(at, below(random, count)),
        10..=12 => {
            if let Some(piece) = borrowed(others, random) {
                script.pieces.insert(at, piece);
            }
        }
        13 => splice(script, at, others, random),
        14 => {
            let cut = below(random, script.pieces[at].len() + 1);
            let rest = script.pieces[at].split_off(cut);
            script.pieces.insert(at + 1, rest);
        }
        _ => {
            if at + 1 < count {
                let next = script.pieces.remove(at + 1);
                script.pieces[at].extend(next);
            }
        }
    }
}

/// Replaces the pieces from `at` on by the last pieces of another script.
fn splice(script: &mut Script, at: usize, others: &[Script], random: &mut impl Rng) {
    if others.is_empty() {
        return;
    }
    let other = &others[below(random, others.len())];
    script.pieces.truncate(at);
    let from = below(random, other.pieces.len() + 1);
    script.pieces.extend_from_slice(&other.pieces[from..]);
}

fn borrowed(others: &[Script], random: &mut impl Rng) -> Option<Vec<u8>> {
    let other = others.get(below(random, others.len().max(1)))?;
    other.pieces.get(below(random, other.pieces.len().max(1))).cloned()
}

fn change_bytes(piece: &mut Vec<u8>, words: &[&[u8]], random: &mut impl Rng) {
    let length = piece.len();
    let at = below(random, length + 1);
    match below(random, 9) {
        0 | 1 if at < length => piece[at] ^= 1 << below(random, 8),
        2 if at < length => piece[at] = random.random(),
        3 | 4 => set_field(piece, random),
        5 => {
            // Repeats a byte: eighty brackets may break a parser that one bracket does not.
            let byte = piece.get(at).copied().unwrap_or(b'[');
            piece.splice(at..at, std::iter::repeat_n(byte, 1 + below(random, 200)));
        }
        6 => nest(piece, at, random),
        7 => {
            let end = (at + 1 + below(random, 8)).min(length);
            piece.drain(at..end.max(at));
        }
        _ => {
            let word = words.get(below(random, words.len().max(1))).copied().unwrap_or(b"0");
            let end = (at + below(random, word.len() + 1)).min(length);
            piece.splice(at..end, word.iter().copied());
        }
    }
}

/// Puts the value of a line (the text behind `=`, or behind `at`) into nested brackets. Each bracket is
/// closed again, or a parser would end at the first.
fn nest(piece: &mut Vec<u8>, at: usize, random: &mut impl Rng) {
    let depth = 1 + below(random, 120);
    let end = piece.len() - usize::from(piece.ends_with(b"\n"));
    let equals = piece.iter().position(|byte| *byte == b'=').map_or(at, |equals| equals + 1);
    piece.splice(end..end, std::iter::repeat_n(b']', depth));
    let start = equals.min(end);
    piece.splice(start..start, std::iter::repeat_n(b'[', depth));
}

/// Overwrites 16, 32 or 64 bits at a random place with a number that is likely to be an edge case.
fn set_field(piece: &mut [u8], random: &mut impl Rng) {
    let width = [2, 4, 8][below(random, 3)];
    if piece.len() < width {
        return;
    }
    // Most fields of most protocols stand at even places.
    let at = below(random, (piece.len() - width) / 2 + 1) * 2;
    let number = match below(random, 4) {
        0 => ODD[below(random, ODD.len())],
        1 => 1_u64 << below(random, 64),
        2 => (1_u64 << below(random, 64)).wrapping_sub(1),
        _ => random.random_range(0..40),
    };
    let bytes = number.to_be_bytes();
    piece[at..at + width].copy_from_slice(&bytes[8 - width..]);
}

/// A number below `bound`, or zero if that is zero.
fn below(random: &mut impl Rng, bound: usize) -> usize {
    if bound == 0 { 0 } else { random.random_range(0..bound) }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    #[test]
    fn mutations_stay_within_bounds_and_are_the_same_for_the_same_seed() {
        let seed = Script::new(vec![b"hello".to_vec(), vec![0; 64], vec![]]);
        let mutated = |number| {
            let mut random = Pcg64Mcg::seed_from_u64(number);
            let mut script = seed.clone();
            for _ in 0..200 {
                mutate(&mut script, std::slice::from_ref(&seed), &[b"word"], &mut random);
                assert!(script.length() <= MOST_BYTES && script.pieces.len() <= MOST_PIECES);
            }
            script
        };
        assert_eq!(mutated(1), mutated(1));
        assert_ne!(mutated(1), mutated(2));
    }
}
