//! The share: what a transfer of a node has, as a sign of whether the node is full.
//!
//! It is the mean over the transfers of the node without the slow ones. A single slow client would lower the
//! mean, and seem to show that the node is full. What the transfer in the middle has would leave it out, too;
//! but clients count in pieces. Example: transfers of 21 MB/s that count pieces of 8 MB have 16 or 24 MB in a
//! second. The one in the middle has 24 most of the time, as it has with 26 MB/s.

use crate::pace::Paced;

/// A transfer that has had less than this part of what the one in the middle has had, on average since its
/// start, is slow.
const SLOW: f64 = 0.5;

/// The share of a transfer in the last sample, in bytes a second; zero without transfers.
#[allow(clippy::cast_precision_loss)] // a number of transfers
pub(crate) fn share(transfers: &[Paced]) -> f64 {
    let mut averages: Vec<_> = transfers.iter().map(|one| one.average).collect();
    averages.sort_by(f64::total_cmp);
    let Some(middle) = averages.get(averages.len() / 2) else { return 0.0 };
    let had = transfers.iter().filter(|one| one.average >= SLOW * middle).map(|one| one.had);
    let (sum, count) = had.fold((0.0, 0), |(sum, count), had| (sum + had, count + 1));
    sum / f64::from(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(had: f64, average: f64) -> Paced {
        Paced { had, average, needs: 0.0, is_behind: false }
    }

    #[test]
    fn the_share_is_the_mean_without_clients_that_have_always_been_slow() {
        let is = |transfers: &[Paced], expected: f64| {
            let found = share(transfers);
            assert!((found - expected).abs() < 1e-9, "found {found} instead of {expected}");
        };
        is(&[], 0.0);
        is(&[transfer(2.0, 2.0)], 2.0); // one alone is the one in the middle
        let three = [transfer(16.0, 21.0), transfer(24.0, 20.0), transfer(24.0, 22.0)];
        is(&three, 64.0 / 3.0);
        let with_a_slow_one = [three.as_slice(), &[transfer(8.0, 2.0)]].concat();
        is(&with_a_slow_one, 64.0 / 3.0);
        let with_one_that_stands_still_now = [three.as_slice(), &[transfer(0.0, 21.0)]].concat();
        is(&with_one_that_stands_still_now, 16.0);
    }
}
