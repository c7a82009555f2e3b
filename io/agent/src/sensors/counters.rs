//! The counters of block devices, read ten times a second through files that stay open.
//!
//! `/proc/diskstats` would have all devices in one read, also the hundreds that nobody asked for, and without
//! the split of what is in flight. Files that stay open cost one system call for each reading: opening a file
//! of sysfs takes longer than reading it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, pread};
use weir_throttle::{BlockCounters, DeviceNumber};

use super::reading::{Remark, is_gone};
use super::text::block;

/// Reads the counters of devices.
#[derive(Debug)]
pub struct BlockSensor {
    sys: PathBuf,
    open: BTreeMap<DeviceNumber, Files>,
}

/// The open files of a device.
#[derive(Debug)]
struct Files {
    stat: OwnedFd,
    in_flight: OwnedFd,
    /// How many reads it had finished at the last reading.
    reads: Option<u64>,
}

/// What a reading found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reading {
    /// The counters of the devices that are there. A device that has just vanished is not, even if another
    /// one has its number already: the counters of the two must never be subtracted.
    pub counters: BTreeMap<DeviceNumber, BlockCounters>,
    /// The devices that were there at the last reading and are not any more.
    pub vanished: BTreeSet<DeviceNumber>,
    /// What was odd.
    pub remarks: Vec<Remark>,
}

impl BlockSensor {
    /// Reads below `sys`, which is `/sys` except in tests. Two descriptors stay open for each device.
    pub fn new(sys: impl Into<PathBuf>) -> Self {
        Self { sys: sys.into(), open: BTreeMap::new() }
    }

    /// The counters of these devices now. Files of other devices are closed.
    pub fn read(&mut self, devices: &BTreeSet<DeviceNumber>) -> Reading {
        self.open.retain(|number, _| devices.contains(number));
        let mut reading = Reading::default();
        for number in devices {
            let was_open = self.open.contains_key(number);
            if let Err(remark) = self.read_one(*number, &mut reading) {
                self.open.remove(number);
                if was_open {
                    reading.vanished.insert(*number);
                }
                reading.remarks.extend(remark);
            }
        }
        reading
    }

    /// Reads one device. The error says what was odd; none if it is just not there.
    fn read_one(&mut self, number: DeviceNumber, reading: &mut Reading) -> Result<(), Option<Remark>> {
        let sys = &self.sys;
        let path = |file: &str| sys.join(format!("dev/block/{}:{}/{file}", number.major, number.minor));
        let unreadable =
            |file: &str, error| (!is_gone(error)).then(|| Remark::Unreadable { path: path(file), error });
        let unfit = |file: &str, unfit| Some(Remark::Unfit { path: path(file), unfit });
        let opened = |file: &str| {
            open(path(file), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|error| unreadable(file, error))
        };
        let files = match self.open.entry(number) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => {
                place.insert(Files { stat: opened("stat")?, in_flight: opened("inflight")?, reads: None })
            }
        };
        let mut buffer = [0; 512];
        let text = text_of(&files.stat, &mut buffer).map_err(|error| unreadable("stat", error))?;
        let (mut counters, in_flight) = block::stat(text).map_err(|error| unfit("stat", error))?;
        // Reads that finish tell how long they took. How many are outstanding says more only if none does.
        let finished = files.reads.replace(counters.reads).is_some_and(|before| before != counters.reads);
        if in_flight > 0 && !finished {
            let text =
                text_of(&files.in_flight, &mut buffer).map_err(|error| unreadable("inflight", error))?;
            counters.reads_in_flight =
                block::reads_in_flight(text).map_err(|error| unfit("inflight", error))?;
        }
        reading.counters.insert(number, counters);
        Ok(())
    }
}

/// What a file says now. What is no text is empty, which no parser accepts.
fn text_of<'b>(file: &OwnedFd, buffer: &'b mut [u8]) -> Result<&'b str, Errno> {
    let length = loop {
        match pread(file, &mut *buffer, 0) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    Ok(buffer.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    const A: DeviceNumber = DeviceNumber { major: 8, minor: 0 };
    const B: DeviceNumber = DeviceNumber { major: 8, minor: 16 };

    #[test]
    fn counters_are_read_again_through_files_that_stay_open() {
        let tree = Tree::new();
        tree.disk("sda", A);
        let mut sensor = BlockSensor::new(tree.sys());
        sensor.read(&[A].into());
        tree.counters("sda", 7, 16, 3);
        let reading = sensor.read(&[A].into());
        let counters = BlockCounters { reads: 7, read_millis: 7, sectors_written: 16, reads_in_flight: 0 };
        assert_eq!(reading, Reading { counters: [(A, counters)].into(), ..Reading::default() });
        let reads_in_flight = sensor.read(&[A].into()).counters[&A].reads_in_flight;
        assert_eq!(reads_in_flight, 3, "none has finished meanwhile");
        assert_eq!(sensor.read(&BTreeSet::new()), Reading::default());
        assert!(sensor.open.is_empty());
    }

    #[test]
    fn a_device_that_is_not_there_is_no_remark_and_one_that_is_odd_is() {
        let tree = Tree::new();
        tree.disk("sda", A);
        let mut sensor = BlockSensor::new(tree.sys());
        let both = [A, B].into();
        let reading = sensor.read(&both);
        assert_eq!((reading.counters.len(), reading.remarks.len(), reading.vanished.len()), (1, 0, 0));
        tree.write("sys/devices/block/sda/stat", "what");
        let reading = sensor.read(&both);
        assert_eq!((reading.counters.len(), reading.remarks.len()), (0, 1));
        assert_eq!(reading.vanished, [A].into(), "its counters must not be compared with later ones");
        tree.counters("sda", 1, 0, 1);
        tree.write("sys/devices/block/sda/inflight", "x y");
        assert_eq!(sensor.read(&both).remarks.len(), 1);
        tree.counters("sda", 1, 0, 1);
        let reading = sensor.read(&both);
        assert_eq!((reading.counters[&A].reads_in_flight, reading.remarks.len()), (1, 0));
    }
}
