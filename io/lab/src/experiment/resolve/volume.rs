//! Translates a volume of an experiment's file for the simulator: into one volume, or into one for each port.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use weir_engine::VolumeConfig;
use weir_model::{Bandwidth, Iops, Objective, Priority, Slo, SloPoint, Span, Target, VolumeId};
use weir_sim::{Locality, Phase, VolumeScenario, Workload};

use crate::curve::Curve;
use crate::experiment::{Experiment, ExperimentError, Load, PointSpec, SloSpec, StepsSpec, VolumeSpec};

/// An error in a volume: the key, and the message.
type Wrong = (&'static str, String);

/// The volume `name` on an array of `array_size` bytes, as one simulated volume for each port. `first` is the
/// place of the first port in the scenario. A single port has the volume's name; several ports are called
/// `name/0`, `name/1` and so on.
pub(super) fn ports(
    experiment: &Experiment,
    name: &str,
    first: usize,
    array_size: u64,
    curves: &BTreeMap<String, Curve>,
) -> Result<Vec<VolumeScenario>, ExperimentError> {
    let spec = &experiment.volume[name];
    let wrong =
        |(key, message): Wrong| ExperimentError::at(&experiment.id, format!("volume.{name}.{key}"), message);
    let [from, to] = region(spec).map_err(wrong)?;
    let start = share(array_size, from);
    let first = VolumeId(u32::try_from(first).expect("an experiment has few volumes"));
    let slo = slo(spec, curves).map_err(wrong)?;
    let count = spec.ports.map_or(1, NonZeroU32::get);
    let port = |port: u32| {
        let port_of = (port > 0 && !spec.fixed_split).then_some(first);
        let config = |priority| {
            let objective = objective(spec, priority).map_err(wrong)?;
            Ok(VolumeConfig { slo: slo.clone(), objective, port_of, ..VolumeConfig::default() })
        };
        let changes = spec.changes.iter().map(|change| Ok((change.at.0, config(Some(change.priority))?)));
        Ok(VolumeScenario {
            name: if count == 1 { name.to_owned() } else { format!("{name}/{port}") },
            config: config(spec.priority)?,
            start,
            size: share(array_size, to) - start,
            phases: phases(spec, port as usize).map_err(wrong)?,
            repeat: spec.repeat.map(|text| text.0),
            changes: changes.collect::<Result<_, ExperimentError>>()?,
        })
    };
    (0..count).map(port).collect()
}

fn region(spec: &VolumeSpec) -> Result<[f64; 2], Wrong> {
    let [from, to] = spec.region.unwrap_or([0.0, 1.0]);
    if 0.0 <= from && from < to && to <= 1.0 {
        return Ok([from, to]);
    }
    Err(("region", format!("found [{from}, {to}]; accepted: two shares of the array, 0 <= from < to <= 1")))
}

/// A share of `size` bytes, in whole MiB.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
// an array's size is far below 2^53 bytes, and a share is not negative
fn share(size: u64, share: f64) -> u64 {
    ((size as f64 * share) as u64) >> 20 << 20
}

fn slo(spec: &VolumeSpec, curves: &BTreeMap<String, Curve>) -> Result<Option<Slo>, Wrong> {
    match &spec.slo {
        None => Ok(None),
        Some(SloSpec::Points(points)) => {
            let point = |p: &PointSpec| SloPoint { up_to: p.up_to.0, read: p.read.0, write: p.write.0 };
            Slo::new(points.iter().map(point).collect()).map(Some).map_err(|error| ("slo", error.to_string()))
        }
        Some(SloSpec::Curve(curve)) => {
            let slo = curves[curve].slo();
            slo.map(Some).ok_or_else(|| ("slo", format!("the curve {curve} has no rate that is reached")))
        }
    }
}

fn objective(spec: &VolumeSpec, priority: Option<f64>) -> Result<Objective, Wrong> {
    let priority = match priority {
        None => Priority::default(),
        Some(value) => Priority::new(value)
            .ok_or_else(|| ("priority", format!("found {value}; accepted: a number above zero")))?,
    };
    let target = spec.target.map(|text| text.0);
    let target = if spec.fixed_split { target.map(|target| part(target, spec.ports)) } else { target };
    Ok(Objective { target, priority })
}

/// The part of a target that each of so many ports has, if they are apart. A latency is not divided.
fn part(target: Target, ports: Option<NonZeroU32>) -> Target {
    let ports = ports.map_or(1, NonZeroU32::get);
    match target {
        Target::Throughput(all) => {
            Bandwidth::new(all.get() / u64::from(ports)).map_or(target, Target::Throughput)
        }
        Target::Rate(all) => Iops::new(all.get() / f64::from(ports)).map_or(target, Target::Rate),
        Target::Latency(_) | Target::Percentile(..) => target,
    }
}

fn phases(spec: &VolumeSpec, port: usize) -> Result<Vec<Phase>, Wrong> {
    if spec.trace.is_some() {
        return Ok(Vec::new());
    }
    let missing = |key| (key, "accepted: a value, where there are phases or steps".to_owned());
    let reads = spec.reads.ok_or_else(|| missing("reads"))?;
    if !(0.0..=1.0).contains(&reads) {
        return Err(("reads", format!("found {reads}; accepted: a share from 0 to 1")));
    }
    let request = spec.request.ok_or_else(|| missing("request"))?;
    let phase = |at, load, bytes| {
        let arrivals = match load {
            Load::Idle => None,
            Load::Arrivals(arrivals) => Some(arrivals),
        };
        let workload = arrivals.map(|arrivals| Workload {
            flush_every: None,
            arrivals,
            reads,
            sizes: vec![(bytes, 1.0)],
            locality: Locality::Uniform,
        });
        Phase { at, workload }
    };
    if let Some(steps) = &spec.steps {
        let begins = steps.begins().zip(steps.rates());
        let load = |rate| Load::Arrivals(weir_sim::Arrivals::Poisson(rate));
        return Ok(begins.map(|(at, rate)| phase(at, load(rate), request.0.0)).collect());
    }
    let few =
        || ("phases", format!("found no load for port {port}; accepted: one load, or one for each port"));
    let of_port = spec.phases.iter().map(|p| {
        let bytes = p.request.unwrap_or(request).0.0;
        Ok(phase(p.at.0, p.load.at(port).ok_or_else(few)?, bytes))
    });
    of_port.collect()
}

impl StepsSpec {
    /// The rates of the steps, rising.
    pub fn rates(&self) -> Vec<Iops> {
        let (from, to, by) = (self.from.0.get(), self.to.0.get(), self.by.0.get());
        let steps = (0..).map(|step| from + by * f64::from(step));
        steps.take_while(|rate| *rate <= to + by / 1e3).filter_map(Iops::new).collect()
    }

    /// When each step begins.
    fn begins(&self) -> impl Iterator<Item = Span> {
        let lead = self.lead.map_or(Span::ZERO, |text| text.0);
        std::iter::successors(Some(Span::ZERO), move |at| {
            Some(*at + self.each.0 + if at.is_zero() { lead } else { Span::ZERO })
        })
    }
}
