//! A simulated array as text: `[array.NAME]` in an experiment's file and in weir's configuration.
//!
//! ```toml
//! [array.fc60]
//! disks = 6                      # of each logical unit
//! disk = "cheetah-18lp"          # or { like = "cheetah-18lp", tags = 16 }; or ssd = NAME; or
//!                                # station = { servers = 1, service_time = "5ms", exponential = true }
//! raid = "raid5"                 # single, raid0, raid1, raid5
//! stripe_unit = "16KiB"
//! size = "20GiB"                 # of each unit, from the outer edge of the disks; absent: all
//! disk_size = "4GiB"             # the same, of each disk
//! nvram = "256MiB"               # absent: none, writes go through
//! high_water = 0.8               # see weir_sim::CacheOptions
//! low_water = 0.6
//! flush_after = "10s"            # absent: a write may stay in NVRAM for ever
//! destages = 24                  # absent: four for each disk
//! read_cache = "64MiB"           # absent: none
//! prefetch = "320KiB"            # absent: none
//! overhead = "100us"             # of the controller, for each command; absent: none
//! rebuild_rate = "10MB/s"
//! units = 2                      # logical units; absent: 1
//! layout = "striped"             # of several units; or "concatenated"
//! unit = "64KiB"                 # bytes of each unit in turn, if striped
//! ports = 2                      # absent: one if there is a port_bandwidth
//! port_bandwidth = "100MB/s"     # absent: the way to the array takes no time
//! port_overhead = "20us"
//! ```
//!
//! This text can say less than [`ArrayOptions`]: all units are alike, and so are all ports. Users ask about
//! such arrays. A text for every array that `ArrayOptions` can build would be longer than the code that
//! builds it.

mod member;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use serde::Deserialize;
use thiserror::Error;
use weir_model::{Bandwidth, Span};
use weir_sim::{
    ArrayError, ArrayOptions, CacheOptions, DiskOptions, Layout, LinkOptions, MemberOptions, RaidLevel,
    SsdOptions, UnitError, UnitOptions,
};

use crate::quantities::{Rate, Size, Text};

pub use member::{DiskSpec, OrderSpec, StationSpec};

/// An array, as it is written.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// Disks of each logical unit.
    pub disks: u32,
    /// The model of each disk, if the disks have arms.
    pub disk: Option<DiskSpec>,
    /// The name of the model of each disk, if the disks are flash.
    pub ssd: Option<String>,
    /// The station that stands for each disk, if the disks are stations.
    pub station: Option<StationSpec>,
    /// The RAID level: how a unit spreads data over its disks.
    pub raid: RaidSpec,
    /// Bytes in a row on a disk; absent: 16 KiB.
    pub stripe_unit: Option<Text<Size>>,
    /// Bytes of each unit; absent: all.
    pub size: Option<Text<Size>>,
    /// Bytes of each disk that are used; absent: all.
    pub disk_size: Option<Text<Size>>,
    /// Bytes of NVRAM, which holds writes that are not on disk yet; absent: none.
    pub nvram: Option<Text<Size>>,
    /// The share of NVRAM above which the array destages as fast as it can; absent: 0.8.
    pub high_water: Option<f64>,
    /// The share of NVRAM up to which the array destages nothing for lack of room; absent: 0.6.
    pub low_water: Option<f64>,
    /// The age at which the array destages a write; absent: never for its age.
    pub flush_after: Option<Text<Span>>,
    /// Rows that are destaged at a time; absent: four for each disk.
    pub destages: Option<NonZeroU32>,
    /// Bytes of the read cache; absent: none.
    pub read_cache: Option<Text<Size>>,
    /// Bytes that the array reads ahead of a sequential reader; absent: none.
    pub prefetch: Option<Text<Size>>,
    /// The controller's own time for each command; absent: none.
    pub overhead: Option<Text<Span>>,
    /// Bytes of a disk that are rebuilt in a second; absent: 10 MB.
    pub rebuild_rate: Option<Text<Rate>>,
    /// Logical units; absent: one.
    pub units: Option<NonZeroU32>,
    /// How the units make one range of bytes; absent: concatenated.
    pub layout: Option<LayoutSpec>,
    /// Bytes of each unit in turn, if the units are striped; absent: 64 KiB.
    pub unit: Option<Text<Size>>,
    /// Ports; absent: one if there is a `port_bandwidth`.
    pub ports: Option<NonZeroU32>,
    /// Bytes a second of a port in each direction; absent: the way to the array takes no time.
    pub port_bandwidth: Option<Text<Rate>>,
    /// How long a command occupies a port in addition to its data; absent: no time.
    pub port_overhead: Option<Text<Span>>,
}

