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
use crate::experiment::{Experiment, ExperimentError, Included, SloSpec, Variant, is_machine};

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
    embedded!("facade/facade-calibration.toml"),
    embedded!("facade/facade-slo.toml"),
    embedded!("facade/facade-isolation-1.toml"),
    embedded!("facade/facade-isolation-2.toml"),
    embedded!("facade/facade-max-slo.toml"),
    embedded!("facade/facade-multiplexing.toml"),
    embedded!("facade/facade-provisioning.toml"),
    embedded!("facade/facade-overhead.toml"),
    embedded!("facade/facade-failure.toml"),
    embedded!("maestro/maestro-calibration.toml"),
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

/// The machines that are part of the program: name and text.
const MACHINES: &[(&str, &str)] =
    &[embedded!("facade/fc60.toml"), embedded!("facade/va7100.toml"), embedded!("maestro/xp.toml")];

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
        let read = |path: &str| {
            let machine = MACHINES.iter().find(|(file, _)| *file == path);
            machine
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| "it is not part of the program".to_owned())
        };
        let experiments = EMBEDDED.iter().map(|(file, text)| Experiment::parse_with(file, text, &read));
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
        let mut texts = Vec::new();
        for file in files {
            let file = file.display().to_string();
            let text = text_of(&file).map_err(anyhow::Error::msg)?;
            if !is_machine(&text) {
                texts.push((file, text));
            }
        }
        let read = |path: &str| text_of(path);
        let experiments = texts.iter().map(|(file, text)| Experiment::parse_with(file, text, &read));
        Ok(Self { experiments: experiments.collect::<Result<_, _>>()? })
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
    /// The experiment that `text` describes, which includes no other file. `file` is the name for messages,
    /// and gives the id.
    ///
    /// # Errors
    /// If the text is no experiment, or an experiment that cannot be run.
    pub fn parse(file: &str, text: &str) -> Result<Self, ExperimentError> {
        Self::parse_with(file, text, &|path| Err(format!("{path} is not at hand; accepted: no include")))
    }

    /// The experiment that `text` describes. `read` gives the text of an included file, or the problem.
    fn parse_with(
        file: &str,
        text: &str,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, ExperimentError> {
        let whole = Included::new(file, text, read)?;
        let wrong =
            |error| ExperimentError::of_parser(file, &whole.text, &error).in_files(|line| whole.origin(line));
        let mut experiment: Self = toml::from_str(&whole.text).map_err(wrong)?;
        experiment.text = whole.text;
        experiment.check(file)?;
        Ok(experiment)
    }

    /// Checks that each name in the file refers to something. The parser cannot know that.
    fn check(&self, file: &str) -> Result<(), ExperimentError> {
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        if stem.is_some_and(|stem| stem != self.id) {
            let message = format!("found \"{}\"; accepted: the name of the file", self.id);
            return Err(ExperimentError::at(file, "id", message));
        }
        self.check_names(file)?;
        Variant::ALL.into_iter().try_for_each(|variant| self.variant(variant).map(drop))
    }

    /// Checks what the parser cannot know: each name refers to something, each array can be, and each bound
    /// is one. Also of a file with other values in some places.
    pub(crate) fn check_names(&self, file: &str) -> Result<(), ExperimentError> {
        let wrong = |key: String, found: &str, accepted: String| {
            Err(ExperimentError::at(file, key, format!("found \"{found}\"; accepted: {accepted}")))
        };
        if claims::claim(&self.id).is_none() {
            return wrong("id".into(), &self.id, format!("one of {}", claims::ids().join(", ")));
        }
        if let Err((key, problem)) = self.engine.completions() {
            return Err(ExperimentError::at(file, key, problem));
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
            if run.warm_up.0 >= run.duration.0 {
                let found = run.warm_up.0.to_string();
                let accepted = format!("less than the duration of {}", run.duration.0);
                return wrong(format!("run.{name}.warm_up"), &found, accepted);
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
        for (name, array) in &self.array {
            let problem = |error: crate::ArraySpecError| {
                ExperimentError::at(file, format!("array.{name}"), error.to_string())
            };
            array.options().map_err(problem)?;
        }
        for expectation in &self.expect {
            let bounds = expectation.bounds();
            let bounds = [bounds.0, bounds.1].into_iter().flatten();
            if !bounds.clone().is_sorted() || bounds.clone().any(|bound| !bound.is_finite()) {
                let found: Vec<_> = bounds.map(|bound| bound.to_string()).collect();
                let accepted = "numbers, the first not above the second";
                let message = format!("found {}; accepted: {accepted}", found.join(" to "));
                return Err(ExperimentError::at(file, format!("expect.{}", expectation.figure), message));
            }
        }
        self.check_volumes(file)
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

/// The longest file of an experiment or a machine, in bytes.
const LONGEST: u64 = 1 << 20;

/// The text of a file, or the problem with it. A pipe is not read: it may never end.
fn text_of(path: &str) -> Result<String, String> {
    let found =
        |problem: String| format!("{path}: {problem}; accepted: a text file of at most {LONGEST} bytes");
    let metadata = std::fs::metadata(path).map_err(|error| found(error.to_string()))?;
    if !metadata.is_file() {
        return Err(found("found something that is no file".to_owned()));
    }
    if metadata.len() > LONGEST {
        return Err(found(format!("found {} bytes", metadata.len())));
    }
    std::fs::read_to_string(path).map_err(|error| found(error.to_string()))
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
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Expectation, includes};

    /// The page on which a reader looks the bounds up.
    const CLAIMS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/papers/claims.md"));

    /// A bound with all its digits, unlike in a table of results.
    fn bound(expectation: &Expectation) -> Option<String> {
        let unit = &expectation.unit;
        let bound = match expectation.bounds() {
            (None, None) => return None,
            (Some(least), None) => format!(">= {least} {unit}"),
            (None, Some(most)) => format!("<= {most} {unit}"),
            (Some(least), Some(most)) => format!("{least} to {most} {unit}"),
        };
        Some(bound.trim_end().to_owned())
    }

    #[test]
    fn the_bounds_of_all_experiments_are_those_of_the_page_of_claims() {
        let library = Library::embedded().unwrap();
        let in_files = library.all().iter().flat_map(|experiment| {
            let bounds = experiment.expect.iter().filter_map(|one| Some((one, bound(one)?)));
            bounds.map(|(one, bound)| format!("| `{}` | `{}` | {bound} |", experiment.id, one.figure))
        });
        let (_, table) = CLAIMS.split_once("\n## The bounds\n").expect("the page has the bounds");
        let on_page: Vec<_> = table.lines().filter(|line| line.starts_with("| `")).collect();
        for (place, bound) in in_files.clone().enumerate() {
            assert_eq!(
                on_page.get(place).copied(),
                Some(bound.as_str()),
                "row {place} of the page of claims"
            );
        }
        assert_eq!(on_page.len(), in_files.count());
    }

    #[test]
    fn an_experiment_of_façade_or_maestro_describes_no_array_of_its_own() {
        for (file, text) in
            EMBEDDED.iter().filter(|(file, _)| !file.contains("delay") && !file.contains("transfer"))
        {
            assert!(!includes(file, text).unwrap().is_empty() && !text.contains("\n[array"), "{file}");
        }
    }

    #[test]
    fn an_error_in_a_machine_names_its_file_and_its_line() {
        let text = EMBEDDED[0].1;
        let machine = MACHINES[0].1.replace("raid = \"raid5\"", "raid = \"raid6\"");
        let line = 1 + machine[..machine.find("raid6").unwrap()].matches('\n').count();
        let error =
            Experiment::parse_with(EMBEDDED[0].0, text, &|_| Ok(machine.clone())).unwrap_err().to_string();
        let expected = format!("experiments/facade/fc60.toml:{line}: array.fc60.raid: ");
        assert!(error.starts_with(&expected), "{error}");
    }

    #[test]
    fn a_machine_holds_arrays_only_and_cannot_be_overridden() {
        let problem = |text: &str, machine: &str| {
            let read = |_: &str| Ok(machine.to_owned());
            Experiment::parse_with("x/facade-slo.toml", text, &read).unwrap_err().to_string()
        };
        let run = "include = [\"m.toml\"]\n";
        let found = problem(run, "[run.none]\nsays = \"x\"\n");
        assert_eq!(found, "x/m.toml: run: found a machine with this key; accepted: array, machine");
        let own = problem(&format!("{run}[array.mine]\ndisks = 1\n"), "");
        let expected = "x/facade-slo.toml: array: found [array] beside include; accepted: the arrays of the included files";
        assert_eq!(own, expected);
        for include in ["../m.toml", "/dev/zero", "m", "m.toml\", \"m.toml"] {
            let wrong = problem(&format!("include = [\"{include}\"]\n"), "");
            assert!(wrong.contains("accepted: the names of other files in the same folder"), "{wrong}");
        }
        let missing = Experiment::parse("x/facade-slo.toml", run).unwrap_err().to_string();
        assert!(missing.contains("include: found \"m.toml\": x/m.toml is not at hand"), "{missing}");
    }

    #[test]
    fn a_pipe_among_the_files_is_refused_and_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("a.toml");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        let error = format!("{:#}", Library::open(folder.path()).unwrap_err());
        assert!(error.contains("a.toml: found something that is no file; accepted: a text file"), "{error}");
    }
}
