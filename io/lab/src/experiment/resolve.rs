//! Translates an experiment's file into the scenario that the simulator runs.

mod volume;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use weir_engine::{
    Completions, Control, DepthFeedbackConfig, EngineConfig, MaestroConfig, TotalConcurrency, VolumeConfig,
};
use weir_model::{Iops, Span, TimeShare};
use weir_sim::{ArrayOptions, Fault, FaultKind, Locality, Phase, Scenario, VolumeScenario, Workload};

use super::{ControlSpec, CurveSpec, Experiment, ExperimentError, RunSpec, TraceSpec};
use crate::ArraySpecError;
use crate::curve::Curve;

/// Everything that a run needs.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The scenario for the simulator.
    pub scenario: Scenario,
    /// The time at the beginning of the run that is left out of the figures.
    pub warm_up: Span,
    /// The volumes that replay a recorded load, by their places in the scenario.
    pub traces: Vec<(usize, TraceSpec)>,
}

/// Everything that a run needs with this seed, given the curves that were measured with the same seed.
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
    let array = array(experiment, &run.array, run.nvram_filled)?;
    let mut volumes = Vec::new();
    let mut traces = Vec::new();
    for name in volume_names(experiment, run) {
        let spec = &experiment.volume[name];
        if let Some(trace) = &spec.trace {
            traces.push((volumes.len(), trace.clone()));
        }
        let first = volumes.len();
        volumes.extend(volume::ports(experiment, name, first, array.size(), curves)?);
    }
    let faults = run.failures.iter().map(|failure| Fault {
        at: failure.at.0,
        what: FaultKind::DiskFails { unit: failure.unit, disk: failure.disk },
    });
    let scenario = Scenario {
        seed,
        duration: run.duration.0,
        engine: engine(experiment, run.control)?,
        array,
        volumes,
        faults: faults.collect(),
    };
    Ok(Resolved { scenario, warm_up: run.warm_up.0, traces })
}

/// The run that measures the point of a curve at `rate`; without a rate, the volume is there for a recorded
/// load.
///
/// # Errors
/// If the array cannot be made.
pub fn resolve_curve(
    experiment: &Experiment,
    curve: &CurveSpec,
    rate: Option<Iops>,
    seed: u64,
) -> Result<Scenario, ExperimentError> {
    let array = array(experiment, &curve.array, curve.nvram_filled)?;
    let workload = rate.map(|rate| Workload {
        flush_every: None,
        arrivals: weir_sim::Arrivals::Poisson(rate),
        reads: curve.reads,
        sizes: vec![(curve.request.0.0, 1.0)],
        locality: Locality::Uniform,
    });
    let volume = VolumeScenario {
        name: "dedicated".to_owned(),
        config: VolumeConfig::default(),
        start: 0,
        size: array.size(),
        phases: vec![Phase { at: Span::ZERO, workload }],
        repeat: None,
        changes: Vec::new(),
    };
    Ok(Scenario {
        seed,
        duration: curve.warm_up.0 + curve.each.0,
        engine: engine(experiment, ControlSpec::None)?,
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

/// The array of this name. `filled` is the share of NVRAM that holds writes at the start.
fn array(experiment: &Experiment, name: &str, filled: Option<f64>) -> Result<ArrayOptions, ExperimentError> {
    let wrong = |error: ArraySpecError| {
        ExperimentError::at(&experiment.id, format!("array.{name}"), error.to_string())
    };
    let mut options = experiment.array[name].options().map_err(wrong)?;
    if let Some(filled) = filled {
        options.units.iter_mut().for_each(|unit| unit.cache.filled = filled);
        options
            .check()
            .map_err(|cause| ExperimentError::at(&experiment.id, "nvram_filled", cause.to_string()))?;
    }
    Ok(options)
}

fn engine(experiment: &Experiment, control: ControlSpec) -> Result<EngineConfig, ExperimentError> {
    let spec = &experiment.engine;
    let (law, pool) = (DepthFeedbackConfig::default(), EngineConfig::default());
    let law = DepthFeedbackConfig {
        period: spec.period.map_or(law.period, |text| text.0),
        growth: spec.growth.unwrap_or(law.growth),
        initial_depth: spec.initial_depth().unwrap_or(law.initial_depth),
        ..law
    };
    let background_share = match spec.background_share {
        Some(share) => TimeShare::new(share).ok_or_else(|| {
            let message = format!("found {share}; accepted: a number from 0 to {}", TimeShare::MAX);
            ExperimentError::at(&experiment.id, "engine.background_share", message)
        })?,
        None => pool.background_share,
    };
    let missing = || {
        let message = "accepted: a number above zero, where a run's control is \"maestro\"";
        ExperimentError::at(&experiment.id, "engine.total_concurrency", message)
    };
    let maestro = |total: NonZeroU32| MaestroConfig {
        interval: spec.control_interval.map_or(MaestroConfig::INTERVAL, |text| text.0),
        total: TotalConcurrency::Fixed(total),
    };
    let wrong = |(key, message)| ExperimentError::at(&experiment.id, key, message);
    let completions = match control {
        ControlSpec::Facade | ControlSpec::Maestro => spec.completions().map_err(wrong)?,
        ControlSpec::None | ControlSpec::Promise => Completions::ALL,
    };
    Ok(EngineConfig {
        control: match control {
            ControlSpec::None => Control::None,
            ControlSpec::Facade => Control::Facade(law),
            ControlSpec::Promise => Control::Promise,
            ControlSpec::Maestro => Control::Maestro(maestro(spec.total_concurrency.ok_or_else(missing)?)),
        },
        slo_window: spec.slo_window.map_or(pool.slo_window, |text| text.0),
        background_share,
        completions,
    })
}
