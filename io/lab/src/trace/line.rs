//! The possible meanings of a line of a trace, and the fields that lines are made of. Pure: text in, values
//! out.

use std::fmt::Display;
use std::str::FromStr;

use weir_model::{IoKind, Span};

/// Bytes of a sector, the unit of block traces.
pub(super) const SECTOR: u64 = 512;

/// How many characters of an unreadable field an error shows.
const SHOWN: usize = 60;

/// The meaning of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// A read or a write.
    Request(Recorded),
    /// A request that moves no data: a flush, a trim.
    Other,
    /// No request: a header, a summary, a step in the life of a request that is not its arrival, an empty
    /// line.
    Nothing,
}

/// A read or a write. Its time counts from the origin of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Recorded {
    pub(super) at: Span,
    pub(super) kind: IoKind,
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// Why a line does not have its format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Misfit {
    pub(super) found: String,
    pub(super) accepted: String,
}

impl Misfit {
    pub(super) fn new(found: impl Display, accepted: impl Display) -> Self {
        Self { found: found.to_string(), accepted: accepted.to_string() }
    }
}

/// The content of an unreadable field for an error message: quoted, and cut to [`SHOWN`] characters.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The first `N` fields of a line with commas between them, without white space around them. `more` says
/// whether further fields may follow.
pub(super) fn fields<'a, const N: usize>(
    line: &'a str,
    names: &str,
    more: bool,
) -> Result<[&'a str; N], Misfit> {
    let mut found = [""; N];
    let mut parts = line.split(',');
    let count = found.iter_mut().zip(&mut parts).map(|(field, part)| *field = part.trim()).count();
    if count < N || (!more && parts.next().is_some()) {
        return Err(Misfit::new(quoted(line), format_args!("{N} fields: {names}")));
    }
    Ok(found)
}

/// A whole number.
pub(super) fn number<T: FromStr>(name: &str, text: &str) -> Result<T, Misfit> {
    text.parse().map_err(|_| wrong(name, text, "a whole number"))
}

/// A number of bytes to transfer.
pub(super) fn length(name: &str, text: &str) -> Result<u32, Misfit> {
    match text.parse() {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(wrong(name, text, "a number of bytes from 1 to 4294967295")),
    }
}

/// Seconds with up to nine decimals that count. The result is exact; a float's would not be, because 2^53 ns
/// are less than four months.
pub(super) fn seconds(name: &str, text: &str) -> Result<Span, Misfit> {
    decimal_seconds(text).ok_or_else(|| wrong(name, text, "seconds, such as 12.000345"))
}

/// A place in sectors, converted to bytes.
pub(super) fn sector(name: &str, text: &str) -> Result<u64, Misfit> {
    let sectors: u64 = number(name, text)?;
    sectors.checked_mul(SECTOR).ok_or_else(|| wrong(name, text, "a sector below 2^55"))
}

pub(super) fn wrong(name: &str, text: &str, accepted: impl Display) -> Misfit {
    Misfit::new(format_args!("{} as {name}", quoted(text)), accepted)
}

fn decimal_seconds(text: &str) -> Option<Span> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) {
        return None;
    }
    let nine = decimals.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = nine.fold(0, |nanos, digit| nanos * 10 + u64::from(digit - b'0'));
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos).map(Span::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact_to_the_nanosecond_and_nothing_but_digits_and_a_point() {
        let nanos = |text| decimal_seconds(text).map(Span::as_nanos);
        assert_eq!(nanos("0.026214"), Some(26_214_000));
        assert_eq!(nanos("9007199.254740993"), Some(9_007_199_254_740_993));
        assert_eq!(nanos("7"), Some(7_000_000_000));
        assert_eq!(nanos("1.0000000019"), Some(1_000_000_001));
        for wrong in ["", ".5", "-1", "1e3", "1.2.3", " 1", "99999999999"] {
            assert_eq!(nanos(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_field_that_fills_the_screen_is_shown_in_part() {
        assert_eq!(quoted("x"), "\"x\"");
        assert!(quoted(&"ü".repeat(5_000)).len() < 200);
    }
}
