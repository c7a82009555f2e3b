//! All experiments: the ones that are part of the program, or the ones in a folder.
//!
//! The experiments are part of the program so that an installed program can show its claims without a
//! checkout.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};

use crate::bulk::BulkScenario;
use crate::claims;
use crate::delay::Scenario;
use crate::experiment::{Experiment, ExperimentError, SloSpec, Variant};

/// The name and the text of a file under `experiments/`.
macro_rules! embedded {
    ($path:literal) => {
        (
            concat!("experiments/", $path),
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/", $path)),
        )
    };
}

/// The files that are part of the program: name and text.
const EMBEDDED: &[(&str, &str)] = &[
    embedded!("facade/facade-slo.toml"),
    embedded!("facade/facade-isolation-1.toml"),
    embedded!("facade/facade-isolation-2.toml"),
    embedded!("facade/facade-max-slo.toml"),
    embedded!("facade/facade-multiplexing.toml"),
    embedded!("facade/facade-provisioning.toml"),
    embedded!("facade/facade-overhead.toml"),
    embedded!("facade/facade-failure.toml"),
    embedded!("maestro/maestro-differentiation.toml"),
    embedded!("maestro/maestro-metrics.toml"),
    embedded!("maestro/maestro-priority.toml"),
    embedded!("maestro/maestro-scale.toml"),
    embedded!("maestro/maestro-bursts.toml"),
    embedded!("maestro/maestro-ports.toml"),
    embedded!("maestro/maestro-oltp.toml"),
    embedded!("maestro/maestro-erp.toml"),
    embedded!("maestro/maestro-two-traces.toml"),
    embedded!("maestro/multiport-changing.toml"),
    embedded!("maestro/multiport-metrics.toml"),
    embedded!("maestro/multiport-priority.toml"),
    embedded!("packet-delay/delay-fairness.toml"),
    embedded!("packet-delay/delay-selective.toml"),
    embedded!("packet-delay/delay-curve.toml"),
    embedded!("packet-delay/delay-interference.toml"),
    embedded!("packet-delay/delay-relief.toml"),
    embedded!("packet-delay/delay-pid.toml"),
    embedded!("packet-delay/delay-auto.toml"),
    embedded!("packet-delay/delay-overhead.toml"),
    embedded!("transfers/transfer-rr.toml"),
    embedded!("transfers/transfer-static.toml"),
    embedded!("transfers/transfer-r1.toml"),
    embedded!("transfers/transfer-r2.toml"),
    embedded!("transfers/transfer-r3.toml"),
    embedded!("transfers/transfer-load.toml"),
    embedded!("transfers/transfer-read.toml"),
];

/// Experiments, in the order of the papers' tables.
#[derive(Clone, Debug)]
pub struct Library {
    experiments: Vec<Experiment>,
}

impl Library {
    /// The experiments that are part of the program.
    ///
    /// # Errors
    /// If one of them is wrong.
    pub fn embedded() -> Result<Self, ExperimentError> {
        let experiments = EMBEDDED.iter().map(|(file, text)| Experiment::parse(file, text));
        Ok(Self { experiments: experiments.collect::<Result<_, _>>()? })
    }

