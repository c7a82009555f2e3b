//! Which of several settings is the best.
//!
//! The best is the one that serves the hog most of those that keep the promise about as often as any does.
//! Whoever gives up more of the promise than that has not kept it, however fast the hog is.

/// A setting that was tried.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Tried<T> {
    pub(super) setting: T,
    /// The windows that kept the promise, in percent.
    pub(super) met_percent: f64,
    /// The hog's rate.
    pub(super) hog_iops: f64,
}

/// The best setting. `tolerance` is how many points fewer windows it may have met than any other.
pub(super) fn best<T: Copy>(tried: &[Tried<T>], tolerance: f64) -> Option<Tried<T>> {
    let most = tried.iter().map(|tried| tried.met_percent).fold(f64::NEG_INFINITY, f64::max);
    let good = tried.iter().copied().filter(|tried| tried.met_percent >= most - tolerance);
    good.max_by(|a, b| a.hog_iops.total_cmp(&b.hog_iops))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIED: [Tried<u32>; 4] = [
        Tried { setting: 1, met_percent: 100.0, hog_iops: 10.0 },
        Tried { setting: 2, met_percent: 99.6, hog_iops: 20.0 },
        Tried { setting: 3, met_percent: 96.0, hog_iops: 30.0 },
        Tried { setting: 4, met_percent: f64::NAN, hog_iops: 90.0 },
    ];

    #[test]
    fn the_best_is_the_fastest_of_those_that_keep_the_promise() {
        let of = |tolerance| best(&TRIED, tolerance).map(|tried| tried.setting);
        assert_eq!((of(0.0), of(0.5), of(4.0)), (Some(1), Some(2), Some(3)));
    }

    #[test]
    fn without_windows_nothing_is_the_best() {
        assert_eq!(best::<u32>(&[], 1.0), None);
        assert_eq!(best(&TRIED[3..], 1.0), None);
    }
}
