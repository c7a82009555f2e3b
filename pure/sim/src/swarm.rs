//! Random small scenarios: they find the cases that nobody would write a test for.
//!
//! One seed in four gives a whole cluster ([`crate::cluster`]), one in eight an iSCSI target under the
//! throttle ([`crate::iscsi::swarm`]), and one in eight storage nodes with transfers
//! ([`crate::transfers::swarm`]). Each other seed gives a pool, an array, one to eight volumes, loads,
//! promises, limits and faults. Its volumes may be behind several gateways. All are drawn so that bounds are
//! met often: windows of a few control periods, deadlines shorter than a stall, depths of one. The swarm has
//! no rules of its own: the checkers of every run know what must hold ([`crate::Violation`]).
//!
//! A scenario is small, so that many fit into a minute. Many seeds find rare combinations; long runs do not.

mod arrays;
mod loads;
mod mishaps;

use std::num::NonZeroU32;

use rand::RngExt;
use weir_engine::{
    Control, DepthFeedbackConfig, EngineConfig, MaestroConfig, OneSidedPidConfig, PidConfig, TotalConcurrency,
};
use weir_model::{Bandwidth, QueueDepth, Span, TimeShare};

use crate::check::Violation;
use crate::cluster;
use crate::iscsi;
use crate::random::{Prng, Seed};
use crate::scenario::Scenario;
use crate::transfers;
use crate::world::{Observer, Outcome, Spread, World};

/// One seed in this many is a whole cluster.
const CLUSTERS: u64 = 4;
/// One seed in this many is an iSCSI target, from the second on, and one is storage nodes, from the sixth on.
/// The others are one pool.
const OTHERS: u64 = 8;

/// Runs the scenario of a seed: a cluster ([`crate::cluster`]), an iSCSI target ([`iscsi`]), storage nodes
/// ([`transfers`]) or a pool.
///
/// # Errors
/// If a rule is broken that must hold in every run. The run stops there.
pub fn run(seed: u64, observer: &mut dyn Observer) -> Result<Outcome, Violation> {
    if seed.is_multiple_of(CLUSTERS) {
        cluster::run(&cluster::scenario(seed), observer)
    } else if seed % OTHERS == 2 {
        iscsi::swarm::run(seed)
    } else if seed % OTHERS == 6 {
        transfers::swarm::run(seed)
    } else {
        world(seed).run(observer)
    }
}

/// The scenario of a seed's pool. A seed always gives the same scenario.
pub fn scenario(seed: u64) -> Scenario {
    let stream = |name: &str| Seed(seed).stream(&format!("swarm/{name}"));
    let duration = span(&mut stream("duration"), 300, 2_000);
    let array = arrays::draw(&mut stream("array"));
    let volumes = loads::volumes(&mut stream("volumes"), duration, array.size());
    let faults = mishaps::draw(&mut stream("faults"), duration, &array, volumes.len());
    Scenario { seed, duration, engine: engine(&mut stream("engine")), array, volumes, faults }
}

/// The run of a seed's pool, by its scenario. Some volumes are loaded by a made-up trace, with requests of
/// every kind.
pub fn world(seed: u64) -> World {
    let scenario = scenario(seed);
    let mut random = Seed(seed).stream("swarm/recordings");
    let (duration, volumes, control) = (scenario.duration, scenario.volumes.len(), scenario.engine.control);
    let mut world = World::new(scenario);
    if control == Control::SharedPromise {
        world.spread(spread(&mut Seed(seed).stream("swarm/gateways"), volumes));
    }
    for volume in (0..volumes).filter(|_| random.random_bool(0.2)).collect::<Vec<_>>() {
        world.replay(volume, Box::new(loads::recording(&mut random, duration).into_iter()));
    }
    world
}

/// The configuration of the pool's engine.
fn engine(random: &mut Prng) -> EngineConfig {
    let law = DepthFeedbackConfig {
        period: span(random, 5, 100),
        growth: random.random_range(0.01..1.0),
        initial_depth: QueueDepth::new(random.random_range(1..=64)),
        max_depth: QueueDepth::new(random.random_range(1..=256)),
    };
    let control = match random.random_range(0..13) {
        0 => Control::None,
        1..6 => Control::Facade(law),
        6 => Control::Pid(pid(random)),
        7 | 8 => Control::Promise,
        9 => Control::SharedPromise,
        _ => Control::Maestro(MaestroConfig {
            interval: span(random, 20, 200),
            total: match NonZeroU32::new(random.random_range(0..64)) {
                Some(total) => TotalConcurrency::Fixed(total),
                None => TotalConcurrency::Auto,
            },
        }),
    };
    let background_share = match random.random_range(0..4) {
        0 => TimeShare::ZERO,
        1 => TimeShare::PERCENT,
        2 => TimeShare::MAX,
        _ => TimeShare::from_millionths(random.random_range(1..=500_000)).expect("at most a half"),
    };
    EngineConfig { control, slo_window: span(random, 20, 500), background_share, ..EngineConfig::default() }
}

/// Volumes behind up to three gateways. Some of these are so far apart that they hear nothing of one another.
fn spread(random: &mut Prng, volumes: usize) -> Spread {
    let gateways = random.random_range(1..=3);
    let apart = if random.random_bool(0.2) { Span::from_secs(10) } else { span(random, 1, 200) };
    Spread { gateways: (0..volumes).map(|_| random.random_range(0..gateways)).collect(), apart }
}

/// The one-sided PID with any gains. Thresholds are short and limits low, so that replies are held often.
fn pid(random: &mut Prng) -> PidConfig {
    let law = OneSidedPidConfig {
        period: span(random, 10, 249),
        proportional_gain: random.random_range(0.01..5.0),
        integral_time: span(random, 1, 1_000),
        derivative_time: if random.random_bool(0.5) { Span::ZERO } else { span(random, 1, 100) },
        smoothing: if random.random_bool(0.2) { Span::ZERO } else { span(random, 1, 500) },
        setpoint_share: random.random_range(0.5..=1.0),
        ceiling: Span::from_micros(500 * random.random_range(1..=200)),
    };
    let write_limit = Bandwidth::new(random.random_range(1..=1 << 20)).expect("above zero");
    PidConfig { law, threshold: span(random, 1, 10), write_limit }
}

/// A span between `from_ms` and `to_ms` milliseconds, to the nanosecond, so that instants seldom coincide.
/// But one span in four is a whole number of milliseconds, so that some instants do.
fn span(random: &mut Prng, from_ms: u64, to_ms: u64) -> Span {
    if random.random_bool(0.25) {
        return Span::from_millis(random.random_range(from_ms..=to_ms));
    }
    Span::from_nanos(random.random_range(from_ms * 1_000_000..=to_ms * 1_000_000))
}

fn pick<T: Clone>(random: &mut Prng, from: &[T]) -> T {
    from[random.random_range(0..from.len())].clone()
}

#[cfg(test)]
mod tests;
