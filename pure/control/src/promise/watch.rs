//! Watches one promised volume: how close it is to missing its promise.
//!
//! A promise is about windows, and a window is known only when it is over. So the watch foresees how the open
//! one will end. The requests that have no answer will take longer than now: for as long as it takes to
//! answer them one after the other, as fast as others were answered of late. Example: 30 requests are
//! outstanding, and one was answered each millisecond. They will take 15 ms more on average.
//!
//! Windows differ by chance, too. A law that keeps the mean window at the limit misses every other one. So
//! the watch also says where one window in some hundred is: at the mean of recent ones, and 2.5 times their
//! standard deviation. For a percentile, chance is in the count of late requests: ten of a thousand are
//! allowed, and with four expected, more than ten come once in three hundred windows.

use std::collections::VecDeque;

use weir_model::Target;

use super::guard::Beyond;
use super::rates::Got;
use super::strain::Strain;
use super::{PERIOD, PromisedObservation, SECOND, WindowSeen};

/// Periods of what was of late: 200 ms. Fewer have too few requests.
const LATELY: usize = 4;
/// Periods that are kept: three seconds. A rate of less than seven requests a second needs them all.
const KEPT: usize = 60;
/// A rate is judged over as many periods as have so many answers.
const ANSWERS: f64 = 20.0;
/// Of some windows, so many standard deviations above their mean there is one in 160.
const DEVIATIONS: f64 = 2.5;
/// Windows of a latency that are remembered. With more, the law would learn too late that a load has changed.
const WINDOWS: f64 = 12.0;
/// Periods of a rate that are remembered: ten seconds.
const PERIODS: f64 = 200.0;
/// One window beyond three times the limit says no more than one at three times.
const BEYOND: f64 = 3.0;
/// So many times the late requests of late are taken to be on their way, if the next window is to be kept.
const LATE: f64 = 2.5;
/// The same for the window that is open.
const LATE_NOW: f64 = 1.875;
/// The usual time from one answer to the next counts as so many answers of late. A burst has few of its own
/// when it begins, and they came before its queue was long.
const USUAL: f64 = 16.0;
/// By which part of the difference that usual time follows in a period: within 2.5 s.
const FOLLOWS: f64 = 0.02;
/// After a cut, no window is noted for two seconds: the open one has requests of before, and so may one more.
const FORGOTTEN: u32 = 40;
/// A request of a promised rate is due after so many seconds at the latest.
const DUE_AT_MOST: f64 = 60.0;
/// What a volume got is measured in times of this rate at least. Of the least number that can be written, it
/// would be infinitely many times.
const LEAST_RATE: f64 = 1e-3;
/// A volume that gets this part of what is covered, or more, gets all of that.
const FULL: f64 = 0.98;
/// Its strain is no more than this then: it does not say how much room there is.
const EASY: f64 = 0.4;
/// A rate is out of reach if it is so many times what the volume's requests at the device could be answered
/// at, each as fast as ever.
const OUT_OF_REACH: f64 = 1.05;
/// Of such a volume, requests that take no more than so many times what they take at least could hardly be
/// helped. The least is that of the luckiest second.
const HELPED: f64 = 1.25;
/// Its strain is no more than this then.
const HELPLESS: f64 = 0.1;
/// A volume that had a request for this part of the time always had one.
const WAITS: f64 = 0.95;
/// The shortest mean latency is forgotten at 1 % a second.
const FORGETS: f64 = 1.0005;

/// What was seen of the volume in one period, or in several.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Slice {
    /// Seconds, as all times here.
    spent: f64,
    busy: f64,
    arrived: f64,
    at_device: f64,
    finished: f64,
    answered: f64,
    bytes: f64,
    late: f64,
}

/// The watch of a volume.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Watch {
    serial: u64,
    target: Target,
    /// The last one first.
    slices: VecDeque<Slice>,
    /// Those of the last second, added up.
    second: Slice,
    /// Periods without a request.
    silent: usize,
    windows: Windows,
    /// Periods for which no window is noted.
    forgotten: u32,
    /// Late requests, and all requests, of about one window of a percentile.
    late: f64,
    counted: f64,
    /// The least mean latency, and the usual time from one answer to the next while requests wait.
    least: f64,
    usual: f64,
    /// How many times its promised rate is covered; `None`: all that it asks for.
    covered: Option<f64>,
    /// How close it was to missing its promise in the last period.
    close: f64,
    /// Its rate is out of reach: what its requests take at least, in seconds, as was seen while nobody could
    /// be held back further.
    out_of_reach: Option<f64>,
}

