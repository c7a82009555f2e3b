//! What `weir why` shows: where the time of a volume's requests went, and on whose behalf they waited.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::ControlKind;

/// Where the time of the requests of a volume went in the last minutes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Why {
    /// The volume.
    pub volume: String,
    /// Its pool.
    pub pool: String,
    /// What decides about the pool.
    pub control: ControlKind,
    /// How far back all of this goes, in seconds: what was asked for and up to ten seconds, or less if the
    /// volume is younger.
    pub seconds: f64,
    /// Requests of any kind that were answered in that time, errors included.
    pub requests: u64,
    /// Where their time went: of the mean, and around percentiles. Empty if none was answered.
    pub latencies: Vec<LatencyParts>,
    /// What held requests back, most first. What held nothing back is left out.
    pub held_back: Vec<HeldBack>,
    /// On whose behalf requests waited for their turn, most first. In sum this is all of `held_back` but the
    /// volume's own limits.
    pub waited_for: Vec<Share>,
    /// Beside whose requests they were at the device, most first.
    pub beside: Vec<Share>,
}

/// The parts of a latency, as means over some requests, in microseconds. They add up to the total.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LatencyParts {
    /// Which latency it is: `mean`, `p50`, `p90` or `p99`.
    pub of: String,
    /// How many requests: all of them, or those whose latency is about that of the percentile, within a
    /// factor of 1.25.
    pub requests: u64,
    /// From the request read until the socket had taken its reply.
    pub total_us: f64,
    /// Held back by limits of the volume itself: a rate or a concurrency, configured or granted.
    pub own_limit_us: f64,
    /// Waited for its turn, while a gate of the pool was shut.
    pub turn_us: f64,
    /// At the device.
    pub device_us: f64,
    /// Finished, and its reply held by the one-sided PID.
    pub held_us: f64,
    /// Its reply on the way until the socket had taken it.
    pub reply_us: f64,
}

/// Something that holds requests back before they go to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// The volume's `max_iops` or `max_bandwidth`.
    Rate,
    /// The volume's `max_concurrency`.
    Concurrency,
    /// A rate that the law, or a controller, granted to the volume.
    GrantedRate,
    /// A concurrency that the law, or a controller, granted to the volume.
    GrantedConcurrency,
    /// The depth of the pool.
    Depth,
    /// The bound of promised volumes, which go in order.
    PromisedBound,
    /// A turn: a background volume had the device for itself.
    Turn,
    /// The bound of background volumes.
    BackgroundBound,
    /// Nothing: weir had not come to it yet.
    Driver,
}

/// For how long something held requests back.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct HeldBack {
    /// What it is.
    pub by: HeldBy,
    /// For how long, in seconds, in sum over the requests. A request that still waits counts so far.
    pub seconds: f64,
}

/// Whose requests, or whose promise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// Another volume of the pool; `volume` has its name.
    Volume,
    /// The volume itself.
    Itself,
    /// A volume that is gone.
    Gone,
    /// Volumes that are not named, because each had only a small part.
    Others,
    /// A promise behind another gateway of the array.
    OtherGateway,
    /// weir itself: it had not come to the requests yet.
    Weir,
    /// Nobody that is known.
    Nobody,
}

/// The part that was due to somebody.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Share {
    /// Who it is.
    pub whose: Whose,
    /// The volume's name, if it has one.
    pub volume: Option<String>,
    /// In seconds, in sum over the requests that waited, or were at the device.
    pub seconds: f64,
    /// Of all in the list.
    pub percent: f64,
    /// How many requests of theirs went to the device meanwhile, to 20 ms.
    pub requests: u64,
}

impl HeldBy {
    /// Whether it is a limit of the volume itself.
    pub const fn is_own_limit(self) -> bool {
        matches!(self, Self::Rate | Self::Concurrency | Self::GrantedRate | Self::GrantedConcurrency)
    }
}

/// For a table.
impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rate => "its own max_iops or max_bandwidth",
            Self::Concurrency => "its own max_concurrency",
            Self::GrantedRate => "the rate that the law grants it",
            Self::GrantedConcurrency => "the concurrency that the law grants it",
            Self::Depth => "the depth: the device had as many requests as it may have",
            Self::PromisedBound => "the bound of promised volumes, which go in order",
            Self::Turn => "a turn: a background volume had the device for itself",
            Self::BackgroundBound => "the bound of background volumes, for a promise",
            Self::Driver => "nothing: weir had not come to it yet",
        })
    }
}

/// For a table; a volume has its name instead.
impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Volume => "a volume",
            Self::Itself => "(its own requests)",
            Self::Gone => "(volumes that are gone)",
            Self::Others => "(other volumes)",
            Self::OtherGateway => "(a promise behind another gateway)",
            Self::Weir => "(weir itself)",
            Self::Nobody => "(nobody that is known)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_written_in_the_words_and_the_order_that_scripts_know() {
        let (volume, pool) = ("db".to_owned(), "p".to_owned());
        let mean = LatencyParts {
            of: "mean".to_owned(),
            requests: 2,
            total_us: 15.0,
            own_limit_us: 1.0,
            turn_us: 2.0,
            device_us: 3.0,
            held_us: 4.0,
            reply_us: 5.0,
        };
        let share = |whose, volume: Option<&str>| {
            let volume = volume.map(str::to_owned);
            Share { whose, volume, seconds: 0.5, percent: 100.0, requests: 7 }
        };
        let why = Why {
            volume,
            pool,
            control: ControlKind::Facade,
            seconds: 61.5,
            requests: 2,
            latencies: vec![mean],
            held_back: vec![HeldBack { by: HeldBy::BackgroundBound, seconds: 0.5 }],
            waited_for: vec![share(Whose::Volume, Some("hog"))],
            beside: vec![share(Whose::Itself, Some("db"))],
        };
        let json = r#"{"volume":"db","pool":"p","control":"facade","seconds":61.5,"requests":2,
            "latencies":[{"of":"mean","requests":2,"total_us":15.0,"own_limit_us":1.0,"turn_us":2.0,
                "device_us":3.0,"held_us":4.0,"reply_us":5.0}],
            "held_back":[{"by":"background_bound","seconds":0.5}],
            "waited_for":[{"whose":"volume","volume":"hog","seconds":0.5,"percent":100.0,"requests":7}],
            "beside":[{"whose":"itself","volume":"db","seconds":0.5,"percent":100.0,"requests":7}]}"#;
        let json = json.split_whitespace().collect::<String>();
        assert_eq!(serde_json::to_string(&why).unwrap(), json);
        assert_eq!(serde_json::from_str::<Why>(&json).unwrap(), why);
    }
}
