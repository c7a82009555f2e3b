//! Scenes: cases that every operator meets, each by itself.
//!
//! Cells are drawn, so that nobody's choice of loads flatters a law. A scene is chosen, because it asks for
//! one thing that few cells have: more than the array can do, a volume that falls silent, a neighbour that
//! begins.

mod stage;

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::Context;
use serde::Serialize;
use weir_model::Span;

use self::stage::{Actor, Stage, Take, capacity};
use super::matrix::{ArrayCase, Matrix};
use super::setting::Law;
use crate::run::on_threads;

/// A device that can take any order.
const STATION: &str = "station";
/// Disks, each with a head that has to move.
const DISKS: &str = "disks";
/// The seeds with which they are played.
const SEEDS: [u64; 3] = [1, 2, 3];

/// What a scene found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Played {
    /// What is measured.
    pub figure: &'static str,
    /// The array.
    pub array: &'static str,
    /// The least and the most that the figure should be; absent: nothing is asked.
    pub bar: (Option<f64>, Option<f64>),
    /// The figure without control.
    pub without: Spread,
    /// The figure of each law; absent if the law cannot be told what the scene asks for.
    pub laws: BTreeMap<Law, Option<Spread>>,
}

/// A figure over all seeds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// Two volumes, and what is measured of them.
struct Scene {
    /// The arrays on which it is played.
    arrays: &'static [&'static str],
    actors: [Actor; 2],
    figures: &'static [Figure],
}

