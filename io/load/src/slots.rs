//! The outstanding requests of a connection.
//!
//! A cookie is the number of a slot in a table of fixed size and, above it, the number of times that the slot
//! was used. So a second reply to one request, or a reply to no request, differs from the reply to the slot's
//! present request. A map from cookies to requests would need two searches for each request.

use weir_model::Instant;
use weir_nbd::client::Awaited;

/// The kind of a request. Each kind has its own statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Read,
    Write,
    Flush,
}

/// A request that is outstanding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outstanding {
    pub(crate) class: Class,
    /// Its latency counts from here.
    pub(crate) since: Instant,
    /// The data that its reply must carry.
    pub(crate) awaited: Awaited,
}

/// The table of one connection.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    generation: u32,
    request: Option<Outstanding>,
}

impl Slots {
    /// A table for `depth` requests.
    pub(crate) fn new(depth: u32) -> Self {
        let slots = (0..depth).map(|_| Slot { generation: 0, request: None }).collect();
        Self { slots, free: (0..depth).rev().collect() }
    }

    /// Whether another request fits.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// How many requests are outstanding.
    pub(crate) fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Keeps `request`, and returns its cookie.
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    pub(crate) fn insert(&mut self, request: Outstanding) -> u64 {
        let index = self.free.pop().expect("the caller asked for room");
        let slot = &mut self.slots[index as usize];
        slot.request = Some(request);
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// The outstanding request with this cookie.
    #[inline]
    pub(crate) fn find(&self, cookie: u64) -> Option<&Outstanding> {
        let (index, generation) = split(cookie);
        let slot = self.slots.get(index as usize)?;
        slot.request.as_ref().filter(|_| slot.generation == generation)
    }

    /// Removes the outstanding request with this cookie.
    #[inline]
    pub(crate) fn remove(&mut self, cookie: u64) -> Option<Outstanding> {
        let request = *self.find(cookie)?;
        let (index, _) = split(cookie);
        let slot = &mut self.slots[index as usize];
        slot.request = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        Some(request)
    }
}

#[allow(clippy::cast_possible_truncation)] // the two halves, each on its own
const fn split(cookie: u64) -> (u32, u32) {
    (cookie as u32, (cookie >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(data: u32) -> Outstanding {
        Outstanding { class: Class::Read, since: Instant::ORIGIN, awaited: Awaited { offset: 0, data } }
    }

    #[test]
    fn a_cookie_is_good_for_one_answer() {
        let mut slots = Slots::new(1);
        let first = slots.insert(request(1));
        assert!(!slots.has_room());
        assert_eq!(slots.remove(first), Some(request(1)));
        assert_eq!(slots.remove(first), None);
        let second = slots.insert(request(2));
        assert_ne!(first, second);
        assert_eq!(slots.find(first), None);
        assert_eq!(slots.find(second), Some(&request(2)));
        assert_eq!(slots.outstanding(), 1);
    }

    #[test]
    fn cookies_that_were_never_given_are_unknown() {
        let slots = Slots::new(4);
        assert!([0, 3, 4, 1 << 32, u64::MAX].iter().all(|cookie| slots.find(*cookie).is_none()));
    }
}
