//! The test bed of every measurement: the built program, the served files, and the cores of both ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, bail, ensure};
use cargo_metadata::{Message, MetadataCommand};
use tempfile::TempDir;

use super::cores::Cores;
use super::images;

/// The test bed. On drop, its sockets, configurations and logs are deleted; the served files stay.
#[derive(Debug)]
pub(super) struct TestBed {
    root: PathBuf,
    target: PathBuf,
    images: PathBuf,
    /// Not beside the files, because the path of a socket has at most 107 bytes.
    scratch: TempDir,
    weir: PathBuf,
    other_build: Option<PathBuf>,
    cores: Cores,
}

impl TestBed {
    /// Makes the directories, and builds the program unless it is given as `weir`. `images` is the directory
    /// for the served files. `other_build` is another build of the program, to compare it with.
    ///
    /// # Errors
    /// If the build fails, or a directory cannot be made.
    pub(super) fn prepare(
        images: Option<&Path>,
        weir: Option<&Path>,
        other_build: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let named = |path: &Path| path.canonicalize().with_context(|| path.display().to_string());
        let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata")?;
        let target = metadata.target_directory.as_std_path().to_owned();
        let images = images.map_or_else(|| target.join("bench"), Path::to_path_buf);
        fs::create_dir_all(&images).with_context(|| images.display().to_string())?;
        let images = images.canonicalize().with_context(|| images.display().to_string())?;
        let cores = Cores::find()?;
        if !cores.pinned() {
            eprintln!("one core only: server and client share it, nothing is pinned, and no bar means much");
        }
        Ok(Self {
            root: metadata.workspace_root.into_std_path_buf(),
            target,
            images,
            scratch: tempfile::Builder::new()
                .prefix("weir-bench.")
                .tempdir()
                .context("a directory for sockets")?,
            weir: weir.map_or_else(|| build(&["--package", "weir", "--bin", "weir"]), named)?,
            other_build: other_build.map(named).transpose()?,
            cores,
        })
    }

    /// The directory of the repository.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of what is built.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// The directory of the served files.
    pub(super) fn images(&self) -> &Path {
        &self.images
    }

    /// A path for a file that is not kept.
    pub(super) fn scratch(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The file `name` that is served, written in full.
    ///
    /// # Errors
    /// If there is no room for it.
    pub(super) fn image(&self, name: &str) -> anyhow::Result<PathBuf> {
        self.file_of(name, images::IMAGE_BYTES)
    }

    /// The file `name` of so many bytes, whole MiB, written in full. It is kept for the next run.
    ///
    /// # Errors
    /// If there is no room for it.
    pub(super) fn file_of(&self, name: &str, bytes: u64) -> anyhow::Result<PathBuf> {
        images::image(&self.images, name, bytes)
    }

    /// The program.
    pub(super) fn weir(&self) -> &Path {
        &self.weir
    }

    /// The other build of it.
    ///
    /// # Errors
    /// If none was named.
    pub(super) fn other_build(&self) -> anyhow::Result<&Path> {
        self.other_build.as_deref().context("another build is named by --against")
    }

    /// The cores of both ends.
    pub(super) fn cores(&self) -> Cores {
        self.cores
    }
}

/// The cargo that runs this program.
pub(super) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs `command` to its end, and returns its standard output. `what` names it in errors.
///
/// # Errors
/// If it cannot be run or fails; the error quotes its standard error.
pub(super) fn output_of(command: &mut Command, what: &str) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{what}: cannot be run"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{what}: {}: {}", output.status, said.trim());
    String::from_utf8(output.stdout).with_context(|| format!("{what}: its output is no UTF-8"))
}

/// Builds one program, the one that these arguments of cargo ask for; where it is.
///
/// # Errors
/// If the build fails.
pub(super) fn build(arguments: &[&str]) -> anyhow::Result<PathBuf> {
    let line = format!("cargo build --release {}", arguments.join(" "));
    let mut command = cargo();
    command.args(["build", "--release", "--message-format", "json-render-diagnostics"]).args(arguments);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| line.clone())?;
    ensure!(output.status.success(), "{line}: {}", output.status);
    for message in Message::parse_stream(output.stdout.as_slice()) {
        if let Message::CompilerArtifact(artifact) = message.with_context(|| line.clone())?
            && let Some(path) = artifact.executable
        {
            return Ok(path.into_std_path_buf());
        }
    }
    bail!("{line}: made no program")
}
