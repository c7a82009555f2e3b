//! How an [`Entry`] is stored: a number, then the fields of the input, then its outcome.
//!
//! The numbers stand here and not in the order of the variants, because recordings outlive versions of weir:
//! a variant that moves must not change what a file means. A number is never used for anything else.
//!
//! An outcome needs no number of its own, because the input says which kind of outcome follows it. A
//! completion whose reply is held is an input with a number of its own.

use std::fmt;

use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Entry;
use crate::input::{Input, Outcome};

/// The most fields of an entry, with its number.
const MOST_FIELDS: usize = 4;

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (input, outcome) = match self {
            Self::Made { config, timeout } => return (0_u8, config, timeout).serialize(serializer),
            Self::Reported(event) => return (13_u8, event).serialize(serializer),
            Self::Applied { input, outcome } => (input, outcome),
        };
        match input {
            Input::SetConfig(config) => (1_u8, config, outcome).serialize(serializer),
            Input::AddVolume(config) => (2_u8, config, outcome).serialize(serializer),
            Input::SetVolume { id, config } => (3_u8, id, config, outcome).serialize(serializer),
            Input::RemoveVolume { id } => (4_u8, id, outcome).serialize(serializer),
            Input::Grants(grants) => (5_u8, grants, outcome).serialize(serializer),
            Input::SetFallback(volumes) => (6_u8, volumes, outcome).serialize(serializer),
            Input::Submit(request) => (7_u8, request, outcome).serialize(serializer),
            Input::Dispatch => (8_u8, outcome).serialize(serializer),
            Input::Complete { id, ok } => match outcome {
                Outcome::Held(until) => (14_u8, id, ok, until).serialize(serializer),
                _ => (9_u8, id, ok, outcome).serialize(serializer),
            },
            Input::Reply { id } => (10_u8, id, outcome).serialize(serializer),
            Input::Abort { id } => (11_u8, id, outcome).serialize(serializer),
            Input::Timeout => (12_u8, outcome).serialize(serializer),
            Input::Standing(standing) => (15_u8, standing, outcome).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple(MOST_FIELDS, Stored)
    }
}

/// Reads an entry from its fields.
struct Stored;

impl<'de> Visitor<'de> for Stored {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry of a recording")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Entry, A::Error> {
        let f = &mut fields;
        let (input, outcome) = match field::<u8, A>(f)? {
            0 => return Ok(Entry::Made { config: field(f)?, timeout: field(f)? }),
            1 => (Input::SetConfig(field(f)?), Outcome::Timeout(field(f)?)),
            2 => (Input::AddVolume(field(f)?), Outcome::Added(field(f)?)),
            3 => (Input::SetVolume { id: field(f)?, config: field(f)? }, Outcome::Done),
            4 => (Input::RemoveVolume { id: field(f)? }, Outcome::Done),
            5 => (Input::Grants(field(f)?), Outcome::Timeout(field(f)?)),
            6 => (Input::SetFallback(field(f)?), Outcome::Done),
            7 => (Input::Submit(field(f)?), Outcome::Submitted(field(f)?)),
            8 => (Input::Dispatch, Outcome::Dispatched(field(f)?)),
            9 => (Input::Complete { id: field(f)?, ok: field(f)? }, Outcome::Done),
            10 => (Input::Reply { id: field(f)? }, Outcome::Done),
            11 => (Input::Abort { id: field(f)? }, Outcome::Aborted(field(f)?)),
            12 => (Input::Timeout, Outcome::Timeout(field(f)?)),
            13 => return Ok(Entry::Reported(field(f)?)),
            14 => (Input::Complete { id: field(f)?, ok: field(f)? }, Outcome::Held(field(f)?)),
            15 => (Input::Standing(field(f)?), Outcome::Done),
            other => return Err(Error::invalid_value(Unexpected::Unsigned(other.into()), &self)),
        };
        Ok(Entry::Applied { input, outcome })
    }
}

/// The next field.
fn field<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(fields: &mut A) -> Result<T, A::Error> {
    fields.next_element()?.ok_or_else(|| Error::missing_field("of an entry"))
}
