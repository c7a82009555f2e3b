//! Tells the program which commit it is built from, for the header of every record.

use std::process::Command;

fn main() {
    // Built again after a commit, and not at every change of a file that is not of this crate.
    println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    println!("cargo:rerun-if-changed=build.rs");
    let described = Command::new("git").args(["describe", "--always", "--dirty", "--tags"]).output();
    let commit = described
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned());
    println!("cargo:rustc-env=WEIR_COMMIT={commit}");
}