/// Recent windows, each by its strain.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Windows {
    weight: f64,
    mean: f64,
    mean_square: f64,
}

impl Watch {
    pub(super) fn new(serial: u64, target: Target) -> Self {
        Self {
            serial,
            target,
            slices: VecDeque::with_capacity(KEPT),
            second: Slice::default(),
            silent: 0,
            windows: Windows::default(),
            forgotten: 0,
            late: 0.0,
            counted: 0.0,
            least: 0.0,
            usual: 0.0,
            covered: None,
            close: 0.0,
            out_of_reach: None,
        }
    }

    /// The serial number of its volume.
    pub(super) const fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether this is the watch of that volume, with a target of that kind.
    pub(super) fn is_of(&self, serial: u64, target: Target) -> bool {
        let is_same_kind = std::mem::discriminant(&self.target) == std::mem::discriminant(&target);
        self.serial == serial && is_same_kind
    }

    /// Takes in a period; `None` if the volume has had no request for a second.
    pub(super) fn observe(&mut self, target: Target, seen: &PromisedObservation) -> Option<Strain> {
        self.target = target;
        if self.slices.len() == KEPT {
            self.slices.pop_back();
        }
        self.slices.push_front(Slice::of(seen));
        self.second = self.over(SECOND);
        self.forgotten = self.forgotten.saturating_sub(1);
        self.silent = if seen.arrived > 0 || seen.outstanding > 0 { 0 } else { self.silent + 1 };
        if self.silent > SECOND {
            return None;
        }
        let outstanding = f64::from(seen.outstanding);
        let (second, lately) = (self.second, self.over(LATELY));
        let rest = outstanding * self.each(second, lately) / 2.0;
        let latency = second.spent / second.arrived.max(outstanding).max(1.0);
        self.learn_service(second);
        let (window, now) = match target {
            Target::Latency(limit) => self.of_latency(limit.as_secs_f64(), seen, rest),
            Target::Percentile(percentile, _) => self.of_percentile(1.0 - percentile.percent() / 100.0),
            Target::Rate(rate) => self.of_rate(rate.get(), |slice| slice.answered),
            Target::Throughput(rate) => self.of_rate(rate.get() as f64, |slice| slice.bytes),
        };
        let likely = match target {
            Target::Percentile(..) => window * LATE / LATE_NOW,
            Target::Latency(_) | Target::Rate(_) | Target::Throughput(_) => self.windows.likely(),
        };
        self.close = if matches!(target, Target::Percentile(..)) { window / LATE_NOW } else { window };
        let strain = Strain { window, lately: now, likely, latency, service: self.least };
        Some(if self.cannot_be_helped() {
            strain.at_most(HELPLESS)
        } else if self.has_all_that_is_covered(window) {
            strain.at_most(EASY)
        } else {
            strain
        })
    }

    /// How close it was to missing its promise in the last period, without the distance that is kept from
    /// the limit of a percentile.
    pub(super) const fn closeness(&self) -> f64 {
        self.close
    }

    /// Whether it got its promised rate and all that is covered above it, in a window of this strain. What
    /// it gets is bounded then, so it does not show that others could have more.
    fn has_all_that_is_covered(&self, window: f64) -> bool {
        self.is_of_rate() && self.covered.is_some_and(|times| times > 1.0 && window * FULL * times <= 1.0)
    }

    /// Whether a rate is promised.
    pub(super) const fn is_of_rate(&self) -> bool {
        matches!(self.target, Target::Rate(_) | Target::Throughput(_))
    }

