//! From an experiment's file to what the simulator runs.

use std::collections::BTreeMap;

use weir_engine::{Control, DepthFeedbackConfig, EngineConfig, VolumeConfig};
use weir_model::{Iops, Slo, SloPoint, Span};
use weir_sim::{ArrayOptions, Fault, FaultKind, Locality, Phase, Scenario, VolumeScenario, Workload};

use super::{
    ControlSpec, CurveSpec, Experiment, ExperimentError, Load, RunSpec, SloSpec, StepsSpec, TraceSpec,
    VolumeSpec,
};
use crate::ArraySpecError;
use crate::run::Curve;

/// What a run needs.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// What the simulator runs.
    pub scenario: Scenario,
    /// What is left out at its beginning.
    pub warm_up: Span,
    /// The volumes that are loaded by a recording, by their places in the scenario.
    pub traces: Vec<(usize, TraceSpec)>,
}

/// What a run needs, with this seed, and the curves as they were measured with it.
///
/// # Errors
/// If the values do not fit together.
pub fn resolve_run(
    experiment: &Experiment,
    name: &str,
    seed: u64,
    curves: &BTreeMap<String, Curve>,
) -> Result<Resolved, ExperimentError> {
    let run = &experiment.run[name];
    let array = array(experiment, &run.array)?;
    let mut volumes = Vec::new();
    let mut traces = Vec::new();
    for name in volume_names(experiment, run) {
        let spec = &experiment.volume[name];
        if let Some(trace) = &spec.trace {
            traces.push((volumes.len(), trace.clone()));
        }
        volumes.push(volume(experiment, name, array.size(), curves)?);
    }
    let faults = run.failures.iter().map(|failure| Fault {
        at: failure.at.0,
        what: FaultKind::DiskFails { unit: failure.unit, disk: failure.disk },
    });
    let scenario = Scenario {
        seed,
        duration: run.duration.0,
        engine: engine(experiment, run.control),
        array,
        volumes,
        faults: faults.collect(),
    };
    Ok(Resolved { scenario, warm_up: run.warm_up.0, traces })
}

/// The run in which the point of a curve at `rate` is measured.
///
/// # Errors
/// If the array cannot be made.
pub fn resolve_curve(
    experiment: &Experiment,
    curve: &CurveSpec,
    rate: Iops,
    seed: u64,
) -> Result<Scenario, ExperimentError> {
    let array = array(experiment, &curve.array)?;
    let workload = Workload {
        arrivals: weir_sim::Arrivals::Poisson(rate),
        reads: curve.reads,
        sizes: vec![(curve.request.0.0, 1.0)],
        locality: Locality::Uniform,
    };
    let volume = VolumeScenario {
        name: "dedicated".to_owned(),
        config: VolumeConfig::default(),
        start: 0,
        size: array.size(),
        phases: vec![Phase { at: Span::ZERO, workload: Some(workload) }],
        repeat: None,
        changes: Vec::new(),
    };
    Ok(Scenario {
        seed,
        duration: curve.warm_up.0 + curve.each.0,
        engine: engine(experiment, ControlSpec::None),
        array,
        volumes: vec![volume],
        faults: Vec::new(),
    })
}

/// The volumes of a run, in the order of their names.
pub(crate) fn volume_names<'e>(experiment: &'e Experiment, run: &RunSpec) -> Vec<&'e str> {
    let wanted = |name: &&String| run.volumes.as_ref().is_none_or(|volumes| volumes.contains(name));
    experiment.volume.keys().filter(wanted).map(String::as_str).collect()
}

fn array(experiment: &Experiment, name: &str) -> Result<ArrayOptions, ExperimentError> {
    let wrong = |error: ArraySpecError| {
        ExperimentError::at(&experiment.id, format!("array.{name}"), error.to_string())
    };
    experiment.array[name].options().map_err(wrong)
}

