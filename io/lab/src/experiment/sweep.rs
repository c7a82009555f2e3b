//! A run that is repeated with one value of the file changed.

use serde::Deserialize;
use toml::Value;

use super::{Experiment, ExperimentError, SweepSpec};

/// A run under its own name, together with the experiment as this run needs it.
#[derive(Clone, Debug)]
pub struct NamedRun {
    /// `run`, or `run@value` for a run of a sweep.
    pub name: String,
    /// The run's name in the file.
    pub run: String,
    /// The value of the sweep, if it is a number.
    pub value: Option<f64>,
    /// The file, with the value in its place.
    pub experiment: Experiment,
}

impl Experiment {
    /// Every run; a sweep gives one run for each of its values.
    ///
    /// # Errors
    /// If a sweep's key is not in the file, or a value does not fit there.
    pub fn runs(&self) -> Result<Vec<NamedRun>, ExperimentError> {
        let mut runs = Vec::new();
        for (run, spec) in &self.run {
            match &spec.sweep {
                None => runs.push(NamedRun {
                    name: run.clone(),
                    run: run.clone(),
                    value: None,
                    experiment: self.clone(),
                }),
                Some(sweep) => runs.extend(self.swept(run, sweep)?),
            }
        }
        Ok(runs)
    }

    fn swept(&self, run: &str, sweep: &SweepSpec) -> Result<Vec<NamedRun>, ExperimentError> {
        let key = format!("run.{run}.sweep");
        let wrong = |message: String| ExperimentError::at(&self.id, key.clone(), message);
        let mut runs = Vec::new();
        for value in &sweep.values {
            let mut document: toml::Table =
                toml::from_str(&self.text).map_err(|error| wrong(error.message().to_owned()))?;
            *place(&mut document, &sweep.key).ok_or_else(|| {
                wrong(format!("found key = \"{}\"; accepted: a key of this file, with its path", sweep.key))
            })? = value.clone();
            let mut experiment = Self::deserialize(document)
                .map_err(|error| wrong(format!("found the value {value}: {}", error.message())))?;
            experiment.text.clone_from(&self.text);
            experiment.check_names(&self.id)?;
            runs.push(NamedRun {
                name: format!("{run}@{}", shown(value)),
                run: run.to_owned(),
                value: number(value),
                experiment,
            });
        }
        Ok(runs)
    }
}

/// The value at a path of keys. A number in the path is a place in a list.
fn place<'v>(document: &'v mut toml::Table, path: &str) -> Option<&'v mut Value> {
    let mut keys = path.split('.');
    let mut here = document.get_mut(keys.next()?)?;
    for key in keys {
        here = match here {
            Value::Table(table) => table.get_mut(key)?,
            Value::Array(array) => array.get_mut(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(here)
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[allow(clippy::cast_precision_loss)] // numbers of disks and the like
fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}
