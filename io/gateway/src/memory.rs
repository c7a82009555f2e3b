//! How the memory of a gateway is divided among its threads, and how much memory a gateway needs at least.
//!
//! A volume with a promise owns room for the largest request (32 MiB) on the thread of its pool. Each thread
//! needs room for one more such request, which its volumes share. Only the rest is divided equally, so a
//! thread with many promises gets more. A thread divides its part among its volumes in `budget.rs`. Example:
//! 1 GiB, two threads, and three volumes with a promise, all on the first thread. Of the 928 MiB that are
//! left, each thread gets 464 MiB; the first has 560 MiB in all.

use weir_engine::{Control, VolumeConfig};

use crate::budget::LARGEST;
use crate::error::GatewayError;
use crate::spec::GatewaySpec;

/// Whether the volume has a promise, and so owns memory that other volumes cannot use up. A gateway does not
/// learn what the controller of an array promises. So each volume of a leased pool counts as promised.
pub(crate) fn is_promised(control: &Control, volume: &VolumeConfig) -> bool {
    volume.slo.is_some() || volume.objective.target.is_some() || matches!(control, Control::Leased(_))
}

/// How many volumes have a promise.
fn promises(spec: &GatewaySpec) -> u64 {
    spec.pools.keys().map(|pool| promises_of(spec, pool)).sum()
}

fn promises_of(spec: &GatewaySpec, pool: &str) -> u64 {
    let Some(pool) = spec.pools.get(pool) else { return 0 };
    let volumes = pool.volumes.values();
    volumes.filter(|volume| is_promised(&pool.engine.control, &volume.config)).count() as u64
}

/// How many threads the memory is enough for.
pub(crate) fn most_shards(spec: &GatewaySpec) -> usize {
    let requests = spec.limits.bytes_in_flight / LARGEST;
    usize::try_from(requests.saturating_sub(promises(spec))).unwrap_or(usize::MAX)
}

/// Checks that the memory is enough for the promises and for the needs of `shards` threads.
pub(crate) fn check(spec: &GatewaySpec, shards: usize) -> Result<(), GatewayError> {
    let (bytes, promised) = (spec.limits.bytes_in_flight, promises(spec));
    let least = (promised + shards as u64).saturating_mul(LARGEST);
    if bytes < least { Err(GatewayError::Memory { bytes, promised, shards, least }) } else { Ok(()) }
}

/// The bytes that the requests of one of `shards` threads may hold, which serves these pools.
pub(crate) fn share<'a>(spec: &GatewaySpec, shards: usize, pools: impl Iterator<Item = &'a str>) -> u64 {
    let own = pools.map(|pool| promises_of(spec, pool)).sum::<u64>() * LARGEST;
    let rest = spec.limits.bytes_in_flight.saturating_sub(promises(spec) * LARGEST);
    own + rest / shards.max(1) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_backend::BackendSpec;
    use weir_engine::EngineConfig;
    use weir_model::{Iops, Slo, SloGoal, SloPoint, Span};

    use super::*;
    use crate::spec::{Limits, PoolSpec, VolumeSpec};

    /// A spec with a pool for each number: that many volumes with an SLO, and one without.
    fn spec(bytes_in_flight: u64, promised: &[usize]) -> GatewaySpec {
        let ms = Span::from_millis(5);
        let up_to = Iops::new(1.0).unwrap();
        let slo = Slo::new(vec![SloPoint { up_to, read: ms, write: ms }]).ok();
        let volume = |slo| VolumeSpec {
            description: String::new(),
            backend: BackendSpec::Memory,
            size: Some(1 << 20),
            config: VolumeConfig { slo, ..VolumeConfig::default() },
            goal: SloGoal::default(),
            faults: Vec::new(),
        };
        let pool = |(number, promised): (usize, &usize)| {
            let with = (0..*promised).map(|i| (format!("p{number}-{i}"), volume(slo.clone())));
            let volumes = with.chain([(format!("q{number}"), volume(None))]).collect();
            let pool = PoolSpec { engine: EngineConfig::default(), ports: Vec::new(), volumes };
            (format!("pool{number}"), pool)
        };
        let second = Span::from_secs(1);
        let limits = Limits {
            connections: 1,
            handshakes: 1,
            connections_per_address: 1,
            connections_per_volume: 1,
            connections_kept: 1,
            handshake_timeout: second,
            requests_per_connection: 1,
            bytes_per_connection: LARGEST,
            bytes_in_flight,
            reply_timeout: second,
            shutdown_timeout: second,
        };
        GatewaySpec { pools: promised.iter().enumerate().map(pool).collect::<BTreeMap<_, _>>(), limits }
    }

    #[test]
    fn there_is_room_for_each_promise_and_for_one_request_more_on_each_thread() {
        let spec = spec(6 * LARGEST, &[3, 1]);
        assert_eq!(most_shards(&spec), 2);
        assert!(check(&spec, 2).is_ok());
        let refused = check(&spec, 3).unwrap_err().to_string();
        assert!(refused.contains("accepted: at least 234881024 bytes"), "{refused}");
    }

    #[test]
    fn a_thread_gets_what_its_volumes_own_and_an_equal_part_of_the_rest() {
        let spec = spec(10 * LARGEST, &[3, 1]);
        assert_eq!(share(&spec, 2, ["pool0"].into_iter()), 6 * LARGEST);
        assert_eq!(share(&spec, 2, ["pool1"].into_iter()), 4 * LARGEST);
        assert_eq!(share(&spec, 1, ["pool0", "pool1"].into_iter()), 10 * LARGEST);
    }
}
