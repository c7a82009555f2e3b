//! A shard's part of the memory that requests may hold, handed out first come, first served.
//!
//! Every request is charged for its data and for what the gateway notes about it. When the shared part runs out,
//! a connection still has a small reserve of its own, so that clients which leave their replies unread can slow
//! others down to one small request at a time, but never stop them.

use std::collections::VecDeque;

/// Bytes charged for a request on top of its data: its entries in the tables of gateway and engine.
pub(crate) const REQUEST_OVERHEAD: u64 = 512;

/// Bytes that a connection may hold beyond the shared budget: a request of 64 KiB, or some smaller ones.
pub(crate) const RESERVE: u64 = 64 * 1024 + REQUEST_OVERHEAD;

/// Where a request's bytes were taken from; given back as it was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Charge {
    shared: u64,
    reserve: u64,
}

impl Charge {
    /// The part taken from the reserve of the connection.
    pub(crate) fn reserve(self) -> u64 {
        self.reserve
    }

    /// The bytes held.
    pub(crate) fn bytes(self) -> u64 {
        self.shared + self.reserve
    }
}

/// What is left of a shard's bytes, and who waits for them.
#[derive(Debug)]
pub(crate) struct Budget {
    total: u64,
    used: u64,
    /// Bytes that were read and wait to be let in.
    held: u64,
    /// Keys of connections in the order in which they were refused.
    waiting: VecDeque<usize>,
}

impl Budget {
    /// A budget of `total` bytes.
    pub(crate) fn new(total: u64) -> Self {
        Self { total, used: 0, held: 0, waiting: VecDeque::new() }
    }

    /// Changes the size; what is handed out already stays so.
    pub(crate) fn set_total(&mut self, total: u64) {
        self.total = total;
    }

    /// Takes `bytes` for the connection `key`, which holds `reserve_used` bytes of its reserve; `None` if it has to
    /// wait, in which case it is queued and [`Budget::poll_grantable`] will name it.
    pub(crate) fn take(&mut self, key: usize, bytes: u64, reserve_used: u64) -> Option<Charge> {
        let its_turn = self.waiting.front().is_none_or(|&first| first == key);
        // What waits to be let in is no reason to let nothing in: with nothing used, the first always fits.
        if its_turn && (self.used == 0 || self.used + self.held + bytes <= self.total) {
            self.forget(key);
            self.used += bytes;
            return Some(Charge { shared: bytes, reserve: 0 });
        }
        if reserve_used + bytes <= RESERVE {
            self.forget(key);
            return Some(Charge { shared: 0, reserve: bytes });
        }
        if !self.waiting.contains(&key) {
            self.waiting.push_back(key);
        }
        None
    }

    /// Counts `bytes` that are held already, whatever is left.
    pub(crate) fn hold(&mut self, bytes: usize) {
        self.held += bytes as u64;
    }

    /// Counts them no more.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.held = self.held.checked_sub(bytes as u64).expect("more bytes released than were held");
    }

    /// Whether there is anything left to give.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.used + self.held >= self.total
    }

    /// Gives back what a request held; returns how much of it belongs to the connection's reserve.
    pub(crate) fn give_back(&mut self, charge: Charge) -> u64 {
        self.used = self.used.checked_sub(charge.shared).expect("more bytes given back than were taken");
        charge.reserve
    }

    /// The connection that has waited longest, if there is anything left to give; it should try again.
    pub(crate) fn poll_grantable(&self) -> Option<usize> {
        self.waiting.front().copied().filter(|_| self.used == 0 || !self.is_exhausted())
    }

    /// The connection `key` waits no more.
    pub(crate) fn forget(&mut self, key: usize) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|&waiting| waiting != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_waits_and_is_served_in_order() {
        let mut budget = Budget::new(1_000_000);
        let first = budget.take(1, 900_000, 0).unwrap();
        assert_eq!(budget.take(2, 800_000, 0), None);
        assert_eq!(budget.take(3, 90_000, 0), None, "it fits, but 2 came first");
        budget.give_back(first);
        assert_eq!(budget.poll_grantable(), Some(2));
        assert!(budget.take(2, 800_000, 0).is_some());
        assert_eq!(budget.poll_grantable(), Some(3));
        assert!(budget.take(3, 90_000, 0).is_some());
        assert_eq!(budget.poll_grantable(), None);
    }

    #[test]
    fn a_small_request_passes_on_the_reserve_of_its_connection_when_others_hold_everything() {
        let mut budget = Budget::new(1_000_000);
        let _stuck = budget.take(1, 1_000_000, 0).unwrap();
        let charge = budget.take(2, 4_096, 0).unwrap();
        assert_eq!(charge.bytes(), 4_096);
        assert_eq!(budget.take(2, RESERVE, 4_096), None, "the reserve is used up");
        assert_eq!(budget.give_back(charge), 4_096);
    }

    #[test]
    fn what_was_read_and_waits_counts_but_cannot_lock_out_the_one_whose_turn_it_is() {
        let mut budget = Budget::new(1_000_000);
        let used = budget.take(1, 400_000, 0).unwrap();
        budget.hold(500_000);
        assert_eq!(budget.take(2, 600_000, 0), None);
        assert!(!budget.is_exhausted());
        budget.hold(500_000);
        assert!(budget.is_exhausted());
        assert_eq!(budget.poll_grantable(), None);
        budget.give_back(used);
        assert_eq!(budget.poll_grantable(), Some(2));
        assert!(budget.take(2, 600_000, 0).is_some());
    }

    #[test]
    fn a_connection_that_left_is_not_waited_for() {
        let mut budget = Budget::new(100_000);
        let all = budget.take(1, 100_000, 0).unwrap();
        assert_eq!(budget.take(2, 90_000, 0), None);
        assert_eq!(budget.take(3, 90_000, 0), None);
        budget.forget(2);
        budget.give_back(all);
        assert_eq!(budget.poll_grantable(), Some(3));
    }
}
