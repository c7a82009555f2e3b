//! The description of a load, as plain values.

use std::num::NonZeroU64;

use thiserror::Error;
use weir_model::{Iops, Span};

use crate::Target;

/// The most connections.
const MAX_CONNECTIONS: u32 = 1024;
/// The most outstanding requests of a connection.
const MAX_DEPTH: u32 = 65_536;
/// The largest block. Servers accept this much as the payload of one request unless they say otherwise (NBD
/// protocol, "Block sizes").
const MAX_BLOCK: u32 = 32 << 20;

/// A made-up load: the export, the requests, their rate, and the duration.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadSpec {
    /// The export to load.
    pub target: Target,
    /// How many connections to open.
    pub connections: u32,
    /// When requests are sent.
    pub pace: Pace,
    /// Requests outstanding on each connection. A closed loop keeps this many; in an open loop it is the
    /// most. Further requests wait, and their latency counts meanwhile.
    pub depth: u32,
    /// Reads in a hundred requests; the rest are writes.
    pub read_percent: u8,
    /// Bytes of each request.
    pub block_bytes: u32,
    /// First byte of the range of the export that is used.
    pub offset: u64,
    /// Bytes of that range; `None`: to the end of the export. Rounded down to whole blocks.
    pub length: Option<u64>,
    /// Where in the range requests go.
    pub pattern: Pattern,
    /// Equal seeds give equal requests and equal arrivals on each connection.
    pub seed: u64,
    /// When to end.
    pub until: Until,
    /// How long the load runs before the measurement starts.
    pub warm_up: Span,
    /// How many writes a connection sends between two flushes. `None`: it sends none. The flushes come in
    /// addition to the requests of the pace.
    pub flush_every: Option<NonZeroU64>,
    /// Whether to ask for structured replies. Simple replies are less work for both sides.
    pub structured_replies: bool,
    /// How long to wait at the end for outstanding requests.
    pub drain_limit: Span,
}

/// When requests are sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// Each reply brings the next request.
    Closed,
    /// At a rate, whatever the server does.
    Open {
        /// Requests a second, over all connections.
        rate: Iops,
        /// The spread of the arrivals.
        arrivals: Arrival,
    },
}

/// The spread of the arrivals of an open loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// All at the same distance; the connections take turns.
    Constant,
    /// As from many independent users: exponentially distributed distances.
    Poisson,
    /// Like `Poisson` at four times the rate for 50 ms, then nothing for 150 ms, and so on.
    Bursts,
}

/// Where in the range requests go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// To any block, all with the same probability.
    Random,
    /// To one block after the other, and from the end to the start again. The connections start at equal
    /// distances.
    Sequential,
}

/// When to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// After this time, warm-up not included.
    Elapsed(Span),
    /// After this many requests over all connections, warm-up and flushes not included.
    Requests(u64),
}

/// A value that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{field} is {found}; accepted: {accepted}")]
pub struct SpecError {
    /// The field of [`LoadSpec`].
    pub field: &'static str,
    /// Its value.
    pub found: String,
    /// The accepted values.
    pub accepted: String,
}

impl LoadSpec {
    /// A closed loop of random 4 KiB reads over the whole export, one connection with 32 outstanding, for ten
    /// seconds.
    pub const fn new(target: Target) -> Self {
        Self {
            target,
            connections: 1,
            pace: Pace::Closed,
            depth: 32,
            read_percent: 100,
            block_bytes: 4096,
            offset: 0,
            length: None,
            pattern: Pattern::Random,
            seed: 1,
            until: Until::Elapsed(Span::from_secs(10)),
            warm_up: Span::ZERO,
            flush_every: None,
            structured_replies: false,
            drain_limit: Span::from_secs(5),
        }
    }

    /// Checks every value that can be checked without the server. [`run()`](crate::run()) calls it first.
    ///
    /// # Errors
    /// The first value that makes no sense.
    pub fn check(&self) -> Result<(), SpecError> {
        in_range("connections", self.connections, 1, MAX_CONNECTIONS)?;
        check_depth(self.depth)?;
        in_range("read_percent", self.read_percent, 0, 100)?;
        in_range("block_bytes", self.block_bytes, 1, MAX_BLOCK)?;
        match self.until {
            Until::Elapsed(span) => in_range("duration", span, Span::from_nanos(1), MAX_SPAN)?,
            Until::Requests(requests) => in_range("requests", requests, 1, u64::MAX)?,
        }
        in_range("warm_up", self.warm_up, Span::ZERO, MAX_SPAN)?;
        if let Pace::Open { rate, .. } = self.pace {
            in_range("rate", rate.get(), 1e-3, 1e8)?;
        }
        if let Some(length) = self.length {
            in_range("length", length, u64::from(self.block_bytes), u64::MAX - self.offset)?;
        }
        if self.flush_every.is_some() && self.read_percent == 100 {
            return Err(SpecError {
                field: "flush_every",
                found: "set although nothing is written".to_owned(),
                accepted: "only with a read_percent below 100".to_owned(),
            });
        }
        Ok(())
    }
}

/// The longest time in a spec: longer than any useful run, and far from where adding instants would saturate.
const MAX_SPAN: Span = Span::from_secs(1_000 * 86_400);

/// Checks a bound on the requests outstanding on a connection.
pub(crate) fn check_depth(depth: u32) -> Result<(), SpecError> {
    in_range("depth", depth, 1, MAX_DEPTH)
}

fn in_range<T: PartialOrd + Copy + std::fmt::Display>(
    field: &'static str,
    found: T,
    least: T,
    most: T,
) -> Result<(), SpecError> {
    if (&least..=&most).contains(&&found) {
        return Ok(());
    }
    Err(SpecError { field, found: found.to_string(), accepted: format!("{least} to {most}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_sense_and_a_value_that_does_not_is_named() {
        let good = LoadSpec::new("nbd://server/".parse().unwrap());
        assert_eq!(good.check(), Ok(()));
        let message = |change: fn(&mut LoadSpec)| {
            let mut spec = good.clone();
            change(&mut spec);
            spec.check().unwrap_err().to_string()
        };
        assert_eq!(message(|spec| spec.read_percent = 101), "read_percent is 101; accepted: 0 to 100");
        assert_eq!(message(|spec| spec.depth = 0), "depth is 0; accepted: 1 to 65536");
        assert!(message(|spec| spec.until = Until::Requests(0)).starts_with("requests is 0"));
        assert!(message(|spec| spec.length = Some(4095)).starts_with("length is 4095; accepted: 4096 to"));
        assert!(message(|spec| spec.flush_every = NonZeroU64::new(8)).contains("nothing is written"));
    }
}