/// The most logical units, and the most ports.
const MOST_UNITS: u32 = 1024;

/// The most disks of all units together, and the most servers of a station.
const MOST_DISKS: u32 = 16_384;

/// The most commands that a disk can choose from: more than SCSI's tags.
const MOST_TAGS: u32 = 65_536;

/// How a logical unit puts data on its disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RaidSpec {
    /// One disk.
    Single,
    /// Striped.
    Raid0,
    /// Mirrored in pairs, striped over the pairs.
    Raid1,
    /// Striped with rotating parity.
    Raid5,
}

/// How several logical units make one range of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayoutSpec {
    /// One after the other.
    Concatenated,
    /// In turn.
    Striped,
}

/// Why a well-formed text describes no array.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ArraySpecError {
    /// A value that is not accepted, alone or together with the others.
    #[error("{key}: found {found}; accepted: {accepted}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value in the file.
        found: String,
        /// The values that would be accepted.
        accepted: String,
    },
    /// Values that make no array together.
    #[error("{key}: {cause}")]
    Array {
        /// The key that has most to do with the problem.
        key: &'static str,
        /// The value that was found, and the values that would be accepted.
        cause: ArrayError,
    },
}

impl ArraySpec {
    /// The array that the text describes.
    ///
    /// # Errors
    /// If no disk has the given name, if the parts do not go together, or if there are more parts than the
    /// limits above allow.
    pub fn options(&self) -> Result<ArrayOptions, ArraySpecError> {
        self.check_counts()?;
        let units = self.units.map_or(1, NonZeroU32::get) as usize;
        let options = ArrayOptions {
            units: vec![self.unit_options()?; units],
            layout: self.layout_options()?,
            ports: self.port_options()?,
        };
        match options.check() {
            Ok(()) => Ok(options),
            Err(cause) => Err(ArraySpecError::Array { key: key_of(&cause), cause }),
        }
    }

    /// Limits the number of parts. Each part takes memory, both here and in the simulation, so a mistyped
    /// number could take all the memory there is.
    fn check_counts(&self) -> Result<(), ArraySpecError> {
        let (units, ports) = (self.units.map_or(1, NonZeroU32::get), self.ports.map_or(1, NonZeroU32::get));
        let servers = self.station.as_ref().map_or(0, |station| station.servers.get());
        for (key, found, most) in [
            ("units", units, MOST_UNITS),
            ("ports", ports, MOST_UNITS),
            ("disks", self.disks, MOST_DISKS),
            ("disks", self.disks.saturating_mul(units), MOST_DISKS),
            ("station", servers, MOST_DISKS),
            ("tags", self.disk.as_ref().and_then(|disk| disk.tags).map_or(1, NonZeroU32::get), MOST_TAGS),
        ] {
            if found > most {
                return Err(refused(key, found.to_string(), format!("at most {most}")));
            }
        }
        Ok(())
    }

    fn unit_options(&self) -> Result<UnitOptions, ArraySpecError> {
        Ok(UnitOptions {
            member: self.member_options()?,
            members: self.disks,
            raid: match self.raid {
                RaidSpec::Single => RaidLevel::Single,
                RaidSpec::Raid0 => RaidLevel::Raid0,
                RaidSpec::Raid1 => RaidLevel::Raid1,
                RaidSpec::Raid5 => RaidLevel::Raid5,
            },
            stripe_unit: bytes(self.stripe_unit).unwrap_or(16 * 1024),
            size: self.unit_size()?,
            cache: self.cache_options(),
            overhead: self.overhead.map_or(Span::ZERO, |text| text.0),
            rebuild_rate: self.rebuild_rate.map_or(DEFAULT_REBUILD_RATE, |text| text.0.0),
        })
    }

    fn unit_size(&self) -> Result<Option<u64>, ArraySpecError> {
        let data_disks = match self.raid {
            RaidSpec::Single => 1,
            RaidSpec::Raid0 => self.disks,
            RaidSpec::Raid1 => self.disks / 2,
            RaidSpec::Raid5 => self.disks.saturating_sub(1),
        };
        match (bytes(self.size), bytes(self.disk_size)) {
            (size, None) => Ok(size),
            (None, Some(of_disk)) => Ok(Some(of_disk.saturating_mul(data_disks.into()))),
            (Some(_), Some(of_disk)) => {
                Err(refused("disk_size", format!("{of_disk} bytes beside size"), "one of the two"))
            }
        }
    }

