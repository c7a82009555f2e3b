//! The meters of all devices behind LUNs.
//!
//! Meters and counters are both in the order of the device numbers, so an interval goes through them side by
//! side. To look each device up would cost several times as much, ten times a second.

use std::collections::BTreeMap;

use weir_model::Instant;

use crate::kernel::LeafId;
use crate::roster::Lun;
use crate::survey::{BlockCounters, DeviceNumber};
use crate::wait::{DeviceMeter, Reads};

/// All meters.
#[derive(Default, Debug)]
pub(crate) struct Meters {
    /// By number.
    meters: Vec<Meter>,
}

#[derive(Debug)]
struct Meter {
    number: DeviceNumber,
    leaf: LeafId,
    device: DeviceMeter,
    /// Bytes written since they were taken last.
    written: u64,
}

impl Meters {
    /// The devices of a survey. Those that `is_same` says are the ones of before go on; all others begin.
    pub(crate) fn follow(
        &mut self,
        luns: &BTreeMap<DeviceNumber, Lun>,
        is_same: impl Fn(DeviceNumber) -> bool,
    ) {
        let mut before = std::mem::take(&mut self.meters).into_iter().peekable();
        let meter = |(&number, lun): (&DeviceNumber, &Lun)| {
            while before.next_if(|meter| meter.number < number).is_some() {}
            let same = before.next_if(|meter| meter.number == number).filter(|_| is_same(number));
            same.unwrap_or_else(|| Meter {
                number,
                leaf: lun.leaf,
                device: DeviceMeter::default(),
                written: 0,
            })
        };
        self.meters = luns.iter().map(meter).collect();
    }

    /// The devices.
    pub(crate) fn devices(&self) -> impl Iterator<Item = DeviceNumber> {
        self.meters.iter().map(|meter| meter.number)
    }

    /// Reads the counters of an interval: the reads at each resource. A device without counters is gone.
    pub(crate) fn handle_counters(
        &mut self,
        now: Instant,
        counters: &BTreeMap<DeviceNumber, BlockCounters>,
    ) -> BTreeMap<LeafId, Reads> {
        let mut reads: BTreeMap<_, Reads> = BTreeMap::new();
        let mut counters = counters.iter().peekable();
        for meter in &mut self.meters {
            while counters.next_if(|(number, _)| **number < meter.number).is_some() {}
            match counters.next_if(|(number, _)| **number == meter.number) {
                Some((_, &seen)) => {
                    let done = meter.device.handle_reading(now, seen);
                    *reads.entry(meter.leaf).or_default() += done.reads;
                    meter.written = meter.written.saturating_add(done.written);
                }
                None => meter.device.handle_absence(),
            }
        }
        reads
    }

    /// What each device has written since the last call.
    pub(crate) fn take_written(&mut self) -> impl Iterator<Item = (DeviceNumber, u64)> {
        self.meters.iter_mut().map(|meter| (meter.number, std::mem::take(&mut meter.written)))
    }
}