    /// The experiments in a folder and the folders below it, by name.
    ///
    /// # Errors
    /// If there is no experiment, or one of them is wrong or cannot be read.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let mut files = BTreeSet::new();
        find(folder, &mut files)?;
        if files.is_empty() {
            bail!("{}: found no experiment; accepted: a folder with .toml files", folder.display());
        }
        let read = |file: &std::path::PathBuf| {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            anyhow::Ok(Experiment::parse(&file.display().to_string(), &text)?)
        };
        Ok(Self { experiments: files.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// The experiments whose id matches `pattern`, in which `*` stands for any text.
    pub fn matching(&self, pattern: &str) -> Vec<&Experiment> {
        self.experiments.iter().filter(|experiment| matches(pattern, &experiment.id)).collect()
    }

    /// All experiments.
    pub fn all(&self) -> &[Experiment] {
        &self.experiments
    }
}

impl Experiment {
    /// The experiment that `text` describes. `file` is the name for messages, and gives the id.
    ///
    /// # Errors
    /// If the text is no experiment, or an experiment that cannot be run.
    pub fn parse(file: &str, text: &str) -> Result<Self, ExperimentError> {
        let mut experiment: Self =
            toml::from_str(text).map_err(|error| ExperimentError::of_parser(file, text, &error))?;
        text.clone_into(&mut experiment.text);
        experiment.check(file)?;
        Ok(experiment)
    }

    /// Checks that each name in the file refers to something. The parser cannot know that.
    fn check(&self, file: &str) -> Result<(), ExperimentError> {
        let wrong = |key: String, found: &str, accepted: String| {
            Err(ExperimentError::at(file, key, format!("found \"{found}\"; accepted: {accepted}")))
        };
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        if stem.is_some_and(|stem| stem != self.id) {
            return wrong("id".into(), &self.id, "the name of the file".into());
        }
        if claims::claim(&self.id).is_none() {
            return wrong("id".into(), &self.id, format!("one of {}", claims::ids().join(", ")));
        }
        let kinds = [self.delay.is_some(), self.bulk.is_some(), !self.run.is_empty()];
        if kinds.iter().filter(|is_there| **is_there).count() != 1 {
            let message = "accepted: one of [delay], [bulk], and [array] with [volume] and [run]";
            return Err(ExperimentError::at(file, "run", message));
        }
        let problem = self.delay.as_ref().and_then(Scenario::problem);
        let problem = problem.or_else(|| self.bulk.as_ref().and_then(BulkScenario::problem));
        if let Some((key, problem)) = problem {
            return Err(ExperimentError::at(file, key, problem));
        }
        for (name, curve) in &self.curve {
            if !self.array.contains_key(&curve.array) {
                return wrong(format!("curve.{name}.array"), &curve.array, keys(&self.array));
            }
        }
        for (name, run) in &self.run {
            if !self.array.contains_key(&run.array) {
                return wrong(format!("run.{name}.array"), &run.array, keys(&self.array));
            }
            let unknown = |volume: &&String| !self.volume.contains_key(*volume);
            if let Some(volume) = run.volumes.iter().flatten().find(unknown) {
                return wrong(format!("run.{name}.volumes"), volume, keys(&self.volume));
            }
        }
        let says = self.says();
        if let Some(run) = self.plot.runs.iter().find(|run| !says.contains_key(run.as_str())) {
            let runs: Vec<_> = says.keys().copied().collect();
            return wrong("plot.runs".into(), run, format!("one of {}", runs.join(", ")));
        }
        self.check_volumes(file)?;
        Variant::ALL.into_iter().try_for_each(|variant| self.variant(variant).map(drop))
    }

    fn check_volumes(&self, file: &str) -> Result<(), ExperimentError> {
        for (name, volume) in &self.volume {
            let ways = [!volume.phases.is_empty(), volume.steps.is_some(), volume.trace.is_some()];
            if ways.iter().filter(|way| **way).count() != 1 {
                let message = "accepted: one of phases, steps and trace";
                return Err(ExperimentError::at(file, format!("volume.{name}"), message));
            }
            if let Some(SloSpec::Curve(curve)) = &volume.slo
                && !self.curve.contains_key(curve)
            {
                let message = format!("found \"curve:{curve}\"; accepted: {}", keys(&self.curve));
                return Err(ExperimentError::at(file, format!("volume.{name}.slo"), message));
            }
        }
        Ok(())
    }
}

fn keys<T>(table: &std::collections::BTreeMap<String, T>) -> String {
    let keys: Vec<_> = table.keys().map(String::as_str).collect();
    format!("one of {}", keys.join(", "))
}

fn find(folder: &Path, files: &mut BTreeSet<std::path::PathBuf>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.insert(path);
        }
    }
    Ok(())
}

/// Whether `text` matches `pattern`, in which `*` stands for any text, also for none.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(after, &rest[at..]))
        }),
    }
}
