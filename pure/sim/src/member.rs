//! What an array is made of: disks, flash disks, stations; one interface for all of them.
//!
//! A member is told of a request and says when it will end what; whoever drives it keeps the one queue of
//! events. So a member has no queue of events of its own, and six disks cost one heap and not seven.

use thiserror::Error;
use weir_model::Instant;

use crate::disk::{Disk, DiskError, DiskKind, DiskOptions};
use crate::random::Prng;
use crate::ssd::{Ssd, SsdError, SsdOptions};
use crate::station::{Station, StationOptions};

/// What a member is.
#[derive(Clone, PartialEq, Debug)]
pub enum MemberOptions {
    /// A disk with arms and platters.
    Disk(DiskOptions),
    /// A flash disk.
    Ssd(SsdOptions),
    /// Servers with one queue: the textbook device.
    Station(StationOptions),
}

/// Why there is no such member.
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
    /// Bytes that a member stores; [`u64::MAX`] for a station, which does not look where a request goes.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::Disk(disk) => disk.capacity(),
            Self::Ssd(ssd) => ssd.capacity,
            Self::Station(_) => u64::MAX,
        }
    }

    /// Members of this kind, idle, one for each of `streams`, from which come its draws. They share what they
    /// have in common; this keeps the tables of all disks of an array in the processor's cache.
    ///
    /// # Errors
    /// If there can be no such member.
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

/// A request to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberIo {
    /// What the driver knows it by; unique among what is outstanding at this member.
    pub tag: u32,
    /// Whether data flows to the medium.
    pub write: bool,
    /// First byte.
    pub offset: u64,
    /// Number of bytes, above zero.
    pub length: u32,
}

/// A request that a member has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Started {
    /// Its tag.
    pub tag: u32,
    /// When it ends; at just that instant [`Member::finish`] is to be called.
    pub ends: Instant,
}

/// One member. Enum and not trait object: this is called for every simulated disk operation.
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
    /// Takes a request; pushes what begins now, which may be nothing, or others that waited.
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

    /// A request that has begun ends now; pushes what begins in its place.
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