    /// Nobody can be held back further: learns whether the requests that it has at the device are too few for
    /// its rate, however fast each of them is answered. Example: one thread is promised 900 requests a
    /// second, and each takes 4 ms. Before that, requests that always had to wait for others would seem to
    /// take that long by themselves.
    pub(super) fn learn_reach(&mut self) {
        let is_known = self.slices.len() >= SECOND && self.always_waits() && self.least > 0.0;
        self.out_of_reach = Some(self.least).filter(|least| is_known && self.is_beyond_reach(*least));
    }

    /// Whether its rate is out of reach, whatever others do.
    pub(super) fn is_out_of_reach(&self) -> bool {
        self.out_of_reach.is_some_and(|least| self.is_beyond_reach(least))
    }

    /// Whether its rate is, if a request takes this at least.
    fn is_beyond_reach(&self, least: f64) -> bool {
        let second = self.second;
        let rate = match self.target {
            Target::Rate(rate) => rate.get(),
            Target::Throughput(rate) => rate.get() as f64 * second.answered / second.bytes.max(1.0),
            Target::Latency(_) | Target::Percentile(..) => return false,
        };
        let at_device = second.at_device / (SECOND as f64 * PERIOD.as_secs_f64());
        rate * least > OUT_OF_REACH * at_device
    }

    /// Whether its rate is out of reach, and its requests take hardly longer than they must.
    fn cannot_be_helped(&self) -> bool {
        let second = self.second;
        let takes_long = |least| second.at_device > HELPED * least * second.finished;
        self.is_out_of_reach() && !self.out_of_reach.is_some_and(takes_long)
    }

    /// So many times its promised rate is covered from now on; `None`: all that it asks for.
    pub(super) const fn cover(&mut self, times: Option<f64>) {
        self.covered = times;
    }

    /// How many times its promised rate is covered; `None`: all that it asks for, or it has none.
    pub(super) const fn covered(&self) -> Option<f64> {
        self.covered
    }

    /// What it asked for beyond that in the last period.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some requests
    pub(super) fn beyond(&self, seen: &PromisedObservation) -> Beyond {
        let (Some(times), Some(slice)) = (self.covered, self.slices.front()) else {
            return Beyond::default();
        };
        let covered = match self.target {
            Target::Rate(rate) => rate.get() * times * PERIOD.as_secs_f64(),
            Target::Throughput(rate) => {
                let part = rate.get() as f64 * times * PERIOD.as_secs_f64() / slice.bytes.max(1.0);
                part * slice.answered
            }
            Target::Latency(_) | Target::Percentile(..) => return Beyond::default(),
        };
        let answered = (slice.answered - covered).max(0.0) as u32;
        Beyond { waiting: seen.outstanding - seen.at_device, answered }
    }

    /// How close it was in the last second, by what has ended and by the ages of the rest.
    pub(super) fn last_second(&self) -> f64 {
        let second = self.second;
        match self.target {
            Target::Latency(limit) => second.spent / second.arrived.max(1.0) / limit.as_secs_f64(),
            Target::Percentile(percentile, _) => {
                second.late / second.arrived.max(1.0) / (1.0 - percentile.percent() / 100.0)
            }
            Target::Rate(_) | Target::Throughput(_) => 0.0,
        }
    }

    /// How long after it came a request of a volume with so many of them is due, in seconds. Of a rate, all
    /// of them are due when the last one would be answered at that rate.
    pub(super) fn due(&self, outstanding: u32) -> f64 {
        let requests = f64::from(outstanding.max(1));
        let due = match self.target {
            Target::Latency(limit) | Target::Percentile(_, limit) => limit.as_secs_f64(),
            Target::Rate(rate) => requests / rate.get(),
            Target::Throughput(rate) => {
                let kept = self.over(KEPT);
                requests * (kept.bytes / kept.answered.max(1.0)) / rate.get() as f64
            }
        };
        due.min(DUE_AT_MOST)
    }

    /// For which part of the time of its requests these were at the device of late.
    pub(super) fn part_at_device(&self) -> f64 {
        let lately = self.over(LATELY);
        if lately.spent > 0.0 { lately.at_device / lately.spent } else { 0.0 }
    }

