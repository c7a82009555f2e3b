//! First-in-first-out queues with removal from the middle, for entries that are known by a dense slot number.
//!
//! With a `VecDeque` for each volume, an abort would cost as much as the queue is long, and a queue that was
//! once long would keep its memory. Here all queues share one table, indexed by slot. A queue ([`Chain`]) is
//! two numbers, and an entry knows its neighbours. Nothing is allocated once the table has grown to the
//! highest slot in use.

/// No slot: the end of a chain.
const NONE: u32 = u32::MAX;

/// The entries of any number of chains, at most one for each slot.
#[derive(Debug)]
pub struct SlotChains<T> {
    values: Vec<Option<T>>,
    /// By slot. Apart from the values, so that a change of an entry's neighbours does not fetch their values.
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

/// One queue through a [`SlotChains`]: its two ends. A chain must always be used with the same table.
#[derive(Debug)]
pub struct Chain {
    first: u32,
    last: u32,
}

impl Chain {
    /// A chain without entries.
    pub const EMPTY: Self = Self { first: NONE, last: NONE };

    /// Whether it has no entries.
    pub const fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

impl<T> SlotChains<T> {
    /// A table without entries.
    pub const fn new() -> Self {
        Self { values: Vec::new(), links: Vec::new() }
    }

    /// Puts `value` into `slot`, at the end of `chain`.
    ///
    /// # Panics
    /// If the slot is taken.
    pub fn push_back(&mut self, chain: &mut Chain, slot: u32, value: T) {
        let index = slot as usize;
        if index >= self.values.len() {
            self.values.resize_with(index + 1, || None);
            self.links.resize(index + 1, Link { previous: NONE, next: NONE });
        }
        let place = &mut self.values[index];
        assert!(place.is_none(), "slot {slot} is taken");
        *place = Some(value);
        self.links[index] = Link { previous: chain.last, next: NONE };
        match chain.last {
            NONE => chain.first = slot,
            last => self.links[last as usize].next = slot,
        }
        chain.last = slot;
    }

    /// Takes the entry of `slot` out of `chain`, wherever in the chain it stands. It must have been put into
    /// this chain.
    ///
    /// # Panics
    /// If the slot is empty.
    pub fn remove(&mut self, chain: &mut Chain, slot: u32) -> T {
        let value = self.values[slot as usize].take().expect("only a slot in use is removed");
        let Link { previous, next } = self.links[slot as usize];
        match previous {
            NONE => chain.first = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NONE => chain.last = previous,
            next => self.links[next as usize].previous = previous,
        }
        value
    }

    /// Takes the first entry of `chain` out.
    pub fn pop_front(&mut self, chain: &mut Chain) -> Option<T> {
        (!chain.is_empty()).then(|| self.remove(chain, chain.first))
    }

    /// The first entry of `chain`.
    pub fn front(&self, chain: &Chain) -> Option<&T> {
        self.get(chain.first)
    }

    /// The entries of `chain`, the first first.
    pub fn of<'a>(&'a self, chain: &Chain) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let slot = |slot: u32| (slot != NONE).then_some(slot);
        std::iter::successors(slot(chain.first), move |before| slot(self.links[*before as usize].next))
            .filter_map(|slot| self.get(slot))
    }

    /// The entry of `slot`, whatever its chain.
    pub fn get(&self, slot: u32) -> Option<&T> {
        self.values.get(slot as usize)?.as_ref()
    }

    /// The entry of `slot`, to change it in place.
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.values.get_mut(slot as usize)?.as_mut()
    }

    /// All entries in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }
}

impl<T> Default for SlotChains<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(table: &mut SlotChains<u32>, chain: &mut Chain) -> Vec<u32> {
        std::iter::from_fn(|| table.pop_front(chain)).collect()
    }

    #[test]
    fn entries_leave_in_the_order_in_which_they_came_whatever_their_slots() {
        let (mut table, mut chain) = (SlotChains::new(), Chain::EMPTY);
        for slot in [5, 0, 3] {
            table.push_back(&mut chain, slot, slot * 10);
        }
        assert_eq!(table.front(&chain), Some(&50));
        assert_eq!(drain(&mut table, &mut chain), [50, 0, 30]);
        assert!(chain.is_empty());
    }

    #[test]
    fn an_entry_can_be_removed_at_either_end_and_in_the_middle() {
        for gone in 0..3 {
            let (mut table, mut chain) = (SlotChains::new(), Chain::EMPTY);
            for slot in 0..3 {
                table.push_back(&mut chain, slot, slot);
            }
            assert_eq!(table.remove(&mut chain, gone), gone);
            table.push_back(&mut chain, 9, 9);
            let expected: Vec<u32> = (0..3).filter(|slot| *slot != gone).chain([9]).collect();
            assert_eq!(drain(&mut table, &mut chain), expected);
        }
    }

    #[test]
    fn chains_through_one_table_do_not_mix() {
        let (mut table, mut odd, mut even) = (SlotChains::new(), Chain::EMPTY, Chain::EMPTY);
        for slot in 0..10 {
            table.push_back(if slot % 2 == 0 { &mut even } else { &mut odd }, slot, slot);
        }
        assert_eq!(table.of(&odd).copied().collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
        assert_eq!(drain(&mut table, &mut odd), [1, 3, 5, 7, 9]);
        assert_eq!(table.of(&odd).next(), None);
        assert_eq!(table.iter().copied().collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
    }

    #[test]
    #[should_panic(expected = "slot 4 is taken")]
    fn a_slot_holds_one_entry_at_a_time() {
        let (mut table, mut chain) = (SlotChains::new(), Chain::EMPTY);
        table.push_back(&mut chain, 4, ());
        table.push_back(&mut chain, 4, ());
    }
}
