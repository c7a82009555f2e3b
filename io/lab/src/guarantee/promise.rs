//! The windows of a promise, by the arrival of requests.
//!
//! A request belongs to the second in which it *came*. One that is not answered counts with its age. So a law
//! cannot better its figures by letting nothing through: one fast reply beside a hundred that hang is a
//! window missed.

use std::fmt;

use weir_model::{Iops, Span};

/// For how long the clients of a run ask.
pub(super) const LASTS: Span = Span::from_secs(300);
/// The window over which a mean is taken.
const WINDOW: Span = Span::from_secs(1);
/// A percentile is judged over at least so many requests: ten are then expected above the 99th.
const ENOUGH: usize = 1_000;
/// One in so many requests may be above the 99th percentile.
const ONE_IN: usize = 100;
/// A rate is judged over as many seconds as have so many answers at the promised rate.
const ANSWERS: u64 = 20;
/// A burst begins after so many seconds without a request.
const SILENT: u64 = 3;
/// And has so many requests in its first second.
const BURST: usize = 20;

/// What a promise speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// The mean latency of each second.
    Mean,
    /// The latency within which 99 % are answered.
    P99,
    /// How many are answered. Only a load that always has a request waiting is promised a rate: whether it
    /// gets that is up to the law alone.
    Rate,
}

/// A promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// What it speaks of.
    pub metric: Metric,
    /// The longest that it may be; of a rate, the mean time from one answer to the next.
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

/// How a promise was kept. When requests come is the same in all runs of a cell, so its windows and its
/// bursts are the same, too, one by one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tally {
    /// Of each window, whether it kept the promise.
    pub(crate) windows: Vec<bool>,
    /// The same of the first second of each burst.
    pub(crate) bursts: Vec<bool>,
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
            Self::Rate => "rate",
        }
    }

    /// Its value over these requests; zero without any. Of a rate, the mean time from one answer to the next
    /// in a whole run.
    pub(crate) fn of(self, requests: &[Request]) -> Span {
        match self {
            Self::Mean => mean(requests),
            Self::P99 => p99(requests),
            Self::Rate => Span::from_nanos(LASTS.as_nanos() / answered(requests).max(1)),
        }
    }
}

/// For people, such as `mean at most 12.500 ms`.
impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.limit.as_secs_f64();
        match self.metric {
            Metric::Rate => write!(f, "at least {:.1} requests a second", 1.0 / seconds),
            Metric::Mean | Metric::P99 => write!(f, "{} at most {:.3} ms", self.metric.name(), seconds * 1e3),
        }
    }
}

impl Promise {
    /// The promised rate, if it is one.
    pub(super) fn rate(self) -> Option<Iops> {
        Iops::new(1.0 / self.limit.as_secs_f64()).filter(|_| self.metric == Metric::Rate)
    }

    /// How it was kept by these requests, in the order in which they came.
    pub(crate) fn tally(self, requests: &[Request]) -> Tally {
        if self.metric == Metric::Rate {
            let windows = self.rate_windows(requests);
            return Tally {
                windows,
                bursts: vec![],
                in_time: answered(requests),
                requests: requests.len() as u64,
            };
        }
        let keeps = |requests: &&[Request]| self.metric.of(requests) <= self.limit;
        let in_time = requests.iter().filter(|request| request.latency <= self.limit).count();
        Tally {
            windows: self.windows(requests).iter().map(keeps).collect(),
            bursts: bursts(requests).map(|first| keeps(&first)).collect(),
            in_time: in_time as u64,
            requests: requests.len() as u64,
        }
    }

    /// Of each window of a rate, whether enough was answered in it. What is left at the end is no window.
    fn rate_windows(self, requests: &[Request]) -> Vec<bool> {
        let enough = Span::from_nanos(self.limit.as_nanos().saturating_mul(ANSWERS));
        let seconds =
            enough.as_nanos().div_ceil(WINDOW.as_nanos()).clamp(1, LASTS.as_nanos() / WINDOW.as_nanos());
        let length = WINDOW.saturating_mul(seconds).as_nanos();
        let mut answered = vec![0_u64; usize::try_from(LASTS.as_nanos() / length).expect("some hundred")];
        for request in requests {
            let window = (request.came + request.latency).as_nanos() / length;
            if let Some(answered) = usize::try_from(window).ok().and_then(|window| answered.get_mut(window)) {
                *answered += 1;
            }
        }
        answered.iter().map(|answered| self.limit.as_nanos().saturating_mul(*answered) >= length).collect()
    }

