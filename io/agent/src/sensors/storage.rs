//! The block devices of a storage node: which one is behind a directory, and what it has done so far.
//!
//! A coordinator of transfers knows what its transfers move, and not what else uses the disk. Only the disk's
//! own counters have both. A partition's counters would leave out what other partitions of the same disk do.
//! So the sensor goes down from the file system to the lowest device on which all of it stands. Example: from
//! a logical volume on `sda3` to `sda`. Where a device stands on several others, the sensor stops: a mirror
//! writes each byte twice below.
//!
//! Each reading looks the device up anew. An open file would know only the device that was there first, and a
//! directory may be on another device after a new mount.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use weir_status::{DeviceTotals, NodeAgentStatus, WatchedDevice};
use weir_throttle::DeviceNumber;

use super::backing::device_of;
use super::devices::below;
use super::reading::{Reader, errno};
use super::survey::Roots;
use super::text::mounts::mounted_at;
use super::text::{block, name};

/// The size of a sector in the kernel's counters, in bytes.
const SECTOR: u64 = 512;

/// What the operator wants to be watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Watched {
    /// The device behind a directory.
    Directory(PathBuf),
    /// A device by the kernel's name, such as `sda`.
    Device(String),
}

/// Why something cannot be watched.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{what}: found {found}; accepted: {accepted}")]
pub struct NotWatched {
    what: String,
    found: String,
    accepted: &'static str,
}

/// Reads the counters of devices.
#[derive(Debug)]
pub struct StorageSensor {
    roots: Roots,
    reader: Reader,
    watched: Vec<Known>,
}

/// What is watched, and what was found there last.
#[derive(Debug)]
struct Known {
    what: Watched,
    device: String,
    is_there: bool,
}

impl StorageSensor {
    /// Watches these from now on.
    ///
    /// # Errors
    /// If one of them is on no block device of this host, or is named twice.
    pub fn open(roots: Roots, watched: Vec<Watched>) -> Result<Self, NotWatched> {
        let mut sensor = Self { roots, reader: Reader::new(), watched: Vec::new() };
        for what in watched {
            if sensor.watched.iter().any(|known| known.what == what) {
                return Err(refused(&what, "it twice".to_owned(), "each directory and each device once"));
            }
            let (device, _) = sensor.find(&what).ok_or_else(|| sensor.why_not(&what))?;
            sensor.watched.push(Known { what, device, is_there: true });
        }
        Ok(sensor)
    }

    /// What the devices have done so far. A device that has gone or has come back is a line of the log.
    pub fn read(&mut self) -> NodeAgentStatus {
        let mut watched = std::mem::take(&mut self.watched);
        let devices = watched.iter_mut().map(|known| self.read_one(known)).collect();
        self.watched = watched;
        NodeAgentStatus { devices }
    }

    fn read_one(&mut self, known: &mut Known) -> WatchedDevice {
        let found = self.find(&known.what);
        let remarks: Vec<_> = self.reader.take_remarks().iter().map(ToString::to_string).collect();
        let (watched, device) = (known.what.to_string(), &known.device);
        // No peer: the host's administrator changes its devices.
        match &found {
            None if known.is_there => {
                let why = if remarks.is_empty() { "it has gone".to_owned() } else { remarks.join("; ") };
                tracing::warn!(watched, device, why, "the block device is not there; it is looked for again");
            }
            Some((device, _)) if !known.is_there => {
                tracing::info!(watched, device, "the block device is there again");
            }
            Some((now, _)) if now != device => {
                tracing::info!(watched, device, now, "it is on another device")
            }
            _ => {}
        }
        known.is_there = found.is_some();
        let totals = found.map(|(device, totals)| {
            known.device = device;
            totals
        });
        let path = match &known.what {
            Watched::Directory(path) => Some(path.display().to_string()),
            Watched::Device(_) => None,
        };
        WatchedDevice { path, device: known.device.clone(), totals }
    }

    /// The device with its totals; `None`: it is not there.
    fn find(&mut self, what: &Watched) -> Option<(String, DeviceTotals)> {
        let Roots { sys, proc, .. } = &self.roots;
        let (device, folder) = match what {
            Watched::Directory(path) => {
                let uppermost = device_of(sys, proc, path, &mut self.reader)?;
                // Where it stood, there may be a file by now, perhaps on another device.
                path.is_dir().then_some(())?;
                lowest(sys, uppermost, &mut self.reader)?
            }
            Watched::Device(device) => (device.clone(), sys.join("class/block").join(device)),
        };
        let stat = folder.join("stat");
        let text = self.reader.text(&stat)?;
        let totals = self.reader.fit(&stat, block::totals(&text))?;
        Some((device, in_bytes(totals)))
    }

