//! The members of an array: disks, flash disks and stations, behind one interface.
//!
//! A member is told of a request, and says which requests it begins, and when these will end. Its driver
//! keeps the one queue of events. So a member has no event queue of its own, and six disks cost one heap and
//! not seven.

use thiserror::Error;
use weir_model::Instant;

use crate::disk::{Disk, DiskError, DiskKind, DiskOptions};
use crate::member_io::{MemberIo, Started};
use crate::random::Prng;
use crate::ssd::{Ssd, SsdError, SsdOptions};
use crate::station::{Station, StationOptions};

/// The description of a member.
#[derive(Clone, PartialEq, Debug)]
pub enum MemberOptions {
    /// A disk with arms and platters.
    Disk(DiskOptions),
    /// A flash disk.
    Ssd(SsdOptions),
    /// Servers with one queue: the textbook device.
    Station(StationOptions),
}

/// Why a description makes no member.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum MemberError {
    /// See [`DiskError`].
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// See [`SsdError`].
    #[error(transparent)]
    Ssd(#[from] SsdError),
}

impl MemberOptions {
    /// Bytes that each such member stores; [`u64::MAX`] for a station, which ignores where a request goes.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::Disk(disk) => disk.capacity(),
            Self::Ssd(ssd) => ssd.capacity,
            Self::Station(_) => u64::MAX,
        }
    }

    /// Idle members of this kind: one for each of `streams`, from which its random draws come. They share
    /// their tables, so that the tables of all disks of an array stay in the processor's cache.
    ///
    /// # Errors
    /// If such a member is impossible.
    pub fn build(&self, streams: impl IntoIterator<Item = Prng>) -> Result<Vec<Member>, MemberError> {
        let streams = streams.into_iter();
        Ok(match self {
            Self::Disk(options) => {
                let kind = DiskKind::new(options)?;
                streams.map(|random| Member::Disk(Disk::new(kind.clone(), random))).collect()
            }
            Self::Ssd(options) => {
                options.check()?;
                streams.map(|_| Member::Ssd(Ssd::new(options))).collect()
            }
            Self::Station(options) => {
                streams.map(|random| Member::Station(Station::new(*options, random))).collect()
            }
        })
    }
}

/// One member. An enum and not a trait object, because it is called for every simulated disk operation.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // all members of an array are of the same kind
pub enum Member {
    /// See [`Disk`].
    Disk(Disk),
    /// See [`Ssd`].
    Ssd(Ssd),
    /// See [`Station`].
    Station(Station),
}

impl Member {
    /// Takes a request. Pushes to `started` the requests that begin now: none, this one, or others that
    /// waited.
    ///
    /// # Panics
    /// If the request is empty or goes beyond [`Member::capacity`].
    pub fn push(&mut self, now: Instant, io: MemberIo, started: &mut Vec<Started>) {
        match self {
            Self::Disk(disk) => disk.push(now, io, started),
            Self::Ssd(ssd) => ssd.push(now, io, started),
            Self::Station(station) => station.push(now, io, started),
        }
    }

    /// A request that has begun ends now. Pushes to `started` the requests that begin in its place.
    pub fn finish(&mut self, now: Instant, tag: u32, started: &mut Vec<Started>) {
        match self {
            Self::Disk(disk) => disk.finish(now, tag, started),
            Self::Ssd(ssd) => ssd.finish(),
            Self::Station(station) => station.finish(now, tag, started),
        }
    }

    /// How many requests it has, begun or waiting.
    pub fn outstanding(&self) -> usize {
        match self {
            Self::Disk(disk) => disk.outstanding(),
            Self::Ssd(ssd) => ssd.outstanding(),
            Self::Station(station) => station.outstanding(),
        }
    }

    /// Bytes that it stores; [`u64::MAX`] for a station, which does not look where a request goes.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::Disk(disk) => disk.capacity(),
            Self::Ssd(ssd) => ssd.capacity(),
            Self::Station(_) => u64::MAX,
        }
    }
}
