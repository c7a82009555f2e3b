//! The words of the status: each enum here is one field's, and is written in the JSON as one word.
//!
//! `Display` gives the word for people, where it stands alone in a table or a sentence. It differs from the
//! word in the JSON only for [`BoundBy`], whose words people read without underscores.

use std::fmt;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_model::{Percentile, Target};

/// What decides about the requests of a pool: the value of the configuration's key `control`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlKind {
    /// No law.
    None,
    /// Façade's law.
    Facade,
    /// Maestro's law, in the gateway or in a controller.
    Maestro,
    /// The law of promises.
    Promise,
    /// The one-sided PID.
    Pid,
}

/// Whether all that volumes ask for fits into the total.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// It fits.
    Underload,
    /// It does not fit.
    Overload,
}

/// What decided how much a volume gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundBy {
    /// What the volume asked for: it gets that, and by priority its part of what is left.
    Request,
    /// The overload: its priority against those of the others.
    Priority,
    /// The law moves only so much in one control interval.
    StepLimit,
    /// The volume does not use what it has.
    Use,
    /// The limit that its operator set.
    Limit,
    /// The least that every volume keeps.
    Minimum,
}

/// Where the slope of a volume's model comes from. `fit_value`, the field beside it, has the figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// The data; the figure is R².
    Regression,
    /// The default, because the allocation did not change enough to learn from; no figure.
    NoInformation,
    /// The default, because the data do not lie on a line; the figure is R².
    Poor,
    /// The default, because no device has the slope that was found; the figure is that slope.
    OutOfBounds,
}

/// What a target measures. In the JSON: `latency`, `p95`, `p99.9` and so on, `throughput` or `iops`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// The mean latency.
    Latency,
    /// A percentile of the latencies.
    Percentile(Percentile),
    /// Bytes a second.
    Throughput,
    /// Requests a second.
    Iops,
}

/// The unit of a target's value, and of what was achieved of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Unit {
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Bytes a second.
    #[serde(rename = "bytes_per_s")]
    BytesPerSecond,
    /// Requests a second.
    #[serde(rename = "iops")]
    RequestsPerSecond,
}

/// A word that names no metric.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown metric {0:?}, expected {accepted}", accepted = Metric::ACCEPTED)]
pub struct UnknownMetric(String);

impl ControlKind {
    /// The word in the configuration and in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Facade => "facade",
            Self::Maestro => "maestro",
            Self::Promise => "promise",
            Self::Pid => "pid",
        }
    }
}

impl Metric {
    /// What can be read as a metric, to follow "accepted: ".
    pub const ACCEPTED: &str = "latency, throughput, iops, or a percentile from p0.1 to p99.9, such as p95";

    /// The unit of its values.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Latency | Self::Percentile(_) => Unit::Microseconds,
            Self::Throughput => Unit::BytesPerSecond,
            Self::Iops => Unit::RequestsPerSecond,
        }
    }
}

impl From<weir_control::Case> for Case {
    fn from(case: weir_control::Case) -> Self {
        match case {
            weir_control::Case::Underload => Self::Underload,
            weir_control::Case::Overload => Self::Overload,
        }
    }
}

impl From<weir_control::BoundBy> for BoundBy {
    fn from(bound_by: weir_control::BoundBy) -> Self {
        match bound_by {
            weir_control::BoundBy::Requirement => Self::Request,
            weir_control::BoundBy::Priority => Self::Priority,
            weir_control::BoundBy::StepLimit => Self::StepLimit,
            weir_control::BoundBy::Use => Self::Use,
            weir_control::BoundBy::Limit => Self::Limit,
            weir_control::BoundBy::Minimum => Self::Minimum,
        }
    }
}

impl Fit {
    /// The word for a fit of the law, and its figure.
    pub(crate) const fn of(fit: weir_control::Fit) -> (Self, Option<f64>) {
        match fit {
            weir_control::Fit::Regression(r2) => (Self::Regression, Some(r2)),
            weir_control::Fit::NoInformation => (Self::NoInformation, None),
            weir_control::Fit::Poor(r2) => (Self::Poor, Some(r2)),
            weir_control::Fit::OutOfBounds(slope) => (Self::OutOfBounds, Some(slope)),
        }
    }
}

