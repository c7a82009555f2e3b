//! What is always left for a gateway, and how wishes are made to fit into what is there.

use crate::amounts::{Amounts, Holding, VolumeKey};

/// Of a total, half of an equal share of `gateways`.
pub(crate) fn static_part(total: u32, gateways: u32) -> u32 {
    total / gateways.max(1).saturating_mul(2)
}

/// The part that is always left for each of `gateways`: half of an equal share. Of the total it is dealt to the volumes,
/// one request for each at least; without a total (it is being probed) that is all. Of a volume's limits it is half
/// of an equal share for each gateway, whichever volumes that has.
pub(crate) fn fallback(
    total: Option<u32>,
    gateways: u32,
    volumes: impl Iterator<Item = (VolumeKey, Amounts)>,
) -> Holding {
    let parts = f64::from(gateways.max(1)) * 2.0;
    let part = |(volume, limits): (VolumeKey, Amounts)| {
        let whole = |limit: f64| (limit / parts).floor().max(1.0);
        let (requests, bandwidth) = (whole(limits.requests), whole(limits.bandwidth));
        (volume, Amounts { requests, iops: limits.iops / parts, bandwidth })
    };
    let mut dealt: Vec<_> = volumes.map(part).collect();
    // Those that may have least first, so that what they leave goes to the others.
    dealt.sort_by(|(_, a), (_, b)| a.requests.total_cmp(&b.requests));
    let mut left = f64::from(total.map_or(0, |total| static_part(total, gateways)));
    let mut volumes = dealt.iter().fold(0.0, |count, _| count + 1.0);
    for (_, amounts) in &mut dealt {
        amounts.requests = amounts.requests.min((left / volumes).ceil()).max(1.0);
        left = (left - amounts.requests).max(0.0);
        volumes -= 1.0;
    }
    dealt.into_iter().collect()
}

/// Scales requests down to fit into `available`, at least one for each; what fits stays as it is.
pub(crate) fn fit_requests<'a>(available: f64, wishes: impl Iterator<Item = &'a mut f64>) {
    let mut wishes: Vec<_> = wishes.collect();
    let (mut sum, mut least) = (0.0, 0.0);
    for wish in &mut wishes {
        **wish = wish.floor().max(1.0);
        sum += **wish;
        least += 1.0;
    }
    if sum <= available {
        return;
    }
    let scale = ((available - least) / (sum - least)).max(0.0);
    for wish in wishes {
        *wish = 1.0 + ((*wish - 1.0) * scale).floor();
    }
}

/// Scales rates down to fit into `available`; what fits stays as it is.
pub(crate) fn fit_rates<'a>(available: f64, wishes: impl Iterator<Item = &'a mut f64>) {
    let wishes: Vec<_> = wishes.collect();
    let count = wishes.iter().fold(0.0, |count, _| count + 1.0);
    let sum: f64 = wishes.iter().map(|wish| **wish).sum();
    if sum <= available {
        return;
    }
    for wish in wishes {
        *wish = if sum.is_finite() { *wish * (available / sum) } else { available / count };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITED: Amounts = Amounts { requests: f64::INFINITY, iops: 400.0, bandwidth: 1e6 };

    fn fitted(available: f64, wishes: &[f64], fit: fn(f64, std::slice::IterMut<'_, f64>)) -> Vec<f64> {
        let mut wishes = wishes.to_vec();
        fit(available, wishes.iter_mut());
        wishes
    }

    #[test]
    fn half_of_an_equal_share_is_left_for_each_gateway() {
        let left = fallback(Some(160), 4, [(0, LIMITED), (1, Amounts::UNLIMITED), (2, LIMITED)].into_iter());
        let requests: Vec<_> = left.values().map(|amounts| amounts.requests).collect();
        assert_eq!(requests, [7.0, 7.0, 6.0]);
        assert_eq!((left[&0].iops, left[&0].bandwidth), (50.0, 125_000.0));
        assert!(left[&1].iops.is_infinite());
    }

    #[test]
    fn what_a_limit_keeps_a_volume_from_is_left_to_the_others() {
        let narrow = Amounts { requests: 9.0, ..LIMITED };
        let left = fallback(Some(160), 4, [(0, LIMITED), (1, narrow), (2, LIMITED)].into_iter());
        assert_eq!((left[&0].requests, left[&1].requests, left[&2].requests), (10.0, 1.0, 9.0));
    }

    #[test]
    fn every_volume_keeps_a_request_however_small_the_share_is() {
        for total in [None, Some(4)] {
            let left = fallback(total, 2, (0..3).map(|volume| (volume, LIMITED)));
            assert!(left.values().all(|amounts| amounts.requests.total_cmp(&1.0).is_eq()));
        }
    }

    #[test]
    fn wishes_that_fit_stay_and_others_are_scaled_down() {
        let requests = |available, wishes: &[f64]| fitted(available, wishes, |a, w| fit_requests(a, w));
        assert_eq!(requests(20.0, &[12.0, 8.0]), [12.0, 8.0]);
        assert_eq!(requests(10.0, &[12.0, 8.0, 1.0]), [5.0, 3.0, 1.0]);
        assert_eq!(requests(2.0, &[12.0, 8.0, 1.0]), [1.0, 1.0, 1.0]);
        let rates = |available, wishes: &[f64]| fitted(available, wishes, |a, w| fit_rates(a, w));
        assert_eq!(rates(9.0, &[12.0, 6.0]), [6.0, 3.0]);
        assert_eq!(rates(9.0, &[f64::INFINITY, 6.0]), [4.5, 4.5]);
        assert_eq!(rates(f64::INFINITY, &[f64::INFINITY, 6.0]), [f64::INFINITY, 6.0]);
    }
}
