//! Would the promises hold? A proposed pool and the one of today, side by side, from what their volumes have
//! asked for once.
//!
//! A volume's promise **holds** if its mean latency was what was promised in at least 99 of 100 of the
//! windows in which something was promised. (The published controllers are judged by the same: Façade §4
//! counts the windows in which an SLO is met.) Windows in which the volume offers more than its SLO covers
//! have no promise to keep; a volume that had nothing but such windows has an SLO that does not fit its load,
//! and does not hold either.

use weir_engine::VolumeConfig;
use weir_sim::Utilisation;

use crate::replay::Outcome;

/// The share of the windows in which a promise has to be kept.
pub const HOLDS_FROM: f64 = 0.99;

/// The share of time from which on a part of an array is the reason for waiting, wherever requests wait:
/// deeper queues would not get more from it.
const SATURATED: f64 = 0.9;

/// Whether a volume's promise is kept.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Answer {
    /// In at least 99 of 100 windows.
    Holds,
    /// Not; and what stands in the way.
    Fails(Binding),
    /// Nothing is promised, or nothing was asked for.
    NoPromise,
}

/// What stands in the way of a promise. Shares are from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Binding {
    /// The volume offers more than its SLO covers, always.
    Contract,
    /// The volume's requests wait for its own limit on requests or bytes a second, or on requests at a time.
    OwnLimit {
        /// Of their latency, all together.
        share: f64,
    },
    /// The volume's requests wait for their turn: the pool lets no more to an array that has time left.
    Depth {
        /// Of their latency, all together.
        share: f64,
    },
    /// The disks of the array.
    Disks {
        /// Of the time in which the busiest had something to do.
        busy: f64,
    },
    /// The array's ports.
    Port {
        /// Of the time in which the busiest carried data.
        busy: f64,
    },
    /// The array's NVRAM, which is emptied too slowly, though no disk is busy all the time.
    Nvram {
        /// Of the time in which a write waited for room.
        full: f64,
    },
}

impl Binding {
    /// In words, for a pool on the array of this name.
    pub fn words(self, array: &str) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match self {
            Self::Contract => "it offers more than its SLO covers".to_owned(),
            Self::OwnLimit { share } => format!("its own limit: {} of its latency", percent(share)),
            Self::Depth { share } => {
                format!("the queue depth of the pool: {} of its latency", percent(share))
            }
            Self::Disks { busy } => format!("disks of array {array}: busiest {} busy", percent(busy)),
            Self::Port { busy } => format!("ports of array {array}: busiest {} busy", percent(busy)),
            Self::Nvram { full } => format!("NVRAM of array {array}: full {} of the time", percent(full)),
        }
    }
}

/// Whether the promise of a volume that is treated like this is kept.
pub fn answer(volume: &VolumeConfig, outcome: &Outcome) -> Answer {
    if volume.slo.is_none() {
        return Answer::NoPromise;
    }
    match outcome.windows.attainment() {
        Some(share) if share >= HOLDS_FROM => Answer::Holds,
        Some(_) => Answer::Fails(binding(volume, outcome)),
        None if outcome.windows.out_of_contract > 0 => Answer::Fails(Binding::Contract),
        None => Answer::NoPromise,
    }
}

/// What the time of the volume's requests goes to.
fn binding(volume: &VolumeConfig, outcome: &Outcome) -> Binding {
    let limited = volume.concurrency.is_some() || volume.max_iops.is_some() || volume.max_bandwidth.is_some();
    let (queued, device) = (outcome.queued_time.as_secs_f64(), outcome.device_time.as_secs_f64());
    // If nothing was answered, all that is known is how busy the array was.
    let share = if queued + device > 0.0 { queued / (queued + device) } else { 0.0 };
    let (resource, busy) = busiest(&outcome.utilisation);
    match () {
        () if device > queued => resource,
        () if limited => Binding::OwnLimit { share },
        () if busy >= SATURATED => resource,
        () => Binding::Depth { share },
    }
}

/// The part of an array that is waited for, and the share of time in which it is busy. Busy disks come before
/// all that is full because of them.
fn busiest(utilisation: &Utilisation) -> (Binding, f64) {
    let Utilisation { members, port, nvram_full } = *utilisation;
    if members >= SATURATED || members >= port.max(nvram_full) {
        (Binding::Disks { busy: members }, members)
    } else if port >= nvram_full {
        (Binding::Port { busy: port }, port)
    } else {
        (Binding::Nvram { full: nvram_full }, nvram_full)
    }
}

#[cfg(test)]
mod tests;
