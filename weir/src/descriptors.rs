//! File descriptors: the process reserves what the data path and the API may need, and clients get the rest.
//!
//! A process without free descriptors cannot reach its devices any more, even if clients have taken them. So
//! before anything is served, this module computes how many clients there can be. No more are let in,
//! whatever the configuration says.

use std::thread::available_parallelism;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_gateway::{GatewaySpec, Limits};

use crate::config::{BackendConfig, Config};
use crate::failure::Failure;

/// Standard streams, runtime, signals, the log, look-ups of names, and a reserve.
const OF_THE_PROCESS: u64 = 64;
/// Reactor, runtime, timer and events of a thread that serves pools.
const OF_A_SHARD: u64 = 16;
/// A file: one for direct and one for other requests, its lock, and one more while it is opened.
const OF_A_FILE: u64 = 4;
/// The recording of a pool, and its link to a controller.
const OF_A_POOL: u64 = 4;
/// The least number of clients. With fewer, serving makes no sense.
const LEAST_CLIENTS: u64 = 8;

/// Raises the limit on open files as far as it goes. (The usual limit is 1,024, a leftover from `select(2)`.)
/// Returns `spec` with as many clients as the limit leaves descriptors for. If these are fewer than `spec`
/// says, it logs that.
///
/// # Errors
/// If the limit leaves no room for clients at all.
pub(crate) fn fit(config: &Config, mut spec: GatewaySpec) -> Result<GatewaySpec, Failure> {
    raise();
    let Some(open_files) = getrlimit(Resource::Nofile).current else { return Ok(spec) };
    let reserved = reserved(config, available_parallelism().map_or(1, usize::from));
    let found = spec.limits;
    let needed = reserved + u64::from(found.connections) + u64::from(found.handshakes);
    let Some(fitting) = fitting(found, open_files.saturating_sub(reserved)) else {
        return Err(Failure::usage(format!(
            "the limit on open files: found {open_files}, of which volumes, listeners and threads need {reserved}; \
             accepted: at least {needed} for limits.connections and limits.handshakes, or at least {}",
            reserved + LEAST_CLIENTS
        )));
    };
    if fitting != found {
        tracing::warn!(
            open_files,
            reserved,
            connections = fitting.connections,
            handshakes = fitting.handshakes,
            "the limit on open files is too small for limits.connections = {} and limits.handshakes = {}: fewer are accepted; \
             raise it to {needed} (LimitNOFILE= of systemd, ulimit -Hn), or lower these",
            found.connections,
            found.handshakes
        );
    }
    spec.limits = fitting;
    Ok(spec)
}

/// Raises the limit on open files as far as it goes.
pub(crate) fn raise() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        // No peer: once, at the start.
        tracing::warn!(%error, "cannot raise the limit on open files");
    }
}

/// The descriptors that are not for clients. Volumes count twice: a reload opens new ones while the old ones
/// still have to finish.
fn reserved(config: &Config, cores: usize) -> u64 {
    let of_volume = |volume: &crate::config::Volume| match &volume.backend.value {
        BackendConfig::File(_) | BackendConfig::Array(..) => OF_A_FILE,
        BackendConfig::Memory | BackendConfig::Station(_) => 0,
        BackendConfig::Upstream(_) => u64::from(volume.connections.value.get()) + 1,
    };
    let volumes: u64 = config.volumes.values().map(of_volume).sum();
    let (pools, shards) = (config.pools.len() as u64, config.pools.len().min(cores) as u64);
    let apis = [config.listen.metrics.value.is_some(), config.listen.control.value.is_some()];
    let api = (u64::from(config.limits.api_connections.value.get()) + 1)
        * apis.into_iter().filter(|served| *served).count() as u64;
    let listeners = config.listen.nbd.len() as u64;
    OF_THE_PROCESS + shards * OF_A_SHARD + pools * OF_A_POOL + listeners + api + 2 * volumes
}

/// The limits that this number of descriptors allows; `None` if it is too small for any client.
fn fitting(found: Limits, descriptors: u64) -> Option<Limits> {
    if u64::from(found.connections) + u64::from(found.handshakes) <= descriptors {
        return Some(found);
    }
    if descriptors < LEAST_CLIENTS {
        return None;
    }
    // It is below the sum of two `u32`.
    let descriptors = u32::try_from(descriptors).unwrap_or(u32::MAX);
    let handshakes = found.handshakes.min(descriptors / 4);
    let connections = found.connections.min(descriptors - handshakes);
    let share = connections - connections / 4;
    Some(Limits {
        connections,
        handshakes,
        connections_per_address: found.connections_per_address.min(share),
        connections_per_volume: found.connections_per_volume.min(share),
        ..found
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::compose::gateway_spec;

    const FILE: &str = "[listen]\nnbd = [\"127.0.0.1:0\"]\nmetrics = \"127.0.0.1:0\"\n[pool.p]\n
        [volume.v]\npool = \"p\"\nbackend = \"file:/v\"\n
        [volume.u]\npool = \"p\"\nbackend = \"nbd://host/u\"\nconnections = 8\n";

    fn config() -> Config {
        Config::parse(Path::new("weir.toml"), FILE).unwrap()
    }

    #[test]
    fn what_the_data_path_and_the_api_may_need_is_reserved() {
        // One thread, one pool, a listener, 32 scrapers and their listener, and twice a file and a server
        // with 8 connections.
        assert_eq!(reserved(&config(), 4), 64 + 16 + 4 + 1 + 33 + 2 * (4 + 9));
    }

    #[test]
    fn a_limit_on_open_files_that_is_too_small_lowers_what_is_accepted_and_not_what_is_reserved() {
        let found = gateway_spec(&config()).limits;
        assert_eq!(fitting(found, 10_500 + 1024), Some(found));
        let fewer = fitting(found, 800).unwrap();
        assert_eq!((fewer.connections, fewer.handshakes), (600, 200));
        assert_eq!((fewer.connections_per_address, fewer.connections_per_volume), (450, 450));
        assert_eq!(fitting(found, 7), None);
    }

    #[test]
    fn the_defaults_of_the_api_are_those_of_the_file() {
        assert_eq!(crate::compose::api_limits(&config()), weir_api::ApiLimits::DEFAULT);
    }
}
