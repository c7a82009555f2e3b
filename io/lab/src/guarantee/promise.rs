//! The windows of a promise, by the arrival of requests.
//!
//! A request belongs to the second in which it *came*. One that is not answered counts with its age. So a law
//! cannot better its figures by letting nothing through: one fast reply beside a hundred that hang is a
//! window missed.

use weir_model::Span;

/// The window over which a mean is taken.
const WINDOW: Span = Span::from_secs(1);
/// A percentile is judged over at least so many requests: ten are then expected above the 99th.
const ENOUGH: usize = 1_000;
/// One in so many requests may be above the 99th percentile.
const ONE_IN: usize = 100;

/// What a promise speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// The mean latency of each second.
    Mean,
    /// The latency within which 99 % are answered.
    P99,
}

/// A promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// What it speaks of.
    pub metric: Metric,
    /// The longest that it may be.
    pub limit: Span,
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Request {
    /// When it came, after the start.
    pub(crate) came: Span,
    /// How long it took; its age at the end if it is not answered.
    pub(crate) latency: Span,
}

/// How a promise was kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tally {
    /// Windows that kept it.
    pub(crate) met: u64,
    /// Windows with requests.
    pub(crate) windows: u64,
    /// Requests within the limit.
    pub(crate) in_time: u64,
    /// All requests.
    pub(crate) requests: u64,
}

impl Metric {
    /// Its name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P99 => "p99",
        }
    }

    /// Its value over these requests; zero without any.
    pub(crate) fn of(self, requests: &[Request]) -> Span {
        match self {
            Self::Mean => mean(requests),
            Self::P99 => p99(requests),
        }
    }
}

impl Promise {
    /// How it was kept by these requests, in the order in which they came.
    pub(crate) fn tally(self, requests: &[Request]) -> Tally {
        let windows = self.windows(requests);
        let met = windows.iter().filter(|window| self.metric.of(window) <= self.limit).count();
        let in_time = requests.iter().filter(|request| request.latency <= self.limit).count();
        Tally {
            met: met as u64,
            windows: windows.len() as u64,
            in_time: in_time as u64,
            requests: requests.len() as u64,
        }
    }

    /// The requests of each window. A second without requests is none. For a percentile, seconds are joined
    /// until there are [`ENOUGH`], and what is left at the end joins the last.
    fn windows(self, requests: &[Request]) -> Vec<&[Request]> {
        let second = |request: &Request| request.came.as_nanos() / WINDOW.as_nanos();
        let seconds = requests.chunk_by(|one, next| second(one) == second(next));
        if self.metric == Metric::Mean {
            return seconds.collect();
        }
        let (mut ends, mut from, mut to) = (Vec::new(), 0, 0);
        for here in seconds {
            to += here.len();
            if to - from >= ENOUGH {
                ends.push((from, to));
                from = to;
            }
        }
        match ends.last_mut() {
            Some(last) => last.1 = to,
            None if to > 0 => ends.push((0, to)),
            None => {}
        }
        ends.into_iter().map(|(from, to)| &requests[from..to]).collect()
    }
}

/// The mean latency; zero without requests.
pub(crate) fn mean(requests: &[Request]) -> Span {
    let sum: u128 = requests.iter().map(|request| u128::from(request.latency.as_nanos())).sum();
    let mean = sum / (requests.len() as u128).max(1);
    Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
}

/// The latency within which 99 % are answered; zero without requests.
pub(crate) fn p99(requests: &[Request]) -> Span {
    let mut latencies: Vec<_> = requests.iter().map(|request| request.latency).collect();
    let above = latencies.len() / ONE_IN;
    let Some(place) = latencies.len().checked_sub(above + 1) else { return Span::ZERO };
    *latencies.select_nth_unstable(place).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(of_each: impl IntoIterator<Item = (u64, u64)>) -> Vec<Request> {
        let request =
            |(came, latency)| Request { came: Span::from_millis(came), latency: Span::from_millis(latency) };
        of_each.into_iter().map(request).collect()
    }

    fn promise(metric: Metric, limit: u64) -> Promise {
        Promise { metric, limit: Span::from_millis(limit) }
    }

    #[test]
    fn one_fast_reply_beside_a_hundred_that_hang_is_a_window_missed() {
        let hung = (0..100).map(|place| (place, 60_000));
        let tally = promise(Metric::Mean, 10).tally(&requests([(0, 1)].into_iter().chain(hung)));
        assert_eq!(tally, Tally { met: 0, windows: 1, in_time: 1, requests: 101 });
    }

    #[test]
    fn a_request_belongs_to_the_second_in_which_it_came_and_a_second_without_any_is_no_window() {
        let tally = promise(Metric::Mean, 10).tally(&requests([(0, 5), (999, 15), (1_000, 11), (3_000, 10)]));
        assert_eq!(tally, Tally { met: 2, windows: 3, in_time: 2, requests: 4 });
        assert_eq!(promise(Metric::Mean, 10).tally(&[]), Tally::default());
        assert_eq!(promise(Metric::P99, 10).tally(&[]), Tally::default());
    }

    #[test]
    fn seconds_are_joined_until_a_percentile_can_be_judged() {
        // 400 a second for 7 s: two windows of three seconds each, and the seventh joins the last.
        let of_second = |second: u64| (0..400).map(move |place| (second * 1_000 + place, 1));
        let mut all = requests((0..7).flat_map(of_second));
        assert_eq!(promise(Metric::P99, 10).tally(&all).windows, 2);
        all[0..12].iter_mut().for_each(|request| request.latency = Span::from_secs(1));
        assert_eq!(promise(Metric::P99, 10).tally(&all).met, 2, "12 of 1,200 are one in a hundred");
        all[12].latency = Span::from_secs(1);
        assert_eq!(promise(Metric::P99, 10).tally(&all).met, 1);
        let few = requests((0..7).map(|second| (second * 1_000, 1)));
        assert_eq!(promise(Metric::P99, 10).tally(&few).windows, 1, "too few for one");
    }

    #[test]
    fn the_99th_percentile_has_one_in_a_hundred_above_it() {
        let all = requests((1..=100).map(|latency| (0, latency)));
        assert_eq!(p99(&all), Span::from_millis(99));
        assert_eq!(p99(&all[..99]), Span::from_millis(99));
        assert_eq!(mean(&all), Span::from_micros(50_500));
    }
}