    /// What it got of its promised rate in the last second, if its requests were this many of those at the
    /// device. `None` if a latency is promised, or it came less than a second ago.
    pub(super) fn got(&self, part: f64) -> Option<Got> {
        let second = self.second;
        let seconds = SECOND as f64 * PERIOD.as_secs_f64();
        let (got, promised) = match self.target {
            Target::Rate(rate) => (second.answered, rate.get()),
            Target::Throughput(rate) => (second.bytes, rate.get() as f64),
            Target::Latency(_) | Target::Percentile(..) => return None,
        };
        let times = got / (promised.max(LEAST_RATE) * seconds);
        // Of a bandwidth: as many requests as there were, in proportion.
        let rate = if times > 0.0 { second.answered / seconds / times } else { 0.0 };
        let waits = self.always_waits() && !self.cannot_be_helped();
        (self.slices.len() >= SECOND).then_some(Got { times, waits, rate, part })
    }

    /// For how long its requests were at the device in the last second, in sum, in seconds.
    pub(super) fn at_device(&self) -> f64 {
        self.second.at_device
    }

    /// What was seen tells nothing of what comes, and the windows of the next moment tell of both.
    pub(super) fn forget(&mut self) {
        self.windows = Windows::default();
        self.forgotten = FORGOTTEN;
    }

    /// Whether it had a request all the time in the last second, or since it came.
    fn always_waits(&self) -> bool {
        let periods = SECOND.min(self.slices.len());
        self.second.busy >= WAITS * periods as f64 * PERIOD.as_secs_f64()
    }

    /// The last so many periods together.
    fn over(&self, periods: usize) -> Slice {
        self.slices.iter().take(periods).fold(Slice::default(), |sum, slice| Slice {
            spent: sum.spent + slice.spent,
            busy: sum.busy + slice.busy,
            arrived: sum.arrived + slice.arrived,
            at_device: sum.at_device + slice.at_device,
            finished: sum.finished + slice.finished,
            answered: sum.answered + slice.answered,
            bytes: sum.bytes + slice.bytes,
            late: sum.late + slice.late,
        })
    }

    /// The time from one answer to the next, while requests wait.
    fn each(&mut self, second: Slice, lately: Slice) -> f64 {
        let sample = if lately.answered >= LATELY as f64 { lately } else { second };
        // Half an answer: the one that is on its way.
        let each = (sample.busy + USUAL * self.usual) / (sample.answered + 0.5 + USUAL);
        if second.answered >= 1.0 {
            let now = second.busy / second.answered;
            self.usual += (now - self.usual) * if self.usual > 0.0 { FOLLOWS } else { 1.0 };
        }
        each
    }

    /// A volume whose requests come in heaps waits for itself at the device. The time from one answer to the
    /// next is then nearer to what a request costs. The wait for its own cap does not count.
    fn learn_service(&mut self, second: Slice) {
        if second.finished >= 4.0 {
            let mean = (second.at_device / second.finished).min(2.0 * second.busy / second.finished);
            self.least = if self.least > 0.0 { mean.min(self.least * FORGETS) } else { mean };
        }
    }

    /// The strain of windows and of late, if the outstanding requests take `rest` more on average.
    fn of_latency(&mut self, limit: f64, seen: &PromisedObservation, rest: f64) -> (f64, f64) {
        let lately = self.over(LATELY);
        let outstanding = f64::from(seen.outstanding);
        let latency = (lately.spent / lately.answered.max(outstanding).max(1.0)).max(rest);
        let sum = |window: &WindowSeen| window.spent.as_secs_f64() + f64::from(window.outstanding) * rest;
        let previous = sum(&seen.previous) / f64::from(seen.previous.arrived).max(1.0);
        let count = f64::from(seen.current.arrived);
        let expected = self.second.arrived.max(count);
        let current = (sum(&seen.current) + (expected - count) * latency) / expected.max(1.0);
        if let Some(ended) = seen.ended.filter(|_| self.forgotten == 0) {
            let mean = ended.spent.as_secs_f64() / f64::from(ended.arrived.max(1));
            self.windows.note(mean / limit, WINDOWS);
        }
        (current.max(previous) / limit, latency / limit)
    }

