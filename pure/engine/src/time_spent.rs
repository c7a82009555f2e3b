//! Where the time of a volume's requests went in the last minutes, and on whose behalf they waited.
//!
//! [`SpentHistory`] is kept for each volume: a ring of slices of ten seconds. A slice has no list of
//! requests. Requests of about the same latency are in one [`Band`], which has their number and the sums of
//! their parts. So a percentile is told with its parts, which add up, and a slice is as small as the
//! latencies in it are alike.
//!
//! A slice begins with the first request or charge after the one before has ended. No timer runs for it, and
//! a volume without requests costs nothing.
//!
//! **Memory**: a slice has 200 bytes. It has a band of 48 bytes for each quarter octave of latency in use,
//! and at most 94 of them. It has at most 2 x 12 names of 32 bytes. Example: the latencies of a busy volume
//! lie within a factor of 30, and it waits for 4 others. Its 18 slices have 20 bands and 8 names each: 25
//! kB. The most is 100 kB.

mod charges;

use std::collections::VecDeque;

use weir_model::{Instant, Span, VolumeId};

use crate::time_split::TimeSplit;

use charges::Charges;
pub(crate) use charges::Key;

/// How long a slice is.
const SLICE: Span = Span::from_secs(10);
/// How many slices are kept, and the running one.
const KEPT: usize = 18;
/// How many bands there are: four for each power of two, from 8 us to 67 s.
const BANDS: u8 = 94;

/// What held requests back before they went to the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hold {
    /// The configured rate of the volume.
    Rate,
    /// The configured concurrency of the volume.
    Concurrency,
    /// A rate that the law, or a controller, granted to the volume.
    GrantedRate,
    /// A concurrency that the law, or a controller, granted to the volume.
    GrantedConcurrency,
    /// The depth of the pool: the device had as many requests as it may have.
    Depth,
    /// The law of promises had promised volumes go in order, only so many at a time.
    PromisedBound,
    /// A background volume had the device for itself, or was about to.
    Turn,
    /// The law of promises held background volumes back, for a promise.
    BackgroundBound,
    /// Nothing: the driver had not asked yet.
    Driver,
}

impl Hold {
    /// All of them, in the order of [`TimeSpent::holds`].
    pub const ALL: [Self; 9] = [
        Self::Rate,
        Self::Concurrency,
        Self::GrantedRate,
        Self::GrantedConcurrency,
        Self::Depth,
        Self::PromisedBound,
        Self::Turn,
        Self::BackgroundBound,
        Self::Driver,
    ];

    /// Whether it is a limit of the volume alone. Time under such a limit is in [`TimeSplit::own_limit`], and
    /// all other waiting is in [`TimeSplit::turn`].
    pub const fn is_own_limit(self) -> bool {
        matches!(self, Self::Rate | Self::Concurrency | Self::GrantedRate | Self::GrantedConcurrency)
    }
}

/// On whose behalf requests waited, or beside whose requests they were at the device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Whom {
    /// A volume of the pool; maybe the one that waited: then it waited for its own requests.
    Volume(VolumeId),
    /// Volumes that are gone.
    Gone,
    /// Volumes that are not named, because each had only a small part.
    Others,
    /// A promise behind another gateway of the array.
    OtherGateway,
    /// Nobody: the driver had not asked yet.
    Driver,
    /// Nobody that is known.
    Nobody,
}

/// What was charged to somebody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Charged {
    /// On whose behalf the time passed.
    pub whom: Whom,
    /// The time, summed over the requests that waited.
    pub time: Span,
    /// How many requests of theirs went to the device meanwhile, in the periods of 20 ms in which any time
    /// was charged.
    pub requests: u64,
}

/// Requests of about the same latency: within a factor of 1.25.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Band {
    /// Its number, in rising order of latency.
    number: u8,
    /// How many requests.
    pub count: u32,
    /// Where their time went, in sums.
    pub split: TimeSplit,
}