impl From<Target> for Metric {
    fn from(target: Target) -> Self {
        match target {
            Target::Latency(_) => Self::Latency,
            Target::Percentile(percentile, _) => Self::Percentile(percentile),
            Target::Throughput(_) => Self::Throughput,
            Target::Rate(_) => Self::Iops,
        }
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(word: &str) -> Result<Self, UnknownMetric> {
        match word {
            "latency" => Ok(Self::Latency),
            "throughput" => Ok(Self::Throughput),
            "iops" => Ok(Self::Iops),
            word => word.parse().map(Self::Percentile).map_err(|_| UnknownMetric(word.to_owned())),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency => f.write_str("latency"),
            Self::Percentile(percentile) => percentile.fmt(f),
            Self::Throughput => f.write_str("throughput"),
            Self::Iops => f.write_str("iops"),
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl fmt::Display for ControlKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Underload => "underload",
            Self::Overload => "overload",
        })
    }
}

impl fmt::Display for BoundBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "request",
            Self::Priority => "priority",
            Self::StepLimit => "step limit",
            Self::Use => "use",
            Self::Limit => "limit",
            Self::Minimum => "minimum",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;
    use weir_model::{IoKind, Verdict};

    use super::*;

    /// Checks each value's word in the JSON, in both directions.
    fn words_are<T: Serialize + DeserializeOwned + PartialEq + Debug>(words: &[(T, &str)]) {
        for (value, word) in words {
            let json = format!("\"{word}\"");
            assert_eq!(serde_json::to_string(value).unwrap(), json);
            assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *value);
        }
        assert!(serde_json::from_str::<T>("\"another\"").is_err());
    }

    #[test]
    fn each_word_in_the_json_is_the_one_that_scripts_know() {
        use {ControlKind as Control, Fit::*};
        words_are(&[(Control::None, "none"), (Control::Facade, "facade")]);
        words_are(&[(Control::Maestro, "maestro"), (Control::Promise, "promise"), (Control::Pid, "pid")]);
        words_are(&[(Case::Underload, "underload"), (Case::Overload, "overload")]);
        words_are(&[
            (BoundBy::Request, "request"),
            (BoundBy::Priority, "priority"),
            (BoundBy::StepLimit, "step_limit"),
            (BoundBy::Use, "use"),
            (BoundBy::Limit, "limit"),
            (BoundBy::Minimum, "minimum"),
        ]);
        words_are(&[
            (Regression, "regression"),
            (NoInformation, "no_information"),
            (Poor, "poor"),
            (OutOfBounds, "out_of_bounds"),
        ]);
        words_are(&[
            (Unit::Microseconds, "us"),
            (Unit::BytesPerSecond, "bytes_per_s"),
            (Unit::RequestsPerSecond, "iops"),
        ]);
        let percentile = |tenths| Metric::Percentile(Percentile::from_tenths(tenths).unwrap());
        words_are(&[
            (Metric::Latency, "latency"),
            (percentile(950), "p95"),
            (percentile(999), "p99.9"),
            (Metric::Throughput, "throughput"),
            (Metric::Iops, "iops"),
        ]);
    }

    #[test]
    fn the_words_of_the_model_are_their_names_in_the_json() {
        words_are(&[
            (Verdict::Met, "met"),
            (Verdict::Missed, "missed"),
            (Verdict::OutOfContract, "out_of_contract"),
            (Verdict::Idle, "idle"),
            (Verdict::NoSlo, "no_slo"),
        ]);
        words_are(&Verdict::ALL.map(|verdict| (verdict, verdict.name())));
        words_are(&IoKind::ALL.map(|kind| (kind, kind.name())));
    }

    #[test]
    fn people_read_the_word_of_the_json_without_underscores() {
        fn shown<T: Serialize + fmt::Display>(value: T) {
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(value.to_string(), json.trim_matches('"').replace('_', " "));
        }
        use ControlKind::{Facade, Maestro, None, Pid, Promise};
        [None, Facade, Maestro, Promise, Pid].into_iter().for_each(shown);
        [Case::Underload, Case::Overload].into_iter().for_each(shown);
        [BoundBy::Request, BoundBy::Priority, BoundBy::StepLimit].into_iter().for_each(shown);
        [BoundBy::Use, BoundBy::Limit, BoundBy::Minimum].into_iter().for_each(shown);
    }

    #[test]
    fn an_unknown_metric_is_refused_with_those_that_there_are() {
        let error = serde_json::from_str::<Metric>("\"p100\"").unwrap_err().to_string();
        assert!(error.contains("\"p100\"") && error.contains(Metric::ACCEPTED), "{error}");
    }
}
