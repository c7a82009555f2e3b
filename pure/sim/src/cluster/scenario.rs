//! A cluster and its faults, drawn from a seed.
//!
//! All faults begin in the first half of a run. In the second half, the cluster has to get over them, and the
//! checkers watch that, too.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use rand::RngExt;
use weir_control::Limits;
use weir_control::TotalConcurrency;
use weir_leases::{ControllerConfig, VolumeConfig};
use weir_model::{Bandwidth, Iops, Objective, Priority, Span, Target};

use super::clock::{Clock, MOST_DRIFT};
use super::link::Weather;
use crate::random::{Prng, Seed};
use crate::station::StationOptions;

/// How many control intervals a run has.
const INTERVALS: u64 = 60;
/// In how many of them, from the first on, a fault may begin.
const TROUBLED: u64 = 30;

/// A cluster and its faults.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusterScenario {
    /// The seed of all random draws.
    pub seed: u64,
    /// How long the run is.
    pub duration: Span,
    /// The controller's configuration.
    pub controller: ControllerConfig,
    /// The volumes, by name.
    pub volumes: BTreeMap<String, VolumeConfig>,
    /// The array that all gateways share. Its time for a request is constant.
    pub array: StationOptions,
    /// The gateways, in the order of their names in the controller's configuration.
    pub gateways: Vec<GatewayScenario>,
    /// The clock of the controller's machine.
    pub clock: Clock,
    /// How messages travel while there is no fault.
    pub weather: Weather,
    /// The longest time that a gateway needs to put received terms in force at its engine.
    pub handover: Span,
    /// The faults, and when they begin.
    pub faults: Vec<(Span, ClusterFault)>,
}

/// A gateway.
#[derive(Clone, PartialEq, Debug)]
pub struct GatewayScenario {
    /// The clock of its machine.
    pub clock: Clock,
    /// Its volumes: the name, and how many requests the clients keep outstanding.
    pub volumes: Vec<(String, u32)>,
}

/// A fault, or a change of the load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ClusterFault {
    /// A gateway does nothing for this long, and remembers everything.
    GatewayPauses(usize, Span),
    /// A gateway dies, and is started again after this time.
    GatewayCrashes(usize, Span),
    /// The same of the controller.
    ControllerPauses(Span),
    /// The same of the controller.
    ControllerCrashes(Span),
    /// Nothing gets through between a gateway and the controller for this long.
    LinkCut(usize, Span),
    /// The messages of a gateway travel by this weather for this long.
    FoulWeather(usize, Span, Weather),
    /// From now on, the clients of a gateway's volume keep this many requests outstanding. The numbers are
    /// the gateway, the index of the volume there, and the requests.
    Load(usize, usize, u32),
}

impl ClusterFault {
    /// How long it lasts.
    pub(super) const fn lasts(&self) -> Span {
        match self {
            Self::GatewayPauses(_, span)
            | Self::GatewayCrashes(_, span)
            | Self::ControllerPauses(span)
            | Self::ControllerCrashes(span)
            | Self::LinkCut(_, span)
            | Self::FoulWeather(_, span, _) => *span,
            Self::Load(..) => Span::ZERO,
        }
    }
}

/// The cluster of a seed. A seed always gives the same cluster.
pub fn scenario(seed: u64) -> ClusterScenario {
    let random = &mut Seed(seed).stream("cluster/scenario");
    let interval = Span::from_millis(random.random_range(100..=2_000));
    let volumes = volumes(random);
    let gateways: Vec<_> = (0..random.random_range(2..=4)).map(|_| gateway(random, &volumes)).collect();
    let names: Vec<_> = (0..gateways.len()).map(|n| format!("gateway{n}")).collect();
    let least = u32::try_from(gateways.len() * volumes.len()).expect("at most twelve");
    let total = NonZeroU32::new(random.random_range(least..=64)).expect("above zero");
    let controller = ControllerConfig { total: TotalConcurrency::Fixed(total), interval, gateways: names };
    let array = StationOptions {
        servers: NonZeroU32::new(random.random_range(4..=12)).expect("above zero"),
        service_time: part(random, interval, 10, 60),
        exponential: false,
    };
    let weather = Weather {
        delay: Span::from_nanos(random.random_range(0..200_000)),
        jitter: Span::from_nanos(random.random_range(0..interval.as_nanos() / 20)),
        lost: 0.0,
        repeated: 0.0,
        reordered: 0.0,
    };
    let handover = Span::from_nanos(random.random_range(0..interval.as_nanos() / 20));
    let mut faults: Vec<_> =
        (0..random.random_range(0..=12)).map(|_| fault(random, interval, &gateways)).collect();
    faults.sort_by_key(|(at, _)| *at);
    ClusterScenario {
        seed,
        duration: interval.saturating_mul(INTERVALS),
        controller,
        volumes,
        array,
        gateways,
        clock: clock(random),
        weather,
        handover,
        faults,
    }
}

