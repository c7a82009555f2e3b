//! Numbers for names: a name is looked up once, and sums compare only its number. A number is never used
//! again for another name.
//!
//! Gateways send names, and may invent them. So the controller forgets a name that it needs no more.

use std::collections::BTreeMap;

/// The names that are needed, by number.
#[derive(Default, Debug)]
pub(crate) struct Names {
    keys: BTreeMap<String, u64>,
    names: BTreeMap<u64, String>,
    /// The next number.
    next: u64,
}

impl Names {
    /// The number of a name; a new number if the name is not known.
    pub(crate) fn key(&mut self, name: &str) -> u64 {
        if let Some(key) = self.keys.get(name) {
            return *key;
        }
        let key = self.next;
        self.next += 1;
        self.keys.insert(name.to_owned(), key);
        self.names.insert(key, name.to_owned());
        key
    }

    /// The number of a name that is known.
    pub(crate) fn known(&self, name: &str) -> Option<u64> {
        self.keys.get(name).copied()
    }

    /// The name of a number; `None` if it was forgotten.
    pub(crate) fn name(&self, key: u64) -> Option<&str> {
        self.names.get(&key).map(String::as_str)
    }

    /// Forgets all names but those that are needed.
    pub(crate) fn retain(&mut self, is_needed: impl Fn(u64) -> bool) {
        self.keys.retain(|_, key| is_needed(*key));
        self.names.retain(|key, _| is_needed(*key));
    }

    /// How many names are known.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
