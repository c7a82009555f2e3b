//! The targets: a file for each reader of outside data.

mod bytes;
mod cluster;
mod configuration;
mod engine;
mod nbd_client;
mod nbd_server;
mod node_sensor;
mod recording;
mod scheduler;
mod sensors;
mod trace;
mod transfers_file;

use crate::script::Script;
use crate::seen::Seen;

/// A function that runs a script, with its seeds and its language.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also of its folder in `found/`.
    pub name: &'static str,
    /// Runs a script. Panics if anything is wrong.
    pub run: fn(&Script, &mut Seen),
    /// Scripts to begin with: the messages of well-behaved peers.
    pub seeds: fn() -> Vec<Script>,
    /// Words of its language.
    pub words: &'static [&'static [u8]],
    /// States that the seeds must reach. The mutated scripts must reach three quarters of them; otherwise
    /// they do not get past the first check.
    pub must_reach: &'static [&'static str],
}

/// All targets.
pub const ALL: [Target; 11] = [
    nbd_server::TARGET,
    nbd_client::TARGET,
    engine::TARGET,
    scheduler::TARGET,
    configuration::TARGET,
    transfers_file::TARGET,
    cluster::TARGET,
    recording::TARGET,
    trace::TARGET,
    sensors::TARGET,
    node_sensor::TARGET,
];

/// The target of this name.
pub fn by_name(name: &str) -> Option<&'static Target> {
    const TARGETS: &[Target] = &ALL;
    TARGETS.iter().find(|target| target.name == name)
}
