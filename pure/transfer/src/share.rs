//! The share: what a transfer of a node has, as a sign of whether the node is full.
//!
//! It is a mean over the transfers of the node, and not what the one in the middle has. Clients count in
//! pieces. Example: transfers of 21 MB/s that count pieces of 8 MB have 16 or 24 MB in a second. The one in
//! the middle has 24 most of the time, as it has with 26 MB/s.
//!
//! A mean is swayed by single transfers, so these do not count, or not in full:
//!
//! - **A slow one** ([`SLOW`]): its client would seem to show that the node is full. What it had of late
//!   decides, so one that was fast and stands still is slow some seconds later.
//! - **One that has just begun**, or has moved all its bytes and only has to end.
//! - **A sudden one** counts with twice what the one in the middle has ([`MOST`]). A client may tell of many
//!   bytes at once.

/// A transfer that had less than this part of what the one in the middle had of late is slow.
const SLOW: f64 = 0.5;
/// A transfer counts with at most so many times what the one in the middle had of late.
const MOST: f64 = 2.0;
/// The least weight of a sample in what a transfer had of late.
const NEWEST: f64 = 0.1;

/// What a transfer had of late, in bytes a second: a mean in which the last ten samples count most.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Lately {
    mean: f64,
    samples: u32,
}

/// A transfer in a sample. Rates are in bytes a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Taken {
    /// What it had in this sample.
    pub(crate) had: f64,
    /// What it had of late.
    pub(crate) lately: f64,
}

impl Lately {
    /// What the transfer had in one more sample. Returns what it had of late.
    pub(crate) fn push(&mut self, had: f64) -> f64 {
        self.samples = self.samples.saturating_add(1);
        self.mean += NEWEST.max(1.0 / f64::from(self.samples)) * (had - self.mean);
        self.mean
    }
}

/// The share of a transfer in a sample, in bytes a second; zero without transfers that count.
pub(crate) fn share(transfers: &[Taken]) -> f64 {
    let mut lately: Vec<_> = transfers.iter().map(|one| one.lately).collect();
    lately.sort_by(f64::total_cmp);
    let Some(middle) = lately.get(lately.len() / 2) else { return 0.0 };
    let had = transfers.iter().filter(|one| one.lately >= SLOW * middle).map(|one| one.had);
    let (sum, count) = had.fold((0.0, 0), |(sum, count), had| (sum + had.min(MOST * middle), count + 1));
    sum / f64::from(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(had: f64, lately: f64) -> Taken {
        Taken { had, lately }
    }

    fn is(transfers: &[Taken], expected: f64) {
        let found = share(transfers);
        assert!((found - expected).abs() < 1e-9, "found {found} instead of {expected}");
    }

    #[test]
    fn the_share_is_a_mean_without_those_that_were_slow_of_late() {
        is(&[], 0.0);
        is(&[taken(2.0, 2.0)], 2.0);
        is(&[taken(0.0, 0.0), taken(0.0, 0.0)], 0.0);
        is(&[taken(26.0, 26.0), taken(2.0, 2.0)], 26.0);
        let three = [taken(16.0, 21.0), taken(24.0, 20.0), taken(24.0, 22.0)];
        is(&three, 64.0 / 3.0);
        is(&[three.as_slice(), &[taken(8.0, 2.0)]].concat(), 64.0 / 3.0);
        is(&[three.as_slice(), &[taken(0.0, 21.0)]].concat(), 16.0);
    }

    #[test]
    fn a_client_that_tells_of_very_much_at_once_counts_as_twice_the_one_in_the_middle() {
        is(&[taken(26.0, 26.0), taken(26.0, 26.0), taken(1e9, 1e8)], (26.0 + 26.0 + 52.0) / 3.0);
    }

    #[test]
    fn a_transfer_that_stops_is_slow_seven_samples_later() {
        let mut lately = Lately::default();
        (0..20).for_each(|_| {
            lately.push(26.0);
        });
        let samples = (1..).find(|_| lately.push(0.0) < SLOW * 26.0);
        assert_eq!(samples, Some(7));
    }
}
