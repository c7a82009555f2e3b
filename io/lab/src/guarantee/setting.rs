//! The laws, and the static settings of which the oracle takes the best.

use std::fmt;
use std::num::NonZeroU32;

use serde::Serialize;
use weir_engine::{
    Control, DepthFeedbackConfig, EngineConfig, MaestroConfig, TotalConcurrency, VolumeConfig,
};
use weir_model::{Iops, Objective, Percentile, Priority, QueueDepth, Slo, SloPoint, Span, Target};

use super::promise::{Metric, Promise};

/// The depths and the bounds of static settings.
const STATIC: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// The caps on the other volume, in requests a second.
const CAPS: [u32; 10] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// A law that is judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Law {
    /// Façade's.
    Facade,
    /// Maestro's.
    Maestro,
    /// The law of promises.
    Promise,
}

/// How a pool is set up, and its two volumes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) engine: EngineConfig,
    pub(super) promised: VolumeConfig,
    pub(super) other: VolumeConfig,
}

/// What a law is told of a promise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Told {
    pub(super) promise: Promise,
    /// The mean latency that goes with it: as many times the mean alone as the promise is of its own metric.
    /// Façade knows means only. A load of some threads that has so many times its latency gets its rate, by
    /// Little's law.
    pub(super) mean: Span,
}

/// What is wanted for a volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// A mean latency, up to the rate.
    pub(super) latency: Option<Span>,
    /// Requests in a second.
    pub(super) rate: Option<Iops>,
    /// Whether it is to get all of these.
    pub(super) is_rate_promised: bool,
    /// How much its shortfall counts.
    pub(super) priority: Priority,
}

impl Law {
    /// All laws.
    pub const ALL: [Self; 3] = [Self::Facade, Self::Maestro, Self::Promise];

    /// A volume of which this is wanted; `None` if the law knows no such promise.
    pub(super) fn told(self, wanted: Wanted) -> Option<VolumeConfig> {
        let Wanted { latency, rate, is_rate_promised, priority } = wanted;
        let objective = || {
            let target = if is_rate_promised { rate.map(Target::Rate) } else { latency.map(Target::Latency) };
            let objective = Objective { target, priority };
            VolumeConfig { objective, ..VolumeConfig::default() }
        };
        match self {
            Self::Facade if is_rate_promised => None,
            Self::Promise if is_rate_promised => Some(objective()),
            Self::Maestro => Some(objective()),
            Self::Facade | Self::Promise => {
                let usual = VolumeConfig::default();
                Some(latency.zip(rate).map_or(usual, |(mean, rate)| slo_up_to(rate.get(), mean)))
            }
        }
    }

    /// A pool under this law.
    pub(super) fn engine(self) -> EngineConfig {
        engine(match self {
            Self::Facade => Control::Facade(DepthFeedbackConfig::default()),
            Self::Maestro => {
                let (interval, total) = (MaestroConfig::INTERVAL, TotalConcurrency::Auto);
                Control::Maestro(MaestroConfig { interval, total })
            }
            Self::Promise => Control::Promise,
        })
    }

    /// A pool under this law with a volume of this promise, and one without any.
    pub(super) fn setting(self, told: Told) -> Setting {
        let promised = match self {
            Self::Facade => slo(told.mean),
            Self::Maestro | Self::Promise => objective(told.promise),
        };
        Setting { name: self.to_string(), engine: self.engine(), promised, other: VolumeConfig::default() }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Facade => "facade",
            Self::Maestro => "maestro",
            Self::Promise => "promise",
        })
    }
}

/// No control.
pub(super) fn without() -> Setting {
    let (promised, other) = (VolumeConfig::default(), VolumeConfig::default());
    Setting { name: "without".to_owned(), engine: engine(Control::None), promised, other }
}

