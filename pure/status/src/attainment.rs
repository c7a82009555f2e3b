//! In how many of its windows a volume's promise was kept: over the last minute, the last hour, the last day,
//! and since the volume is served.
//!
//! A single share since the start forgets nothing: after an hour without control, a volume that keeps its
//! promise in each window would show a poor figure for days. A share of the last minute alone says nothing of
//! the day. So there is one for each horizon, each with its burn rate.
//!
//! What is kept is bounded, whatever the number of windows: counts for each of the last 61 seconds and the
//! last 1,441 minutes, which are whole numbers. A horizon is those slices that are not older than it, and the
//! one that is running. So it may go back up to one slice further than it says, and `over_s` says how far. A
//! window counts in the slice in which its verdict is known.
//!
//! A gateway that stands still, because it is stopped or its host is, ends no windows meanwhile: the window
//! that was running becomes as long as the stall, and is judged as one. What it was longer than a window is
//! time that nobody judged, and a horizon says how much of that lies in it.

use std::array;

use serde::{Deserialize, Serialize};
use weir_model::{Instant, SloGoal, Span};

use crate::windows::WindowCounters;

const SECOND: Span = Span::from_secs(1);
const MINUTE: Span = Span::from_secs(60);
const SECONDS: usize = 61;
const MINUTES: usize = 24 * 60 + 1;

/// The windows of a volume that were met and missed, by the time of their verdicts.
#[derive(Clone, Debug)]
pub struct WindowHistory {
    began: Instant,
    seconds: Slices<SECONDS>,
    minutes: Box<Slices<MINUTES>>,
    /// The time since it is served that was not judged.
    not_judged: Span,
}

/// Counts of the last slices of time. They lie in a ring.
#[derive(Clone, Debug)]
struct Slices<const N: usize> {
    length: Span,
    /// The number of the newest slice, from the origin of time.
    newest: u64,
    ring: [Counts; N],
}

#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    met: u32,
    missed: u32,
    not_judged: Span,
}

/// The counts of several slices.
#[derive(Clone, Copy, Default, Debug)]
struct Sum {
    met: u64,
    missed: u64,
    not_judged: Span,
}

/// How well a promise was kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SloAttainment {
    /// In how many of a hundred windows it is to be kept.
    pub goal_percent: f64,
    /// Over the last minute.
    pub last_minute: Horizon,
    /// Over the last hour.
    pub last_hour: Horizon,
    /// Over the last day.
    pub last_day: Horizon,
    /// Since the volume is served.
    pub since_start: Horizon,
}

/// How well a promise was kept over some time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Horizon {
    /// How far it goes back, in seconds.
    pub over_s: f64,
    /// Whether the volume has been served and judged for that long; `false`: the horizon is longer than its
    /// uptime, or a part of it was not judged.
    pub is_whole: bool,
    /// For how much of it no windows were judged, because the gateway stood still, in seconds.
    pub not_judged_s: f64,
    /// Windows in which the promise was kept.
    pub windows_met: u64,
    /// Windows in which it was not.
    pub windows_missed: u64,
    /// The share of both in which it was kept; `None`: none was judged, here and below.
    pub met_percent: Option<f64>,
    /// How many times as fast as the goal allows windows were missed.
    pub burn_rate: Option<f64>,
    /// How much of the error budget of this horizon is left; below zero: more was missed than allowed.
    pub budget_left_percent: Option<f64>,
}

impl SloAttainment {
    /// The horizons, each with its name in the labels of the metrics.
    pub const fn horizons(&self) -> [(&'static str, &Horizon); 4] {
        [
            ("minute", &self.last_minute),
            ("hour", &self.last_hour),
            ("day", &self.last_day),
            ("start", &self.since_start),
        ]
    }
}

impl WindowHistory {
    /// Of a volume that is served from now on.
    pub fn new(now: Instant) -> Self {
        let (seconds, minutes) = (Slices::new(SECOND), Box::new(Slices::new(MINUTE)));
        Self { began: now, seconds, minutes, not_judged: Span::ZERO }
    }

    /// Counts a window whose verdict is known now.
    pub fn record(&mut self, now: Instant, is_met: bool) {
        for counts in [self.seconds.at(now), self.minutes.at(now)] {
            let count = if is_met { &mut counts.met } else { &mut counts.missed };
            *count = count.saturating_add(1);
        }
    }

