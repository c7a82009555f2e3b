//! The load that the clients of a volume make, in a few words: `"200iops"`, `"2000 threads"`, `"idle"`; or a
//! list of loads, one for each port.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};
use weir_model::{Iops, Span};
use weir_sim::Arrivals;

use crate::quantities::{FromText, Text};

/// The most threads of a load. Each takes memory.
const MOST_THREADS: u32 = 1_000_000;

/// The load that clients make.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// No requests.
    Idle,
    /// Requests that arrive in this way.
    Arrivals(Arrivals),
}

impl FromText for Load {
    const ACCEPTED: &str =
        "\"idle\", \"200iops\", \"200iops constant\", \"16 threads\" or \"16 threads think 5ms\"";

    fn from_text(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let threads =
            |number: &str| number.parse().ok().filter(|threads| (1..=MOST_THREADS).contains(threads));
        let arrivals = match words[..] {
            ["idle"] => return Some(Self::Idle),
            [rate] => Arrivals::Poisson(Iops::from_text(rate)?),
            [rate, "constant"] => Arrivals::Constant(Iops::from_text(rate)?),
            [number, "threads"] => Arrivals::Closed { threads: threads(number)?, think: Span::ZERO },
            [number, "threads", "think", think] => {
                Arrivals::Closed { threads: threads(number)?, think: Span::from_text(think)? }
            }
            _ => return None,
        };
        Some(Self::Arrivals(arrivals))
    }
}

/// The load at each port.
#[derive(Clone, PartialEq, Debug)]
pub enum Loads {
    /// The same load at all ports.
    Same(Load),
    /// One load for each port.
    Each(Vec<Load>),
}

impl Loads {
    /// The load at a port, from zero; `None` if the list has no load for that port.
    pub fn at(&self, port: usize) -> Option<Load> {
        match self {
            Self::Same(load) => Some(*load),
            Self::Each(loads) => loads.get(port).copied(),
        }
    }
}

impl<'de> Deserialize<'de> for Loads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany)
    }
}

/// Written by hand: the error of a derived choice between the two forms says only that neither fits.
struct OneOrMany;

impl<'de> Visitor<'de> for OneOrMany {
    type Value = Loads;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or a list of these, one for each port", Load::ACCEPTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Loads, E> {
        let refused = || E::invalid_value(Unexpected::Str(text), &self);
        Load::from_text(text).map(Loads::Same).ok_or_else(refused)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Loads, A::Error> {
        let mut loads = Vec::new();
        while let Some(Text(load)) = texts.next_element::<Text<Load>>()? {
            loads.push(load);
        }
        Ok(Loads::Each(loads))
    }
}
