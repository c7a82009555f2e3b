//! Whether a promise is out of reach: it is missed though nobody is left who could be held back.
//!
//! Then somebody has to know, because no law can help: the promise is too much for the device, or for the
//! company that the volume is in. So the law says which promise it is, by how much it is missed, and because
//! of what. It says so once the promise was missed for ten seconds more than it was kept, and until it was
//! kept for as long.
//!
//! | what was seen | because of |
//! |---|---|
//! | the volume has caps and is promised a latency, and its requests wait in the scheduler for longer than at the device | its own limits: nothing else keeps such a request from the device |
//! | almost nothing is added, and requests take far longer than they could | what the device was given before |
//! | another promised volume had the device for longer | that volume |
//! | background volumes had | their share of the time |
//! | otherwise | the device, or what the volume itself asks of it |

use serde::{Deserialize, Serialize};
use weir_model::Target;

use super::{PERIOD, PromiseObservation};

/// Periods for which a promise must have been missed: ten seconds.
const CERTAIN: u32 = 200;
/// A promise is missed from here on. A rate that is just reached is above its limit now and then.
const MISSED: f64 = 1.02;
/// Another promise is named only if it is so many times as far out of reach: two that are alike would take
/// turns otherwise.
const FARTHER: f64 = 1.1;
/// By which part of the difference a mean follows in a period: within 2.5 s.
const FOLLOWS: f64 = 0.02;

/// A promise that is out of reach.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shortfall<V> {
    /// The volume.
    pub volume: V,
    /// By how much: 2 is twice the latency, or half the rate. 10 stands for all that is above.
    pub times: f64,
    /// Why.
    pub because: Because<V>,
}

/// Because of what a promise is out of reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Because<V> {
    /// The volume's own caps.
    OwnLimits,
    /// Another volume to which something is promised.
    Volume(V),
    /// The share of time that background volumes have in any case.
    Background,
    /// What the device was given before, such as a full write cache.
    Backlog,
    /// The device, or what the volume itself asks of it.
    Device,
}

impl<V: Copy + PartialEq> Shortfall<V> {
    /// Whether this says something else than the other one: how far a promise is out of reach is measured,
    /// and changes a little each time.
    pub fn is_other_than(&self, other: &Self) -> bool {
        let is_same = self.volume == other.volume && self.because == other.because;
        !is_same || (self.times - other.times).abs() > other.times / 10.0
    }

    /// The same with volumes that are called differently; `None` if one of them is unknown.
    pub fn with_volumes<W>(self, of: impl Fn(V) -> Option<W>) -> Option<Shortfall<W>> {
        let because = match self.because {
            Because::Volume(volume) => Because::Volume(of(volume)?),
            Because::OwnLimits => Because::OwnLimits,
            Because::Background => Because::Background,
            Because::Backlog => Because::Backlog,
            Because::Device => Because::Device,
        };
        Some(Shortfall { volume: of(self.volume)?, times: self.times, because })
    }
}

/// What is known of a volume.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Known {
    serial: u64,
    is_promised: bool,
    /// Whether its requests wait in the scheduler for nothing but its own caps, unless all have to wait.
    waits_for_caps: bool,
    /// How many of its requests were at the device and in the scheduler, on average over the last seconds.
    at_device: f64,
    waiting: f64,
    /// How close it was to missing its promise in this period; zero if it was silent.
    strain: f64,
    /// Periods in which it missed its promise and nobody was left to be held back, less all others.
    missed: u32,
    is_certain: bool,
    /// By how much it missed its promise in such periods.
    times: f64,
}

/// How far promises are out of reach.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Reach {
    /// In the observer's order.
    volumes: Vec<Known>,
    /// For which part of the time almost nothing was added and requests took far longer than they could.
    backlog: f64,
    /// The volume whose promise is named as out of reach.
    named: Option<u64>,
}