    /// The strain of a percentile that this share of requests may exceed. A window has as many requests as
    /// let ten be late.
    fn of_percentile(&mut self, share: f64) -> (f64, f64) {
        let window = 10.0 / share;
        let slice = self.over(1);
        let keep = (1.0 - slice.arrived / window).max(0.0);
        self.late = (self.late * keep + slice.late).max(0.0);
        self.counted = self.counted * keep + slice.arrived;
        let lately = self.over(LATELY);
        let now = lately.late.max(0.0) / lately.arrived.max(1.0) / share;
        (self.late / self.counted.max(window) / share * LATE_NOW, now)
    }

    /// The strain of a rate of what `of` says.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some periods
    fn of_rate(&mut self, promised: f64, of: fn(&Slice) -> f64) -> (f64, f64) {
        // A client that has just come, or asks for less than it is promised, is not kept waiting.
        if self.slices.len() < LATELY || !self.always_waits() {
            return (0.0, 0.0);
        }
        let strain = |periods: usize| {
            let periods = periods.min(self.slices.len());
            let due = promised * periods as f64 * PERIOD.as_secs_f64();
            due / of(&self.over(periods)).max(due / 1e6)
        };
        let needed = match self.target {
            Target::Rate(rate) => (ANSWERS / rate.get() / PERIOD.as_secs_f64()).ceil() as usize,
            _ => SECOND,
        };
        let (window, now) = (strain(needed.clamp(SECOND, KEPT)), strain((needed / 5).clamp(LATELY, SECOND)));
        if self.forgotten == 0 {
            self.windows.note(window, PERIODS);
        }
        (window, now)
    }
}

impl Slice {
    fn of(seen: &PromisedObservation) -> Self {
        Self {
            spent: seen.spent.as_secs_f64(),
            busy: seen.busy.as_secs_f64(),
            arrived: f64::from(seen.arrived),
            at_device: seen.at_device_for.as_secs_f64(),
            finished: f64::from(seen.finished),
            answered: f64::from(seen.answered),
            bytes: seen.answered_bytes as f64,
            late: f64::from(seen.late),
        }
    }
}

impl Windows {
    /// Takes in a window. About so many are remembered.
    fn note(&mut self, strain: f64, remembered: f64) {
        let strain = strain.min(BEYOND);
        self.weight = self.weight * (1.0 - 1.0 / remembered) + 1.0;
        self.mean += (strain - self.mean) / self.weight;
        self.mean_square += (strain * strain - self.mean_square) / self.weight;
    }

    fn likely(&self) -> f64 {
        let deviation = (self.mean_square - self.mean * self.mean).max(0.0).sqrt();
        self.mean + DEVIATIONS * deviation
    }
}

#[cfg(test)]
mod tests {
    use weir_model::{Iops, Percentile, Span};

    use super::*;

    /// Ten requests of 5 ms in a period.
    fn calm() -> PromisedObservation {
        let window = |arrived| WindowSeen {
            arrived,
            outstanding: 0,
            spent: Span::from_millis(5 * u64::from(arrived)),
        };
        PromisedObservation {
            spent: Span::from_millis(50),
            busy: PERIOD,
            arrived: 10,
            answered: 10,
            current: window(100),
            previous: window(200),
            at_device_for: Span::from_millis(50),
            finished: 10,
            ended: Some(window(200)),
            ..PromisedObservation::default()
        }
    }

    fn watched(target: Target, seen: &PromisedObservation, periods: u32) -> (Watch, Strain) {
        let mut watch = Watch::new(1, target);
        let strains: Vec<_> = (0..periods).map(|_| watch.observe(target, seen)).collect();
        (watch, strains[strains.len() - 1].expect("it has requests"))
    }

    const LATENCY: Target = Target::Latency(Span::from_millis(10));

    #[test]
    fn requests_of_a_rate_are_due_when_the_last_of_them_would_be_answered_at_that_rate() {
        let rate = Target::Rate(Iops::new(200.0).unwrap());
        let throughput = Target::Throughput(weir_model::Bandwidth::new(1_000_000).unwrap());
        let seen = PromisedObservation { answered_bytes: 10 * 5_000, ..calm() };
        assert!((watched(rate, &seen, 20).0.due(10) - 0.050).abs() < 1e-9);
        assert!((watched(throughput, &seen, 20).0.due(10) - 0.050).abs() < 1e-9, "5 kB each");
        assert!((watched(LATENCY, &seen, 20).0.due(10) - 0.010).abs() < 1e-9, "a latency as promised");
        let slow = Target::Rate(Iops::new(0.01).unwrap());
        assert!((watched(slow, &seen, 20).0.due(10) - DUE_AT_MOST).abs() < 1e-9);
    }

