//! `faults` of a volume: rules by which its device misbehaves, to see how clients react.

use std::fmt;
use std::num::NonZeroU64;

use rustix::io::Errno;
use weir_model::{IoKind, Span};

use super::accepts;
use super::origin::Resolved;
use super::reader::{Element, Section};
use super::units;

pub(super) const KEYS: &[&str] = &["on", "every", "error", "delay", "stall"];

/// The effects that a rule can have.
const EFFECTS: &str = "exactly one of error, delay, stall";

/// The errors that a rule may give: errors of real devices that the protocol can tell apart.
const ERRORS: &[(&str, Errno)] = &[
    ("EIO", Errno::IO),
    ("ENOSPC", Errno::NOSPC),
    ("ENOMEM", Errno::NOMEM),
    ("EINVAL", Errno::INVAL),
    ("EPERM", Errno::PERM),
    ("EROFS", Errno::ROFS),
    ("EOPNOTSUPP", Errno::OPNOTSUPP),
    ("ETIMEDOUT", Errno::TIMEDOUT),
];

/// The requests that a rule may be for, by [`IoKind::name`].
const KINDS: &[(&str, IoKind)] = &[
    (IoKind::Read.name(), IoKind::Read),
    (IoKind::Write.name(), IoKind::Write),
    (IoKind::Flush.name(), IoKind::Flush),
    (IoKind::Trim.name(), IoKind::Trim),
    (IoKind::WriteZeroes.name(), IoKind::WriteZeroes),
    (IoKind::Cache.name(), IoKind::Cache),
    (IoKind::BlockStatus.name(), IoKind::BlockStatus),
];

/// A rule by which a device misbehaves.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Fault {
    /// The requests that count; all of them if `None`.
    pub(crate) on: Option<IoKind>,
    /// One in so many of these requests is hit.
    pub(crate) every: NonZeroU64,
    /// The effect on that request.
    pub(crate) effect: FaultEffect,
}

/// The effect on a request that a rule hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultEffect {
    /// The request fails with this error and never reaches the device.
    Error(Errno),
    /// The request reaches the device only after this time.
    Delay(Span),
    /// The request gets no answer until the rule is gone.
    Stall,
}

pub(super) fn resolve(volume: &Section<'_>) -> Vec<Resolved<Fault>> {
    let elements = volume
        .elements("faults", "an array of rules such as { on = \"write\", every = 100, error = \"EIO\" }");
    elements.iter().filter_map(resolve_rule).collect()
}

fn resolve_rule(element: &Element<'_>) -> Option<Resolved<Fault>> {
    let section = element.section(KEYS)?;
    let on = section.optional("on", &accepts::word(KINDS), "requests of every kind").value;
    let every = accepts::whole(1..=1_000_000_000).then(NonZeroU64::new);
    let every = section.or_default("every", &every, NonZeroU64::MIN, "each request").value;
    let effect = resolve_effect(&section)?;
    Some(section.resolved(Fault { on, every, effect }))
}

fn resolve_effect(section: &Section<'_>) -> Option<FaultEffect> {
    let error = section.optional("error", &accepts::word(ERRORS), "").value.map(FaultEffect::Error);
    let delays = Span::from_micros(1)..=Span::from_secs(3600);
    let delay = section.optional("delay", &accepts::duration(delays), "").value.map(FaultEffect::Delay);
    let stall = section.optional("stall", &accepts::only_true(), "").value.map(|()| FaultEffect::Stall);
    let named: Vec<_> = ["error", "delay", "stall"].into_iter().filter(|key| section.has(key)).collect();
    match named.as_slice() {
        [_] => error.or(delay).or(stall),
        [] => {
            section.refuse_table("a rule that does nothing", EFFECTS);
            None
        }
        several => {
            section.refuse_table(several.join(" and "), EFFECTS);
            None
        }
    }
}

/// Formats the rule as a person would say it: `one write in 100 fails with EIO`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.on.map_or("request", IoKind::name);
        match self.every.get() {
            1 => write!(f, "every {on} ")?,
            n => write!(f, "one {on} in {n} ")?,
        }
        match self.effect {
            FaultEffect::Error(errno) => {
                let name =
                    ERRORS.iter().find(|(_, error)| *error == errno).map_or("an error", |(name, _)| name);
                write!(f, "fails with {name}")
            }
            FaultEffect::Delay(span) => write!(f, "is delayed by {}", units::show_span(span)),
            FaultEffect::Stall => f.write_str("is never answered"),
        }
    }
}
