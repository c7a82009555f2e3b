//! The static part of a gateway, and how wishes are scaled down until they fit into what there is.
//!
//! **Rounding.** Every part is rounded down, so the parts never add up to more than the whole. Example: of 10
//! requests, wishes of 12, 8 and 1 become 5, 3 and 1. There is one exception: each part is at least one unit,
//! which is a request, a thousandth of a request a second, or a byte a second. The parts that were raised to
//! one unit may exceed the whole by so much.

use crate::amounts::{Amounts, Bounds, Holding, VolumeKey};
use crate::bound::Bound;

/// Half of an equal share of `total` for each of `gateways`.
pub(crate) fn static_part(total: u32, gateways: u32) -> u32 {
    total / gateways.max(1).saturating_mul(2)
}

/// The static part of each of `gateways`, by volume: half of an equal share of the total and of each volume's
/// limits. The requests of the total are dealt to the volumes, at least one to each. While the total is being
/// probed (`None`), each volume gets one request. Each gateway gets its part of a volume's limits, whether or
/// not the others serve that volume.
pub(crate) fn fallback(
    total: Option<u32>,
    gateways: u32,
    volumes: impl Iterator<Item = (VolumeKey, Bounds)>,
) -> Holding {
    let parts = u64::from(gateways.max(1)) * 2;
    let part = |(volume, limits): (VolumeKey, Bounds)| {
        let Bounds { requests, iops, bandwidth } = limits;
        (volume, requests.part(parts), iops.part(parts), bandwidth.part(parts))
    };
    let mut dealt: Vec<_> = volumes.map(part).collect();
    // The volumes with the tightest limits come first, so that the others get what these leave.
    dealt.sort_by_key(|(_, requests, ..)| *requests);
    let mut left = total.map_or(0, |total| static_part(total, gateways));
    let mut volumes = u32::try_from(dealt.len()).unwrap_or(u32::MAX);
    let deal = |(volume, most, iops, bandwidth): (VolumeKey, Bound, Bound, Bound)| {
        let requests = most.of(left.div_ceil(volumes)).max(1);
        left = left.saturating_sub(requests);
        volumes -= 1;
        (volume, Amounts { requests, iops, bandwidth })
    };
    dealt.into_iter().map(deal).collect()
}

/// Scales requests down to fit into `available`, at least one for each. Wishes that fit stay as they are.
pub(crate) fn fit_requests<'a>(available: Bound, wishes: impl Iterator<Item = &'a mut u32>) {
    let mut wishes: Vec<_> = wishes.collect();
    let (mut sum, mut least) = (0, 0);
    for wish in &mut wishes {
        **wish = (**wish).max(1);
        sum += u64::from(**wish);
        least += 1;
    }
    let Some(available) = available.limit().filter(|available| sum > *available) else { return };
    let (spare, above_least) = (available.saturating_sub(least), (sum - least).max(1));
    for wish in wishes {
        let above = scaled(u64::from(*wish - 1), spare, above_least);
        *wish = 1 + u32::try_from(above).unwrap_or(u32::MAX - 1);
    }
}

/// Scales rates down to fit into `available`, at least one for each. Wishes that fit stay as they are.
pub(crate) fn fit_rates<'a>(available: Bound, wishes: impl Iterator<Item = &'a mut Bound>) {
    let wishes: Vec<_> = wishes.collect();
    let sum = wishes.iter().fold(Bound::AtMost(0), |sum, wish| sum.plus(**wish));
    let Some(available) = available.limit().filter(|available| sum > Bound::AtMost(*available)) else {
        return;
    };
    let count = u64::try_from(wishes.len()).unwrap_or(u64::MAX);
    for wish in wishes {
        let part = match (*wish, sum) {
            (Bound::AtMost(wish), Bound::AtMost(sum)) => Bound::AtMost(scaled(wish, available, sum)),
            (wish, _) => wish.min(Bound::AtMost(available / count)),
        };
        *wish = part.max(Bound::AtMost(1));
    }
}

