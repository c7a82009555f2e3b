//! A pool of a configuration in simulated time: its engine, its simulated array, and its volumes at the
//! places that the gateway would give them.
//!
//! The pool is made from the gateway's own specification, not from the configuration a second time. So it
//! stays the same in simulated and in real time, whatever is added to the configuration.

use std::ops::Range;

use weir_backend::{ARRAY_SEED, BackendSpec, array_place};
use weir_gateway::{PoolSpec, VolumeSpec};
use weir_sim::{ArrayOptions, Scenario, VolumeScenario};

use crate::compose::gateway_spec;
use crate::config::Config;
use crate::failure::Failure;

/// A pool in simulated time.
pub(crate) struct SimulatedPool {
    /// The name of its array in the configuration.
    pub(crate) array: String,
    /// The scenario, without any load.
    pub(crate) scenario: Scenario,
}

/// The pool of this name, which must have a volume.
///
/// # Errors
/// If not all of the pool is on one simulated array, or a part of it cannot be simulated.
pub(crate) fn simulated_pool(config: &Config, pool: &str) -> Result<SimulatedPool, Failure> {
    let spec = gateway_spec(config);
    let PoolSpec { engine, volumes, .. } = &spec.pools[pool];
    let mut array = None;
    for (name, volume) in volumes {
        let (array_name, options) = array_of(name, volume)?;
        if let Some((other, _)) = array.filter(|(other, _)| *other != array_name) {
            let found = format!("\"array:{array_name}\", beside \"array:{other}\" in pool {pool}");
            return Err(refuse(name, "backend", &found, "one array for all volumes of a pool"));
        }
        array = Some((array_name, options));
    }
    let Some((name, array)) = array else {
        return Err(Failure::usage(format!("pool.{pool}: found no volume; accepted: at least one")));
    };
    let mut taken = Vec::new();
    let volumes = volumes.iter().map(|(name, volume)| place(name, volume, array.size(), &mut taken));
    let scenario = Scenario {
        seed: ARRAY_SEED.0,
        duration: weir_model::Span::ZERO,
        engine: *engine,
        array: array.clone(),
        volumes: volumes.collect(),
        faults: Vec::new(),
    };
    scenario.check().map_err(|error| Failure::usage(format!("pool.{pool}: {error}")))?;
    Ok(SimulatedPool { array: name.to_owned(), scenario })
}

fn array_of<'a>(name: &str, volume: &'a VolumeSpec) -> Result<(&'a str, &'a ArrayOptions), Failure> {
    if !volume.faults.is_empty() {
        return Err(refuse(
            name,
            "faults",
            "faults",
            "none, since nothing would make them in simulated time",
        ));
    }
    match &volume.backend {
        BackendSpec::Array { name, array, .. } => Ok((name, array)),
        BackendSpec::File { .. }
        | BackendSpec::Memory
        | BackendSpec::Station { .. }
        | BackendSpec::Upstream { .. } => {
            let accepted =
                "\"array:NAME:/path\", with a table [array.NAME], since the time of others is not modelled";
            Err(refuse(name, "backend", "a backend that is no simulated array", accepted))
        }
    }
}

/// Places a volume beside the volumes that have their places.
fn place(name: &str, volume: &VolumeSpec, capacity: u64, taken: &mut Vec<Range<u64>>) -> VolumeScenario {
    let size = volume.size.expect("a volume on an array has a size");
    let place = array_place(taken.iter().cloned(), size, capacity);
    let start = place.start;
    taken.push(place);
    VolumeScenario {
        name: name.to_owned(),
        config: volume.config.clone(),
        start,
        size,
        phases: Vec::new(),
        repeat: None,
        changes: Vec::new(),
    }
}

fn refuse(volume: &str, key: &str, found: &str, accepted: &str) -> Failure {
    Failure::usage(format!("volume.{volume}.{key}: found {found}; accepted: {accepted}"))
}
