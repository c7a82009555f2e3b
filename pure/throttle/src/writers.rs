//! How fast each initiator writes to each resource.
//!
//! If the target counts what an initiator writes to a LUN, these counters say it. Otherwise the LUN's device
//! says it: what the device has written and no counter explains counts for each initiator without a counter
//! at that device. They cannot be told apart, and one of them may have written all of it.
//!
//! What no counter explains is the device's bytes less the counted ones, and counts only while it reaches a
//! new high. Both are read at different instants, and LIO counts in MiB, so the difference sways although
//! nobody but the counted initiator writes. Example: its counter stands still for nine readings, and jumps by
//! 1 MiB at the tenth. Without the rule, the nine differences would add up.
//!
//! A counter that is seen for the first time, or goes back, says nothing until the next survey.
//!
//! The rates are an EWMA in integers. With `r` bytes a second before, and `b` bytes written in a time `t`,
//! the rate is `(r T + b) / (T + t)`, where `T` is the time constant: a lag of first order by Euler's
//! backward method. So the time between two surveys may vary.

use std::collections::BTreeMap;

use weir_model::{Instant, Span};

use crate::initiators::Initiator;
use crate::kernel::LeafId;
use crate::roster::{Login, Roster};
use crate::survey::DeviceNumber;

/// An initiator at the resource of a leaf.
pub(crate) type Writer = (LeafId, Initiator);

/// The rates of all initiators.
#[derive(Default, Debug)]
pub(crate) struct Writers {
    surveyed: Option<Instant>,
    /// The targets' counters at the last survey, in the order of the roster.
    counters: Vec<((Login, u64), u64)>,
    devices: BTreeMap<DeviceNumber, DeviceWrites>,
    rates: BTreeMap<Writer, u64>,
}

/// What was written to a device since it was first seen.
#[derive(Clone, Copy, Default, Debug)]
struct DeviceWrites {
    /// By the device's own count.
    written: u64,
    /// By counters of initiators.
    counted: u64,
    /// The most that no counter explained so far.
    unexplained: u64,
}

impl DeviceWrites {
    /// How much more there is now that no counter explains.
    fn newly_unexplained(&mut self) -> u64 {
        let before = self.unexplained;
        self.unexplained = before.max(self.written.saturating_sub(self.counted));
        self.unexplained - before
    }
}

impl Writers {
    /// A device has written so much more.
    pub(crate) fn handle_written(&mut self, device: DeviceNumber, bytes: u64) {
        if let Some(writes) = self.devices.get_mut(&device) {
            writes.written = writes.written.saturating_add(bytes);
        }
    }

    /// A device is gone, or its number belongs to another one.
    pub(crate) fn forget(&mut self, device: DeviceNumber) {
        self.devices.remove(&device);
    }

    /// Reads the counters of a survey, and computes all rates anew.
    pub(crate) fn handle_survey(&mut self, now: Instant, roster: &Roster, smoothing: Span) {
        let elapsed = now.saturating_since(self.surveyed.unwrap_or(now));
        if self.surveyed.is_some() && elapsed.is_zero() {
            return;
        }
        self.surveyed = Some(now);
        let mut written = BTreeMap::new();
        self.read_counters(roster, &mut written);
        self.share_out(roster, &mut written);
        let rate = |(writer, bytes)| {
            let before = self.rates.get(&writer).copied().unwrap_or_default();
            (writer, smoothed(before, bytes, elapsed, smoothing))
        };
        self.rates = written.into_iter().map(rate).collect();
    }

    /// The bytes a second that an initiator writes to a resource.
    pub(crate) fn rate(&self, writer: &Writer) -> u64 {
        self.rates.get(writer).copied().unwrap_or_default()
    }

    /// All rates, by leaf and initiator.
    pub(crate) fn rates(&self) -> &BTreeMap<Writer, u64> {
        &self.rates
    }

    /// What the targets' counters say that each writer has written since the last survey.
    fn read_counters(&mut self, roster: &Roster, written: &mut BTreeMap<Writer, u64>) {
        // Both are in the same order: to search a map for each of a thousand counters takes several times as
        // long as to go through two lists.
        let mut before = std::mem::take(&mut self.counters).into_iter().peekable();
        for (login, used) in &roster.logins {
            for (&lun, &(device, counter)) in &used.counted {
                let Some(leaf) = roster.luns.get(&device).map(|lun| lun.leaf) else { continue };
                let key = (login.clone(), lun);
                while before.next_if(|(earlier, _)| *earlier < key).is_some() {}
                let last = before.next_if(|(same, _)| *same == key);
                let bytes = last.and_then(|(_, last)| counter.checked_sub(last)).unwrap_or(0);
                self.counters.push((key, counter));
                let writes = self.devices.entry(device).or_default();
                writes.counted = writes.counted.saturating_add(bytes);
                *written.entry((leaf, login.initiator.clone())).or_default() += bytes;
            }
        }
    }

    /// What no counter explains counts for each initiator without a counter at that device, once.
    fn share_out(&mut self, roster: &Roster, written: &mut BTreeMap<Writer, u64>) {
        let uncounted = roster
            .logins
            .iter()
            .flat_map(|(login, used)| used.uncounted.iter().map(move |&device| (device, &login.initiator)));
        let mut users: BTreeMap<DeviceNumber, Vec<&Initiator>> = BTreeMap::new();
        for (device, initiator) in uncounted {
            users.entry(device).or_default().push(initiator);
        }
        self.devices.retain(|device, _| roster.luns.contains_key(device));
        for (&device, lun) in &roster.luns {
            let bytes = self.devices.entry(device).or_default().newly_unexplained();
            let mut initiators = users.remove(&device).unwrap_or_default();
            initiators.sort_unstable();
            initiators.dedup();
            for initiator in initiators {
                *written.entry((lun.leaf, initiator.clone())).or_default() += bytes;
            }
        }
    }
}

/// The EWMA after `bytes` were written in a time.
fn smoothed(before: u64, bytes: u64, elapsed: Span, smoothing: Span) -> u64 {
    let [elapsed, smoothing] = [elapsed, smoothing].map(|span| u128::from(span.as_nanos()));
    let sum = u128::from(before) * smoothing + u128::from(bytes) * 1_000_000_000;
    sum.checked_div(smoothing + elapsed).map_or(before, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
