//! A directory for one test: its files, sockets and configuration.

use std::path::{Path, PathBuf};

use super::Server;

/// A directory that is removed at the end of the test. It is on the disk of the build, because `/tmp` may be
/// memory, which has no direct I/O.
pub(crate) struct Scene {
    directory: tempfile::TempDir,
}

impl Scene {
    /// An empty scene.
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("t").tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        Self { directory: directory.expect("the build has a directory for tests") }
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The path of a file, for a command line.
    pub(crate) fn text(&self, name: &str) -> String {
        self.file(name).to_str().expect("the paths of tests are text").to_owned()
    }

    /// `file:` and the path, for a configuration.
    pub(crate) fn backend(&self, name: &str) -> String {
        format!("file:{}", self.text(name))
    }

    /// Writes `weir.toml` with addresses on free ports, and with `rest`.
    pub(crate) fn configure(&self, rest: &str) -> PathBuf {
        let listen = format!(
            "[listen]\nnbd = [\"127.0.0.1:0\", \"unix:{}\"]\nmetrics = \"127.0.0.1:0\"\n",
            self.text("nbd.sock")
        );
        self.write("weir.toml", format!("{listen}{rest}"))
    }

    /// As [`Scene::configure`], with a control socket, `control.sock`.
    pub(crate) fn configure_controlled(&self, rest: &str) -> PathBuf {
        self.configure(&format!("control = \"{}\"\n{rest}", self.control()))
    }

    /// The control socket of a server that has one, as an address.
    pub(crate) fn control(&self) -> String {
        format!("unix:{}", self.text("control.sock"))
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, content).expect("the directory of a test can be written");
        path
    }

    /// Starts a server with the configuration `rest`.
    pub(crate) fn serve(&self, rest: &str) -> Server {
        Server::start(&self.configure(rest))
    }

    /// Starts a server with one volume `v` in memory.
    pub(crate) fn serve_memory(&self, size: &str) -> Server {
        self.serve(&format!("[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"memory\"\nsize = \"{size}\"\n"))
    }

    /// The names of the files in the directory, in order.
    pub(crate) fn listing(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("the directory of a test can be read");
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
