//! The targets: a file for each thing that reads what somebody outside has written.

mod bytes;
mod cluster;
mod configuration;
mod engine;
mod nbd_client;
mod nbd_server;
mod recording;
mod scheduler;
mod trace;

use crate::script::Script;
use crate::seen::Seen;

/// Something that is told what outsiders say.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also of its folder in `found/`.
    pub name: &'static str,
    /// Tells it a script. It panics if anything is wrong.
    pub run: fn(&Script, &mut Seen),
    /// Scripts to begin with: what well-behaved peers say.
    pub seeds: fn() -> Vec<Script>,
    /// Words of its language.
    pub words: &'static [&'static [u8]],
    /// States that the seeds reach, and that most mutations of them must reach too, or they do not get past
    /// the first check.
    pub must_reach: &'static [&'static str],
}

/// All of them.
pub const ALL: [Target; 8] = [
    nbd_server::TARGET,
    nbd_client::TARGET,
    engine::TARGET,
    scheduler::TARGET,
    configuration::TARGET,
    cluster::TARGET,
    recording::TARGET,
    trace::TARGET,
];

/// The target of this name.
pub fn by_name(name: &str) -> Option<&'static Target> {
    const TARGETS: &[Target] = &ALL;
    TARGETS.iter().find(|target| target.name == name)
}
