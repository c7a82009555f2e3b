//! The operator's texts, for a fuzzer to try: the text of a configuration file, and the values of `weir set`.
//!
//! This is a hole in the wall of the program, as narrow as possible: text in, verdict out. The checks need to
//! know what a configuration is, so they are made here.

use std::collections::BTreeSet;
use std::path::Path;

use weir_api::Change;

use crate::config::{
    Config, NodeConfig, Source, TransfersConfig, check_report, controller_report, throttle_report,
    transfers_report,
};

/// The verdict on a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judged {
    /// It is the file of a gateway.
    Gateway,
    /// It is the file of a controller.
    Controller,
    /// It is the file of a packet-delay agent.
    Agent,
    /// It is the file of a coordinator of transfers.
    Coordinator,
    /// It was refused, with a line for each problem.
    Refused,
}

/// Reads `text` as `weir check` does, and returns the verdict.
///
/// # Panics
/// If a refusal does not have a line for each problem, or if one more comment changes the verdict.
pub fn configuration(text: &str) -> Judged {
    let source = Source::of(Path::new("weir.toml"), text.to_owned());
    if source.is_of_controller() {
        return match source.controller() {
            Ok(config) => {
                assert!(!controller_report(&config).to_string().is_empty());
                Judged::Controller
            }
            Err(error) => refused(&error.to_string()),
        };
    }
    if source.is_of_throttle() {
        return match source.throttle() {
            Ok(config) => {
                assert!(!throttle_report(&config).to_string().is_empty());
                assert_eq!(config.settings().check(), Ok(()));
                Judged::Agent
            }
            Err(error) => refused(&error.to_string()),
        };
    }
    if source.is_of_transfers() {
        return match source.transfers() {
            Ok(config) => {
                assert!(transfers_report(&config).to_string().contains("transfers.policy"));
                assert!(is_a_coordinators(&config), "{config:?}");
                let commented = Source::of(Path::new("weir.toml"), format!("{text}\n# a comment\n"));
                assert_eq!(commented.transfers().ok().as_ref(), Some(&config), "a comment is no change");
                Judged::Coordinator
            }
            Err(error) => refused(&error.to_string()),
        };
    }
    match source.config() {
        Ok(config) => {
            assert!(!check_report(&config).to_string().is_empty());
            assert!(!config.volumes.is_empty() && is_within_limits(&config));
            let again = Config::parse(Path::new("weir.toml"), &format!("{text}\n# a comment\n"));
            assert_eq!(again.ok().as_ref(), Some(&config), "a comment is no change");
            Judged::Gateway
        }
        Err(error) => refused(&error.to_string()),
    }
}

/// Sets keys of the table `[table.name]` in a file `text`, as `weir set` does. Returns the verdict; `None` if
/// the file itself is refused.
///
/// # Panics
/// If a refusal does not have a line for each problem, or an accepted change cannot be taken back.
pub fn change(text: &str, table: &str, name: &str, set: &[(String, String)]) -> Option<Judged> {
    let source = Source::of(Path::new("weir.toml"), text.to_owned());
    let before = source.config().ok()?;
    let change = Change { table: table.to_owned(), name: name.to_owned(), set: set.to_vec() };
    let changed = source.with(&[change]).and_then(|changed| Ok((changed.config()?, changed)));
    Some(match changed {
        Ok((config, _)) => {
            assert!(is_within_limits(&config), "what is set obeys what holds for a file");
            assert_eq!(source.config().ok(), Some(before), "the file is as it was");
            Judged::Gateway
        }
        Err(error) => refused(&error.to_string()),
    })
}

/// The rules of docs/config.md for `[limits]`, written down a second time.
fn is_within_limits(config: &Config) -> bool {
    let limits = &config.limits;
    let (one, all) = (limits.bytes_per_connection.value.as_u64(), limits.bytes_in_flight.value.as_u64());
    let is_name = |name: &String| (1..=255).contains(&name.len()) && name.is_ascii();
    (32 << 20..=1 << 40).contains(&one)
        && (one..=1 << 40).contains(&all)
        && limits.connections.value.get() <= 1_000_000
        && config.volumes.keys().chain(config.pools.keys()).all(is_name)
}

/// The rules of docs/transfers.md, written down a second time.
fn is_a_coordinators(config: &TransfersConfig) -> bool {
    let is_name = |name: &str| (1..=255).contains(&name.len()) && name.is_ascii();
    let classes: BTreeSet<&str> = config.classes.iter().map(|class| &*class.value).collect();
    let schemes = ["file://", "s3://", "webdav://", "webdavs://", "sftp://"];
    let is_node = |node: &NodeConfig| {
        schemes.iter().any(|scheme| node.url.value.to_string().starts_with(scheme))
            && node.class.value.is_none_or(|class| classes.contains(config.class_name(class)))
            && node.cost.value <= 1_000_000
            && is_name(&node.domain.value)
    };
    (1..=1000).contains(&config.nodes.len())
        && config.nodes.keys().all(|name| is_name(name))
        && config.nodes.values().all(is_node)
        && (1..=16).contains(&config.classes.len())
        && classes.len() == config.classes.len()
        && classes.iter().all(|class| is_name(class))
        && config.state.value.is_absolute()
        && config.tls.is_some() == config.address.value.is_some()
}

/// Checks that every problem is a line, says what is accepted, and repeats only a part of the value.
fn refused(message: &str) -> Judged {
    for line in message.lines() {
        assert!(line.contains("found ") && line.contains("; accepted: "), "{line:?}");
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    assert!(!message.is_empty());
    Judged::Refused
}