    #[test]
    fn of_the_least_rate_that_can_be_written_a_volume_does_not_get_infinitely_many_times() {
        let least = Target::Rate(Iops::new(f64::from_bits(1)).unwrap());
        let got = watched(least, &calm(), 20).0.got(1.0).unwrap();
        assert!((got.times - 200.0 / LEAST_RATE).abs() < 1.0, "{got:?}");
    }

    #[test]
    fn requests_are_at_the_device_for_the_part_of_their_time_that_they_do_not_wait_in_weir() {
        assert!((watched(LATENCY, &calm(), 20).0.part_at_device() - 1.0).abs() < 1e-9);
        let half = PromisedObservation { at_device_for: Span::from_millis(25), ..calm() };
        assert!((watched(LATENCY, &half, 20).0.part_at_device() - 0.5).abs() < 1e-9);
        assert!(Watch::new(1, LATENCY).part_at_device().abs() < 1e-9, "nothing was seen");
    }

    #[test]
    fn half_of_the_latency_is_a_strain_of_a_half() {
        let (_, strain) = watched(LATENCY, &calm(), 100);
        let Strain { window, lately, likely, latency, service } = strain;
        for strain in [window, lately, likely] {
            assert!((strain - 0.5).abs() < 0.01, "{strain}");
        }
        assert!((latency - 0.005).abs() < 1e-6 && (service - 0.005).abs() < 1e-6);
    }

    #[test]
    fn of_a_percentile_that_is_kept_nobody_says_that_it_is_missed() {
        let target = Target::Percentile(Percentile::from_tenths(990).unwrap(), Span::from_millis(10));
        // Seven of a thousand are late, and ten may be.
        let seen = PromisedObservation { arrived: 1_000, answered: 1_000, late: 7, ..calm() };
        let (watch, strain) = watched(target, &seen, 100);
        assert!(strain.window > 1.0, "the guard keeps a distance: {strain:?}");
        assert!((watch.closeness() - 0.7).abs() < 0.01, "{}", watch.closeness());
    }

    #[test]
    fn requests_that_wait_count_with_the_time_that_they_will_take() {
        let (mut watch, _) = watched(LATENCY, &calm(), 100);
        // 400 have come at once. One is answered every 5 ms, so they will take a second on average.
        let outstanding = 400;
        let current = WindowSeen { arrived: 500, outstanding, spent: Span::from_millis(500) };
        let burst = PromisedObservation { arrived: outstanding, outstanding, current, ended: None, ..calm() };
        let strain = watch.observe(LATENCY, &burst).expect("it has requests");
        assert!(strain.window > 50.0, "{strain:?}");
    }

    #[test]
    fn windows_that_differ_are_likely_to_be_missed_sooner() {
        let (mut watch, even) = watched(LATENCY, &calm(), 100);
        for period in 0..100 {
            let mean = if period % 2 == 0 { 2 } else { 8 };
            let ended =
                Some(WindowSeen { arrived: 100, outstanding: 0, spent: Span::from_millis(100 * mean) });
            watch.observe(LATENCY, &PromisedObservation { ended, ..calm() });
        }
        let uneven = watch.observe(LATENCY, &calm()).expect("it has requests");
        assert!(even.likely < 0.6 && uneven.likely > 1.1, "{even:?}, {uneven:?}");
    }

    #[test]
    fn after_a_cut_windows_from_before_it_do_not_count() {
        let (mut watch, _) = watched(LATENCY, &calm(), 100);
        watch.forget();
        let ended = Some(WindowSeen { arrived: 100, outstanding: 0, spent: Span::from_secs(3) });
        for _ in 1..FORGOTTEN {
            watch.observe(LATENCY, &PromisedObservation { ended, ..calm() });
        }
        let strain = (0..20).filter_map(|_| watch.observe(LATENCY, &calm())).last();
        assert!(strain.is_some_and(|strain| strain.likely < 0.6), "{strain:?}");
    }