impl Reach {
    /// Takes in what the volumes had in a period.
    pub(super) fn observe(&mut self, seen: &PromiseObservation) {
        let period = PERIOD.as_secs_f64();
        for (place, volume) in seen.volumes.iter().enumerate() {
            if self.volumes.get(place).is_none_or(|known| known.serial != volume.serial) {
                // The volumes behind it have moved, too.
                self.volumes.truncate(place);
                self.volumes.push(Known { serial: volume.serial, ..Known::default() });
            }
            if let Some(known) = self.volumes.get_mut(place) {
                let (spent, at_device) = (volume.spent.as_secs_f64(), volume.at_device_for.as_secs_f64());
                known.is_promised = volume.target.is_some();
                // Beyond the covered part of a promised rate, requests wait as those of the background do.
                let is_of_latency =
                    matches!(volume.target, Some(Target::Latency(_) | Target::Percentile(..)));
                known.waits_for_caps = volume.is_capped && is_of_latency;
                if !known.is_promised {
                    known.missed = 0;
                }
                known.strain = 0.0;
                known.at_device += FOLLOWS * (at_device / period - known.at_device);
                known.waiting += FOLLOWS * ((spent - at_device).max(0.0) / period - known.waiting);
            }
        }
        self.volumes.truncate(seen.volumes.len());
    }

    /// A volume was so close to missing its promise in this period.
    pub(super) fn note(&mut self, place: usize, strain: f64) {
        if let Some(known) = self.volumes.get_mut(place) {
            known.strain = strain;
        }
    }

    /// Ends a period. `nobody_left`: no background volume could be held back further; `is_backlog`: almost
    /// nothing is added, and requests take far longer than they could.
    pub(super) fn step(&mut self, nobody_left: bool, is_backlog: bool) {
        self.backlog += FOLLOWS * (f64::from(u8::from(is_backlog)) - self.backlog);
        self.volumes.iter_mut().for_each(|known| known.step(nobody_left));
        let certain = || self.volumes.iter().filter(|known| known.is_certain);
        let named = certain().find(|known| Some(known.serial) == self.named);
        let least = named.map_or(0.0, |named| named.times * FARTHER);
        let farther = certain().filter(|known| known.times >= least);
        let farthest = farther.max_by(|one, other| one.times.total_cmp(&other.times));
        self.named = farthest.or(named).map(|known| known.serial);
    }

    /// The promise that is farthest out of reach. `is_lowered`: rates are lowered, so promised volumes wait
    /// for that, too.
    pub(super) fn shortfall(&self, is_lowered: bool) -> Option<Shortfall<u64>> {
        let own = self.volumes.iter().find(|known| Some(known.serial) == self.named)?;
        let others = self.volumes.iter().filter(|known| known.is_promised && known.serial != own.serial);
        let most = others.max_by(|one, other| one.at_device.total_cmp(&other.at_device));
        let background = self.volumes.iter().filter(|known| !known.is_promised);
        let background: f64 = background.map(|known| known.at_device).sum();
        let because = if own.waits_for_caps && own.waiting > own.at_device && !is_lowered {
            Because::OwnLimits
        } else if self.backlog > 0.5 {
            Because::Backlog
        } else if let Some(most) = most.filter(|most| most.at_device > own.at_device.max(background)) {
            Because::Volume(most.serial)
        } else if background > own.at_device {
            Because::Background
        } else {
            Because::Device
        };
        Some(Shortfall { volume: own.serial, times: own.times, because })
    }
}

impl Known {
    fn step(&mut self, nobody_left: bool) {
        if nobody_left && self.strain > MISSED {
            let follows = if self.missed == 0 { 1.0 } else { FOLLOWS };
            self.times += follows * (self.strain - self.times);
            self.missed = (self.missed + 1).min(CERTAIN);
        } else {
            self.missed = self.missed.saturating_sub(1);
        }
        self.is_certain = self.missed == CERTAIN || self.is_certain && self.missed > 0;
    }
}

#[cfg(test)]
mod tests {
    use weir_model::{Iops, Span, Target};

    use super::super::PromisedObservation;
    use super::*;

    /// What a volume had: requests at the device and in the scheduler, on average.
    fn volume(serial: u64, is_promised: bool, at_device: f64, waiting: f64) -> PromisedObservation {
        let period = PERIOD.as_secs_f64();
        PromisedObservation {
            serial,
            target: is_promised.then_some(Target::Latency(Span::from_millis(5))),
            spent: Span::from_secs_f64((at_device + waiting) * period),
            at_device_for: Span::from_secs_f64(at_device * period),
            ..PromisedObservation::default()
        }
    }

