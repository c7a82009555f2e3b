//! Tells the program the commit that it is built from. The header of every record names that commit.

use std::process::Command;

fn main() {
    // Cargo runs this script after a commit, not after each change of a file outside this crate.
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
