//! Events that lie ahead, in the order of their time. Events of one instant are in the order in which they
//! were pushed.
//!
//! A binary heap alone would break ties by the chance of its layout, and the same seed would no longer give
//! the same run.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use weir_model::Instant;

/// Events that lie ahead.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    pushed: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Instant,
    number: u64,
    event: E,
}

impl<E> EventQueue<E> {
    /// A queue without events.
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), pushed: 0 }
    }

    /// `event` will happen at `at`.
    pub fn push(&mut self, at: Instant, event: E) {
        self.heap.push(Entry { at, number: self.pushed, event });
        self.pushed += 1;
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// The next event that happens at `now` or before.
    pub fn pop_due(&mut self, now: Instant) -> Option<E> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|entry| entry.event)
    }

    /// How many events lie ahead.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event lies ahead.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

/// The greatest entry is the next: earliest first, then first pushed.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_by_time_and_at_the_same_time_in_the_order_in_which_they_were_said() {
        let mut queue = EventQueue::new();
        let at = Instant::from_nanos;
        for (when, what) in [(2, 'a'), (1, 'b'), (2, 'c'), (1, 'd'), (3, 'e')] {
            queue.push(at(when), what);
        }
        let mut happened = String::new();
        while let Some(what) = queue.pop_due(at(2)) {
            happened.push(what);
        }
        assert_eq!((happened.as_str(), queue.len()), ("bdac", 1));
    }
}
