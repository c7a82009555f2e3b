//! Tells the program the commit that it is built from. The header of every record names that commit.

use std::process::Command;

fn main() {
    // Cargo runs this script after a commit, not after each change of a file outside this crate. Git says
    // where the file is: a work tree beside the first has it elsewhere. Cargo takes a missing file for a
    // change, so each build would compile this crate anew.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let commit = git(&["describe", "--always", "--dirty", "--tags"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=WEIR_COMMIT={commit}");
}

/// What git prints; nothing without git, or outside a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
