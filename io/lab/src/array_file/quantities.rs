//! Quantities of an array as text: sizes and rates of data.
//!
//! This module refuses each text that two readers could understand in two ways, before `bytesize` reads it.
//! `bytesize` takes `"20G"` for 20,000,000,000 bytes, where disk tools mean 20 GiB. It takes `"1Mb"` for a
//! megabyte, and a bare number for bytes.

use bytesize::ByteSize;
use weir_model::Bandwidth;

use crate::experiment::FromText;

/// The units of a size that are accepted. Each of them has only one meaning.
const UNITS: [&str; 11] = ["PiB", "PB", "TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "kB", "B"];

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
