//! Takes numbers and choices from a piece. Behind its end all bytes are zero, so that every piece is a call.

/// The part of a piece that was not taken yet.
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) const fn new(piece: &'a [u8]) -> Self {
        Self(piece)
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.array())
    }

    pub(super) fn flag(&mut self) -> bool {
        self.u8() & 1 == 1
    }

    /// One of `choices`.
    pub(super) fn one_of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[usize::from(self.u8()) % N]
    }

    /// All that is left.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        let (front, rest) = self.0.split_at(N.min(self.0.len()));
        taken[..front.len()].copy_from_slice(front);
        self.0 = rest;
        taken
    }
}
