//! What the gateways of one array tell one another, and what one of them knows of the others.
//!
//! A promised volume and the background that hinders it may be behind two gateways. So each gateway says how
//! its own promises stand: its [`Standing`]. It hears the standings of all others as one: the worst of each
//! figure. To the law, these are one more promised volume. Each gateway bounds its own background, and all
//! cut and raise by the same strain, so their bounds stay in proportion.
//!
//! - What background may have in any case is divided by the number of gateways where it has requests.
//!   Example: of the least bound of a sixteenth of the time, each of two gateways has a thirty-second.
//! - A cut leaves a gateway no more than the mean of what the others have. So a gateway whose background
//!   comes late has no more than they have after the next cut.
//! - A gateway whose background has no requests is not cut. Otherwise it would begin with the least bound
//!   when it comes back.
//!
//! **What is old counts less.** A strain is believed for 200 ms: an older one says nothing of the open
//! window. Everything else is believed for 2 s. After that, the others are *lost*: nobody says whether their
//! promises are kept. Then the gateway holds its background at the bound that it has, and does not raise it.
//! A gateway that has not heard of the others since its start holds it at one request.

use serde::{Deserialize, Serialize};
use weir_model::{Instant, Span};

use super::WORST;
use super::strain::Strain;

/// A strain is believed for so long.
pub(super) const STRAIN: Span = Span::from_millis(200);
/// Everything else that was heard is believed for so long.
pub(super) const LEASE: Span = Span::from_secs(2);
/// The longest latency that is believed, in seconds: an hour.
const LONGEST: f64 = 3600.0;
/// The longest service time that is believed, in seconds. Each background request counts as so much.
const LONGEST_SERVICE: f64 = 1.0;
/// The most gateways that are believed to be there.
const MOST: u32 = 1_024;
/// The most requests that are believed to be allowed.
const MOST_REQUESTS: f64 = 1e12;
/// A gateway that has nothing new to say says so after so many periods: four times in a lease.
const SILENT: u32 = 10;

/// How the promises of a gateway stand, or those of several gateways together.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Standing {
    /// Whether a volume is promised something.
    pub is_promised: bool,
    /// Whether a promised volume has a request, or had one in the last period.
    pub is_there: bool,
    /// The shortest promised latency; `None`: no latency is promised.
    pub latency: Option<Span>,
    /// How close the volume that is worst off is to missing its promise; `None`: all are silent.
    pub strain: Option<Strain>,
    /// How close it was in the last second, by the requests of that second alone.
    pub last_second: f64,
    /// Behind how many gateways background volumes have requests.
    pub backgrounds: u32,
    /// Behind how many of these they have a bound, and the sum of these bounds, in requests at the device.
    pub bounded: u32,
    /// See `bounded`.
    pub bounds: f64,
    /// Whether some of them are not held to less than one request at a time.
    pub is_in_the_way: bool,
    /// How often the background was cut, modulo 2^32. The sum of several gateways.
    pub cuts: u32,
}

impl Standing {
    /// That of both together: in each respect the worse one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            is_promised: self.is_promised || other.is_promised,
            is_there: self.is_there || other.is_there,
            latency: self.latency.into_iter().chain(other.latency).min(),
            strain: match (self.strain, other.strain) {
                (Some(one), Some(other)) => Some(one.worse(other)),
                (one, other) => one.or(other),
            },
            last_second: self.last_second.max(other.last_second),
            backgrounds: self.backgrounds.saturating_add(other.backgrounds),
            bounded: self.bounded.saturating_add(other.bounded),
            bounds: self.bounds + other.bounds,
            is_in_the_way: self.is_in_the_way || other.is_in_the_way,
            cuts: self.cuts.wrapping_add(other.cuts),
        }
    }

    /// The mean bound of these gateways' backgrounds, of those that have one.
    pub(super) fn mean_bound(&self) -> Option<f64> {
        (self.bounded > 0).then(|| self.bounds / f64::from(self.bounded))
    }

    /// The same, with every figure in its range. A figure that is no number becomes zero.
    #[must_use]
    pub fn bounded(self) -> Self {
        let within = |figure: f64, most: f64| if figure > 0.0 { figure.min(most) } else { 0.0 };
        let strain = self.strain.map(|strain| Strain {
            window: within(strain.window, WORST),
            lately: within(strain.lately, WORST),
            likely: within(strain.likely, WORST),
            latency: within(strain.latency, LONGEST),
            service: within(strain.service, LONGEST_SERVICE),
        });
        Self {
            strain,
            last_second: within(self.last_second, WORST),
            backgrounds: self.backgrounds.min(MOST),
            bounded: self.bounded.min(MOST),
            bounds: within(self.bounds, MOST_REQUESTS),
            ..self
        }
    }
}

/// What is known of the other gateways.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) enum Others {
    /// There are none.
    #[default]
    None,
    /// There are some, and nothing was heard of them yet.
    Unheard,
    /// This was heard last, then.
    Heard(Standing, Instant),
}

