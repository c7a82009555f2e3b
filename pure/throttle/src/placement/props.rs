//! Packets of a connection that stays to be delayed get out in the order in which they came in.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;

proptest! {
    /// Each interval begins with new delays of two leaves. A packet comes at each of its instants.
    #[test]
    fn no_packet_overtakes_an_earlier_one(
        steps in prop::collection::vec((0u64..5, 0u64..5, 1u64..200), 1..60),
    ) {
        let connection = Connection {
            local: SocketAddr::from(([10, 0, 0, 1], 3260)),
            peer: SocketAddr::from(([10, 0, 0, 11], 40_000)),
        };
        let ids = [LeafId(1), LeafId(2)];
        let eligible = [(connection, ids.into())].into();
        let mut leaves: BTreeMap<_, _> = ids.map(|leaf| (leaf, LeafState::IDLE)).into();
        let mut placement = Placement::default();
        placement.set_eligible(eligible);
        // When the last packet of each leaf gets out: a leaf is a queue, as netem with a rate is.
        let mut out: BTreeMap<LeafId, u64> = BTreeMap::new();
        let (mut last_out, mut now) = (0, 0);
        for (first, second, length) in steps {
            let instant = Instant::ORIGIN + Span::from_millis(now);
            for (leaf, delay) in ids.iter().zip([first, second]) {
                leaves.get_mut(leaf).expect("it is there").set_delay(instant, Span::from_millis(delay * 30));
            }
            placement.update(instant, &leaves);
            for millis in now..now + length {
                let leaf = placement.eligible.values().flatten().next().and_then(|eligible| eligible.is_in);
                let gets_out = leaf.map_or(millis, |leaf| {
                    let delay = leaves[&leaf].delay.as_micros() / 1000;
                    let last = out.entry(leaf).or_default();
                    *last = (*last).max(millis + delay);
                    *last
                });
                prop_assert!(gets_out >= last_out, "at {millis}: out at {gets_out}, an earlier one at {last_out}");
                last_out = gets_out;
            }
            now += length;
        }
    }
}