/// `wish * available / sum`, rounded down; `available` is no more than `sum`.
#[allow(clippy::cast_possible_truncation)] // it is no more than `wish`
fn scaled(wish: u64, available: u64, sum: u64) -> u64 {
    (u128::from(wish) * u128::from(available) / u128::from(sum)) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use Bound::{AtMost, Unlimited};

    const LIMITED: Bounds =
        Bounds { requests: Unlimited, iops: AtMost(400_000), bandwidth: AtMost(1_000_000) };

    fn fitted<T: Clone>(
        available: Bound,
        wishes: &[T],
        fit: fn(Bound, std::slice::IterMut<'_, T>),
    ) -> Vec<T> {
        let mut wishes = wishes.to_vec();
        fit(available, wishes.iter_mut());
        wishes
    }

    fn requests(available: u64, wishes: &[u32]) -> Vec<u32> {
        fitted(AtMost(available), wishes, |a, w| fit_requests(a, w))
    }

    fn rates(available: Bound, wishes: &[Bound]) -> Vec<Bound> {
        fitted(available, wishes, |a, w| fit_rates(a, w))
    }

    #[test]
    fn half_of_an_equal_share_is_left_for_each_gateway() {
        let left = fallback(Some(160), 4, [(0, LIMITED), (1, Bounds::UNLIMITED), (2, LIMITED)].into_iter());
        let requests: Vec<_> = left.values().map(|amounts| amounts.requests).collect();
        assert_eq!(requests, [7, 7, 6]);
        assert_eq!((left[&0].iops, left[&0].bandwidth), (AtMost(50_000), AtMost(125_000)));
        assert_eq!(left[&1].iops, Unlimited);
    }

    #[test]
    fn what_a_limit_keeps_a_volume_from_is_left_to_the_others() {
        let narrow = Bounds { requests: AtMost(9), ..LIMITED };
        let left = fallback(Some(160), 4, [(0, LIMITED), (1, narrow), (2, LIMITED)].into_iter());
        assert_eq!((left[&0].requests, left[&1].requests, left[&2].requests), (10, 1, 9));
    }

    #[test]
    fn every_volume_keeps_a_request_however_small_the_share_is() {
        for total in [None, Some(4)] {
            let left = fallback(total, 2, (0..3).map(|volume| (volume, LIMITED)));
            assert!(left.values().all(|amounts| amounts.requests == 1));
        }
    }

    #[test]
    fn wishes_that_fit_stay_and_others_are_scaled_down() {
        assert_eq!(requests(20, &[12, 8]), [12, 8]);
        assert_eq!(requests(10, &[12, 8, 1]), [5, 3, 1]);
        assert_eq!(requests(2, &[12, 8, 1]), [1, 1, 1]);
        assert_eq!(rates(AtMost(9), &[AtMost(12), AtMost(6)]), [AtMost(6), AtMost(3)]);
        assert_eq!(rates(AtMost(9), &[Unlimited, AtMost(6)]), [AtMost(4), AtMost(4)]);
        assert_eq!(rates(Unlimited, &[Unlimited, AtMost(6)]), [Unlimited, AtMost(6)]);
    }

    #[test]
    fn no_wish_is_rounded_down_to_nothing() {
        assert_eq!(rates(AtMost(2), &[AtMost(100), AtMost(1)]), [AtMost(1), AtMost(1)]);
        assert_eq!(rates(AtMost(1), &[AtMost(100), Unlimited]), [AtMost(1), AtMost(1)]);
        let tiny = Bounds { iops: AtMost(3), bandwidth: AtMost(3), ..LIMITED };
        let left = fallback(Some(4), 4, [(0, tiny)].into_iter());
        assert_eq!(left[&0], Amounts { requests: 1, iops: AtMost(1), bandwidth: AtMost(1) });
    }

    fn bound() -> impl Strategy<Value = Bound> {
        prop_oneof![Just(Unlimited), any::<u64>().prop_map(AtMost), (0..1000_u64).prop_map(AtMost)]
    }

    proptest! {
        /// But for one unit for each: there is no part of a unit.
        #[test]
        fn the_parts_of_a_limit_never_add_up_to_more(
            available in prop_oneof![any::<u64>(), 0..1000_u64],
            wishes in prop::collection::vec(bound(), 1..20),
        ) {
            let parts = rates(AtMost(available), &wishes);
            let sum = parts.iter().fold(AtMost(0), |sum, part| sum.plus(*part));
            let ones = u64::try_from(parts.iter().filter(|part| **part == AtMost(1)).count()).unwrap();
            prop_assert!(sum <= AtMost(available.saturating_add(ones)), "{parts:?}");
            prop_assert!(parts.iter().zip(&wishes).all(|(part, wish)| part <= wish || *part == AtMost(1)));
        }

        #[test]
        fn requests_never_add_up_to_more_than_there_are_but_for_one_for_each(
            available in prop_oneof![any::<u64>(), 0..1000_u64],
            wishes in prop::collection::vec(prop_oneof![any::<u32>(), 0..100_u32], 0..20),
        ) {
            let parts = requests(available, &wishes);
            let sum: u64 = parts.iter().copied().map(u64::from).sum();
            let least = u64::try_from(parts.len()).unwrap();
            prop_assert!(sum <= available.max(least), "{parts:?}");
            prop_assert!(parts.iter().zip(&wishes).all(|(part, wish)| (1..=(*wish).max(1)).contains(part)));
        }

        #[test]
        fn static_parts_add_up_to_half_of_every_limit_at_most(
            gateways in 1..50_u32,
            volumes in 1..20_u64,
            limit in 1_000..u64::MAX,
            total in 2_000..u32::MAX,
        ) {
            let limits = Bounds { requests: AtMost(limit), iops: AtMost(limit), bandwidth: AtMost(limit) };
            let left = fallback(Some(total), gateways, (0..volumes).map(|volume| (volume, limits)));
            let requests: u64 = left.values().map(|amounts| u64::from(amounts.requests)).sum();
            prop_assert!(requests * u64::from(gateways) * 2 <= u64::from(total));
            for amounts in left.values() {
                for part in [AtMost(amounts.requests.into()), amounts.iops, amounts.bandwidth] {
                    let all = (0..gateways * 2).fold(AtMost(0), |sum, _| sum.plus(part));
                    prop_assert!(all <= AtMost(limit));
                }
            }
        }
    }
}
