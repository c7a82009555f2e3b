//! Where the results of each stage lie: `DIR/<experiment>/seed-<n>/<run>.jsonl`, and beside the folders of
//! the seeds what was made of all of them.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The results in `root`, which is made when something is written.
    pub const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What a run of an experiment recorded.
    pub fn record(&self, experiment: &str, seed: u64, run: &str) -> PathBuf {
        self.seed(experiment, seed).join(format!("{run}.jsonl"))
    }

    /// A curve that was measured.
    pub fn curve(&self, experiment: &str, seed: u64, curve: &str) -> PathBuf {
        self.seed(experiment, seed).join(format!("curve.{curve}.json"))
    }

    /// What was made of all seeds of an experiment: figures, plots, the verdict.
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

    /// Writes a file as a whole or not at all, so that one that is there is finished.
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
