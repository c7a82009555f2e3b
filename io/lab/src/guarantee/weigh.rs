//! How heavy a load has to be to take its part of an array's time.

use std::collections::BTreeMap;
use std::sync::Mutex;

use weir_engine::VolumeConfig;

use super::load::{Load, Loads, MOST_RATE};
use super::matrix::ArrayCase;
use super::promise::LASTS;
use super::run::{Volume, busy};

/// How often a load is run, at most, to find its weight.
const TRIES: u32 = 12;
/// A weight that is within this part of the wanted one is good enough.
const CLOSE: f64 = 0.05;
/// An array that is busy for more than this does not say how much more it is asked for.
const SATURATED: f64 = 0.95;

/// Finds weights, each once.
#[derive(Debug)]
pub(super) struct Scales<'m> {
    loads: &'m Loads,
    found: Mutex<BTreeMap<Weighed, f64>>,
}

/// What a weight was found for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Weighed {
    array: String,
    load: String,
    /// Percent of the array's time.
    share: u32,
    /// Where a recording begins, in percent of its requests.
    from: u32,
}

impl<'m> Scales<'m> {
    pub(super) const fn new(loads: &'m Loads) -> Self {
        Self { loads, found: Mutex::new(BTreeMap::new()) }
    }

    /// The load of this name with the weight with which it takes `share` of the time of the array.
    ///
    /// # Errors
    /// If there is no such load, or it cannot be run.
    pub(super) fn weigh(
        &self,
        (array_name, array): (&str, &ArrayCase),
        name: &str,
        share: f64,
        from: f64,
    ) -> anyhow::Result<Load> {
        let mut load = self.loads.load(name)?;
        if !load.is_open() {
            return Ok(load);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to 100
        let percent = |share: f64| (share * 100.0).round() as u32;
        let (array_name, load_name) = (array_name.to_owned(), name.to_owned());
        let key = Weighed { array: array_name, load: load_name, share: percent(share), from: percent(from) };
        let known = || self.found.lock().expect("no thread panics with it");
        let found = known().get(&key).copied();
        load.weight = match found {
            Some(weight) => weight,
            None => weight(array, load.clone(), share, from)?,
        };
        known().insert(key, load.weight);
        Ok(load)
    }
}

/// The weight with which an open load takes `share` of the time of the array: runs it until that is found.
/// All runs are the same, whatever cell asks first.
///
/// # Errors
/// If the load cannot be run.
#[allow(clippy::cast_precision_loss)] // requests of some minutes
fn weight(array: &ArrayCase, mut load: Load, share: f64, from: f64) -> anyhow::Result<f64> {
    let share = share * load.mean();
    let most = MOST_RATE * LASTS.as_secs_f64();
    let (mut light, mut heavy): (Option<f64>, Option<f64>) = (None, None);
    for _ in 0..TRIES {
        let config = VolumeConfig::default();
        let (busy, came) =
            busy(array, Volume { name: "promised", gateway: 0, half: 0, load: &load, from, config })?;
        let step = (share / busy.max(1e-9)).min(most / (came as f64).max(1.0));
        if (step - 1.0).abs() < CLOSE {
            break;
        }
        let known = if step < 1.0 { &mut heavy } else { &mut light };
        *known = Some(load.weight);
        let step = if busy > SATURATED { step.min(0.25) } else { step.clamp(1.0 / 16.0, 16.0) };
        load.weight = match (light, heavy) {
            (Some(light), Some(heavy)) => (light * heavy).sqrt(),
            _ => load.weight * step,
        };
    }
    Ok(load.weight)
}

#[cfg(test)]
mod tests {
    use super::super::matrix::Matrix;
    use super::*;

    #[test]
    fn a_station_of_a_millisecond_is_made_half_busy_by_five_hundred_requests_a_second() {
        let (matrix, loads) = (Matrix::embedded(), Loads::made_up_and(&[]));
        let station = ("station", &matrix.array["station"]);
        let load = Scales::new(&loads).weigh(station, "small-reads", 0.5, 0.0).expect("it is weighed");
        assert!((load.weight - 500.0).abs() < 50.0, "{} requests a second", load.weight);
    }
}
