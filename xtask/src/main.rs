//! The project's own chores, as a program: `cargo xtask tidy` holds the tree against its own rules, `cargo xtask bench`,
//! `bench-qos` and `bench-ports` measure what it promises.
//!
//! A shell script would do until the first rule that has to know a comment from a string, or the first figure that has
//! to be a ratio of two programs measured in turn; and no script has unit tests that show that each rule can fail.

mod bench;
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
    /// Measure speed and memory against other servers; see bench/README.md
    Bench(bench::Arguments),
    /// Measure how well a volume is protected from a neighbour; see bench/README.md
    BenchQos(bench::Arguments),
    /// Measure several gateways before one array, and break them; needs root; see bench/README.md
    BenchPorts(bench::Arguments),
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().chore {
        Chore::Tidy(arguments) => tidy::run(&arguments),
        Chore::Bench(arguments) => bench::speed(&arguments),
        Chore::BenchQos(arguments) => bench::qos(&arguments),
        Chore::BenchPorts(arguments) => bench::ports(&arguments),
    }
}
