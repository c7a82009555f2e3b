//! A number for the name of each initiator.
//!
//! Those who decide compare initiators, some ten times for each of a thousand, once a second. The names lie
//! scattered in memory, begin with the same twenty characters, and take several times as long to compare.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// An initiator. Two are the same if their numbers are.
#[derive(Clone, Debug)]
pub(crate) struct Initiator {
    number: u64,
    name: Arc<str>,
}

/// The initiators of a survey.
#[derive(Default, Debug)]
pub(crate) struct Initiators {
    by_name: BTreeMap<Arc<str>, u64>,
    /// No number is given twice: what is still known of an initiator that has left is never another's.
    next: u64,
}

impl Initiators {
    /// None yet, after those of the survey before.
    pub(crate) fn after(before: &Self) -> Self {
        Self { by_name: BTreeMap::new(), next: before.next }
    }

    /// The initiator of that name. It has the number that it had in the survey before.
    pub(crate) fn named(&mut self, name: &str, before: &Self) -> Initiator {
        if let Some((name, &number)) = self.by_name.get_key_value(name) {
            return Initiator { number, name: Arc::clone(name) };
        }
        let (name, number) = match before.by_name.get_key_value(name) {
            Some((name, &number)) => (Arc::clone(name), number),
            None => {
                self.next += 1;
                (name.into(), self.next)
            }
        };
        self.by_name.insert(Arc::clone(&name), number);
        Initiator { number, name }
    }
}

impl Initiator {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The name for people. Of a session that a target counts and does not list, no name is known.
impl fmt::Display for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.name.is_empty() { "an initiator without a usable name" } else { &self.name })
    }
}

impl PartialEq for Initiator {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Initiator {}

impl PartialOrd for Initiator {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Initiator {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_initiator_keeps_its_number_while_it_is_there_and_leaves_it_to_nobody() {
        let (nobody, mut first) = (Initiators::default(), Initiators::default());
        let [a, b] = ["a", "b"].map(|name| first.named(name, &nobody));
        assert_eq!(first.named("a", &nobody), a);
        assert_ne!(a, b);

        let mut second = Initiators::after(&first);
        let c = second.named("c", &first);
        assert_eq!(second.named("b", &first), b);
        assert!(c != a && c != b);

        let mut third = Initiators::after(&second);
        let again = third.named("a", &second);
        assert!(again != a && again != b && again != c, "it was away");
    }
}