fn engine(experiment: &Experiment, control: ControlSpec) -> EngineConfig {
    let spec = &experiment.engine;
    let (law, pool) = (DepthFeedbackConfig::default(), EngineConfig::default());
    let law = DepthFeedbackConfig {
        period: spec.period.map_or(law.period, |text| text.0),
        growth: spec.growth.unwrap_or(law.growth),
        initial_depth: spec.initial_depth().unwrap_or(law.initial_depth),
        ..law
    };
    EngineConfig {
        control: match control {
            ControlSpec::None => Control::None,
            ControlSpec::Facade => Control::Facade(law),
        },
        background_deadline: spec.background_deadline.map_or(pool.background_deadline, |text| text.0),
        ..pool
    }
}

fn volume(
    experiment: &Experiment,
    name: &str,
    array_size: u64,
    curves: &BTreeMap<String, Curve>,
) -> Result<VolumeScenario, ExperimentError> {
    let spec = &experiment.volume[name];
    let wrong = |key: &str, message: String| {
        ExperimentError::at(&experiment.id, format!("volume.{name}.{key}"), message)
    };
    let slo = match &spec.slo {
        None => None,
        Some(SloSpec::Points(points)) => {
            let point =
                |p: &super::PointSpec| SloPoint { up_to: p.up_to.0, read: p.read.0, write: p.write.0 };
            Some(Slo::new(points.iter().map(point).collect()).map_err(|e| wrong("slo", e.to_string()))?)
        }
        Some(SloSpec::Curve(curve)) => {
            let slo = curves[curve].slo();
            Some(slo.ok_or_else(|| wrong("slo", format!("the curve {curve} has no rate that is reached")))?)
        }
    };
    let [from, to] = spec.region.unwrap_or([0.0, 1.0]);
    if !(0.0 <= from && from < to && to <= 1.0) {
        let accepted = "accepted: two shares of the array, 0 <= from < to <= 1";
        return Err(wrong("region", format!("found [{from}, {to}]; {accepted}")));
    }
    let start = share(array_size, from);
    Ok(VolumeScenario {
        name: name.to_owned(),
        config: VolumeConfig { slo, ..VolumeConfig::default() },
        start,
        size: share(array_size, to) - start,
        phases: phases(spec).map_err(|(key, message)| wrong(key, message))?,
        repeat: spec.repeat.map(|text| text.0),
        changes: Vec::new(),
    })
}

/// A share of so many bytes, in whole MiB.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
// an array's size is far below 2^53 bytes, and a share is not negative
fn share(size: u64, share: f64) -> u64 {
    ((size as f64 * share) as u64) >> 20 << 20
}

fn phases(spec: &VolumeSpec) -> Result<Vec<Phase>, (&'static str, String)> {
    if spec.trace.is_some() {
        return Ok(Vec::new());
    }
    let missing = |key| (key, "accepted: a value, where there are phases or steps".to_owned());
    let reads = spec.reads.ok_or_else(|| missing("reads"))?;
    if !(0.0..=1.0).contains(&reads) {
        return Err(("reads", format!("found {reads}; accepted: a share from 0 to 1")));
    }
    let request = spec.request.ok_or_else(|| missing("request"))?;
    let phase = |at, load| {
        let arrivals = match load {
            Load::Idle => None,
            Load::Arrivals(arrivals) => Some(arrivals),
        };
        let workload = arrivals.map(|arrivals| Workload {
            arrivals,
            reads,
            sizes: vec![(request.0.0, 1.0)],
            locality: Locality::Uniform,
        });
        Phase { at, workload }
    };
    Ok(match &spec.steps {
        Some(steps) => steps
            .rates()
            .into_iter()
            .scan((Span::ZERO, steps.lead.map_or(Span::ZERO, |text| text.0)), |(at, lead), rate| {
                let begins = *at;
                *at += steps.each.0 + std::mem::take(lead);
                Some(phase(begins, Load::Arrivals(weir_sim::Arrivals::Poisson(rate))))
            })
            .collect(),
        None => spec.phases.iter().map(|p| phase(p.at.0, p.load.0)).collect(),
    })
}

impl StepsSpec {
    /// The rates of the steps, rising.
    pub fn rates(&self) -> Vec<Iops> {
        let (from, to, by) = (self.from.0.get(), self.to.0.get(), self.by.0.get());
        let steps = (0..).map(|step| from + by * f64::from(step));
        steps.take_while(|rate| *rate <= to + by / 1e3).filter_map(Iops::new).collect()
    }
}
