//! Time that was charged, by whom it was charged to: at most [`NAMED`] names, and the rest together.
//!
//! A pool may have thousands of volumes, and each of them may be charged something. So only the largest are
//! kept by name. A new name takes the place of the smallest one, if more is charged to it at once. What was
//! charged to the smallest one then counts to the others. Nothing is lost: the sum is exact.

use std::collections::BTreeMap;

use weir_model::Span;

use super::{Charged, Whom, add_charged};

/// How many are kept by name.
const NAMED: usize = 12;

/// To whom time is charged. A volume has a number that no other volume ever has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Key {
    Volume(u64),
    OtherGateway,
    Driver,
    Nobody,
    Others,
}

/// What was charged.
#[derive(Clone, Default, Debug)]
pub(super) struct Charges {
    named: Vec<(Key, Sum)>,
    others: Sum,
}

/// Time, and how many requests went meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Sum {
    time: Span,
    requests: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.time += other.time;
        self.requests += other.requests;
    }
}

impl Charges {
    /// Charges some time. Nothing is charged if it is none.
    pub(super) fn add(&mut self, key: Key, time: Span, requests: u64) {
        let sum = Sum { time, requests };
        if time.is_zero() {
            return;
        }
        if key == Key::Others {
            return self.others.add(sum);
        }
        if let Some((_, known)) = self.named.iter_mut().find(|(known, _)| *known == key) {
            return known.add(sum);
        }
        if self.named.len() < NAMED {
            return self.named.push((key, sum));
        }
        let smallest = self.named.iter_mut().min_by_key(|(_, known)| known.time);
        let forgotten = match smallest {
            Some(smallest) if smallest.1.time < time => std::mem::replace(smallest, (key, sum)).1,
            _ => sum,
        };
        self.others.add(forgotten);
    }

    /// Gives back the memory that it does not need.
    pub(super) fn shrink(&mut self) {
        self.named.shrink_to_fit();
    }

    /// How much memory the names take.
    #[cfg(test)]
    pub(super) const fn bytes(&self) -> usize {
        self.named.capacity() * size_of::<(Key, Sum)>()
    }

    /// Adds what was charged elsewhere.
    pub(super) fn add_all(&mut self, other: &Self) {
        // Summed up first, so that no name is dropped for the order in which they come.
        let mut all: BTreeMap<Key, Sum> = BTreeMap::new();
        for (key, sum) in self.named.iter().chain(&other.named) {
            all.entry(*key).or_default().add(*sum);
        }
        self.others.add(other.others);
        self.named = all.into_iter().collect();
    }

    /// The charges by name, most first.
    pub(super) fn named(&self, whom: impl Fn(Key) -> Whom) -> Vec<Charged> {
        let others = (!self.others.time.is_zero()).then_some((Key::Others, self.others));
        let all = self.named.iter().copied().chain(others);
        let charged = |(key, Sum { time, requests })| Charged { whom: whom(key), time, requests };
        let mut charges = Vec::new();
        add_charged(&mut charges, &all.map(charged).collect::<Vec<_>>());
        charges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    fn of(key: Key) -> Whom {
        match key {
            Key::Volume(serial) => Whom::Volume(weir_model::VolumeId(u32::try_from(serial).unwrap())),
            Key::OtherGateway => Whom::OtherGateway,
            Key::Driver => Whom::Driver,
            Key::Nobody => Whom::Nobody,
            Key::Others => Whom::Others,
        }
    }

    #[test]
    fn a_thousand_names_take_the_room_of_twelve_and_nothing_charged_is_lost() {
        let mut charges = Charges::default();
        for serial in 0..1_000 {
            charges.add(Key::Volume(serial), ms(1 + serial % 97), 1);
        }
        charges.add(Key::Volume(5_000), ms(500), 3);
        assert_eq!(charges.named.len(), NAMED);
        let named = charges.named(of);
        let sum: u64 = named.iter().map(|charged| charged.time.as_nanos()).sum();
        let expected: u64 = (0..1_000).map(|serial| 1 + serial % 97).sum();
        assert_eq!(sum, ms(expected + 500).as_nanos());
        assert_eq!(named.iter().map(|charged| charged.requests).sum::<u64>(), 1_003);
        assert!(named.iter().any(|charged| charged.whom == of(Key::Volume(5_000))));
        assert_eq!(named[0].whom, Whom::Others);
    }

    #[test]
    fn charges_of_several_slices_add_up_by_name() {
        let (mut one, mut other) = (Charges::default(), Charges::default());
        one.add(Key::Volume(1), ms(3), 1);
        other.add(Key::Volume(2), ms(4), 2);
        other.add(Key::Volume(1), ms(5), 4);
        other.add(Key::Nobody, Span::ZERO, 9);
        one.add_all(&other);
        let charged = |serial, millis, requests| {
            let whom = of(Key::Volume(serial));
            Charged { whom, time: ms(millis), requests }
        };
        assert_eq!(one.named(of), [charged(1, 8, 5), charged(2, 4, 2)]);
    }
}
