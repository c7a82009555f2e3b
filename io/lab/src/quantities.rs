//! Quantities as text in the files of experiments and arrays, such as `"50ms"`, `"200iops"`, `"16KiB"`.
//!
//! With a bare number, the reader would have to remember the unit. This module also refuses each size that
//! two readers could understand in two ways, before `bytesize` reads it. `bytesize` takes `"20G"` for
//! 20,000,000,000 bytes, where disk tools mean 20 GiB. It takes `"1Mb"` for a megabyte, and a bare number for
//! bytes.

use bytesize::ByteSize;
use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use weir_model::{Bandwidth, Iops, Span, Target};

/// The units of a size that are accepted. Each of them has only one meaning.
const UNITS: [&str; 11] = ["PiB", "PB", "TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "kB", "B"];

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

/// A number of bytes, which may be zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size(pub u64);

impl FromText for Size {
    const ACCEPTED: &str = "a size with its unit such as \"16KiB\", \"256MiB\" or \"18.2GB\"";

    fn from_text(text: &str) -> Option<Self> {
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let plain = number.trim_end().bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if !plain
            || !number.starts_with(|c: char| c.is_ascii_digit())
            || !UNITS.contains(&&text[number.len()..])
        {
            return None;
        }
        let bytes = text.parse::<ByteSize>().ok()?.as_u64();
        (bytes < u64::MAX).then_some(Self(bytes)) // a number that is too large becomes the largest
    }
}

/// Bytes a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate(pub Bandwidth);

impl FromText for Rate {
    const ACCEPTED: &str = "a rate above zero such as \"100MB/s\"";

    fn from_text(text: &str) -> Option<Self> {
        let Size(bytes) = Size::from_text(text.strip_suffix("/s")?.trim_end())?;
        Bandwidth::new(bytes).map(Self)
    }
}

/// The number of bytes of a request.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_needs_a_unit_that_means_one_thing() {
        let size = |text| Size::from_text(text).map(|size| size.0);
        assert_eq!(
            ["16KiB", "20 GiB", "18.2GB", "0B"].map(size),
            [Some(16 << 10), Some(20 << 30), Some(18_200_000_000), Some(0)]
        );
        for bad in ["20", "20G", "1Mb", "1gib", "", "GiB", "-1GiB", "1e3B", "99999999PiB", "1.2.3MB"] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_rate_is_a_size_a_second_above_zero() {
        let rate = |text| Rate::from_text(text).map(|rate| rate.0.get());
        assert_eq!(["160MB/s", "1 GiB/s"].map(rate), [Some(160_000_000), Some(1 << 30)]);
        assert_eq!(["160MB", "0B/s", "/s", "5/s"].map(rate), [None; 4]);
    }
}
