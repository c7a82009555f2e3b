//! weir: storage quality of service. The one binary; see `cli.rs` for what it can do.
//!
//! The program is this library and a `main` that calls it, so that a fuzzer can try the code that reads an
//! operator's text. [`fuzzing`] is the only part that another crate may call.

#![warn(clippy::print_stdout, clippy::print_stderr)] // `say.rs` has the reason

mod answer;
mod ask;
mod cli;
mod compose;
mod config;
mod daemon;
mod descriptors;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod lease_link;
mod log;
mod named;
mod promise_link;
mod say;
mod server;
mod simulated_pool;
mod terminal;
mod traces;
mod transfers;
mod verbs;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use failure::Failure;

/// Runs the command line, and returns the exit code.
pub fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are answers too; they go to standard output, and are no failure.
        Err(answer) if !answer.use_stderr() => {
            return exit_code(answer.print().map_err(|error| say::unwritten(error).into()));
        }
        // Without any argument, the help is the refusal.
        Err(answer) if answer.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = answer.print(); // nobody may read it
            return ExitCode::from(failure::EX_USAGE);
        }
        Err(answer) => return Failure::usage(one_line(&answer.to_string())).report(),
    };
    let done = cli::run(cli);
    // What has no line end was not written yet.
    exit_code(done.and_then(|()| Ok(say::out().flush()?)))
}

/// A refusal of the parser of arguments in one line, as all refusals of weir are. The parser's own has
/// several, and tells the usage, which `--help` tells better.
fn one_line(refusal: &str) -> String {
    let told = ["\n\nUsage:", "\n\nFor more information"];
    let told = told.iter().fold(refusal, |text, end| text.split(end).next().unwrap_or(text));
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("weir: {} (--help tells more)", words.strip_prefix("error: ").unwrap_or(&words))
}

fn exit_code(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_parser_of_arguments_is_one_line_without_the_usage() {
        let refused = |arguments: &str| {
            let answer = cli::Cli::try_parse_from(arguments.split(' ')).unwrap_err();
            assert!(answer.use_stderr());
            one_line(&answer.to_string())
        };
        assert_eq!(
            refused("weir check"),
            "weir: the following required arguments were not provided: <FILE> (--help tells more)"
        );
        for arguments in ["weir chek x.toml", "weir check --colour x.toml", "weir check a b"] {
            let line = refused(arguments);
            assert!(line.starts_with("weir: ") && line.lines().count() == 1, "{line}");
            assert!(!line.contains("Usage:"), "{line}");
        }
    }
}
