//! The tree that the rules look at: the files that git knows or would add, and the crates that cargo knows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use cargo_metadata::camino::Utf8Path;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// The repository.
#[derive(Default)]
pub(super) struct Tree {
    /// Every text file, by path.
    pub(super) files: Vec<File>,
    /// Every crate of the workspace.
    pub(super) members: Vec<Member>,
    /// Its root folder.
    pub(super) root: PathBuf,
    /// Every file, text or not, and every folder with one.
    paths: BTreeSet<String>,
}

/// A text file.
pub(super) struct File {
    /// Its path from the root, with `/`.
    pub(super) path: String,
    /// Its text.
    pub(super) text: String,
}

/// A crate of the workspace.
#[derive(Clone, Default)]
pub(super) struct Member {
    /// Its name for cargo.
    pub(super) name: String,
    /// Path of its `Cargo.toml` from the root.
    pub(super) manifest: String,
    /// The crates it names in its manifest.
    pub(super) dependencies: Vec<Dependency>,
    /// The crates that are linked into it, at any depth, without those of tests and build scripts.
    pub(super) linked: BTreeSet<String>,
}

/// A crate that a manifest names.
#[derive(Clone)]
pub(super) struct Dependency {
    /// Its name.
    pub(super) name: String,
    /// Whether only tests, benchmarks and examples use it.
    pub(super) dev: bool,
}

impl Tree {
    /// The tree around the current folder.
    pub(super) fn read() -> anyhow::Result<Self> {
        let metadata = MetadataCommand::new().exec().context("cargo metadata")?;
        let root = &metadata.workspace_root;
        let mut tree =
            Self { members: members(&metadata), root: root.clone().into_std_path_buf(), ..Self::default() };
        for path in git_files(root.as_std_path())? {
            let Ok(bytes) = std::fs::read(root.join(&path)) else { continue }; // removed, and git not told yet
            tree.add_path(&path);
            if let Ok(text) = String::from_utf8(bytes) {
                tree.files.push(File { path, text });
            }
        }
        Ok(tree)
    }

    /// The text of the file at `path`.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// Whether there is a file or a folder at `path`.
    pub(super) fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    fn add_path(&mut self, path: &str) {
        let mut path = path;
        while self.paths.insert(path.to_owned()) {
            match path.rsplit_once('/') {
                Some((folder, _)) => path = folder,
                None => break,
            }
        }
    }
}

fn git_files(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.output().context("git ls-files")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    let paths = String::from_utf8(output.stdout).context("a file name that is no UTF-8")?;
    let mut paths: Vec<String> = paths.split_terminator('\0').map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn members(metadata: &Metadata) -> Vec<Member> {
    let linked = linked_crates(metadata);
    let member = |package: &Package| Member {
        name: package.name.to_string(),
        manifest: relative(&package.manifest_path, &metadata.workspace_root),
        dependencies: package
            .dependencies
            .iter()
            .map(|dependency| Dependency {
                name: dependency.name.clone(),
                dev: dependency.kind == DependencyKind::Development,
            })
            .collect(),
        linked: reachable(&linked, package.name.as_str()),
    };
    metadata.workspace_packages().into_iter().map(member).collect()
}

/// The crates that each crate links directly.
fn linked_crates(metadata: &Metadata) -> BTreeMap<String, BTreeSet<String>> {
    let name = |id| metadata[id].name.to_string();
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let normal = |dependency: &&cargo_metadata::NodeDep| {
        dependency.dep_kinds.iter().any(|info| info.kind == DependencyKind::Normal)
    };
    nodes
        .map(|node| (name(&node.id), node.deps.iter().filter(normal).map(|dep| name(&dep.pkg)).collect()))
        .collect()
}

fn reachable(linked: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        for next in linked.get(name).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

fn relative(path: &Utf8Path, root: &Utf8Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_includes_what_a_dependency_links() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let linked = BTreeMap::from([("a".to_owned(), set(&["b"])), ("b".to_owned(), set(&["c", "a"]))]);
        assert_eq!(reachable(&linked, "a"), set(&["a", "b", "c"]));
        assert_eq!(reachable(&linked, "c"), set(&[]));
    }

    #[test]
    fn a_folder_is_there_if_a_file_is_in_it() {
        let mut tree = Tree::default();
        tree.add_path("docs/papers/facade.md");
        assert!(tree.has("docs/papers/facade.md") && tree.has("docs/papers") && tree.has("docs"));
        assert!(!tree.has("docs/papers/x") && !tree.has("paper"));
    }
}
