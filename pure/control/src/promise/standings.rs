//! The standings of several gateways, as the controller between them keeps them.

use std::collections::BTreeMap;

use weir_model::Instant;

use super::others::{LEASE, STRAIN, Standing};

/// The last standing of each gateway. `K` tells gateways apart.
///
/// What is old is not passed on as if it were new: a gateway hears all others in one message, so it cannot
/// know how old the part of each of them is.
#[derive(Clone, PartialEq, Debug)]
pub struct Standings<K> {
    last: BTreeMap<K, (Instant, Standing)>,
}

impl<K> Default for Standings<K> {
    fn default() -> Self {
        Self { last: BTreeMap::new() }
    }
}

impl<K: Ord> Standings<K> {
    /// A gateway stands so from now on.
    pub fn set(&mut self, now: Instant, gateway: K, standing: Standing) {
        self.last.insert(gateway, (now, standing.bounded()));
    }

    /// A gateway is removed: its promises do not count any more.
    pub fn remove(&mut self, gateway: &K) {
        self.last.remove(gateway);
    }

    /// How a gateway stands, as far as it is believed now; `None`: it has said nothing for two seconds.
    pub fn of(&self, now: Instant, gateway: &K) -> Option<Standing> {
        let (at, standing) = self.last.get(gateway)?;
        match () {
            () if now < *at + STRAIN => Some(*standing),
            () if now < *at + LEASE => Some(Standing { strain: None, ..*standing }),
            () => None,
        }
    }

    /// How all gateways but this one stand together.
    pub fn beside(&self, now: Instant, gateway: &K) -> Standing {
        let others = self.last.keys().filter(|other| *other != gateway);
        others.filter_map(|other| self.of(now, other)).fold(Standing::default(), Standing::and)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Strain;
    use super::*;

    #[test]
    fn a_gateway_hears_of_all_others_and_not_of_itself_or_of_gateways_that_are_removed() {
        let (mut standings, now) = (Standings::default(), Instant::ORIGIN);
        for (gateway, cuts) in [(1, 1), (2, 10), (3, 100), (2, 20)] {
            standings.set(now, gateway, Standing { cuts, ..Standing::default() });
        }
        assert_eq!([1, 2, 3, 4].map(|gateway| standings.beside(now, &gateway).cuts), [120, 101, 21, 121]);
        standings.remove(&3);
        assert_eq!(standings.beside(now, &1).cuts, 20);
    }

    #[test]
    fn a_gateway_that_falls_silent_is_not_said_to_be_strained_for_longer_than_200_ms_and_is_forgotten_in_2_s()
    {
        let strain = Strain { window: 0.9, lately: 0.9, likely: 0.9, latency: 0.01, service: 0.001 };
        let said = Standing { is_promised: true, strain: Some(strain), ..Standing::default() };
        let mut standings = Standings::default();
        standings.set(Instant::ORIGIN, 'a', said);
        let heard = |millis: u64| standings.beside(Instant::from_nanos(millis * 1_000_000), &'b');
        assert_eq!(heard(199), said);
        assert_eq!(heard(200), Standing { strain: None, ..said });
        assert_eq!(heard(1_999), heard(200));
        assert_eq!(heard(2_000), Standing::default());
    }
}
