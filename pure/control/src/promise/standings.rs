//! The standings of several gateways, as the controller between them keeps them.

use std::collections::BTreeMap;

use super::others::Standing;

/// The last standing of each gateway. `K` tells gateways apart.
#[derive(Clone, PartialEq, Debug)]
pub struct Standings<K> {
    last: BTreeMap<K, Standing>,
}

impl<K> Default for Standings<K> {
    fn default() -> Self {
        Self { last: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> Standings<K> {
    /// A gateway stands so from now on.
    pub fn set(&mut self, gateway: K, standing: Standing) {
        self.last.insert(gateway, standing);
    }

    /// A gateway is gone: its promises do not count any more.
    pub fn remove(&mut self, gateway: K) {
        self.last.remove(&gateway);
    }

    /// How all gateways but this one stand together.
    pub fn beside(&self, gateway: K) -> Standing {
        let others = self.last.iter().filter(|(other, _)| **other != gateway);
        others.fold(Standing::default(), |all, (_, standing)| all.and(*standing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_hears_of_all_others_and_not_of_itself_or_of_gateways_that_are_gone() {
        let mut standings = Standings::default();
        for (gateway, cuts) in [(1, 1), (2, 10), (3, 100), (2, 20)] {
            standings.set(gateway, Standing { cuts, ..Standing::default() });
        }
        assert_eq!([1, 2, 3, 4].map(|gateway| standings.beside(gateway).cuts), [120, 101, 21, 121]);
        standings.remove(3);
        assert_eq!(standings.beside(1).cuts, 20);
    }
}