    /// What is said of volume 1 after it has missed its promise by three times for `missed` periods.
    fn said(volumes: Vec<PromisedObservation>, missed: u32, is_backlog: bool) -> Option<Shortfall<u64>> {
        let (mut reach, seen) =
            (Reach::default(), PromiseObservation { volumes, background_peak: 0, background_at_device: 0 });
        for _ in 0..missed {
            reach.observe(&seen);
            reach.note(0, 3.0);
            reach.step(true, is_backlog);
        }
        reach.shortfall(false)
    }

    #[test]
    fn nothing_is_said_before_ten_seconds() {
        let alone = || vec![volume(1, true, 4.0, 0.0)];
        assert_eq!(said(alone(), CERTAIN - 1, false), None);
        let shortfall = said(alone(), CERTAIN, false).unwrap();
        assert_eq!((shortfall.volume, shortfall.because), (1, Because::Device));
        assert!((shortfall.times - 3.0).abs() < 1e-9);
    }

    #[test]
    fn each_cause_is_told_from_the_others() {
        let because = |volumes, is_backlog| said(volumes, 300, is_backlog).map(|said| said.because);
        let own = volume(1, true, 4.0, 1.0);
        let waits = PromisedObservation { is_capped: true, ..volume(1, true, 4.0, 9.0) };
        assert_eq!(because(vec![waits], false), Some(Because::OwnLimits));
        assert_eq!(because(vec![own, volume(2, true, 5.0, 0.0)], false), Some(Because::Volume(2)));
        assert_eq!(because(vec![own, volume(2, true, 3.0, 0.0)], false), Some(Because::Device));
        assert_eq!(because(vec![own, volume(2, false, 5.0, 9.0)], false), Some(Because::Background));
        assert_eq!(because(vec![own, volume(2, true, 5.0, 0.0)], true), Some(Because::Backlog));
    }

    #[test]
    fn requests_that_wait_for_no_cap_are_not_held_back_by_own_limits() {
        let because = |seen| said(vec![seen], 300, false).map(|said| said.because);
        let waits = volume(1, true, 4.0, 9.0);
        assert_eq!(because(waits), Some(Because::Device), "it has no caps");
        let rate = Iops::new(900.0).map(Target::Rate);
        let beyond = PromisedObservation { is_capped: true, target: rate, ..waits };
        assert_eq!(because(beyond), Some(Because::Device), "what is beyond the covered part waits, too");
    }

    #[test]
    fn of_two_promises_that_are_alike_one_stays_named() {
        let mut reach = Reach::default();
        let volumes = vec![volume(1, true, 4.0, 0.0), volume(2, true, 4.0, 0.0)];
        let seen = PromiseObservation { volumes, background_peak: 0, background_at_device: 0 };
        let mut named = Vec::new();
        for period in 0..2_000 {
            reach.observe(&seen);
            let strain = if period / 100 % 2 == 0 { [3.0, 3.1] } else { [3.1, 3.0] };
            (0..2).for_each(|at| reach.note(at, strain[at]));
            reach.step(true, false);
            named.extend(reach.shortfall(false).map(|shortfall| shortfall.volume));
        }
        named.dedup();
        assert_eq!(named.len(), 1, "{named:?}");
    }

    #[test]
    fn it_is_within_reach_again_when_it_was_kept_for_ten_seconds() {
        let mut reach = Reach::default();
        let volumes = vec![volume(1, true, 4.0, 0.0), volume(2, true, 1.0, 0.0)];
        let seen = PromiseObservation { volumes, background_peak: 0, background_at_device: 0 };
        let mut step = |strain, nobody_left, periods| {
            for _ in 0..periods {
                reach.observe(&seen);
                reach.note(0, strain);
                reach.step(nobody_left, false);
            }
            reach.shortfall(false).map(|shortfall| shortfall.volume)
        };
        assert_eq!(step(3.0, false, 1_000), None, "others can still be held back");
        assert_eq!(step(3.0, true, CERTAIN), Some(1));
        assert_eq!(step(0.5, true, CERTAIN - 1), Some(1));
        assert_eq!(step(0.5, true, 1), None);
    }
}