    /// A window has ended now after `took`, where windows have this `length`. Less than a second too much is
    /// a busy host, and no stall.
    pub fn note_length(&mut self, now: Instant, took: Span, length: Span) {
        let beyond = Span::from_nanos(took.as_nanos().saturating_sub(length.as_nanos()));
        if beyond < length.max(SECOND) {
            return;
        }
        for counts in [self.seconds.at(now), self.minutes.at(now)] {
            counts.not_judged += beyond;
        }
        self.not_judged += beyond;
    }

    /// The horizons, for this goal; `since_start` are all windows since the volume is served.
    pub fn attainment(&self, now: Instant, since_start: WindowCounters, goal: SloGoal) -> SloAttainment {
        let Self { began, seconds, minutes, not_judged } = self;
        let horizon = |length: Span, sum: Sum, from: Instant| {
            let uptime = now.saturating_since(*began);
            let over = now.saturating_since(from.max(*began));
            // A stall may have begun before the horizon.
            let sum = Sum { not_judged: sum.not_judged.min(over), ..sum };
            Horizon::new(over, uptime >= length, sum, goal)
        };
        let of_minutes = |slices: usize| {
            horizon(
                MINUTE.saturating_mul(slices as u64),
                minutes.sum(now, slices),
                minutes.begin(now, slices),
            )
        };
        let WindowCounters { met, missed, .. } = since_start;
        SloAttainment {
            goal_percent: goal.share() * 100.0,
            last_minute: horizon(MINUTE, seconds.sum(now, 60), seconds.begin(now, 60)),
            last_hour: of_minutes(60),
            last_day: of_minutes(24 * 60),
            since_start: horizon(Span::ZERO, Sum { met, missed, not_judged: *not_judged }, *began),
        }
    }
}

impl<const N: usize> Slices<N> {
    fn new(length: Span) -> Self {
        Self { length, newest: 0, ring: array::from_fn(|_| Counts::default()) }
    }

    fn number(&self, now: Instant) -> u64 {
        now.as_nanos() / self.length.as_nanos()
    }

    /// The place of a slice in the ring, which is below `N`, so that no index is out of bounds.
    #[allow(clippy::cast_possible_truncation)] // as said
    fn place(number: u64) -> usize {
        (number % N as u64) as usize
    }

    /// The counts of the slice that is running.
    fn at(&mut self, now: Instant) -> &mut Counts {
        let number = self.number(now);
        // What lies in the places of the slices that have begun is older than the ring is long.
        let begun = number.saturating_sub(self.newest).min(N as u64);
        for gone in 0..begun {
            self.ring[Self::place(number - gone)] = Counts::default();
        }
        self.newest = self.newest.max(number);
        &mut self.ring[Self::place(number)]
    }

    /// What was met, missed and not judged in the slice that is running and in as many before it as `slices`.
    fn sum(&self, now: Instant, slices: usize) -> Sum {
        let number = self.number(now);
        let oldest = number.saturating_sub(slices as u64);
        // The ring knows nothing older, and nothing newer than what was recorded last.
        let known = (self.newest + 1).saturating_sub(N as u64)..=self.newest;
        let counts = (oldest..=number).filter(|number| known.contains(number));
        counts.map(|number| self.ring[Self::place(number)]).fold(Sum::default(), |sum, counts| Sum {
            met: sum.met + u64::from(counts.met),
            missed: sum.missed + u64::from(counts.missed),
            not_judged: sum.not_judged + counts.not_judged,
        })
    }

