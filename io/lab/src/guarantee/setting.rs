//! The laws, and the static settings of which the oracle takes the best.

use std::fmt;
use std::num::NonZeroU32;

use serde::Serialize;
use weir_engine::{
    Control, DepthFeedbackConfig, EngineConfig, MaestroConfig, TotalConcurrency, VolumeConfig,
};
use weir_model::{Iops, Objective, Percentile, QueueDepth, Slo, SloPoint, Span, Target};

use super::promise::{Metric, Promise};

/// The depths and the bounds of static settings.
const STATIC: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// A law that is judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Law {
    /// Façade's.
    Facade,
    /// Maestro's.
    Maestro,
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
    /// Façade knows means only.
    pub(super) mean: Span,
}

impl Law {
    /// All laws.
    pub const ALL: [Self; 2] = [Self::Facade, Self::Maestro];

    pub(super) fn setting(self, told: Told) -> Setting {
        let (control, promised) = match self {
            Self::Facade => (Control::Facade(DepthFeedbackConfig::default()), slo(told.mean)),
            Self::Maestro => {
                let maestro =
                    MaestroConfig { interval: MaestroConfig::INTERVAL, total: TotalConcurrency::Auto };
                (Control::Maestro(maestro), objective(told.promise))
            }
        };
        Setting { name: self.to_string(), engine: engine(control), promised, other: VolumeConfig::default() }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Facade => "facade",
            Self::Maestro => "maestro",
        })
    }
}

/// No control.
pub(super) fn without() -> Setting {
    let (promised, other) = (VolumeConfig::default(), VolumeConfig::default());
    Setting { name: "without".to_owned(), engine: engine(Control::None), promised, other }
}

/// The static settings: deadlines, and a depth or a bound on the other volume that never changes. A request
/// past its deadline passes the depth, as under Façade's law.
pub(super) fn statics(told: Told) -> Vec<Setting> {
    let of_depth = |depth| fixed(told, Some(depth), None);
    let of_bound = |bound| fixed(told, None, NonZeroU32::new(bound));
    let mut all = vec![fixed(told, None, None)];
    all.extend(STATIC.into_iter().flat_map(|number| [of_depth(number), of_bound(number)]));
    all
}

fn fixed(told: Told, depth: Option<u32>, bound: Option<NonZeroU32>) -> Setting {
    let law = DepthFeedbackConfig::default();
    let depth_target = depth.map_or(law.max_depth, QueueDepth::new);
    // A period that no run reaches the end of: the depth stays.
    let period = Span::from_secs(24 * 3600);
    let law = DepthFeedbackConfig { period, initial_depth: depth_target, max_depth: depth_target, ..law };
    let name = match (depth, bound) {
        (Some(depth), _) => format!("depth {depth}"),
        (None, Some(bound)) => format!("bound {bound}"),
        (None, None) => "no bound".to_owned(),
    };
    let other = VolumeConfig { concurrency: bound, ..VolumeConfig::default() };
    Setting { name, engine: engine(Control::Facade(law)), promised: slo(told.mean), other }
}

fn engine(control: Control) -> EngineConfig {
    EngineConfig { control, ..EngineConfig::default() }
}

/// A mean latency at any rate.
fn slo(mean: Span) -> VolumeConfig {
    let up_to = Iops::new(1e9).expect("above zero");
    let point = SloPoint { up_to, read: mean, write: mean };
    VolumeConfig { slo: Slo::new(vec![point]).ok(), ..VolumeConfig::default() }
}

fn objective(promise: Promise) -> VolumeConfig {
    let target = match promise.metric {
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
        assert_eq!((all.len(), names.len()), (15, 15));
        assert!(all.iter().all(|setting| setting.promised.slo.is_some()));
    }
}
