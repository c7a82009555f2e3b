//! Numbered places for what is under way, used again and again: no allocation for a request.
//!
//! Unlike in the `slab` crate, a place keeps its value when it is given back, so that the vectors in it keep
//! their memory; and places are known by 32 bits, as the tags of disks are.

use std::ops::{Index, IndexMut};

/// Places, each with a value; who takes one fills it.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Slots<T> {
    pub(crate) const fn new() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }

    /// A place that nobody has, with what its last user left there.
    pub(crate) fn take(&mut self) -> u32 {
        if let Some(place) = self.free.pop() {
            return place;
        }
        self.items.push(T::default());
        u32::try_from(self.items.len() - 1).expect("fewer than 2^32 requests are under way")
    }

    /// Nobody uses `place` any more.
    pub(crate) fn give_back(&mut self, place: u32) {
        self.free.push(place);
    }

    /// How many places there are, used or not: each number is below it.
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
