//! The settings of a pool with `control = "pid"`.

use weir_control::ThrottleDelay;
use weir_model::{Bandwidth, Span};

use super::accepts::{self, Accepts};
use super::origin::Resolved;
use super::reader::Section;
use super::units;

pub(super) const KEYS: &[&str] =
    &["threshold", "write_limit", "ceiling", "proportional_gain", "integral_time"];

/// The default ceiling. A client of NBD waits for 30 s and more, so the law may delay for longer than an
/// agent that delays the packets of another protocol.
const CEILING: Span = Span::from_millis(100);

/// The default write limit.
const WRITE_LIMIT: Bandwidth = Bandwidth::new(256 << 10).expect("it is above zero");

/// The settings of the one-sided PID.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pid {
    /// The wait that reads must not exceed.
    pub(crate) threshold: Resolved<Span>,
    /// A volume that writes more than this is a heavy writer.
    pub(crate) write_limit: Resolved<Bandwidth>,
    /// The longest time for which a reply is held.
    pub(crate) ceiling: Resolved<Span>,
    /// How much delay the law adds for a wait that grows.
    pub(crate) proportional_gain: Resolved<f64>,
    /// In which time an error that lasts adds as much delay as its onset did.
    pub(crate) integral_time: Resolved<Span>,
}

pub(super) fn resolve(section: &Section<'_>) -> Pid {
    let threshold = accepts::duration(Span::from_micros(10)..=Span::from_secs(10));
    Pid {
        threshold: section
            .required("threshold", &threshold)
            .unwrap_or_else(|| Resolved::placeholder(Span::from_millis(1))),
        write_limit: section.or_default(
            "write_limit",
            &accepts::bandwidth(),
            WRITE_LIMIT,
            "64 writes of 4KiB a second, a fifth of what a disk can do",
        ),
        ceiling: section.or_default(
            "ceiling",
            &ceiling(Span::from_secs(10)),
            CEILING,
            "what 32 writes of 3ms wait for one another, and far below any client's time-out",
        ),
        proportional_gain: section.or_default(
            "proportional_gain",
            &proportional_gain(),
            0.25,
            "by Skogestad's rule, for writers that wait for their replies",
        ),
        integral_time: section.or_default(
            "integral_time",
            &accepts::duration(Span::from_millis(1)..=Span::from_secs(60)),
            Span::from_millis(200),
            "the lag of the smoothed wait, by the same rule",
        ),
    }
}

/// How much delay the law may add for a wait that grows.
pub(super) fn proportional_gain() -> Accepts<f64> {
    accepts::number_up_to(100, "0.25")
}

/// A delay that the law can set, up to `most`.
pub(super) fn ceiling(most: Span) -> Accepts<Span> {
    let step = ThrottleDelay::STEP;
    let words = format!("a multiple of 0.5ms such as \"40ms\", from 0.5ms to {}", units::show_span(most));
    let delay = accepts::duration(step..=most);
    delay.then(move |span| span.as_nanos().is_multiple_of(step.as_nanos()).then_some(span)).called(&words)
}
