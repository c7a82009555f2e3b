//! A coordinator with its nodes, and the clients of one test.

use std::fs;
use std::path::PathBuf;

use weir_node_servers::Server;

use crate::harness::{Outcome, Program, Running, Scene, bytes};

/// A mebibyte.
pub(super) const MIB: usize = 1 << 20;

/// A coordinator, and where its nodes are.
pub(super) struct Site {
    pub(super) scene: Scene,
    coordinator: Option<Running>,
    /// Where programs are looked for: a test's own `ssh` comes first.
    path: String,
}

impl Site {
    /// A coordinator whose file has these lines for its nodes, at work.
    pub(super) fn new(scene: Scene, nodes: &str) -> Self {
        let mut site = Self::idle(scene, nodes);
        site.start();
        site
    }

    /// The same, and the coordinator does not run yet.
    pub(super) fn idle(scene: Scene, nodes: &str) -> Self {
        let head = format!(
            "[transfers]\npolicy = \"rr\"\nstate = \"{}\"\nmetrics = \"127.0.0.1:0\"\n",
            scene.text("state")
        );
        scene.write("transfers.toml", format!("{head}{nodes}"));
        Self { scene, coordinator: None, path: std::env::var("PATH").unwrap_or_default() }
    }

    /// A site with the directories of these names as its nodes.
    pub(super) fn of_files(names: &[&str]) -> Self {
        let scene = Scene::new();
        let nodes: String = names.iter().map(|name| file_node(&scene, name)).collect();
        Self::new(scene, &nodes)
    }

    /// Its programs use this `ssh`.
    pub(super) fn with_ssh(mut self, server: &Server) -> Self {
        let folder = server.ssh().and_then(std::path::Path::parent).expect("a server of SFTP has one");
        self.path = format!("{}:{}", folder.display(), self.path);
        self
    }

    /// Starts the coordinator, and waits until it serves.
    pub(super) fn start(&mut self) {
        let coordinator = self.weir("transfers serve").arg(self.config().display()).start();
        coordinator.wait_for("weir: coordinating transfers");
        self.coordinator = Some(coordinator);
    }

    /// Kills the coordinator with SIGKILL.
    pub(super) fn kill(&mut self) {
        self.coordinator.take().expect("it runs").kill();
    }

    /// Stops the coordinator with SIGTERM; it must end well.
    pub(super) fn stop(&mut self) {
        let mut coordinator = self.coordinator.take().expect("it runs");
        coordinator.signal(rustix::process::Signal::TERM);
        coordinator.succeed();
    }

    /// The configuration file.
    pub(super) fn config(&self) -> PathBuf {
        self.scene.file("transfers.toml")
    }

    /// `weir` with these arguments, as a client of this coordinator.
    pub(super) fn weir(&self, arguments: &str) -> Program {
        Program::weir()
            .args(arguments)
            .env("WEIR_TRANSFERS", &self.config().display().to_string())
            .env("PATH", &self.path)
            .env("NO_COLOR", "1")
            .directory(self.scene.path())
    }

    /// Runs `weir`, which must succeed. Returns its standard output.
    pub(super) fn run(&self, arguments: &str) -> String {
        self.weir(arguments).run()
    }

    /// Runs `weir`, which must refuse its arguments with one line. Returns the line.
    pub(super) fn refusal(&self, arguments: &str) -> String {
        refusal(arguments, self.weir(arguments).outcome())
    }

    /// Whether there is an object of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.weir("stat").arg(name).outcome().code == Some(0)
    }

    /// Reads an object into a new file, which must have this content. Removes the file.
    pub(super) fn expect_object(&self, name: &str, content: &[u8]) {
        self.run(&format!("get {name} -o got"));
        assert!(fs::read(self.scene.file("got")).unwrap() == content, "{name} is another object");
        fs::remove_file(self.scene.file("got")).unwrap();
    }

    /// The names of all objects.
    pub(super) fn names(&self) -> Vec<String> {
        let listed = self.run("ls");
        let rows = listed.lines().filter(|line| line.starts_with(' '));
        let names = rows.filter_map(|line| line.split_whitespace().next());
        names.filter(|name| *name != "object").map(str::to_owned).collect()
    }
}

/// The line of a refusal: exit code 64, nothing on standard output, and nothing else on standard error.
pub(super) fn refusal(what: &str, outcome: Outcome) -> String {
    let Outcome { code, out, log } = outcome;
    assert_eq!((code, out.as_str(), log.lines().count()), (Some(64), "", 1), "{what}\n{log}");
    log
}

/// The lines of standard error that are not about the progress of a transfer.
pub(super) fn complaints(log: &str) -> Vec<&str> {
    let is_progress = |line: &&str| {
        [": goes on at ", ": waits: ", " it is tried again"].iter().any(|said| line.contains(said))
    };
    log.lines().filter(|line| !is_progress(line)).collect()
}

/// The lines for a node that is a new directory of the scene.
pub(super) fn file_node(scene: &Scene, name: &str) -> String {
    fs::create_dir(scene.file(name)).unwrap();
    node(name, &format!("file://{}", scene.text(name)), None)
}

/// The lines for a node.
pub(super) fn node(name: &str, url: &str, credentials: Option<PathBuf>) -> String {
    let credentials = credentials.map(|path| format!("credentials = \"{}\"\n", path.display()));
    format!("[node.{name}]\nurl = \"{url}\"\n{}", credentials.unwrap_or_default())
}

/// The lines for a node on a server.
pub(super) fn server_node(name: &str, server: &Server) -> String {
    node(name, server.location(), server.credentials())
}

/// Writes a file of so many bytes, and returns them.
pub(super) fn write(scene: &Scene, name: &str, seed: u64, length: usize) -> Vec<u8> {
    let content = bytes(seed, length);
    scene.write(name, &content);
    content
}

/// The files below a directory that are no partials, by their paths in it; and the partials.
pub(super) fn stored(root: &std::path::Path) -> (Vec<String>, Vec<String>) {
    let (mut objects, mut partials) = (Vec::new(), Vec::new());
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if name.starts_with(".weir-partial") { partials.push(name) } else { objects.push(name) }
        }
    }
    objects.sort();
    (objects, partials)
}