    /// Why nothing is found there.
    fn why_not(&mut self, what: &Watched) -> NotWatched {
        let remark = self.reader.take_remarks().first().map(ToString::to_string);
        let found = match (what, remark) {
            (_, Some(remark)) => remark,
            (Watched::Directory(path), None) => self.found_at(path),
            (Watched::Device(_), None) => "no block device of this name".to_owned(),
        };
        let accepted = match what {
            Watched::Directory(_) => "a directory on a block device of this host, such as one on ext4 or xfs",
            Watched::Device(_) => "a name in /sys/class/block, such as sda",
        };
        refused(what, found, accepted)
    }

    fn found_at(&mut self, path: &Path) -> String {
        let path = match path.canonicalize() {
            Ok(path) => path,
            Err(error) => return format!("nothing that can be used ({})", errno(&error)),
        };
        let mounts = self.reader.text(&self.roots.proc.join("self/mountinfo")).unwrap_or_default();
        let kind = mounted_at(&path, &mounts).map_or("a file system".to_owned(), |mounted| mounted.kind);
        format!("a directory on {kind}, which is on no block device of this host")
    }
}

fn refused(what: &Watched, found: String, accepted: &'static str) -> NotWatched {
    let option = if matches!(what, Watched::Directory(_)) { "--path" } else { "--device" };
    NotWatched { what: format!("{option} {what}"), found, accepted }
}

/// The lowest device on which all of this one stands: its name and its folder.
fn lowest(sys: &Path, uppermost: DeviceNumber, reader: &mut Reader) -> Option<(String, PathBuf)> {
    let devices = below(sys, [uppermost], reader);
    let mut number = uppermost;
    let mut device = devices.get(&number)?;
    // As often as there are devices: they may stand in a circle while somebody changes them.
    for _ in 0..devices.len() {
        let mut standing_on = device.below.iter();
        let (Some(only), None) = (standing_on.next(), standing_on.next()) else { break };
        let Some(found) = devices.get(only) else { break };
        (number, device) = (*only, found);
    }
    let folder = sys.join(format!("dev/block/{}:{}", number.major, number.minor));
    Some((device.name.clone(), folder))
}

const fn in_bytes(totals: block::Totals) -> DeviceTotals {
    let block::Totals { reads, sectors_read, writes, sectors_written, busy_millis } = totals;
    DeviceTotals {
        read_bytes: sectors_read.saturating_mul(SECTOR),
        written_bytes: sectors_written.saturating_mul(SECTOR),
        reads,
        writes,
        busy_ms: busy_millis,
    }
}

impl Watched {
    /// A directory. Its path becomes absolute, and has no `/` at its end.
    ///
    /// # Errors
    /// If it is no directory, or its path is no UTF-8: in the metrics, two such paths would be one.
    pub fn directory(path: &Path) -> Result<Self, NotWatched> {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let watched = Self::Directory(absolute.components().collect());
        let found = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() && absolute.to_str().is_some() => return Ok(watched),
            Ok(found) if found.is_dir() => "a path that is no UTF-8".to_owned(),
            Ok(_) => "no directory".to_owned(),
            Err(error) => format!("nothing that can be used ({})", errno(&error)),
        };
        Err(refused(&watched, found, "a directory on a block device of this host"))
    }

    /// A device.
    ///
    /// # Errors
    /// If that cannot be the name of one.
    pub fn device(device: &str) -> Result<Self, NotWatched> {
        let watched = Self::Device(device.to_owned());
        if name(device).is_err() || device.contains('/') || device.starts_with('.') {
            let found = format!("{:?}", device.chars().take(60).collect::<String>());
            let what = "--device".to_owned();
            return Err(NotWatched { what, found, accepted: "a name in /sys/class/block, such as sda" });
        }
        Ok(watched)
    }
}

/// The operator's word for what is watched, in one line.
impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Directory(path) => path.display().to_string(),
            Self::Device(device) => device.clone(),
        };
        f.write_str(&name.replace(char::is_control, "?"))
    }
}

#[cfg(test)]
mod tests;