/// Where the time of a volume's requests went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimeSpent {
    /// Since when.
    pub since: Instant,
    /// The requests that were answered since, errors included, by rising latency.
    pub bands: Vec<Band>,
    /// For how long requests were held back since, by what, in the order of [`Hold::ALL`]. In sums over
    /// requests. A request that still waits counts with its time so far.
    pub holds: [Span; Hold::ALL.len()],
    /// On whose behalf requests waited for their turn since, most first. The sum is that of all `holds` which
    /// are no limit of the volume alone.
    pub waited_for: Vec<Charged>,
    /// Beside whose requests they were at the device since, most first. In sums over requests: a request that
    /// is there with three others for 4 ms is there for 1 ms with each of the four.
    pub beside: Vec<Charged>,
}

impl Band {
    fn add(&mut self, count: u32, split: &TimeSplit) {
        self.count = self.count.saturating_add(count);
        self.split.add(split);
    }
}

/// The last minutes of a volume.
#[derive(Debug)]
pub(crate) struct SpentHistory {
    began: Instant,
    /// The slices that have ended, the newest last.
    ended: VecDeque<Slice>,
    running: Slice,
}

/// A slice of a history.
#[derive(Debug)]
pub(crate) struct Slice {
    begins: Instant,
    ends: Instant,
    bands: Vec<Band>,
    holds: [Span; Hold::ALL.len()],
    waited_for: Charges,
    beside: Charges,
}

impl SpentHistory {
    /// For how long it is kept.
    pub(crate) const LENGTH: Span = SLICE.saturating_mul(KEPT as u64);

    pub(crate) fn new(now: Instant) -> Self {
        Self { began: now, ended: VecDeque::new(), running: Slice::at(now) }
    }

    /// A request was answered.
    #[inline]
    pub(crate) fn record(&mut self, now: Instant, split: &TimeSplit) {
        let number = band_of(split.total());
        let bands = &mut self.slice(now).bands;
        let at = bands.partition_point(|band| band.number < number);
        match bands.get_mut(at) {
            Some(band) if band.number == number => band.add(1, split),
            _ => bands.insert(at, Band { number, count: 1, split: *split }),
        }
    }

    /// The running slice.
    pub(crate) fn slice(&mut self, now: Instant) -> &mut Slice {
        if self.running.ends <= now {
            self.begin_slice(now);
        }
        &mut self.running
    }

    #[cold]
    fn begin_slice(&mut self, now: Instant) {
        let next = Slice::at(now);
        while self.ended.front().is_some_and(|first| first.ends + Self::LENGTH <= next.begins) {
            self.ended.pop_front();
        }
        let mut ended = std::mem::replace(&mut self.running, next);
        ended.shrink();
        self.ended.push_back(ended);
    }

    /// What is known of the time since `last` ago, to the slice. `whom` says which volume a key stands for.
    pub(crate) fn over(&self, now: Instant, last: Span, whom: impl Fn(Key) -> Whom) -> TimeSpent {
        let from = now - last;
        let slices = || self.ended.iter().chain([&self.running]).filter(|slice| slice.ends > from);
        let since = Instant::from_nanos(from.as_nanos() / SLICE.as_nanos() * SLICE.as_nanos());
        let earliest = slices().next().map_or(since, |slice| slice.begins.min(since));
        let mut spent = TimeSpent::none(earliest.max(self.began));
        let (mut waited_for, mut beside) = (Charges::default(), Charges::default());
        for slice in slices() {
            spent.add_bands(&slice.bands);
            spent.add_holds(&slice.holds);
            waited_for.add_all(&slice.waited_for);
            beside.add_all(&slice.beside);
        }
        (spent.waited_for, spent.beside) = (waited_for.named(&whom), beside.named(&whom));
        spent
    }
}

impl Slice {
    /// The one to which an instant belongs.
    fn at(now: Instant) -> Self {
        let begins = Instant::from_nanos(now.as_nanos() / SLICE.as_nanos() * SLICE.as_nanos());
        let (waited_for, beside) = (Charges::default(), Charges::default());
        let holds = [Span::ZERO; Hold::ALL.len()];
        Self { begins, ends: begins + SLICE, bands: Vec::new(), holds, waited_for, beside }
    }

