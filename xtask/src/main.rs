//! The project's own chores, as a program: `cargo xtask tidy` checks the tree by its own rules.
//!
//! A shell script would do until the first rule that has to tell a comment from a string. And a script has no
//! unit tests that show that each rule can fail. The benchmarks are a program of their own (`bench`), because
//! their dependencies take longer to compile than all chores.

mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own chores.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Hold the tree against the rules of ARCHITECTURE.md and CONTRIBUTING.md
    Tidy(tidy::Arguments),
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().chore {
        Chore::Tidy(arguments) => tidy::run(&arguments),
    }
}