fn clock(random: &mut Prng) -> Clock {
    let offset = Span::from_nanos(random.random_range(0..1_000_000_000_000_000));
    Clock { offset, drift: random.random_range(-MOST_DRIFT..=MOST_DRIFT) }
}

/// Between 1/`most` and 1/`least` of a span.
fn part(random: &mut Prng, of: Span, least: u64, most: u64) -> Span {
    Span::from_nanos(random.random_range(of.as_nanos() / most..=of.as_nanos() / least))
}

fn gateway(random: &mut Prng, volumes: &BTreeMap<String, VolumeConfig>) -> GatewayScenario {
    let all = random.random_bool(0.7);
    let mut served: Vec<_> = volumes.keys().filter(|_| all || random.random_bool(0.6)).cloned().collect();
    if served.is_empty() {
        served.extend(volumes.keys().next().cloned());
    }
    let volumes = served.into_iter().map(|name| (name, load(random))).collect();
    GatewayScenario { clock: clock(random), volumes }
}

fn load(random: &mut Prng) -> u32 {
    match random.random_range(0..4) {
        0 => 0,
        1 => random.random_range(1..=4),
        _ => random.random_range(5..=80),
    }
}

fn volumes(random: &mut Prng) -> BTreeMap<String, VolumeConfig> {
    (0..random.random_range(1..=3)).map(|n| (format!("volume{n}"), volume(random))).collect()
}

fn volume(random: &mut Prng) -> VolumeConfig {
    let target = match random.random_range(0..4) {
        0 => Some(Target::Latency(Span::from_millis(random.random_range(1..500)))),
        1 => Iops::new(random.random_range(1.0..500.0)).map(Target::Rate),
        2 => Bandwidth::new(random.random_range(4_096..4_000_000)).map(Target::Throughput),
        _ => None,
    };
    let priority = Priority::new(random.random_range(0.1..10.0)).expect("above zero");
    let limits = Limits {
        // At least one for each gateway.
        concurrency: random.random_bool(0.2).then(|| NonZeroU32::new(random.random_range(4..=32))).flatten(),
        max_iops: random.random_bool(0.2).then(|| Iops::new(random.random_range(50.0..1_000.0))).flatten(),
        max_bandwidth: random
            .random_bool(0.2)
            .then(|| Bandwidth::new(random.random_range(400_000..4_000_000)))
            .flatten(),
    };
    VolumeConfig { objective: Objective { target, priority }, limits }
}

fn fault(random: &mut Prng, interval: Span, gateways: &[GatewayScenario]) -> (Span, ClusterFault) {
    let troubled = interval.as_nanos() * TROUBLED;
    let at = Span::from_nanos(random.random_range(0..troubled));
    let gateway = random.random_range(0..gateways.len());
    // A short fault ends before any timer is due. A long one outlasts a lease, or the time that follows it.
    let most = interval.saturating_mul(if random.random_bool(0.4) { 1 } else { 12 });
    let span = Span::from_nanos(random.random_range(0..=most.as_nanos()));
    let what = match random.random_range(0..8) {
        0 => ClusterFault::GatewayPauses(gateway, span),
        1 => ClusterFault::GatewayCrashes(gateway, span),
        2 => ClusterFault::ControllerPauses(span),
        3 => ClusterFault::ControllerCrashes(span),
        4 => ClusterFault::LinkCut(gateway, span),
        5 | 6 => ClusterFault::FoulWeather(gateway, span, foul(random, interval)),
        _ => {
            let volume = random.random_range(0..gateways[gateway].volumes.len());
            ClusterFault::Load(gateway, volume, load(random))
        }
    };
    (at, what)
}

fn foul(random: &mut Prng, interval: Span) -> Weather {
    let mut likely = || if random.random_bool(0.5) { 0.0 } else { random.random_range(0.0..0.6) };
    let (lost, repeated, reordered) = (likely(), likely(), likely());
    Weather {
        delay: Span::from_nanos(random.random_range(0..interval.as_nanos() / 2)),
        jitter: Span::from_nanos(random.random_range(0..interval.as_nanos() * 4)),
        lost,
        repeated,
        reordered,
    }
}
