//! Quantities as text, such as `"5ms"`, `"64KiB"`, `"1200iops"`, `"100MiB/s"`: to values and back.
//!
//! A bare number would leave it to the reader to remember the unit. The crates that read the units are
//! lenient: they accept texts that two readers may understand in two ways. This module refuses such texts.
//! `bytesize` takes `"20G"` for 20,000,000,000 bytes, where disk tools mean 20 GiB, `"1Mb"` for a megabyte,
//! `"20"` for bytes, and a number beyond 64 bits for the largest one. `humantime` takes `"1M"` for a month;
//! no setting here lasts that long.

use std::time::Duration;

use bytesize::ByteSize;
use weir_model::{Bandwidth, Iops, Span};

/// The unit suffixes of a size, by decreasing factor.
const SIZE_UNITS: [(&str, u64); 12] = [
    ("PiB", bytesize::PIB),
    ("PB", bytesize::PB),
    ("TiB", bytesize::TIB),
    ("TB", bytesize::TB),
    ("GiB", bytesize::GIB),
    ("GB", bytesize::GB),
    ("MiB", bytesize::MIB),
    ("MB", bytesize::MB),
    ("KiB", bytesize::KIB),
    ("kB", bytesize::KB),
    ("KB", bytesize::KB),
    ("B", 1),
];

/// A length of time: `"5ms"`, `"1m 30s"`.
pub(crate) fn read_span(text: &str) -> Option<Span> {
    humantime::parse_duration(text).ok().map(Span::from)
}

/// A number of bytes: `"64KiB"`, `"20 GiB"`, `"500B"`; a fraction must come to whole bytes.
pub(crate) fn read_size(text: &str) -> Option<ByteSize> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let (_, factor) = SIZE_UNITS.iter().find(|(name, _)| *name == unit)?;
    let size: ByteSize = text.parse().ok()?;
    is_exact(number.trim_end(), *factor, size).then_some(size)
}

/// Requests a second: `"1200iops"`, `"0.5iops"`.
pub(crate) fn read_iops(text: &str) -> Option<Iops> {
    read_decimal(text.strip_suffix("iops")?.trim_end()).and_then(Iops::new)
}

/// Bytes a second: `"100MiB/s"`.
pub(super) fn read_bandwidth(text: &str) -> Option<Bandwidth> {
    read_size(text.strip_suffix("/s")?.trim_end()).and_then(|size| Bandwidth::new(size.as_u64()))
}

/// The text that [`read_span`] reads as this span, with nothing rounded.
pub(crate) fn show_span(span: Span) -> String {
    humantime::format_duration(Duration::from(span)).to_string()
}

/// The text that [`read_size`] reads as this size, in the largest unit that leaves a whole number.
pub(super) fn show_size(size: ByteSize) -> String {
    let bytes = size.as_u64();
    let fits = |(_, factor): &&(&str, u64)| bytes >= *factor && bytes.is_multiple_of(*factor);
    let (unit, factor) = SIZE_UNITS.iter().find(fits).unwrap_or(&("B", 1));
    format!("{}{unit}", bytes / factor)
}

/// The text that [`read_bandwidth`] reads as this bandwidth.
pub(super) fn show_bandwidth(bandwidth: Bandwidth) -> String {
    format!("{}/s", show_size(ByteSize::b(bandwidth.get())))
}

/// Digits with at most one point between them: no sign, no exponent, no `inf`.
fn read_decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    (plain && text.starts_with(|c: char| c.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Whether `size` is exactly `number` times `factor`, with nothing cut off at the top or behind the point.
#[allow(clippy::cast_precision_loss, clippy::float_cmp)] // a fraction is exact only if both sides are the same number
fn is_exact(number: &str, factor: u64, size: ByteSize) -> bool {
    match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor) == Some(size.as_u64()),
        Err(_) => read_decimal(number).is_some_and(|n| n * factor as f64 == size.as_u64() as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_back_as_the_same_value() {
        for nanos in [1, 1_500, 5_000_000, 12_345_678, 90_000_000_000] {
            let span = Span::from_nanos(nanos);
            assert_eq!(read_span(&show_span(span)), Some(span));
        }
        for bytes in [1, 500, 1_000, 1_024, 1_536, 20_000_000_000, 20 << 30] {
            let size = ByteSize::b(bytes);
            assert_eq!(read_size(&show_size(size)), Some(size));
        }
        let bandwidth = Bandwidth::new(100 << 20).unwrap();
        assert_eq!(show_bandwidth(bandwidth), "100MiB/s");
        assert_eq!(read_bandwidth("100MiB/s"), Some(bandwidth));
    }

    #[test]
    fn a_size_needs_a_unit_that_means_one_thing() {
        assert_eq!(read_size("1.5KiB"), Some(ByteSize::b(1536)));
        assert_eq!(read_size("20 GB"), Some(ByteSize::gb(20)));
        for ambiguous in ["20", "20G", "20Gi", "1Mb", "1mb", "1gib", "", "GiB", "-1GiB", "1e3B"] {
            assert_eq!(read_size(ambiguous), None, "{ambiguous}");
        }
    }

    #[test]
    fn a_size_is_refused_rather_than_rounded() {
        assert_eq!(read_size("99999999PiB"), None);
        assert_eq!(read_size("99999999999999999999B"), None);
        assert_eq!(read_size("0.0001KiB"), None);
        assert_eq!(read_size("1.5B"), None);
    }

    #[test]
    fn a_rate_is_a_plain_number_above_zero_with_its_unit() {
        assert_eq!(read_iops("1200iops"), Iops::new(1200.0));
        assert_eq!(read_iops("0.5 iops"), Iops::new(0.5));
        for bad in ["0iops", "1200", "-1iops", "infiops", "NaNiops", "1e3iops", "1.2.3iops", "iops", ".5iops"]
        {
            assert_eq!(read_iops(bad), None, "{bad}");
        }
        for bad in ["100MiB", "100/s", "0B/s", "/s"] {
            assert_eq!(read_bandwidth(bad), None, "{bad}");
        }
    }
}