struct Figure {
    name: &'static str,
    bar: (Option<f64>, Option<f64>),
    of: fn(&Take<'_>) -> f64,
}

const SCENES: [Scene; 6] = [FAIRNESS, IN_ORDER, OVERLOAD, NEIGHBOUR, SILENCE, GREED];

/// On the station only: one thread cannot use half of six disks.
const FAIRNESS: Scene = Scene {
    arrays: &[STATION],
    actors: [Actor::threads(1), Actor::threads(256)],
    figures: &[Figure {
        name: "fairness: one thread's rate, of 256 threads'",
        bar: (Some(0.9), Some(1.1)),
        of: |take| take.answered(0) / take.answered(1),
    }],
};

/// On the disks only: a station does not care for order.
const IN_ORDER: Scene = Scene {
    arrays: &[DISKS],
    actors: [Actor::threads(4).in_order(), Actor::threads(64)],
    figures: &[Figure {
        name: "in order: a scan's rate, of half of that alone",
        bar: (Some(0.9), None),
        of: |take| take.answered(0) / (0.5 * take.answered_alone(0)),
    }],
};

const OVERLOAD: Scene = Scene {
    arrays: &[STATION, DISKS],
    actors: [Actor::open(0.7).with_rate(4.0), Actor::open(0.7).with_rate(1.0)],
    figures: &[
        Figure {
            name: "overload: shortfall of priority 1, of that of 4",
            bar: (Some(3.0), Some(5.0)),
            of: |take| take.shortfall(1) / take.shortfall(0).max(1e-3),
        },
        Figure {
            name: "overload: answered, of that without",
            bar: (Some(0.95), None),
            of: |take| {
                (take.answered(0) + take.answered(1)) / (take.answered_without(0) + take.answered_without(1))
            },
        },
    ],
};

const NEIGHBOUR: Scene = Scene {
    arrays: &[STATION, DISKS],
    actors: [Actor::open(0.3).with_latency(), Actor::threads(64).in_turns()],
    figures: &[
        Figure {
            name: "neighbour: windows until the promise is kept",
            bar: (None, None),
            of: |take| take.recovery(0, Span::from_secs(200)),
        },
        Figure {
            name: "neighbour: its rate, of that without",
            bar: (None, None),
            of: |take| take.answered(1) / take.answered_without(1),
        },
    ],
};

const SILENCE: Scene = Scene {
    arrays: &[STATION, DISKS],
    actors: [Actor::open(0.3).with_latency().in_turns(), Actor::threads(64)],
    figures: &[Figure {
        name: "silence: the other's rate, of that without",
        bar: (Some(0.97), None),
        of: |take| {
            let silence = Span::from_secs(100)..Span::from_secs(200);
            take.answered_in(1, &silence) / take.answered_without_in(1, &silence)
        },
    }],
};

const GREED: Scene = Scene {
    arrays: &[STATION, DISKS],
    actors: [Actor::open(0.2).with_latency(), Actor::open(0.2).with_latency().greedy()],
    figures: &[Figure {
        name: "greed: points of windows that the other loses",
        bar: (None, Some(1.0)),
        of: |take| 100.0 * (take.kept_alone(0) - take.kept(0)),
    }],
};

/// Plays all scenes under all laws, so many at a time.
///
/// # Errors
/// If a run breaks a rule that holds for every run, or the matrix lacks an array.
pub fn play_scenes(matrix: &Matrix, jobs: usize) -> anyhow::Result<Vec<Played>> {
    let mut all = Vec::new();
    for scene in &SCENES {
        for name in scene.arrays {
            let array = matrix.array.get(*name).with_context(|| format!("there is no array {name}"))?;
            all.push((all.len(), scene, *name, array));
        }
    }
    let played = Mutex::new(BTreeMap::new());
    on_threads(jobs, &all, &|(place, scene, name, array)| {
        let figures = scene.play(name, array, &SEEDS)?;
        played.lock().expect("no thread panics with it").insert(*place, figures);
        Ok(())
    })?;
    Ok(played.into_inner().expect("no thread panicked with it").into_values().flatten().collect())
}

impl Scene {
    fn play(&self, name: &'static str, array: &ArrayCase, seeds: &[u64]) -> anyhow::Result<Vec<Played>> {
        let capacity = capacity(array)?;
        let loads = self.actors.each_ref().map(|actor| actor.load(capacity));
        let set = |seed: &u64| Stage::set(array, &self.actors, &loads, *seed);
        let stages: Vec<Stage<'_>> = seeds.iter().map(set).collect::<anyhow::Result<_>>()?;
        let takes =
            |law| stages.iter().map(|stage| stage.take(law)).collect::<anyhow::Result<Option<Vec<_>>>>();
        let of_laws = Law::ALL.into_iter().map(|law| Ok((law, takes(law)?)));
        let of_laws: BTreeMap<Law, Option<Vec<Take<'_>>>> = of_laws.collect::<anyhow::Result<_>>()?;
        let played = |figure: &Figure| {
            let without = stages.iter().map(|stage| (figure.of)(&stage.without()));
            let of_law = |takes: &Option<Vec<Take<'_>>>| {
                takes.as_ref().map(|takes| Spread::of(takes.iter().map(figure.of)))
            };
            Played {
                figure: figure.name,
                array: name,
                bar: figure.bar,
                without: Spread::of(without),
                laws: of_laws.iter().map(|(law, takes)| (*law, of_law(takes))).collect(),
            }
        };
        Ok(self.figures.iter().map(played).collect())
    }
}

impl Spread {
    fn of(figures: impl Iterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = figures.collect();
        all.sort_by(f64::total_cmp);
        Self { median: all[all.len() / 2], low: all[0], high: all[all.len() - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(scene: &Scene) -> Vec<Played> {
        scene.play("station", &Matrix::embedded().array["station"], &SEEDS[..1]).expect("it is played")
    }

    #[test]
    fn without_control_256_threads_get_256_times_as_much_as_one() {
        let fairness = &played(&FAIRNESS)[0];
        assert!((fairness.without.median * 256.0 - 1.0).abs() < 0.05, "{fairness:?}");
    }

    #[test]
    fn facade_cannot_be_told_a_rate_and_without_control_both_fall_short_alike() {
        let overload = played(&OVERLOAD);
        assert!((overload[0].without.median - 1.0).abs() < 0.1, "{overload:?}");
        assert!((overload[1].without.median - 1.0).abs() < 1e-9, "{overload:?}");
        assert_eq!(overload[0].laws[&Law::Facade], None);
        assert!(overload[0].laws[&Law::Maestro].is_some());
    }

    #[test]
    fn no_control_holds_nobody_back_while_a_volume_is_silent() {
        assert!((played(&SILENCE)[0].without.median - 1.0).abs() < 1e-9);
    }
}
