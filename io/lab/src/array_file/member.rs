//! A member of an array as text: a disk, a flash disk or a station.

use std::fmt;
use std::num::NonZeroU32;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use weir_model::Span;
use weir_sim::{DiskOptions, DiskOrder, SeekTimes, StationOptions};

use crate::quantities::Text;

/// A disk: the name of a model, or a table with the name of a model and the values that differ from it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")] // what this derives reads the table; see the impl below
pub struct DiskSpec {
    /// The name of the model.
    pub like: String,
    /// Turns a minute.
    pub rpm: Option<u32>,
    /// The seek to the next track.
    pub seek_single_track: Option<Text<Span>>,
    /// The average seek.
    pub seek_average: Option<Text<Span>>,
    /// The seek over all tracks.
    pub seek_full_stroke: Option<Text<Span>>,
    /// How many commands the disk can choose from.
    pub tags: Option<NonZeroU32>,
    /// The order in which the disk serves commands.
    pub order: Option<OrderSpec>,
}

/// The order in which a disk serves commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderSpec {
    /// In the order of their arrival.
    Fifo,
    /// By the elevator algorithm: the arm sweeps to and fro.
    Elevator,
    /// The shortest seek and rotation first.
    ShortestPositioning,
}

/// A station: the device of queueing theory.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StationSpec {
    /// How many requests the station serves at a time.
    pub servers: NonZeroU32,
    /// The mean time that the station takes for a request.
    pub service_time: Text<Span>,
    /// Whether that time is exponentially distributed; if not, it is always the same.
    pub exponential: bool,
}

impl DiskSpec {
    /// The disk; `None` if no model has this name.
    pub(super) fn options(&self) -> Option<DiskOptions> {
        let like = DiskOptions::preset(&self.like)?;
        let span = |text: Option<Text<Span>>, other: Span| text.map_or(other, |text| text.0);
        Some(DiskOptions {
            rpm: self.rpm.unwrap_or(like.rpm),
            seek: SeekTimes {
                single_track: span(self.seek_single_track, like.seek.single_track),
                average: span(self.seek_average, like.seek.average),
                full_stroke: span(self.seek_full_stroke, like.seek.full_stroke),
            },
            tags: self.tags.unwrap_or(like.tags),
            order: self.order.map_or(like.order, OrderSpec::order),
            ..like
        })
    }
}

impl OrderSpec {
    const fn order(self) -> DiskOrder {
        match self {
            Self::Fifo => DiskOrder::Fifo,
            Self::Elevator => DiskOrder::Elevator,
            Self::ShortestPositioning => DiskOrder::ShortestPositioning,
        }
    }
}

impl StationSpec {
    pub(super) const fn options(&self) -> StationOptions {
        let Self { servers, service_time, exponential } = *self;
        StationOptions { servers, service_time: service_time.0, exponential }
    }
}

/// Written by hand: the error of serde's derived "either text or a table" says only that neither fits.
impl<'de> Deserialize<'de> for DiskSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = DiskSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a disk, or a table with the name under `like` and what is different")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<DiskSpec, E> {
        Ok(DiskSpec {
            like: name.to_owned(),
            rpm: None,
            seek_single_track: None,
            seek_average: None,
            seek_full_stroke: None,
            tags: None,
            order: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DiskSpec, A::Error> {
        DiskSpec::deserialize(MapAccessDeserializer::new(map))
    }
}
