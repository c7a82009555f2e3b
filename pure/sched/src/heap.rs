//! Volumes in the order of a key that can change: an instant or a number.
//!
//! The heap of the standard library cannot change or remove an entry. Stale entries could stay in it and be
//! skipped later, but then its size would depend on the number of requests and not of volumes. This heap
//! knows the place of each volume. It has four children to a node: that halves the levels of a binary heap,
//! and the four lie in one cache line.

use weir_model::{Instant, VolumeId};

/// Children of a node.
const ARITY: usize = 4;
/// The place of a volume that is not in the heap.
const ABSENT: u32 = u32::MAX;

/// A set of volumes, each with a key; the least first, and of equal ones the lowest volume.
#[derive(Debug)]
pub(crate) struct VolumeHeap<K = Instant> {
    items: Vec<Item<K>>,
    /// By volume: its index in `items`, or [`ABSENT`].
    places: Vec<u32>,
}

/// Ordered by its fields from the top.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Item<K> {
    at: K,
    volume: VolumeId,
}

impl<K: Copy + Ord> VolumeHeap<K> {
    /// A set without volumes.
    pub(crate) const fn new() -> Self {
        Self { items: Vec::new(), places: Vec::new() }
    }

    /// The least.
    pub(crate) fn first(&self) -> Option<(K, VolumeId)> {
        self.items.first().map(|item| (item.at, item.volume))
    }

    /// How many volumes are in.
    pub(crate) const fn len(&self) -> usize {
        self.items.len()
    }

    /// The key of `volume`, if it is in the heap.
    pub(crate) fn key_of(&self, volume: VolumeId) -> Option<K> {
        self.place_of(volume).map(|place| self.items[place].at)
    }

    /// Puts `volume` in with the key `at`, or gives it that key.
    pub(crate) fn set(&mut self, volume: VolumeId, at: K) {
        let item = Item { at, volume };
        if let Some(place) = self.place_of(volume) {
            let before = self.items[place];
            if item < before {
                self.rise(place, item);
            } else if item > before {
                self.sink(place, item);
            }
        } else {
            let index = volume.0 as usize;
            if index >= self.places.len() {
                self.places.resize(index + 1, ABSENT);
            }
            self.items.push(item);
            self.rise(self.items.len() - 1, item);
        }
    }

    /// Takes `volume` out, if it is in.
    pub(crate) fn remove(&mut self, volume: VolumeId) {
        let Some(place) = self.place_of(volume) else { return };
        self.places[volume.0 as usize] = ABSENT;
        let last = self.items.pop().expect("a heap with a place has items");
        if let Some(gone) = self.items.get(place).copied() {
            if last < gone {
                self.rise(place, last);
            } else {
                self.sink(place, last);
            }
        }
    }

    fn place_of(&self, volume: VolumeId) -> Option<usize> {
        let place = *self.places.get(volume.0 as usize)?;
        (place != ABSENT).then_some(place as usize)
    }

    /// Puts `item` at `place` or above; what it passes moves down.
    fn rise(&mut self, mut place: usize, item: Item<K>) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.items[parent] <= item {
                break;
            }
            self.put(place, self.items[parent]);
            place = parent;
        }
        self.put(place, item);
    }

    /// Puts `item` at `place` or below; what it passes moves up.
    fn sink(&mut self, mut place: usize, item: Item<K>) {
        loop {
            let first = place * ARITY + 1;
            let children = first..(first + ARITY).min(self.items.len());
            let Some(least) = children.min_by_key(|child| self.items[*child]) else { break };
            if item <= self.items[least] {
                break;
            }
            self.put(place, self.items[least]);
            place = least;
        }
        self.put(place, item);
    }

    #[allow(clippy::cast_possible_truncation)] // as many items as volumes, whose numbers are u32
    fn put(&mut self, place: usize, item: Item<K>) {
        self.items[place] = item;
        self.places[item.volume.0 as usize] = place as u32;
    }
}

#[cfg(test)]
mod props {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_is_the_least_of_a_map(
            operations in prop::collection::vec((0u32..40, prop::option::of(0u64..100)), 1..400),
        ) {
            let (mut heap, mut map) = (VolumeHeap::new(), BTreeMap::new());
            for (volume, at) in operations {
                match at.map(Instant::from_nanos) {
                    Some(at) => {
                        heap.set(VolumeId(volume), at);
                        map.insert(VolumeId(volume), at);
                    }
                    None => {
                        heap.remove(VolumeId(volume));
                        map.remove(&VolumeId(volume));
                    }
                }
                prop_assert_eq!(heap.first(), map.iter().map(|(v, at)| (*at, *v)).min());
                prop_assert_eq!(heap.key_of(VolumeId(volume)), map.get(&VolumeId(volume)).copied());
                prop_assert_eq!(heap.items.len(), map.len());
            }
        }
    }
}
