//! What can be wrong with a scenario, found before it runs.

use std::collections::BTreeSet;

use thiserror::Error;
use weir_control::PidProblem;
use weir_engine::{Control, EngineConfig};
use weir_model::Span;

use crate::array::options::{ArrayError, ArrayOptions};

use super::{Arrivals, Fault, FaultKind, Locality, Scenario, VolumeScenario, Workload};

/// One request in each nanosecond, the unit of time. With more, a run would ask for ever in the same instant.
const MOST_IOPS: f64 = 1e9;

/// A scenario that makes no sense.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("{place}: {problem}")]
pub struct ScenarioError {
    /// Where: the pool, a volume by its name, a fault by its place.
    pub place: String,
    /// What is wrong there.
    pub problem: Problem,
}

/// What can be wrong.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum Problem {
    /// See [`ArrayError`].
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// A span that must not be zero.
    #[error("{what} must be longer than zero")]
    NoLength {
        /// Which span.
        what: &'static str,
    },
    /// A volume is a port of a volume that cannot have ports.
    #[error("a port of volume {of}, which must come before it and be no port itself")]
    PortOf {
        /// As given.
        of: u32,
    },
    /// A growth of the depth that is not possible.
    #[error("a growth of {growth} must be a finite number above zero")]
    Growth {
        /// As given.
        growth: f64,
    },
    /// See [`PidProblem`].
    #[error(transparent)]
    Pid(#[from] PidProblem),
    /// Two volumes of one name would draw the same random numbers.
    #[error("another volume has the same name")]
    SameName,
    /// A volume is not on the array.
    #[error("{size} bytes from {start} on must be some, and lie within the array's {array}")]
    Outside {
        /// Its first byte.
        start: u64,
        /// Its number of bytes.
        size: u64,
        /// The array's number of bytes.
        array: u64,
    },
    /// A phase that does not follow the one before, or begins after the phases repeat.
    #[error("phase {phase} begins at {at}, which must be after the phase before, and before they repeat")]
    Order {
        /// The phase, from zero.
        phase: usize,
        /// When it begins.
        at: Span,
    },
    /// More requests than there are instants.
    #[error("phase {phase}: {rate} requests a second; at most {MOST_IOPS} can be told apart")]
    Rate {
        /// The phase, from zero.
        phase: usize,
        /// As given, a second.
        rate: f64,
    },
    /// A share of reads that is not from 0 to 1.
    #[error("phase {phase}: the share of reads is {reads}; it must be from 0 to 1")]
    Reads {
        /// The phase, from zero.
        phase: usize,
        /// As given.
        reads: f64,
    },
    /// Sizes of requests that cannot be drawn.
    #[error(
        "phase {phase}: there must be sizes from 1 byte up to the volume's, with weights that are not negative and \
         not all zero"
    )]
    Sizes {
        /// The phase, from zero.
        phase: usize,
    },
    /// Places that cannot be drawn.
    #[error("phase {phase}: {locality:?} must be a finite number above zero")]
    Places {
        /// The phase, from zero.
        phase: usize,
        /// As given.
        locality: Locality,
    },
    /// A fault of a volume that does not exist.
    #[error("there is no volume {volume}; there are {volumes}, counted from zero")]
    NoSuchVolume {
        /// As given.
        volume: usize,
        /// How many there are.
        volumes: usize,
    },
    /// A fault of a unit or a disk that does not exist.
    #[error("there is no disk {disk} in logical unit {unit}; {}", found(*.units, *.disks))]
    NoSuchDisk {
        /// The unit, from zero.
        unit: usize,
        /// The disk, from zero.
        disk: usize,
        /// How many units there are.
        units: usize,
        /// How many disks the unit has, if it exists.
        disks: Option<u32>,
    },
}

impl Scenario {
    /// Checks that the scenario can be run.
    ///
    /// # Errors
    /// If it cannot: the first problem.
    pub fn check(&self) -> Result<(), ScenarioError> {
        check_pool(&self.engine).map_err(|problem| problem.at("the pool".to_owned()))?;
        self.array.check().map_err(|error| Problem::from(error).at("the array".to_owned()))?;
        let mut names = BTreeSet::new();
        for (number, volume) in self.volumes.iter().enumerate() {
            let place = |problem: Problem| problem.at(format!("volume {:?}", volume.name));
            if !names.insert(&volume.name) {
                return Err(place(Problem::SameName));
            }
            check_volume(volume, self.array.size()).map_err(place)?;
            let first = volume.config.port_of.map(|of| (of.0, self.volumes[..number].get(of.0 as usize)));
            if let Some((of, first)) = first
                && first.is_none_or(|first| first.config.port_of.is_some())
            {
                return Err(place(Problem::PortOf { of }));
            }
        }
        for (number, fault) in self.faults.iter().enumerate() {
            check_fault(fault, &self.array, self.volumes.len())
                .map_err(|problem| problem.at(format!("fault {number}")))?;
        }
        Ok(())
    }
}