impl Others {
    /// Takes in what was heard. True: background volumes were cut behind another gateway meanwhile.
    pub(super) fn hear(&mut self, now: Instant, standing: Standing) -> bool {
        let before = self.last().cuts;
        *self = Self::Heard(standing.bounded(), now);
        before != standing.cuts
    }

    /// What was heard last, however long ago.
    pub(super) fn last(&self) -> Standing {
        if let Self::Heard(standing, _) = self { *standing } else { Standing::default() }
    }

    /// What is believed now.
    pub(super) fn believed(&self, now: Instant) -> Standing {
        match self {
            Self::Heard(standing, at) if now < *at + STRAIN => *standing,
            Self::Heard(standing, at) if now < *at + LEASE => Standing { strain: None, ..*standing },
            _ => Standing::default(),
        }
    }

    /// Whether there are others, of which nothing is known now.
    pub(super) fn are_lost(&self, now: Instant) -> bool {
        match self {
            Self::None => false,
            Self::Unheard => true,
            Self::Heard(_, at) => now >= *at + LEASE,
        }
    }
}

/// What a gateway has told the others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Told {
    standing: Standing,
    /// Periods since then.
    periods: u32,
}

/// Nothing yet, so it has something to say.
impl Default for Told {
    fn default() -> Self {
        Self { standing: Standing::default(), periods: SILENT }
    }
}

impl Told {
    /// Ends a period. What the others have to know now; `None`: nothing.
    pub(super) fn news(&mut self, standing: Standing) -> Option<Standing> {
        self.periods += 1;
        let is_news = standing.strain.is_some() || standing != self.standing || self.periods >= SILENT;
        is_news.then(|| {
            *self = Self { standing, periods: 0 };
            standing
        })
    }

    /// A promised volume has come back. What the others have to know at once.
    pub(super) fn on_return(&mut self) -> Standing {
        // The strain that was told last is of the time before the silence.
        self.standing = Standing { is_there: true, strain: None, ..self.standing };
        self.standing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strained(window: f64) -> Standing {
        let strain = Strain { window, lately: window, likely: 0.1, latency: 0.01, service: 0.001 };
        Standing { is_promised: true, is_there: true, strain: Some(strain), ..Standing::default() }
    }

    const fn after(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn several_gateways_stand_as_the_worst_of_them_in_each_respect() {
        let one = Standing { latency: Some(Span::from_millis(3)), cuts: u32::MAX, ..strained(0.5) };
        let other = Standing { latency: Some(Span::from_millis(2)), cuts: 2, ..strained(0.7) };
        let silent = Standing { is_in_the_way: true, last_second: 0.9, ..Standing::default() };
        let all = one.and(other).and(silent);
        assert_eq!((all.latency, all.cuts), (Some(Span::from_millis(2)), 1));
        assert!(all.strain.is_some_and(|strain| (strain.window - 0.7).abs() < 1e-9));
        assert!(all.is_promised && all.is_there && all.is_in_the_way && all.last_second > 0.8);
        assert_eq!(all, silent.and(other).and(one));
    }

    #[test]
    fn a_strain_is_believed_for_200_ms_and_the_rest_for_2_s_and_then_the_others_are_lost() {
        let mut others = Others::Unheard;
        assert!(others.are_lost(after(0)));
        others.hear(after(0), strained(0.7));
        assert!(others.believed(after(199)).strain.is_some());
        let old = others.believed(after(200));
        assert!(old.strain.is_none() && old.is_there);
        assert!(!others.are_lost(after(1_999)) && others.are_lost(after(2_000)));
        assert_eq!(others.believed(after(2_000)), Standing::default());
        assert!(others.last().is_promised, "that they are promised something is known");
        assert!(!Others::None.are_lost(after(0)));
    }

    #[test]
    fn figures_that_make_no_sense_are_brought_into_their_ranges() {
        let strain = Strain {
            window: f64::NAN,
            lately: f64::INFINITY,
            likely: -1.0,
            latency: f64::NEG_INFINITY,
            service: 1e300,
        };
        let mut others = Others::Unheard;
        let said = Standing { strain: Some(strain), last_second: f64::NAN, ..Standing::default() };
        others.hear(after(0), said);
        let heard = others.believed(after(0));
        let sane = Strain { window: 0.0, lately: WORST, likely: 0.0, latency: 0.0, service: LONGEST_SERVICE };
        assert_eq!((heard.strain, heard.last_second), (Some(sane), 0.0));
    }

    #[test]
    fn a_gateway_whose_promises_are_silent_says_so_twice_a_second() {
        let mut told = Told::default();
        let mut said = |standing| (0..20).filter(|_| told.news(standing).is_some()).count();
        assert_eq!(said(strained(0.5)), 20, "each period while there is a strain");
        assert_eq!(said(Standing::default()), 2);
    }
}
