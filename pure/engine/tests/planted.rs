//! A cause that is planted is the one that is named first, for whatever a seed draws. A plant counts where
//! taking it away brings back at least half of the time that the victim's requests lost.

use std::num::NonZeroU32;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_engine::{
    Control, DepthFeedbackConfig, Engine, EngineConfig, Hold, TimeSpent, TimeSplit, VolumeConfig, Whom,
};
use weir_model::{Instant, Io, IoKind, Iops, Objective, QueueDepth, Span, Target, VolumeId};
use weir_testkit::{Arrivals, Load, Rig, Station};

/// What makes the victim's requests slow.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Plant {
    /// Another volume keeps the depth full, with long requests.
    HogAtTheDepth,
    /// Another volume keeps the device full; nobody holds it back.
    HogAtTheDevice,
    /// A promise holds the victim back, which is in the background.
    Promise,
    /// A limit of the victim itself.
    Limit(Hold),
    /// The device takes ten times as long for each request.
    SlowDevice,
}

/// A cause, as an operator reads it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Named {
    Limit(Hold),
    /// Waited for its turn, on behalf of this volume.
    Turn(Whom),
    /// At the device, most of all beside this volume.
    Device(Whom),
    Other,
}

/// What is drawn, but for the plant.
#[derive(Clone, Copy, Debug)]
struct Scene {
    plant: Plant,
    seed: u64,
    servers: usize,
    service: Span,
    /// Requests of the victim at a time.
    depth: u32,
    /// Small neighbours.
    neighbours: u32,
    hog: u32,
}

const LENGTH: u32 = 4096;

impl Scene {
    fn draw(seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let plants = [
            Plant::HogAtTheDepth,
            Plant::HogAtTheDevice,
            Plant::Promise,
            Plant::Limit(Hold::Rate),
            Plant::Limit(Hold::Concurrency),
            Plant::SlowDevice,
        ];
        Self {
            plant: plants[random.random_range(0..plants.len())],
            seed,
            servers: random.random_range(2..9),
            service: Span::from_micros(random.random_range(200..3_000)),
            depth: random.random_range(2..5),
            neighbours: random.random_range(1..4),
            hog: random.random_range(64..200),
        }
    }

    /// Runs the scene for 4 s, with its plant or without. Returns what is known of the victim, and the
    /// planted volume.
    fn run(&self, is_planted: bool) -> (TimeSpent, VolumeId) {
        let is = |plant: Plant| is_planted && self.plant == plant;
        let control = match self.plant {
            Plant::HogAtTheDepth | Plant::Limit(_) => Control::Facade(DepthFeedbackConfig {
                initial_depth: QueueDepth::new(u32::try_from(self.servers).unwrap()),
                max_depth: QueueDepth::new(u32::try_from(self.servers).unwrap()),
                ..DepthFeedbackConfig::default()
            }),
            Plant::HogAtTheDevice | Plant::SlowDevice => Control::None,
            Plant::Promise => Control::Promise,
        };
        let slower = if is(Plant::SlowDevice) { 10 } else { 1 };
        let service = self.service.saturating_mul(slower);
        let time = move |_, io: &Io| service.saturating_mul((io.length / LENGTH).into());
        let station = Station::scripted(self.servers, time);
        let mut rig = Rig::new(EngineConfig { control, ..EngineConfig::default() }, station);
        // A quarter of what it would get.
        let alone = f64::from(self.depth) / self.service.as_secs_f64();
        let victim = rig.add_volume(VolumeConfig {
            max_iops: Iops::new(alone / 4.0).filter(|_| is(Plant::Limit(Hold::Rate))),
            concurrency: NonZeroU32::new(1).filter(|_| is(Plant::Limit(Hold::Concurrency))),
            ..VolumeConfig::default()
        });
        let promise = Some(Target::Latency(Span::from_nanos(self.service.as_nanos() / 4 * 5)));
        let target = promise.filter(|_| is(Plant::Promise));
        let objective = Objective { target, ..Objective::default() };
        let planted = rig.add_volume(VolumeConfig { objective, ..VolumeConfig::default() });
        let start = |rig: &mut Rig, volume, arrivals| {
            let is_long = self.plant == Plant::HogAtTheDepth && volume == planted;
            let length = if is_long { 16 * LENGTH } else { LENGTH };
            rig.start(Load { volume, kind: IoKind::Read, length, arrivals });
        };
        for neighbour in 0..self.neighbours {
            let volume = rig.add_volume(VolumeConfig::default());
            start(
                &mut rig,
                volume,
                Arrivals::Poisson(Iops::new(20.0).unwrap(), self.seed + u64::from(neighbour)),
            );
        }
        let depth = if self.plant == Plant::Limit(Hold::Concurrency) { 4 * self.depth } else { self.depth };
        let depth = if self.plant == Plant::Promise { 16 * self.depth } else { depth };
        start(&mut rig, victim, Arrivals::Closed(depth));
        match self.plant {
            Plant::HogAtTheDepth | Plant::HogAtTheDevice if is_planted => {
                start(&mut rig, planted, Arrivals::Closed(self.hog));
            }
            // The promised volume has its load with its promise and without.
            Plant::Promise => {
                start(&mut rig, planted, Arrivals::Closed(u32::try_from(self.servers).unwrap()))
            }
            _ => {}
        }
        rig.drive_until(Instant::ORIGIN + Span::from_secs(4));
        (rig.engine.time_spent(rig.now(), victim, Engine::REMEMBERED), planted)
    }

    fn expected(&self, planted: VolumeId, victim: Whom) -> Named {
        match self.plant {
            Plant::HogAtTheDepth | Plant::Promise => Named::Turn(Whom::Volume(planted)),
            Plant::HogAtTheDevice => Named::Device(Whom::Volume(planted)),
            Plant::Limit(hold) => Named::Limit(hold),
            Plant::SlowDevice => Named::Device(victim),
        }
    }
}

/// The cause that is named first: the largest part of the mean, and who has most of that.
fn named(spent: &TimeSpent) -> Named {
    let TimeSplit { own_limit, turn, device, .. } = spent.sum();
    let first = |charges: &[weir_engine::Charged]| charges.first().map_or(Whom::Nobody, |first| first.whom);
    match [own_limit, turn, device].into_iter().max() {
        Some(most) if most == own_limit => {
            let own = Hold::ALL.iter().zip(spent.holds).filter(|(hold, _)| hold.is_own_limit());
            own.max_by_key(|(_, time)| *time).map_or(Named::Other, |(hold, _)| Named::Limit(*hold))
        }
        Some(most) if most == turn => Named::Turn(first(&spent.waited_for)),
        Some(_) => Named::Device(first(&spent.beside)),
        None => Named::Other,
    }
}

fn mean(spent: &TimeSpent) -> f64 {
    spent.sum().total().as_secs_f64() / spent.count() as f64
}

#[test]
fn a_planted_cause_is_named_first_for_a_hundred_random_plants() {
    let mut counted = 0;
    let mut seed = 0;
    while counted < 100 {
        seed += 1;
        let scene = Scene::draw(seed);
        let (spent, planted) = scene.run(true);
        let (without, _) = scene.run(false);
        if mean(&without) > mean(&spent) / 2.0 {
            continue; // the plant did not take half of the time
        }
        counted += 1;
        let victim = Whom::Volume(VolumeId(0));
        assert_eq!(named(&spent), scene.expected(planted, victim), "{scene:?}: {spent:#?}");
    }
    assert!(seed < 200, "{counted} of {seed} plants counted");
}