    /// The requests of each window. A second without requests is none. For a percentile, seconds are joined
    /// until there are [`ENOUGH`], and what is left at the end joins the last.
    fn windows(self, requests: &[Request]) -> Vec<&[Request]> {
        if self.metric == Metric::Mean {
            return seconds(requests).collect();
        }
        let (mut ends, mut from, mut to) = (Vec::new(), 0, 0);
        for here in seconds(requests) {
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

/// How many requests were answered while clients asked.
pub(crate) fn answered(requests: &[Request]) -> u64 {
    requests.iter().filter(|request| request.came + request.latency <= LASTS).count() as u64
}

/// How many seconds have no request.
pub(crate) fn idle(requests: &[Request]) -> u64 {
    LASTS.as_nanos() / WINDOW.as_nanos() - seconds(requests).count() as u64
}

/// The second in which a request came.
const fn second(request: &Request) -> u64 {
    request.came.as_nanos() / WINDOW.as_nanos()
}

/// The requests of each second that has some.
fn seconds(requests: &[Request]) -> impl Iterator<Item = &[Request]> {
    requests.chunk_by(|one, next| second(one) == second(next))
}

/// The requests of the first second of each burst.
fn bursts(requests: &[Request]) -> impl Iterator<Item = &[Request]> {
    let mut free_from = 0;
    seconds(requests).filter(move |here| {
        let now = second(&here[0]);
        let is_burst = now >= free_from + SILENT && here.len() >= BURST;
        free_from = now + 1;
        is_burst
    })
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
        assert_eq!(tally, Tally { windows: vec![false], bursts: vec![], in_time: 1, requests: 101 });
    }

    #[test]
    fn a_request_belongs_to_the_second_in_which_it_came_and_a_second_without_any_is_no_window() {
        let tally = promise(Metric::Mean, 10).tally(&requests([(0, 5), (999, 15), (1_000, 11), (3_000, 10)]));
        let windows = vec![true, false, true];
        assert_eq!(tally, Tally { windows, bursts: vec![], in_time: 2, requests: 4 });
        assert_eq!(promise(Metric::Mean, 10).tally(&[]), Tally::default());
        assert_eq!(promise(Metric::P99, 10).tally(&[]), Tally::default());
    }

    #[test]
    fn seconds_are_joined_until_a_percentile_can_be_judged() {
        // 400 a second for 7 s: two windows of three seconds each, and the seventh joins the last.
        let of_second = |second: u64| (0..400).map(move |place| (second * 1_000 + place, 1));
        let mut all = requests((0..7).flat_map(of_second));
        let windows = |all: &[Request]| promise(Metric::P99, 10).tally(all).windows;
        assert_eq!(windows(&all), [true, true]);
        all[0..12].iter_mut().for_each(|request| request.latency = Span::from_secs(1));
        assert_eq!(windows(&all), [true, true], "12 of 1,200 are one in a hundred");
        all[12].latency = Span::from_secs(1);
        assert_eq!(windows(&all), [false, true]);
        let few = requests((0..7).map(|second| (second * 1_000, 1)));
        assert_eq!(windows(&few), [true], "too few for one");
    }

    #[test]
    fn a_burst_is_twenty_requests_after_three_silent_seconds() {
        let at = |second: u64, count: u64, latency: u64| (0..count).map(move |_| (second * 1_000, latency));
        let all = at(0, 50, 1) // nothing is known of the time before
            .chain(at(4, 20, 1)) // silent for 1, 2 and 3
            .chain(at(5, 90, 99))
            .chain(at(9, 20, 99))
            .chain(at(12, 90, 1)) // silent for two
            .chain(at(16, 19, 1)) // too few
            .chain(at(17, 90, 1)); // not the first
        assert_eq!(promise(Metric::Mean, 10).tally(&requests(all)).bursts, [true, false]);
        assert_eq!(promise(Metric::Mean, 10).tally(&requests(at(3, 20, 1))).bursts, [true]);
    }

    #[test]
    fn a_rate_is_kept_in_the_seconds_in_which_enough_is_answered() {
        // 40 a second are promised, so windows are seconds. 40 in the first, 39 in the second.
        let early = (0..40).map(|place| (place * 20, 5));
        let late = (0..39).map(|place| (1_000 + place * 20, 5));
        let answers = requests(early.chain(late));
        let promise = Promise { metric: Metric::Rate, limit: Span::from_millis(25) };
        let tally = promise.tally(&answers);
        assert_eq!((tally.windows.len(), &tally.windows[..3]), (300, &[true, false, false][..]));
        assert_eq!(promise.to_string(), "at least 40.0 requests a second");
        // One in 10 s is promised: a window has twenty of these.
        let promise = Promise { metric: Metric::Rate, limit: Span::from_secs(10) };
        assert_eq!(promise.tally(&answers).windows, [true]);
        assert_eq!((answered(&answers), idle(&answers)), (79, 298));
    }

    #[test]
    fn the_99th_percentile_has_one_in_a_hundred_above_it() {
        let all = requests((1..=100).map(|latency| (0, latency)));
        assert_eq!(p99(&all), Span::from_millis(99));
        assert_eq!(p99(&all[..99]), Span::from_millis(99));
        assert_eq!(mean(&all), Span::from_micros(50_500));
    }
}
