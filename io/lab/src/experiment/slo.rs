//! A promise in an experiment's file: a list of points, or the name of a curve that is measured first.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};

use super::SloSpec;

impl<'de> Deserialize<'de> for SloSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SloVisitor)
    }
}

/// Written by hand: the error of a derived choice between the two forms says only that neither fits.
struct SloVisitor;

impl<'de> Visitor<'de> for SloVisitor {
    type Value = SloSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "\"curve:NAME\" or points such as [{ up_to = \"200iops\", read = \"50ms\", write = \"50ms\" }]",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SloSpec, E> {
        match text.strip_prefix("curve:") {
            Some(name) if !name.is_empty() => Ok(SloSpec::Curve(name.to_owned())),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut points: A) -> Result<SloSpec, A::Error> {
        let mut all = Vec::new();
        while let Some(point) = points.next_element()? {
            all.push(point);
        }
        Ok(SloSpec::Points(all))
    }
}