    /// When the oldest slice of [`Slices::sum`] began.
    fn begin(&self, now: Instant, slices: usize) -> Instant {
        let oldest = self.number(now).saturating_sub(slices as u64);
        Instant::from_nanos(self.length.as_nanos() * oldest)
    }
}

impl Horizon {
    fn new(over: Span, is_long_enough: bool, sum: Sum, goal: SloGoal) -> Self {
        let Sum { met, missed, not_judged } = sum;
        let burn_rate = goal.burn_rate(met, missed);
        let counted = WindowCounters { met, missed, ..WindowCounters::default() };
        Self {
            over_s: over.as_secs_f64(),
            is_whole: is_long_enough && not_judged.is_zero(),
            not_judged_s: not_judged.as_secs_f64(),
            windows_met: met,
            windows_missed: missed,
            met_percent: counted.attainment().map(|share| share * 100.0),
            burn_rate,
            budget_left_percent: burn_rate.map(|burn| (1.0 - burn) * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A volume in virtual time, with a window in each second.
    struct Volume {
        now: Instant,
        history: WindowHistory,
        all: WindowCounters,
    }

    impl Volume {
        fn new() -> Self {
            // A machine has been up for a while, and not for a whole number of minutes.
            let now = Instant::from_nanos(123_456_789_012_345);
            Self { now, history: WindowHistory::new(now), all: WindowCounters::default() }
        }

        fn windows(&mut self, seconds: u64, is_met: bool) {
            for _ in 0..seconds {
                self.now = self.now + SECOND;
                self.history.record(self.now, is_met);
                let count = if is_met { &mut self.all.met } else { &mut self.all.missed };
                *count += 1;
            }
        }

        fn attainment(&self) -> SloAttainment {
            self.history.attainment(self.now, self.all, SloGoal::default())
        }
    }

    fn counts(horizon: &Horizon) -> (u64, u64) {
        (horizon.windows_met, horizon.windows_missed)
    }

    #[test]
    fn each_horizon_counts_what_lies_within_it() {
        let mut volume = Volume::new();
        volume.windows(40_000, false);
        volume.windows(7_200, true);
        volume.windows(30, false);
        let found = volume.attainment();
        // One slice more than the horizon may count: the one that is running.
        assert_eq!(counts(&found.last_minute), (31, 30));
        let (met, missed) = counts(&found.last_hour);
        assert!(missed == 30 && (3_570..3_630).contains(&met), "{met} met");
        assert_eq!(counts(&found.last_day), (7_200, 40_030));
        assert_eq!(counts(&found.since_start), (7_200, 40_030));
        volume.windows(100_000, true);
        let found = volume.attainment();
        assert_eq!((counts(&found.last_minute).1, counts(&found.last_hour).1), (0, 0));
        let (met, missed) = counts(&found.last_day);
        assert!(missed == 0 && (86_400..86_460).contains(&met), "{met} met, {missed} missed");
        assert_eq!(counts(&found.since_start), (107_200, 40_030));
    }

    #[test]
    fn a_horizon_goes_back_no_further_than_one_slice_more_and_says_how_far() {
        let mut volume = Volume::new();
        volume.windows(200_000, true);
        let found = volume.attainment();
        for (horizon, seconds, slice) in [
            (&found.last_minute, 60.0, 1.0),
            (&found.last_hour, 3600.0, 60.0),
            (&found.last_day, 86_400.0, 60.0),
        ] {
            assert!(horizon.is_whole && (seconds..seconds + slice).contains(&horizon.over_s), "{horizon:?}");
            // A window in each second, so the counts say the same.
            let counted = horizon.windows_met as f64;
            assert!((counted - horizon.over_s).abs() <= 1.0, "{horizon:?}");
        }
        assert!((found.since_start.over_s - 200_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_horizon_that_is_longer_than_the_uptime_says_so() {
        let mut volume = Volume::new();
        volume.windows(300, true);
        let found = volume.attainment();
        assert!(found.last_minute.is_whole && found.since_start.is_whole);
        for horizon in [&found.last_hour, &found.last_day] {
            assert_eq!((horizon.is_whole, horizon.over_s, counts(horizon)), (false, 300.0, (300, 0)));
        }
    }

    #[test]
    fn a_horizon_in_which_the_gateway_stood_still_is_not_whole_and_says_for_how_long() {
        let mut volume = Volume::new();
        volume.windows(100_000, true);
        // One window of 20 s in place of twenty.
        volume.now = volume.now + Span::from_secs(20);
        volume.history.note_length(volume.now, Span::from_secs(20), SECOND);
        volume.history.record(volume.now, true);
        volume.all.met += 1;
        let not_judged = |volume: &Volume| {
            let found = volume.attainment();
            found.horizons().map(|(_, horizon)| (horizon.is_whole, horizon.not_judged_s))
        };
        assert_eq!(not_judged(&volume), [(false, 19.0); 4]);
        volume.windows(62, true);
        assert_eq!(not_judged(&volume)[..2], [(true, 0.0), (false, 19.0)]);
        volume.windows(4_000, true);
        assert_eq!(not_judged(&volume), [(true, 0.0), (true, 0.0), (false, 19.0), (false, 19.0)]);
    }

    #[test]
    fn a_stall_that_began_before_a_horizon_counts_for_no_more_than_the_horizon() {
        let mut volume = Volume::new();
        volume.windows(10, true);
        volume.now = volume.now + Span::from_secs(1_000);
        volume.history.note_length(volume.now, Span::from_secs(1_000), SECOND);
        let found = volume.attainment();
        let minute = &found.last_minute;
        assert!((minute.not_judged_s - minute.over_s).abs() < 1e-9, "{minute:?}");
        assert!((found.since_start.not_judged_s - 999.0).abs() < 1e-9);
    }

    #[test]
    fn a_window_that_is_a_little_late_is_no_stall() {
        let mut volume = Volume::new();
        volume.windows(10, true);
        for (took, length) in [(1_900, 1_000), (1_019, 20), (5_900, 3_000), (1, 1_000)] {
            let (took, length) = (Span::from_millis(took), Span::from_millis(length));
            volume.history.note_length(volume.now, took, length);
        }
        assert!(volume.attainment().since_start.is_whole);
        volume.history.note_length(volume.now, Span::from_secs(2), SECOND);
        assert!(!volume.attainment().since_start.is_whole);
    }

    #[test]
    fn the_burn_rate_and_the_budget_follow_from_the_goal() {
        let mut volume = Volume::new();
        volume.windows(99, true);
        volume.windows(1, false);
        let found = volume.attainment();
        assert_eq!((found.goal_percent, found.since_start.met_percent), (99.0, Some(99.0)));
        assert_eq!(found.since_start.burn_rate, Some(1.0));
        assert_eq!(found.since_start.budget_left_percent, Some(0.0));
        volume.windows(100, false);
        let spent = volume.attainment().since_start.budget_left_percent.unwrap();
        assert!(spent < -4_000.0, "more was missed than allowed: {spent}");
    }

    #[test]
    fn what_is_silent_leaves_the_horizons_one_after_the_other() {
        let mut volume = Volume::new();
        volume.windows(60, false);
        for (later, minute, hour, day) in
            [(0, 60, 60, 60), (120, 0, 60, 60), (3_720, 0, 0, 60), (90_000, 0, 0, 0)]
        {
            let now = volume.now + Span::from_secs(later);
            let found = volume.history.attainment(now, volume.all, SloGoal::default());
            let missed = [&found.last_minute, &found.last_hour, &found.last_day].map(|h| h.windows_missed);
            assert_eq!(missed, [minute, hour, day], "{later} s later");
        }
        let now = volume.now + Span::from_secs(90_000);
        let silent = volume.history.attainment(now, volume.all, SloGoal::default());
        assert_eq!((silent.last_day.met_percent, silent.last_day.burn_rate), (None, None));
        assert_eq!(silent.since_start.windows_missed, 60);
        // The places of a day ago are used anew, and nothing of what was in them shows.
        volume.now = now;
        volume.windows(1, true);
        assert_eq!(counts(&volume.attainment().last_day), (1, 0));
    }

    #[test]
    fn windows_of_any_number_and_at_any_time_are_counted_exactly() {
        let mut history = WindowHistory::new(Instant::ORIGIN);
        let mut judged: Vec<(u64, bool)> = Vec::new();
        let mut now = 0;
        for i in 0_u64..20_000 {
            // Steps from 10 ms to some minutes, without any chance in them.
            now += 10 + (i * i * 7_919) % if i % 50 == 0 { 400_000 } else { 900 };
            judged.push((now, i % 3 != 0));
            history.record(Instant::from_nanos(now * 1_000_000), i % 3 != 0);
        }
        let at = Instant::from_nanos(now * 1_000_000);
        let found = history.attainment(at, WindowCounters::default(), SloGoal::default());
        for horizon in [&found.last_minute, &found.last_hour, &found.last_day] {
            let from = now as f64 / 1e3 - horizon.over_s;
            let within = judged.iter().filter(|(at, _)| *at as f64 / 1e3 >= from - 1e-9);
            let met = within.clone().filter(|(_, is_met)| *is_met).count() as u64;
            assert_eq!(counts(horizon), (met, within.count() as u64 - met), "{horizon:?}");
        }
    }

    #[test]
    fn the_names_of_the_json_are_those_that_scripts_know() {
        let mut volume = Volume::new();
        volume.windows(50, true);
        let json = serde_json::to_string(&volume.attainment()).unwrap();
        let minute = r#""last_minute":{"over_s":50.0,"is_whole":false,"not_judged_s":0.0,"windows_met":50,"windows_missed":0,"met_percent":100.0,"burn_rate":0.0,"budget_left_percent":100.0}"#;
        assert!(json.starts_with(r#"{"goal_percent":99.0,"#) && json.contains(minute), "{json}");
        assert_eq!(serde_json::from_str::<SloAttainment>(&json).unwrap(), volume.attainment());
    }
}
