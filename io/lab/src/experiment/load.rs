//! What the clients of a volume do, in a few words: `"200iops"`, `"2000 threads"`, `"idle"`.

use weir_model::{Iops, Span};
use weir_sim::Arrivals;

use super::units::FromText;

/// What clients do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// Nothing.
    Idle,
    /// Requests, so.
    Arrivals(Arrivals),
}

impl FromText for Load {
    const ACCEPTED: &str =
        "\"idle\", \"200iops\", \"200iops constant\", \"16 threads\" or \"16 threads think 5ms\"";

    fn from_text(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let threads = |number: &str| number.parse().ok().filter(|threads| *threads > 0);
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
