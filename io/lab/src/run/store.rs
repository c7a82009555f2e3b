//! The places of the results of each stage. The record of a run is `DIR/<experiment>/seed-<n>/<run>.jsonl`.
//! Results over all seeds lie beside the folders of the seeds. The results of a variant lie in the same way
//! below a folder of its own, `DIR/<variant>/`.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::experiment::Variant;

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// A store in the folder `root`. The folder is made with the first file that is written.
    pub const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Keeps other processes from writing into the folder until it is dropped. Two that write the same files
    /// would read each other's half.
    ///
    /// # Errors
    /// If another process has it, or the folder cannot be written.
    pub fn lock(&self) -> anyhow::Result<File> {
        let path = self.root.join(".lock");
        let open = || {
            std::fs::create_dir_all(&self.root)?;
            File::create(&path)
        };
        let file = open().with_context(|| format!("{}: cannot be written", path.display()))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(Errno::WOULDBLOCK) => {
                let folder = self.root.display();
                anyhow::bail!("{folder}: found another weir lab at work; accepted: a folder of its own")
            }
            Err(error) => Err(error).with_context(|| format!("{}: cannot be locked", path.display())),
        }
    }

    /// The store of a variant of all experiments.
    #[must_use]
    pub fn variant(&self, variant: Variant) -> Self {
        Self { root: self.root.join(variant.name()) }
    }

    /// The store of an experiment with one of its numbers varied.
    #[must_use]
    pub fn varied(&self, name: &str) -> Self {
        Self { root: self.root.join("varied").join(name) }
    }

    /// The store of all experiments with their laws in this form.
    #[must_use]
    pub fn ablated(&self, form: &str) -> Self {
        Self { root: self.root.join("ablation").join(form) }
    }

    /// The path of the record of a run.
    pub fn record(&self, experiment: &str, seed: u64, run: &str) -> PathBuf {
        self.seed(experiment, seed).join(format!("{run}.jsonl"))
    }

    /// The path of a measured curve.
    pub fn curve(&self, experiment: &str, seed: u64, curve: &str) -> PathBuf {
        self.seed(experiment, seed).join(format!("curve.{curve}.json"))
    }

    /// The path of a result over all seeds of an experiment: figures, plots, the verdict.
    pub fn of(&self, experiment: &str, file: &str) -> PathBuf {
        self.root.join(experiment).join(file)
    }

    /// The seeds with which an experiment was run, rising.
    pub fn seeds(&self, experiment: &str) -> Vec<u64> {
        let entries = std::fs::read_dir(self.root.join(experiment)).into_iter().flatten().flatten();
        let mut seeds: Vec<u64> = entries
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("seed-")?.parse().ok())
            .collect();
        seeds.sort_unstable();
        seeds
    }

    /// The records of an experiment with this seed, in the order of their names.
    pub fn records(&self, experiment: &str, seed: u64) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.seed(experiment, seed)).into_iter().flatten().flatten();
        let is_record = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(is_record).collect();
        paths.sort_unstable();
        paths
    }

    /// Writes a file as a whole or not at all, so that a file that is there is complete.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".part");
        let write = || {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(&unfinished, content)?;
            std::fs::rename(&unfinished, path)
        };
        write().with_context(|| format!("{}: cannot be written", path.display()))
    }

    fn seed(&self, experiment: &str, seed: u64) -> PathBuf {
        self.root.join(experiment).join(format!("seed-{seed}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_that_writes_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("new"));
        let first = store.lock().unwrap();
        let refused = store.lock().unwrap_err().to_string();
        assert!(refused.contains("found another weir lab at work"), "{refused}");
        drop(first);
        assert!(store.lock().is_ok());
    }
}