    /// Gives back the memory that it does not need.
    fn shrink(&mut self) {
        self.bands.shrink_to_fit();
        self.waited_for.shrink();
        self.beside.shrink();
    }

    /// Requests were held back for so long, by each [`Hold`].
    pub(crate) fn hold(&mut self, holds: &[Span; Hold::ALL.len()]) {
        self.holds.iter_mut().zip(holds).for_each(|(sum, hold)| *sum += *hold);
    }

    /// Requests waited for their turn, for so long on behalf of `key`, of which so many requests went.
    pub(crate) fn wait_for(&mut self, key: Key, time: Span, requests: u64) {
        self.waited_for.add(key, time, requests);
    }

    /// Requests were at the device, for so long beside those of `key`, of which so many went there.
    pub(crate) fn be_beside(&mut self, key: Key, time: Span, requests: u64) {
        self.beside.add(key, time, requests);
    }
}

impl TimeSpent {
    /// Nothing, since then.
    pub const fn none(since: Instant) -> Self {
        let holds = [Span::ZERO; Hold::ALL.len()];
        Self { since, bands: Vec::new(), holds, waited_for: Vec::new(), beside: Vec::new() }
    }

    /// Adds what another port of the same volume spent.
    pub fn add(&mut self, other: &Self) {
        self.since = self.since.min(other.since);
        self.add_bands(&other.bands);
        self.add_holds(&other.holds);
        add_charged(&mut self.waited_for, &other.waited_for);
        add_charged(&mut self.beside, &other.beside);
    }

    /// How many requests were answered.
    pub fn count(&self) -> u64 {
        self.bands.iter().map(|band| u64::from(band.count)).sum()
    }

    /// Where the time of all of these went, in sums.
    pub fn sum(&self) -> TimeSplit {
        let mut sum = TimeSplit::default();
        self.bands.iter().for_each(|band| sum.add(&band.split));
        sum
    }

    /// The requests around a percentile, in tenths of a percent: those of the band that it falls into. `None`
    /// if no request was answered.
    pub fn around(&self, tenths: u16) -> Option<&Band> {
        let rank = (self.count() * u64::from(tenths)).div_ceil(1000).max(1);
        let mut below = 0;
        self.bands.iter().find(|band| {
            below += u64::from(band.count);
            below >= rank
        })
    }

    fn add_bands(&mut self, bands: &[Band]) {
        for band in bands {
            let at = self.bands.partition_point(|known| known.number < band.number);
            match self.bands.get_mut(at) {
                Some(known) if known.number == band.number => known.add(band.count, &band.split),
                _ => self.bands.insert(at, *band),
            }
        }
    }

    fn add_holds(&mut self, holds: &[Span; Hold::ALL.len()]) {
        self.holds.iter_mut().zip(holds).for_each(|(sum, hold)| *sum += *hold);
    }
}

/// Adds charges to charges, one entry for each of whom.
fn add_charged(charges: &mut Vec<Charged>, others: &[Charged]) {
    for other in others {
        match charges.iter_mut().find(|known| known.whom == other.whom) {
            Some(known) => {
                known.time += other.time;
                known.requests += other.requests;
            }
            None => charges.push(*other),
        }
    }
    charges.sort_by_key(|charged| (std::cmp::Reverse(charged.time), charged.whom));
}

/// The band of a latency.
fn band_of(latency: Span) -> u8 {
    const FIRST: u32 = 3; // below 8 us, all are in one band
    let us = latency.as_micros();
    let Some(above) = us.checked_ilog2().and_then(|power| power.checked_sub(FIRST)) else { return 0 };
    let quarter = us >> (above + FIRST - 2) & 3;
    let number = 1 + 4 * u64::from(above) + quarter;
    u8::try_from(number).map_or(BANDS - 1, |number| number.min(BANDS - 1))
}

#[cfg(test)]
mod tests;
