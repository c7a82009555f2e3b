//! One run of a cell: one or two volumes on an array.

use std::collections::BTreeMap;

use weir_engine::{Control, EngineConfig, Event, VolumeConfig};
use weir_model::{Instant, IoKind, Span, VolumeId};
use weir_sim::{
    Fault, FaultKind, MemberOptions, Observer, Scenario, Spread, Utilisation, VolumeScenario, World,
};

use super::load::Load;
use super::matrix::ArrayCase;
use super::promise::{LASTS, Request};

/// How long their requests may take after that. One that is not answered then counts with its age.
const DRAIN: Span = Span::from_secs(60);

/// A volume of a run. Each lies in a half of the array of its own.
pub(super) struct Volume<'a> {
    /// The name of its random streams: alone or beside another, it asks for the same.
    pub(super) name: &'static str,
    /// Which gateway its clients are behind, from zero.
    pub(super) gateway: usize,
    pub(super) half: u64,
    pub(super) load: &'a Load,
    /// Where a recording begins, as a part of its length.
    pub(super) from: f64,
    pub(super) config: VolumeConfig,
}

/// The requests of each volume, in the order in which they came.
pub(super) type Requests = Vec<Vec<Request>>;

/// What a law decided, each time with the instant after the start.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Decisions {
    /// How many requests may be at the array.
    pub(super) depth: Vec<(Span, u32)>,
    /// How many of each volume may be there.
    pub(super) bounds: Vec<Vec<(Span, u32)>>,
}

/// All that is known after a run.
struct Known {
    requests: Requests,
    decisions: Decisions,
    utilisation: Utilisation,
}

/// Runs the volumes, and waits for their last requests.
///
/// # Errors
/// If the array cannot be made, or the run breaks a rule that holds for every run.
pub(super) fn run(
    array: &ArrayCase,
    engine: EngineConfig,
    seed: u64,
    volumes: &[Volume<'_>],
) -> anyhow::Result<Requests> {
    run_apart(array, engine, seed, volumes, Span::ZERO)
}

/// The same with several gateways. A message takes as long from one to another as they are `apart`.
///
/// # Errors
/// As [`run`].
pub(super) fn run_apart(
    array: &ArrayCase,
    engine: EngineConfig,
    seed: u64,
    volumes: &[Volume<'_>],
    apart: Span,
) -> anyhow::Result<Requests> {
    Ok(until(array, engine, seed, volumes, apart, LASTS + DRAIN)?.requests)
}

/// The same, with what the law decided.
///
/// # Errors
/// As [`run`].
pub(super) fn run_watched(
    array: &ArrayCase,
    engine: EngineConfig,
    seed: u64,
    volumes: &[Volume<'_>],
) -> anyhow::Result<(Requests, Decisions)> {
    let known = until(array, engine, seed, volumes, Span::ZERO, LASTS + DRAIN)?;
    Ok((known.requests, known.decisions))
}

/// How busy the array is with one volume and no law, while its clients ask; and how many requests came.
///
/// # Errors
/// As [`run`].
pub(super) fn busy(array: &ArrayCase, volume: Volume<'_>) -> anyhow::Result<(f64, usize)> {
    let engine = EngineConfig { control: Control::None, ..EngineConfig::default() };
    let Known { requests, utilisation, .. } = until(array, engine, 1, &[volume], Span::ZERO, LASTS)?;
    Ok((utilisation.members.max(utilisation.port), requests[0].len()))
}

fn until(
    array: &ArrayCase,
    engine: EngineConfig,
    seed: u64,
    volumes: &[Volume<'_>],
    apart: Span,
    duration: Span,
) -> anyhow::Result<Known> {
    let mut options = array.spec.options()?;
    for unit in &mut options.units {
        if let MemberOptions::Ssd(ssd) = &mut unit.member {
            ssd.full = array.full;
        }
    }
    let half = options.size() / 2;
    let scenario = Scenario {
        seed,
        duration,
        engine,
        array: options,
        volumes: volumes.iter().map(|volume| described(volume, half)).collect(),
        faults: faults(array),
    };
    scenario.check()?;
    let mut world = World::new(scenario);
    for (place, volume) in volumes.iter().enumerate() {
        if let Some(trace) = volume.load.trace(volume.from, LASTS) {
            world.replay(place, trace);
        }
    }
    world.spread(Spread { gateways: volumes.iter().map(|volume| volume.gateway).collect(), apart });
    let decisions = Decisions { bounds: vec![Vec::new(); volumes.len()], ..Decisions::default() };
    let mut account = Account { volumes: volumes.iter().map(|_| OfVolume::default()).collect(), decisions };
    let outcome = world.run(&mut account)?;
    let requests = account.volumes.into_iter().map(|volume| volume.at_end(Instant::ORIGIN + duration));
    Ok(Known { requests: requests.collect(), decisions: account.decisions, utilisation: outcome.utilisation })
}

fn faults(array: &ArrayCase) -> Vec<Fault> {
    let fails = array.fails_at.map(|at| Fault { at: at.0, what: FaultKind::DiskFails { unit: 0, disk: 0 } });
    let rebuilt = array.rebuilt_from.map(|at| Fault { at: at.0, what: FaultKind::Rebuild { unit: 0 } });
    fails.into_iter().chain(rebuilt).collect()
}

fn described(volume: &Volume<'_>, half: u64) -> VolumeScenario {
    VolumeScenario {
        name: volume.name.to_owned(),
        config: volume.config.clone(),
        start: volume.half * half,
        size: half,
        phases: volume.load.phases(LASTS),
        repeat: None,
        changes: Vec::new(),
    }
}

/// What came, what was answered, and what the law decided.
struct Account {
    volumes: Vec<OfVolume>,
    decisions: Decisions,
}

#[derive(Default)]
struct OfVolume {
    answered: Vec<Request>,
    /// How many requests that came at an instant are not answered.
    waiting: BTreeMap<Instant, u32>,
}

impl OfVolume {
    fn at_end(self, end: Instant) -> Vec<Request> {
        let mut requests = self.answered;
        for (came, count) in self.waiting {
            let request = Request { came: came.since(Instant::ORIGIN), latency: end.since(came) };
            requests.extend((0..count).map(|_| request));
        }
        requests.sort_unstable();
        requests
    }
}

/// Reads, writes, and flushes: a client waits for each.
fn is_judged(kind: IoKind) -> bool {
    kind.direction().is_some() || kind == IoKind::Flush
}

impl Observer for Account {
    fn on_submit(&mut self, now: Instant, volume: VolumeId, kind: IoKind) {
        if is_judged(kind) {
            *self.volumes[volume.0 as usize].waiting.entry(now).or_default() += 1;
        }
    }

    fn on_event(&mut self, now: Instant, event: &Event) {
        let at = now.since(Instant::ORIGIN);
        let (volume, kind, total) = match *event {
            Event::Finished { volume, kind, ok: true, total, .. } => (volume, kind, total),
            Event::Controlled { depth, .. } => return self.decisions.depth.push((at, depth.get())),
            Event::Granted { volume, grant, .. } => {
                return self.decisions.bounds[volume.0 as usize].push((at, grant.concurrency.get()));
            }
            _ => return,
        };
        if !is_judged(kind) {
            return;
        }
        let (of_volume, came) = (&mut self.volumes[volume.0 as usize], now - total);
        let waiting = of_volume.waiting.get_mut(&came).expect("what is answered has come");
        *waiting -= 1;
        if *waiting == 0 {
            of_volume.waiting.remove(&came);
        }
        of_volume.answered.push(Request { came: came.since(Instant::ORIGIN), latency: total });
    }
}
