//! `weir sim swarm`: random scenarios in simulated time, with every checker on.
//!
//! A failure is useful only if it can be repeated. So each run is one seed, and the line about a failed run
//! is the command that repeats it. That also holds for a panic, which is the engine's reaction to a broken
//! invariant.

use std::fmt;
use std::io::Write;
use std::num::NonZeroU64;
use std::panic;
use std::process;
use std::str::FromStr;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde::Serialize;
use weir_sim::{Fingerprint, Outcome, Violation, swarm};

use crate::answer::{Form, json_line};
use crate::failure::Failure;
use crate::say;

/// The arguments of a simulation.
#[derive(Args, Debug)]
pub(crate) struct SimArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Run random scenarios with faults, with every checker on
    Swarm {
        /// The first seed: a number, or a commit's hash, of which the first 16 digits count
        #[arg(long)]
        seed: SwarmSeed,
        /// The number of scenarios; each takes the next seed
        #[arg(long, default_value = "1")]
        runs: NonZeroU64,
        #[command(flatten)]
        form: Form,
    },
}

/// Runs the simulation.
///
/// # Errors
/// If a checker or an invariant fails, or standard output is gone.
pub(crate) fn sim(arguments: &SimArguments) -> Result<(), Failure> {
    let What::Swarm { seed, runs, form } = arguments.what;
    let mut failed = 0_u64;
    for run in 0..runs.get() {
        let seed = seed.0.wrapping_add(run);
        panic::set_hook(Box::new(move |what| {
            say::on_stdout(failure_line(seed, what));
            process::exit(1);
        }));
        let mut fingerprint = Fingerprint::new();
        let line = match swarm::run(seed, &mut fingerprint) {
            Ok(outcome) if form.json => json_line(&Run::new(seed, outcome, fingerprint))?,
            Ok(outcome) => success_line(seed, outcome, fingerprint),
            Err(violation) => {
                failed += 1;
                failure_line(seed, violated(&violation))
            }
        };
        writeln!(say::out(), "{line}")?;
    }
    let _ = panic::take_hook();
    if failed == 0 { Ok(()) } else { Err(anyhow!("{failed} of {runs} runs failed").into()) }
}

/// A run without a failure, as a line of JSON. A failure is the same line of text as always, and the exit
/// code tells it.
#[derive(Serialize)]
struct Run {
    seed: u64,
    submitted: u64,
    answered: u64,
    failed: u64,
    aborted: u64,
    outstanding: u64,
    fingerprint: String,
}

impl Run {
    fn new(seed: u64, outcome: Outcome, fingerprint: Fingerprint) -> Self {
        let Outcome { submitted, answered, failed, aborted, outstanding, .. } = outcome;
        let fingerprint = format!("{:016x}", fingerprint.value());
        Self { seed, submitted, answered, failed, aborted, outstanding, fingerprint }
    }
}

fn success_line(seed: u64, outcome: Outcome, fingerprint: Fingerprint) -> String {
    let Outcome { submitted, answered, failed, aborted, outstanding, .. } = outcome;
    format!(
        "seed {seed}: ok; of {submitted} requests {answered} were answered, {failed} failed, {aborted} were aborted, \
         {outstanding} are outstanding; fingerprint {:016x}",
        fingerprint.value()
    )
}

/// The failure in one line, whatever the panic's message looks like.
fn failure_line(seed: u64, what: impl fmt::Display) -> String {
    let what = what.to_string().replace('\n', " ");
    format!("seed {seed}: FAILED: {what}; to repeat: weir sim swarm --seed {seed}")
}

fn violated(violation: &Violation) -> String {
    format!("{} after the start: {}", weir_model::Span::from_nanos(violation.at.as_nanos()), violation.what)
}

/// A seed in the form of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SwarmSeed(u64);

impl FromStr for SwarmSeed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hash = || u64::from_str_radix(text.get(..16)?, 16).ok();
        let is_hash = text.len() == 40 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let seed = text.parse().ok().or_else(|| hash().filter(|_| is_hash));
        seed.map(Self)
            .ok_or_else(|| "a number up to 18446744073709551615, or a commit's hash of 40 digits".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_number_or_a_commits_hash() {
        let seed = |text: &str| text.parse::<SwarmSeed>().map(|seed| seed.0).ok();
        assert_eq!(seed("18446744073709551615"), Some(u64::MAX));
        assert_eq!(seed("00000000000000ff00000000000000000000abcd"), Some(255));
        assert_eq!(seed("1000000000000000000000000000000000000000"), Some(1 << 60));
        for wrong in ["", "ff", "-1", "18446744073709551616", "00000000000000zz00000000000000000000abcd"] {
            assert_eq!(seed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_line_of_a_failure_is_one_and_holds_the_command_that_repeats_it() {
        let line = failure_line(7, "first\nsecond");
        assert_eq!(line, "seed 7: FAILED: first second; to repeat: weir sim swarm --seed 7");
    }
}
