//! `cargo xtask tidy`: the rules of the tree that neither rustc nor clippy knows.
//!
//! Each rule is a small function from the tree to [`Finding`]s, and each has a test that shows it failing. A
//! rule that turns out to be wrong is changed here, with its reason, and not excused in the file that breaks
//! it.

mod banned;
mod circles;
mod documents;
mod finding;
mod logged;
mod names;
mod panics;
mod rings;
mod sizes;
mod source;
mod tree;

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use finding::Finding;
use tree::{Member, Tree};

/// What to do.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Write xtask/panics.txt anew instead: after a look at what has become more
    #[arg(long)]
    list_panics: bool,
}

/// Prints a line for each finding, and fails if there is one. With `--list-panics`, writes the list of panics
/// instead.
///
/// # Errors
/// If cargo or git cannot tell which crates and files there are, or the list cannot be written.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let tree = Tree::read()?;
    if arguments.list_panics {
        std::fs::write(tree.root.join(panics::LIST), panics::list(&source::rust_files(&tree)))
            .context(panics::LIST)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut findings = check(&tree);
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} crates, {} findings", tree.files.len(), tree.members.len(), findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(tree: &Tree) -> Vec<Finding> {
    let rust_files = source::rust_files(tree);
    let mut findings = Vec::new();
    findings.extend(rings::dependencies(&tree.members));
    findings.extend(rings::runtimes(&tree.members));
    findings.extend(documents::crates_are_listed(tree));
    findings.extend(documents::symbols_are_listed(tree));
    findings.extend(documents::rows_have_tests(tree));
    findings.extend(panics::listed(tree, &rust_files));
    findings.extend(circles::of_imports(&tree.members, &rust_files));
    for Member { name, manifest, .. } in &tree.members {
        findings.extend(names::crate_name(name, manifest));
        findings.extend(documents::lints_are_inherited(tree, manifest));
    }
    for file in &tree.files {
        findings.extend(names::path(file));
        findings.extend(documents::links(file, &|path| tree.has(path)));
        findings.extend(banned::machine_paths(file));
        findings.extend(sizes::columns(file));
    }
    for rust in &rust_files {
        findings.extend(names::inline_modules(rust));
        findings.extend(sizes::header(rust));
        findings.extend(sizes::lines(rust));
        findings.extend(sizes::functions(rust));
        findings.extend(banned::leftovers(rust));
        findings.extend(banned::clocks(rust));
        findings.extend(banned::unsafety(rust));
        findings.extend(banned::sleeps_in_tests(rust));
        findings.extend(logged::peers_are_named(rust));
    }
    findings
}