impl Problem {
    const fn at(self, place: String) -> ScenarioError {
        ScenarioError { place, problem: self }
    }
}

fn found(units: usize, disks: Option<u32>) -> String {
    match disks {
        Some(disks) => format!("that unit has {disks} disks, counted from zero"),
        None => format!("there are {units} units, counted from zero"),
    }
}

fn check_pool(config: &EngineConfig) -> Result<(), Problem> {
    if config.slo_window.is_zero() {
        return Err(Problem::NoLength { what: "the SLO window" });
    }
    let period = match config.control {
        Control::None | Control::Promise | Control::SharedPromise => Span::MAX,
        Control::Pid(pid) => return Ok(pid.law.check()?),
        Control::Facade(law) => law.period,
        Control::Maestro(law) => law.interval,
        Control::Leased(leased) => leased.interval,
    };
    if period.is_zero() {
        return Err(Problem::NoLength { what: "the control period" });
    }
    if let Control::Facade(law) = config.control
        && !(law.growth.is_finite() && law.growth > 0.0)
    {
        return Err(Problem::Growth { growth: law.growth });
    }
    Ok(())
}

fn check_fault(fault: &Fault, array: &ArrayOptions, volumes: usize) -> Result<(), Problem> {
    let (unit, disk) = match fault.what {
        FaultKind::VolumeRemoved { volume } if volume >= volumes => {
            return Err(Problem::NoSuchVolume { volume, volumes });
        }
        FaultKind::VolumeRemoved { .. } | FaultKind::Stall(_) => return Ok(()),
        FaultKind::DiskFails { unit, disk } => (unit, disk),
        FaultKind::Rebuild { unit } => (unit, 0),
    };
    let disks = array.units.get(unit).map(|unit| unit.members);
    if disks.is_some_and(|disks| disk < disks as usize) {
        return Ok(());
    }
    Err(Problem::NoSuchDisk { unit, disk, units: array.units.len(), disks })
}

fn check_volume(volume: &VolumeScenario, array: u64) -> Result<(), Problem> {
    let VolumeScenario { start, size, repeat, .. } = *volume;
    if size == 0 || start.checked_add(size).is_none_or(|end| end > array) {
        return Err(Problem::Outside { start, size, array });
    }
    if repeat.is_some_and(Span::is_zero) {
        return Err(Problem::NoLength { what: "the time after which phases repeat" });
    }
    let mut before = None;
    for (number, phase) in volume.phases.iter().enumerate() {
        if before >= Some(phase.at) || repeat.is_some_and(|repeat| phase.at >= repeat) {
            return Err(Problem::Order { phase: number, at: phase.at });
        }
        before = Some(phase.at);
        if let Some(workload) = &phase.workload {
            check_workload(number, workload, size)?;
        }
    }
    Ok(())
}

fn check_workload(phase: usize, workload: &Workload, volume: u64) -> Result<(), Problem> {
    if let Arrivals::Poisson(rate) | Arrivals::Constant(rate) = workload.arrivals
        && rate.get() > MOST_IOPS
    {
        return Err(Problem::Rate { phase, rate: rate.get() });
    }
    if !(0.0..=1.0).contains(&workload.reads) {
        return Err(Problem::Reads { phase, reads: workload.reads });
    }
    let fits = |&(length, weight): &(u32, f64)| {
        length > 0 && u64::from(length) <= volume && weight >= 0.0 && weight.is_finite()
    };
    let total: f64 = workload.sizes.iter().map(|(_, weight)| weight).sum();
    if !(workload.sizes.iter().all(fits) && total > 0.0) {
        return Err(Problem::Sizes { phase });
    }
    let makes_sense = match workload.locality {
        Locality::Uniform => true,
        Locality::Zipf(exponent) => exponent > 0.0 && exponent.is_finite(),
        Locality::Runs(length) => length > 0,
    };
    if makes_sense { Ok(()) } else { Err(Problem::Places { phase, locality: workload.locality }) }
}
