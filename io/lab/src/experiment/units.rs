//! Quantities as text in an experiment's file, such as `"50ms"`, `"200iops"`, `"4KiB"`.
//!
//! A bare number would leave it to the reader to remember the unit.

use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use weir_model::{Iops, Span, Target};

use crate::array_file::Rate;

/// A value that is written as text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Text<T>(pub T);

/// A value that can be written as text.
pub trait FromText: Sized {
    /// The accepted texts, with an example.
    const ACCEPTED: &str;

    /// The value of `text`; `None` if the text has none.
    fn from_text(text: &str) -> Option<Self>;
}

impl<'de, T: FromText> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let refused = || D::Error::invalid_value(Unexpected::Str(&text), &T::ACCEPTED);
        T::from_text(&text).map(Self).ok_or_else(refused)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bytes(pub u32);

impl FromText for Span {
    const ACCEPTED: &str = "a duration such as \"50ms\"";

    fn from_text(text: &str) -> Option<Self> {
        humantime::parse_duration(text).ok().map(Self::from)
    }
}

impl FromText for Iops {
    const ACCEPTED: &str = "a request rate above zero such as \"200iops\"";

    fn from_text(text: &str) -> Option<Self> {
        text.strip_suffix("iops")?.trim_end().parse().ok().and_then(Self::new)
    }
}

impl FromText for Target {
    const ACCEPTED: &str =
        "a throughput such as \"20MB/s\", a rate such as \"200iops\" or a mean latency such as \"10ms\"";

    fn from_text(text: &str) -> Option<Self> {
        let throughput = || Rate::from_text(text).map(|rate| Self::Throughput(rate.0));
        let latency = || Span::from_text(text).filter(|span| !span.is_zero()).map(Self::Latency);
        throughput().or_else(|| Iops::from_text(text).map(Self::Rate)).or_else(latency)
    }
}

impl FromText for Bytes {
    const ACCEPTED: &str = "a size above zero in B, KiB or MiB, up to 32MiB, such as \"4KiB\"";

    fn from_text(text: &str) -> Option<Self> {
        let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("B", 1)];
        let (number, factor) =
            units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
        let bytes = number.trim_end().parse::<u32>().ok()?.checked_mul(factor)?;
        (1..=32 << 20).contains(&bytes).then_some(Self(bytes))
    }
}