/// The static settings: deadlines, and for the whole run a depth, a bound on the other volume, both of them,
/// or a cap on its rate. A request past its deadline passes the depth, as under Façade's law.
pub(super) fn statics(told: Told) -> Vec<Setting> {
    let numbers = || [None].into_iter().chain(STATIC.map(NonZeroU32::new));
    let bounded = numbers().flat_map(|depth| {
        numbers().map(move |bound| fixed(told, Fixed { depth, bound, ..Fixed::default() }))
    });
    let capped = CAPS.map(|cap| fixed(told, Fixed { cap: Some(cap), ..Fixed::default() }));
    bounded.chain(capped).collect()
}

/// A setting that takes part in what a cell is known by.
pub(super) fn probe(told: Told) -> Setting {
    let (depth, bound) = (NonZeroU32::new(8), NonZeroU32::new(4));
    fixed(told, Fixed { depth, bound, cap: None })
}

/// What a static setting holds; absent: without end.
#[derive(Clone, Copy, Default)]
struct Fixed {
    /// Requests at the array.
    depth: Option<NonZeroU32>,
    /// Requests of the other volume at the array.
    bound: Option<NonZeroU32>,
    /// Requests of the other volume in a second.
    cap: Option<u32>,
}

fn fixed(told: Told, what: Fixed) -> Setting {
    let Fixed { depth, bound, cap } = what;
    let law = DepthFeedbackConfig::default();
    let depth_target = depth.map_or(law.max_depth, |depth| QueueDepth::new(depth.get()));
    // A period that no run reaches the end of: the depth stays.
    let period = Span::from_secs(24 * 3600);
    let law = DepthFeedbackConfig { period, initial_depth: depth_target, max_depth: depth_target, ..law };
    let max_iops = cap.and_then(|cap| Iops::new(f64::from(cap)));
    let other = VolumeConfig { concurrency: bound, max_iops, ..VolumeConfig::default() };
    Setting { name: what.to_string(), engine: engine(Control::Facade(law)), promised: slo(told.mean), other }
}

/// For people, such as `depth 8, bound 4`.
impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.depth.map(|depth| format!("depth {depth}")),
            self.bound.map(|bound| format!("bound {bound}")),
            self.cap.map(|cap| format!("cap {cap} IO/s")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "no bound".to_owned() } else { parts.join(", ") }.as_str())
    }
}

fn engine(control: Control) -> EngineConfig {
    EngineConfig { control, ..EngineConfig::default() }
}

/// A mean latency at any rate.
fn slo(mean: Span) -> VolumeConfig {
    slo_up_to(1e9, mean)
}

/// A mean latency, as long as no more requests come in a second.
fn slo_up_to(rate: f64, mean: Span) -> VolumeConfig {
    let up_to = Iops::new(rate).expect("above zero");
    let point = SloPoint { up_to, read: mean, write: mean };
    VolumeConfig { slo: Slo::new(vec![point]).ok(), ..VolumeConfig::default() }
}

fn objective(promise: Promise) -> VolumeConfig {
    let target = match promise.metric {
        Metric::Rate => Target::Rate(promise.rate().expect("it is one")),
        Metric::Mean => Target::Latency(promise.limit),
        Metric::P99 => Target::Percentile(Percentile::from_tenths(990).expect("it is one"), promise.limit),
    };
    let objective = Objective { target: Some(target), ..Objective::default() };
    VolumeConfig { objective, ..VolumeConfig::default() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_static_settings_differ_and_each_has_a_name_of_its_own() {
        let promise = Promise { metric: Metric::Mean, limit: Span::from_millis(10) };
        let all = statics(Told { promise, mean: promise.limit });
        let names: BTreeSet<_> = all.iter().map(|setting| setting.name.clone()).collect();
        assert_eq!((all.len(), names.len()), (74, 74));
        assert!(names.contains(&probe(Told { promise, mean: promise.limit }).name));
        assert!(all.iter().all(|setting| setting.promised.slo.is_some()));
    }
}
