//! Numbers for names, so that a name is compared once and not in every sum. A number is never used for another name.

use std::collections::BTreeMap;

/// The names that were seen, by number.
#[derive(Default, Debug)]
pub(crate) struct Names {
    keys: BTreeMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    /// The number of a name, a new one if it was never seen.
    pub(crate) fn key(&mut self, name: &str) -> u32 {
        if let Some(key) = self.keys.get(name) {
            return *key;
        }
        let key = u32::try_from(self.names.len()).expect("fewer names than bytes in memory");
        self.keys.insert(name.to_owned(), key);
        self.names.push(name.to_owned());
        key
    }

    /// The number of a name that was seen.
    pub(crate) fn known(&self, name: &str) -> Option<u32> {
        self.keys.get(name).copied()
    }

    /// The name of a number.
    pub(crate) fn name(&self, key: u32) -> &str {
        &self.names[key as usize]
    }
}
