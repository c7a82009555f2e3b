//! What an operator can write, for machines to try: the text of a configuration file, and the values of `weir
//! set`.
//!
//! A hole in the wall of the program, as narrow as can be: text in, and how it ended. The checks that need to
//! know what a configuration is are made here, beside it.

use std::path::Path;

use crate::config::{Config, Source, check_report, controller_report};

/// What became of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judged {
    /// It is the file of a gateway.
    Gateway,
    /// It is the file of a controller.
    Controller,
    /// It was refused, and each problem has its line.
    Refused,
}

/// Reads `text` as `weir check` does, and says what came of it.
///
/// # Panics
/// If a refusal is not a line for each problem, or the same text is judged otherwise with a comment more.
pub fn configuration(text: &str) -> Judged {
    let source = Source::of(Path::new("weir.toml"), text.to_owned());
    if source.is_of_controller() {
        return match source.controller() {
            Ok(config) => {
                assert!(!controller_report(&config).is_empty());
                Judged::Controller
            }
            Err(error) => refused(&error.to_string()),
        };
    }
    match source.config() {
        Ok(config) => {
            assert!(!check_report(&config).is_empty());
            assert!(!config.volumes.is_empty() && is_within_limits(&config));
            let again = Config::parse(Path::new("weir.toml"), &format!("{text}\n# a comment\n"));
            assert_eq!(again.ok().as_ref(), Some(&config), "a comment is no change");
            Judged::Gateway
        }
        Err(error) => refused(&error.to_string()),
    }
}

/// Sets `key` of the table `[table.name]` to `value` in a file `text`, as `weir set` does; what came of it,
/// or nothing if that file is itself refused.
///
/// # Panics
/// If a refusal is not a line for each problem, or a change that was accepted cannot be taken back.
pub fn change(text: &str, table: &str, name: &str, set: &[(String, String)]) -> Option<Judged> {
    let source = Source::of(Path::new("weir.toml"), text.to_owned());
    let before = source.config().ok()?;
    let changed = source.with(table, name, set).and_then(|changed| Ok((changed.config()?, changed)));
    Some(match changed {
        Ok((config, _)) => {
            assert!(is_within_limits(&config), "what is set obeys what holds for a file");
            assert_eq!(source.config().ok(), Some(before), "the file is as it was");
            Judged::Gateway
        }
        Err(error) => refused(&error.to_string()),
    })
}

/// What docs/config.md says of `[limits]`, written down once more.
fn is_within_limits(config: &Config) -> bool {
    let limits = &config.limits;
    let (one, all) = (limits.bytes_per_connection.value.as_u64(), limits.bytes_in_flight.value.as_u64());
    let is_name = |name: &String| (1..=255).contains(&name.len()) && name.is_ascii();
    (32 << 20..=1 << 40).contains(&one)
        && (one..=1 << 40).contains(&all)
        && limits.connections.value.get() <= 1_000_000
        && config.volumes.keys().chain(config.pools.keys()).all(is_name)
}

/// Every problem is a line, says what is accepted, and repeats no more than a part of what stands there.
fn refused(message: &str) -> Judged {
    for line in message.lines() {
        assert!(line.contains("found ") && line.contains("; accepted: "), "{line:?}");
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    assert!(!message.is_empty());
    Judged::Refused
}
