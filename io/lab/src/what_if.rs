//! Would the promises hold? Compares a proposed pool with the present one, from recordings of the requests of
//! their volumes.
//!
//! A volume's promise **holds** if the mean latency kept it in at least 99 of 100 windows with a promise.
//! (The published controllers are judged in the same way: Façade §4 counts the windows in which an SLO is
//! met.) A window in which the volume offers more than its SLO covers has no promise to keep. If a volume has
//! only such windows, its SLO does not fit its load, and its promise does not hold.

use weir_engine::VolumeConfig;
use weir_sim::Utilisation;

use crate::replay::Outcome;

/// The share of the windows in which a promise has to be kept.
pub const HOLDS_FROM: f64 = 0.99;

/// A part of an array that is busy for at least this share of the time is the reason for waiting, wherever
/// requests wait. Deeper queues would not get more from it.
const SATURATED: f64 = 0.9;

/// Whether a volume's promise is kept.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Answer {
    /// Yes, in at least 99 of 100 windows.
    Holds,
    /// No, for this reason.
    Fails(Binding),
    /// The volume has no promise, or its clients sent no requests.
    NoPromise,
}

/// The reason why a promise is not kept. Shares are from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Binding {
    /// The volume always offers more than its SLO covers.
    Contract,
    /// The volume's requests wait for its own limit on requests or bytes a second, or on requests at a time.
    OwnLimit {
        /// The share of this wait in the sum of their latencies.
        share: f64,
    },
    /// The volume's requests wait for their turn: the pool's depth holds them back from an array that has
    /// time left.
    Depth {
        /// The share of this wait in the sum of their latencies.
        share: f64,
    },
    /// The disks of the array.
    Disks {
        /// The share of the time in which the busiest disk worked.
        busy: f64,
    },
    /// The array's ports.
    Port {
        /// The share of the time in which the busiest port carried data.
        busy: f64,
    },
    /// The array's NVRAM, which is emptied too slowly, although no disk is busy all the time.
    Nvram {
        /// The share of the time in which a write waited for room.
        full: f64,
    },
}

impl Binding {
    /// The reason in words, for a pool on the array of this name.
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

/// Whether the promise of a volume with this configuration is kept.
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

/// The main reason for which the volume's requests wait.
fn binding(volume: &VolumeConfig, outcome: &Outcome) -> Binding {
    let limited = volume.concurrency.is_some() || volume.max_iops.is_some() || volume.max_bandwidth.is_some();
    let (queued, device) = (outcome.queued_time.as_secs_f64(), outcome.device_time.as_secs_f64());
    // If nothing was answered, only the array's utilisation is known.
    let share = if queued + device > 0.0 { queued / (queued + device) } else { 0.0 };
    let (resource, busy) = busiest(&outcome.utilisation);
    match () {
        () if device > queued => resource,
        () if limited => Binding::OwnLimit { share },
        () if busy >= SATURATED => resource,
        () => Binding::Depth { share },
    }
}

/// The busiest part of the array, and the share of time in which it is busy. Busy disks come first, because
/// they fill the other parts.
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