    fn member_options(&self) -> Result<MemberOptions, ArraySpecError> {
        match (&self.disk, &self.ssd, &self.station) {
            (Some(disk), None, None) => {
                let unknown = || unknown("disk", &disk.like, DiskOptions::PRESETS);
                disk.options().map(MemberOptions::Disk).ok_or_else(unknown)
            }
            (None, Some(name), None) => {
                let unknown = || unknown("ssd", name, SsdOptions::PRESETS);
                SsdOptions::preset(name).map(MemberOptions::Ssd).ok_or_else(unknown)
            }
            (None, None, Some(station)) => Ok(MemberOptions::Station(station.options())),
            _ => {
                let given = [self.disk.is_some(), self.ssd.is_some(), self.station.is_some()];
                let given = given.into_iter().filter(|given| *given).count();
                Err(refused("disk", format!("{given} of disk, ssd and station"), "one of the three"))
            }
        }
    }

    fn cache_options(&self) -> CacheOptions {
        let none = CacheOptions::NONE;
        CacheOptions {
            nvram: bytes(self.nvram).unwrap_or(0),
            high_water: self.high_water.unwrap_or(none.high_water),
            low_water: self.low_water.unwrap_or(none.low_water),
            flush_after: self.flush_after.map(|text| text.0),
            destages: self.destages.map_or(self.disks.saturating_mul(4), NonZeroU32::get),
            filled: none.filled,
            read_cache: bytes(self.read_cache).unwrap_or(0),
            prefetch: bytes(self.prefetch).unwrap_or(0),
        }
    }

    fn layout_options(&self) -> Result<Layout, ArraySpecError> {
        match (self.layout, bytes(self.unit)) {
            (Some(LayoutSpec::Striped), unit) => {
                Ok(Layout::Striped { unit_bytes: unit.unwrap_or(64 * 1024) })
            }
            (_, None) => Ok(Layout::Concatenated),
            (_, Some(unit)) => {
                Err(refused("unit", format!("{unit} bytes"), "no unit, or layout = \"striped\""))
            }
        }
    }

    fn port_options(&self) -> Result<Vec<LinkOptions>, ArraySpecError> {
        let overhead = self.port_overhead.map_or(Span::ZERO, |text| text.0);
        match self.port_bandwidth {
            Some(Text(Rate(bandwidth))) => {
                let ports = self.ports.map_or(1, NonZeroU32::get) as usize;
                Ok(vec![LinkOptions { bandwidth, overhead }; ports])
            }
            None if self.ports.is_none() && self.port_overhead.is_none() => Ok(Vec::new()),
            None => Err(refused(
                "port_bandwidth",
                "none beside ports or port_overhead",
                "a rate such as \"100MB/s\"",
            )),
        }
    }
}

/// Half of the bytes that a disk of the papers' time reads or writes in a second. With it, a disk of 18 GB is
/// rebuilt in half an hour.
const DEFAULT_REBUILD_RATE: Bandwidth = Bandwidth::new(10_000_000).expect("above zero");

fn bytes(text: Option<Text<Size>>) -> Option<u64> {
    text.map(|text| text.0.0)
}

fn refused(key: &'static str, found: impl Into<String>, accepted: impl Into<String>) -> ArraySpecError {
    ArraySpecError::Value { key, found: found.into(), accepted: accepted.into() }
}

fn unknown(key: &'static str, name: &str, known: &[&str]) -> ArraySpecError {
    refused(key, format!("{name:?}"), known.join(", "))
}

fn key_of(error: &ArrayError) -> &'static str {
    match error {
        ArrayError::Units(_) => "units",
        ArrayError::Layout(_) => "unit",
        ArrayError::Unit { cause, .. } => match cause {
            UnitError::Member(_) => "disk",
            UnitError::Members { .. } => "disks",
            UnitError::StripeUnit(_) => "stripe_unit",
            UnitError::Size { .. } | UnitError::NoSize => "size",
            UnitError::Nvram(_) => "nvram",
            UnitError::Water { .. } => "low_water",
            UnitError::NoDestages => "destages",
            UnitError::Filled { .. } => "nvram_filled",
            UnitError::Prefetch { .. } => "prefetch",
        },
    }
}
