//! The input of a target: pieces of bytes, each a message, a line or a call.
//!
//! A fuzzer that only knows bytes breaks the length of the first message, and learns nothing about the
//! messages behind it. A script keeps the pieces apart, so that a mutation of one leaves the others as they
//! were. A target also knows where one `read` ended and the next began. As bytes, each piece follows its
//! length. Every sequence of bytes is a script.

/// Pieces of bytes, in order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Script {
    /// The pieces.
    pub pieces: Vec<Vec<u8>>,
}

/// The most bytes that a script has: enough for every seed, and few enough for a mutated script to stay fast.
pub(crate) const MOST_BYTES: usize = 64 << 10;

impl Script {
    /// The script of these pieces.
    pub const fn new(pieces: Vec<Vec<u8>>) -> Self {
        Self { pieces }
    }

    /// A piece for each line, with its line end.
    pub fn of_lines(text: &str) -> Self {
        Self::new(text.split_inclusive('\n').map(|line| line.as_bytes().to_vec()).collect())
    }

    /// Reads a script. Any bytes are one.
    pub fn from_bytes(mut bytes: &[u8]) -> Self {
        let mut pieces = Vec::new();
        while let Some((length, rest)) = bytes.split_first_chunk() {
            let (piece, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
            pieces.push(piece.to_vec());
            bytes = rest;
        }
        Self { pieces }
    }

    /// Writes the script as bytes. A piece of more than 65,535 bytes becomes several pieces.
    pub fn to_bytes(&self) -> Vec<u8> {
        let longest = usize::from(u16::MAX);
        let mut bytes = Vec::with_capacity(self.length() + 2 * self.pieces.len());
        for piece in &self.pieces {
            let parts = if piece.is_empty() { vec![&piece[..]] } else { piece.chunks(longest).collect() };
            for part in parts {
                let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
                bytes.extend_from_slice(&length.to_le_bytes());
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }

    /// The number of bytes in all pieces.
    pub fn length(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    /// All pieces, one behind the other.
    pub fn joined(&self) -> Vec<u8> {
        self.pieces.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_survives_being_bytes() {
        let script = Script::new(vec![b"one".to_vec(), vec![], vec![7; 300]]);
        assert_eq!(Script::from_bytes(&script.to_bytes()), script);
        let long = Script::new(vec![vec![1; 70_000]]);
        assert_eq!(Script::from_bytes(&long.to_bytes()).joined(), long.joined());
    }

    #[test]
    fn all_bytes_are_a_script() {
        assert_eq!(Script::from_bytes(&[9]).pieces, Vec::<Vec<u8>>::new());
        assert_eq!(Script::from_bytes(&[255, 255, 1, 2]).pieces, [[1, 2]]);
    }
}
