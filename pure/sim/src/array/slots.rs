//! Numbered places for entries that are under way. Places are used again, so a request needs no allocation.
//!
//! There are two differences from the `slab` crate. A place keeps its value when it is given back, so that
//! the vectors in it keep their memory. And a place's number has 32 bits, like the tags of disks.

use std::ops::{Index, IndexMut};

/// Places, each with a value. The code that takes a place fills it.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Slots<T> {
    pub(crate) const fn new() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }

    /// A free place, with the value that its last user left there.
    pub(crate) fn take(&mut self) -> u32 {
        if let Some(place) = self.free.pop() {
            return place;
        }
        self.items.push(T::default());
        u32::try_from(self.items.len() - 1).expect("fewer than 2^32 requests are under way")
    }

    /// Frees `place`.
    pub(crate) fn give_back(&mut self, place: u32) {
        self.free.push(place);
    }

    /// How many places there are, used or not. Each place's number is below it.
    pub(crate) fn places(&self) -> u32 {
        u32::try_from(self.items.len()).unwrap_or(u32::MAX)
    }
}

impl<T> Index<u32> for Slots<T> {
    type Output = T;
    fn index(&self, place: u32) -> &T {
        &self.items[place as usize]
    }
}

impl<T> IndexMut<u32> for Slots<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.items[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_given_back_is_used_again_with_its_memory() {
        let mut slots = Slots::<Vec<u8>>::new();
        let (first, second) = (slots.take(), slots.take());
        slots[first].reserve(100);
        slots.give_back(first);
        assert_eq!((slots.take(), second, slots.places()), (first, 1, 2));
        assert!(slots[first].capacity() >= 100);
    }
}