    #[test]
    fn a_client_that_asks_for_less_than_it_is_promised_is_not_kept_waiting() {
        let target = Target::Rate(Iops::new(400.0).unwrap());
        let idle_at_times = PromisedObservation { busy: Span::from_millis(40), ..calm() };
        let (watch, strain) = watched(target, &idle_at_times, 100);
        assert!(strain.window == 0.0 && watch.got(1.0).is_some_and(|got| !got.waits), "{strain:?}");
    }

    #[test]
    fn four_late_requests_of_a_thousand_are_near_the_limit_of_a_99th_percentile() {
        let target = Target::Percentile(Percentile::from_tenths(990).unwrap(), Span::from_millis(10));
        let (mut watch, calm_strain) = watched(target, &calm(), 200);
        assert!(calm_strain.likely.abs() < 1e-9);
        let late = PromisedObservation { late: 4, ..calm() };
        let strain = watch.observe(target, &late).expect("it has requests");
        assert!((strain.likely - 1.0).abs() < 0.02 && strain.lately > 1.0, "{strain:?}");
    }

    #[test]
    fn half_of_a_rate_is_a_strain_of_two_and_a_client_that_has_just_come_has_none() {
        let target = Target::Rate(Iops::new(400.0).unwrap());
        let (_, first) = watched(target, &calm(), 2);
        assert_eq!((first.window, first.lately), (0.0, 0.0));
        let (watch, strain) = watched(target, &calm(), 100);
        assert!((strain.window - 2.0).abs() < 0.01 && (strain.likely - 2.0).abs() < 0.01, "{strain:?}");
        assert!(watch.got(1.0).is_some_and(|got| got.waits && (got.times - 0.5).abs() < 0.01));
    }

    #[test]
    fn a_volume_that_has_been_silent_for_a_second_has_no_strain() {
        let (mut watch, _) = watched(LATENCY, &calm(), 100);
        let silent = PromisedObservation::default();
        let strains: Vec<_> = (0..=SECOND).map(|_| watch.observe(LATENCY, &silent)).collect();
        assert!(strains[SECOND - 1].is_some() && strains[SECOND].is_none());
    }

    /// Periods of a volume that always has `requests` at the device, each for so many milliseconds.
    fn busy(watch: &mut Watch, target: Target, requests: u32, millis: u32, periods: u32) -> Strain {
        let finished = requests * 50 / millis;
        let all = PERIOD.saturating_mul(requests.into());
        let seen = PromisedObservation {
            spent: all,
            at_device_for: all,
            busy: PERIOD,
            arrived: finished,
            answered: finished,
            finished,
            outstanding: requests,
            at_device: requests,
            ..PromisedObservation::default()
        };
        let strains: Vec<_> = (0..periods).filter_map(|_| watch.observe(target, &seen)).collect();
        strains[strains.len() - 1]
    }

    #[test]
    fn a_rate_that_the_requests_of_a_client_are_too_few_for_holds_nobody_back_for_nothing() {
        let rate = Target::Rate(Iops::new(900.0).unwrap());
        let mut watch = Watch::new(1, rate);
        assert!(busy(&mut watch, rate, 1, 5, 40).is_hard(), "others may be in the way");
        watch.learn_reach();
        let alone = busy(&mut watch, rate, 1, 5, 40);
        assert!(watch.is_out_of_reach() && !alone.is_hard(), "200 a second, whatever others do: {alone:?}");
        assert!(busy(&mut watch, rate, 1, 10, 40).is_hard(), "now it waits for others");
        busy(&mut watch, rate, 8, 5, 40);
        assert!(!watch.is_out_of_reach(), "with eight requests at a time it is not");
    }

    #[test]
    fn a_rate_that_others_are_in_the_way_of_is_not_out_of_reach() {
        let rate = Target::Rate(Iops::new(900.0).unwrap());
        let mut watch = Watch::new(1, rate);
        busy(&mut watch, rate, 16, 40, 40);
        watch.learn_reach();
        assert!(!watch.is_out_of_reach(), "its own requests wait for one another");
    }
}
