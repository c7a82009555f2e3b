//! What a key accepts: one place for both the code that reads the value, and the words for the operator.
//!
//! In two places, a message would sooner or later offer a value that the code refuses.

use std::fmt::Display;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use bytesize::ByteSize;
use toml::de::DeValue;
use weir_model::{Bandwidth, Iops, Priority, SloGoal, Span, TimeShare};

use super::units;

/// The values that a key accepts.
pub(super) struct Accepts<T> {
    read: Read<T>,
    words: String,
}

/// Makes a value out of the file's value, if that is accepted.
type Read<T> = Box<dyn Fn(&DeValue<'_>) -> Option<T>>;

impl<T: 'static> Accepts<T> {
    /// The value, if it is accepted.
    pub(super) fn read(&self, value: &DeValue<'_>) -> Option<T> {
        (self.read)(value)
    }

    /// The accepted values in words, to follow "accepted: ".
    pub(super) fn words(&self) -> &str {
        &self.words
    }

    /// Accepts strings from which `read` makes a value.
    pub(super) fn text(words: impl Into<String>, read: impl Fn(&str) -> Option<T> + 'static) -> Self {
        Self { read: Box::new(move |value| read(value.as_str()?)), words: words.into() }
    }

    /// Accepts values of any type.
    pub(super) fn value(
        words: impl Into<String>,
        read: impl Fn(&DeValue<'_>) -> Option<T> + 'static,
    ) -> Self {
        Self { read: Box::new(read), words: words.into() }
    }

    /// Accepts the same values, described by other words.
    pub(super) fn called(self, words: &str) -> Self {
        Self { words: words.to_owned(), ..self }
    }

    /// Accepts the same values, but `then` may refuse or change what was read.
    pub(super) fn then<U>(self, then: impl Fn(T) -> Option<U> + 'static) -> Accepts<U> {
        Accepts { read: Box::new(move |value| then((self.read)(value)?)), words: self.words }
    }
}

/// A length of time within `range`.
pub(super) fn duration(range: RangeInclusive<Span>) -> Accepts<Span> {
    let (from, to) = (units::show_span(*range.start()), units::show_span(*range.end()));
    let words = format!("a duration such as \"5ms\", from {from} to {to}");
    Accepts::text(words, move |text| units::read_span(text).filter(|span| range.contains(span)))
}

/// A number of bytes within `range`.
pub(super) fn size(range: RangeInclusive<ByteSize>) -> Accepts<ByteSize> {
    let (from, to) = (units::show_size(*range.start()), units::show_size(*range.end()));
    let words = format!("a size such as \"64MiB\", from {from} to {to}");
    Accepts::text(words, move |text| units::read_size(text).filter(|size| range.contains(size)))
}

/// Requests a second.
pub(super) fn iops() -> Accepts<Iops> {
    Accepts::text("a rate above zero such as \"1200iops\"", units::read_iops)
}

/// Bytes a second.
pub(super) fn bandwidth() -> Accepts<Bandwidth> {
    Accepts::text(
        "a bandwidth such as \"100MiB/s\", above zero and below 16777216TiB/s",
        units::read_bandwidth,
    )
}

/// A whole number from one to `most`.
pub(super) fn count(most: u32) -> Accepts<NonZeroU32> {
    whole(1..=u64::from(most)).then(|n| NonZeroU32::new(u32::try_from(n).ok()?))
}

/// A whole number within `range`.
pub(super) fn whole(range: RangeInclusive<u64>) -> Accepts<u64> {
    let words = format!("a whole number from {} to {}", range.start(), range.end());
    let read = move |value: &DeValue<'_>| {
        let number = value.as_integer()?;
        u64::from_str_radix(number.as_str(), number.radix()).ok().filter(|n| range.contains(n))
    };
    Accepts { read: Box::new(read), words }
}

/// A number above zero and not above one.
pub(super) fn share() -> Accepts<f64> {
    number_up_to(1, "0.1")
}

/// A number above zero and not above `most`.
pub(super) fn number_up_to(most: u8, such_as: &str) -> Accepts<f64> {
    let read = move |value: &DeValue<'_>| read_number(value).filter(|n| *n > 0.0 && *n <= f64::from(most));
    Accepts { read: Box::new(read), words: format!("a number above 0, at most {most}, such as {such_as}") }
}

/// A part of a device's time.
pub(super) fn time_share() -> Accepts<TimeShare> {
    let read = |value: &DeValue<'_>| read_number(value).and_then(TimeShare::new);
    Accepts {
        read: Box::new(read),
        words: format!("a number from 0 to {}, such as {}", TimeShare::MAX, TimeShare::PERCENT),
    }
}

/// The share of windows in which a promise is to be kept.
pub(super) fn goal() -> Accepts<SloGoal> {
    let read = |value: &DeValue<'_>| read_number(value).and_then(SloGoal::new);
    let (least, most) = (SloGoal::MIN, SloGoal::MAX);
    Accepts {
        read: Box::new(read),
        words: format!("a number from {least} to {most}, such as {}", SloGoal::default()),
    }
}

/// Requests a second, as a number or with their unit.
pub(super) fn rate() -> Accepts<Iops> {
    let read = |value: &DeValue<'_>| match value.as_str() {
        Some(text) => units::read_iops(text),
        None => read_number(value).and_then(Iops::new),
    };
    Accepts { read: Box::new(read), words: "a rate above zero such as 900 or \"900iops\"".to_owned() }
}

/// A priority: how much it counts that a volume gets its target.
pub(super) fn priority() -> Accepts<Priority> {
    let read = |value: &DeValue<'_>| read_number(value).and_then(Priority::new);
    Accepts { read: Box::new(read), words: "a number above zero such as 4".to_owned() }
}

/// A whole number, or one with a point. It may be infinite or NaN.
fn read_number(value: &DeValue<'_>) -> Option<f64> {
    let whole = || value.as_integer().map(|n| n.as_str());
    value.as_float().map(|n| n.as_str()).or_else(whole)?.parse().ok()
}

/// The word `true`.
pub(super) fn only_true() -> Accepts<()> {
    let read = |value: &DeValue<'_>| value.as_bool()?.then_some(());
    Accepts { read: Box::new(read), words: "true".to_owned() }
}

/// One of a few words, each with its value.
pub(super) fn word<T: Clone + 'static>(words: &'static [(&'static str, T)]) -> Accepts<T> {
    let read = |text: &str| words.iter().find(|(word, _)| *word == text).map(|(_, value)| value.clone());
    Accepts::text(format!("one of {}", quoted(words.iter().map(|(word, _)| word))), read)
}

/// `"a", "b", "c"`.
pub(super) fn quoted(words: impl IntoIterator<Item = impl Display>) -> String {
    words.into_iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}
