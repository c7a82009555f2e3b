//! The first stage: runs experiments, and writes their records.
//!
//! Each run is a job of its own. Several threads work on the jobs. The record of a run depends only on the
//! program, the experiment, the seed and the run, and not on the number of threads or their order.
//!
//! If there is a record already, from the same configuration and the same program, the run is not repeated.
//! The name of the file is not enough: an old program's results would then stand under a new program's name.
//!
//! Curves are measured before the runs, because the promise of a run may come from a curve. Variants come
//! last. A run of a variant is often a run that is there already: without the law, it is the one that the
//! experiment compares with. Its record is then copied.

mod build;
mod meter;
mod paced;
mod record;
mod recorder;
mod simulated;
mod store;
mod trace_curve;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context;
use weir_sim::World;

use crate::bulk::{self, BulkScenario};
use crate::curve::Curve;
use crate::delay::{Bench, MeasuredHeader, Scenario};
use crate::experiment::{Experiment, NamedRun, Variant, Variation, resolve_run};

pub use build::commit;
pub(crate) use build::fingerprint;
pub(crate) use paced::FOLDER as RECORDINGS;
pub use record::{Bound, Decision, DepthSample, Header, Record, VolumeTotal, Window};
pub use simulated::Simulated;
pub use store::Store;

/// The experiments to run, with their seeds and threads.
#[derive(Clone)]
pub struct Plan<'a> {
    /// The experiments.
    pub experiments: Vec<&'a Experiment>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The seeds with which the variants of each experiment are run; some of `seeds`.
    pub variant_seeds: Vec<u64>,
    /// The number of threads.
    pub jobs: usize,
    /// Where the runs before an iSCSI target are measured.
    pub bench: &'a dyn Bench,
    /// Where bulk transfers are run.
    pub nodes: &'a dyn bulk::Bench,
}

/// A job that is done.
#[derive(Clone, Debug)]
pub struct Progress {
    /// How many jobs are done.
    pub done: usize,
    /// How many jobs there are.
    pub all: usize,
    /// The job, such as `facade-slo, seed 1, facade`.
    pub what: String,
}

/// The work that a thread takes at a time.
struct Job<'a> {
    experiment: &'a Experiment,
    seed: u64,
    what: What<'a>,
    store: &'a Store,
    /// Where the records of the experiment are of which this one is a variant.
    base: Option<&'a Store>,
}

/// A variant of an experiment, with its runs and its store.
struct Varied {
    experiment: Box<Experiment>,
    runs: Vec<NamedRun>,
    store: Store,
}

enum What<'a> {
    Curve(&'a str),
    Run(&'a NamedRun),
    Measure(&'a Scenario, &'a str),
    Transfer(&'a BulkScenario, &'a str),
}

/// Makes every record of the plan that is not there yet.
///
/// # Errors
/// The first problem: a configuration that does not fit together, a trace that cannot be read, or a file that
/// cannot be written.
pub fn run(plan: &Plan<'_>, store: &Store, progress: &(dyn Fn(Progress) + Sync)) -> anyhow::Result<()> {
    run_beside(plan, store, None, progress)
}

/// The same, where the records in `base` that are of the same runs are copied, and so are its curves.
pub(crate) fn run_beside(
    plan: &Plan<'_>,
    store: &Store,
    base: Option<&Store>,
    progress: &(dyn Fn(Progress) + Sync),
) -> anyhow::Result<()> {
    let can_run = |experiment: &&Experiment| {
        missing_trace(experiment).is_none() && (plan.bench.is_real() || !is_for_real_only(experiment))
    };
    let runnable: Vec<_> = plan.experiments.iter().copied().filter(can_run).collect();
    let runs: Vec<_> = runnable.iter().map(|experiment| experiment.runs()).collect::<Result<_, _>>()?;
    let (mut curves, mut rest) = (Vec::new(), Vec::new());
    for &seed in &plan.seeds {
        for (&experiment, runs) in runnable.iter().zip(&runs) {
            if let Some(base) = base {
                copy_curves(experiment, seed, base, store)?;
            }
            let job = |what| Job { experiment, seed, what, store, base };
            curves.extend(experiment.curve.keys().map(|name| job(What::Curve(name))));
            rest.extend(runs.iter().map(|run| job(What::Run(run))));
            if let Some(scenario) = &experiment.delay {
                rest.extend(scenario.run.keys().map(|run| job(What::Measure(scenario, run))));
            }
            if let Some(scenario) = &experiment.bulk {
                rest.extend(scenario.run.keys().map(|run| job(What::Transfer(scenario, run))));
            }
        }
    }
    let varied = varied(&runnable, store)?;
    let of_variants: Vec<_> = varied
        .iter()
        .flat_map(|varied| plan.variant_seeds.iter().map(move |seed| (varied, *seed)))
        .flat_map(|(Varied { experiment, runs, store: own }, seed)| {
            let job = move |what| Job { experiment, seed, what, store: own, base: Some(store) };
            runs.iter().map(move |run| job(What::Run(run)))
        })
        .collect();
    let (done, all) = (AtomicUsize::new(0), curves.len() + rest.len() + of_variants.len());
    let work = |job: &Job<'_>| {
        job.work(plan)?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress(Progress { done, all, what: job.to_string() });
        Ok(())
    };
    on_threads(plan.jobs, &curves, &work)?;
    on_threads(plan.jobs, &rest, &work)?;
    for Varied { experiment, store: own, .. } in &varied {
        plan.variant_seeds.iter().try_for_each(|seed| copy_curves(experiment, *seed, store, own))?;
    }
    on_threads(plan.jobs, &of_variants, &work)
}

fn copy_curves(experiment: &Experiment, seed: u64, from: &Store, to: &Store) -> anyhow::Result<()> {
    for name in experiment.curve.keys() {
        let path = |store: &Store| store.curve(&experiment.id, seed, name);
        to.write(&path(to), std::fs::read(path(from))?)?;
    }
    Ok(())
}

/// The variants of some experiments that can be run.
fn varied(experiments: &[&Experiment], store: &Store) -> anyhow::Result<Vec<Varied>> {
    let mut all = Vec::new();
    for experiment in experiments {
        for variant in Variant::ALL {
            if let Some(Variation::Runnable(experiment)) = experiment.variant(variant)? {
                let runs = experiment.runs()?;
                all.push(Varied { experiment, runs, store: store.variant(variant) });
            }
        }
    }
    Ok(all)
}

/// The path of the first recorded load of the experiment that is not on this machine.
pub fn missing_trace(experiment: &Experiment) -> Option<String> {
    let of_volumes = experiment.volume.values().filter_map(|volume| volume.trace.as_ref());
    let of_curves = experiment.curve.values().filter_map(|curve| curve.trace.as_ref());
    let traces = of_volumes.chain(of_curves);
    let mut paths = traces.map(|trace| paced::find(&trace.file));
    paths.find(|path| !path.exists()).map(|path| path.display().to_string())
}

/// Whether the experiment runs on a real kernel only.
pub fn is_for_real_only(experiment: &Experiment) -> bool {
    experiment.delay.as_ref().is_some_and(|scenario| scenario.real_only)
}

/// Works on all jobs. After the first that fails, no thread begins another.
pub(crate) fn on_threads<J: Sync>(
    threads: usize,
    jobs: &[J],
    work: &(dyn Fn(&J) -> anyhow::Result<()> + Sync),
) -> anyhow::Result<()> {
    let (next, failed, failure) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed)
                    && let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Err(error) = work(job) {
                        failed.store(true, Ordering::Relaxed);
                        failure.lock().expect("no thread panics with it").get_or_insert(error);
                    }
                }
            });
        }
    });
    failure.into_inner().expect("no thread panicked with it").map_or(Ok(()), Err)
}

impl Job<'_> {
    fn work(&self, plan: &Plan<'_>) -> anyhow::Result<()> {
        match self.what {
            What::Curve(name) => meter::measure(self.experiment, name, self.seed, self.store),
            What::Run(run) => self.run(run),
            What::Measure(scenario, run) => self.measure(plan.bench, scenario, run),
            What::Transfer(scenario, run) => self.transfer(plan.nodes, scenario, run),
        }
    }

    fn measure(&self, bench: &dyn Bench, scenario: &Scenario, run: &str) -> anyhow::Result<()> {
        let header = self.header(run, bench.name(), format!("{scenario:?}"));
        let path = self.store.record(&self.experiment.id, self.seed, run);
        if MeasuredHeader::read(&path).is_some_and(|there| there == header) {
            return Ok(());
        }
        let measured = bench.measure(scenario, run, self.seed).with_context(|| self.to_string())?;
        self.store.write(&path, measured.to_text(&header))
    }

    fn transfer(&self, nodes: &dyn bulk::Bench, scenario: &BulkScenario, run: &str) -> anyhow::Result<()> {
        let header = self.header(run, nodes.name(), format!("{scenario:?}"));
        let path = self.store.record(&self.experiment.id, self.seed, run);
        if MeasuredHeader::read(&path).is_some_and(|there| there == header) {
            return Ok(());
        }
        let record = nodes.transfer(scenario, run, self.seed).with_context(|| self.to_string())?;
        self.store.write(&path, record.to_text(&header))
    }

    fn header(&self, run: &str, bench: String, configuration: String) -> MeasuredHeader {
        MeasuredHeader {
            experiment: self.experiment.id.clone(),
            run: run.to_owned(),
            seed: self.seed,
            bench,
            commit: commit().to_owned(),
            program: fingerprint().to_owned(),
            hash: format!("{:016x}", build::fnv1a(configuration.as_bytes())),
            configuration,
        }
    }

    fn run(&self, run: &NamedRun) -> anyhow::Result<()> {
        let curves = read_curves(self.experiment, self.seed, self.store)?;
        let resolved = resolve_run(&run.experiment, &run.run, self.seed, &curves)?;
        let header = Header::of(&run.experiment.id, &run.name, self.seed, &resolved, run.value);
        let path = self.store.record(&self.experiment.id, self.seed, &run.name);
        if Header::read(&path).is_some_and(|there| there == header) {
            return Ok(());
        }
        if let Some(twin) = self.base.and_then(|base| self.twin(&header, base)) {
            return self.store.write(&path, Record::renamed(&twin, header)?);
        }
        let mut recorder = recorder::Recorder::new(resolved.scenario.volumes.len(), resolved.warm_up);
        resolved.scenario.check()?;
        let lasting = resolved.scenario.duration;
        let mut world = World::new(resolved.scenario);
        for (volume, trace) in &resolved.traces {
            world.replay(*volume, paced::open(trace, lasting)?);
        }
        world.run(&mut recorder)?;
        self.store.write(&path, recorder.finish(header).to_text())
    }
}

impl Job<'_> {
    /// The record in `base` of a run that is the same as this one but for its name.
    fn twin(&self, header: &Header, base: &Store) -> Option<PathBuf> {
        let mut records = base.records(&self.experiment.id, self.seed).into_iter();
        records.find(|path| Header::read(path).is_some_and(|there| there.is_same_run(header)))
    }
}

impl std::fmt::Display for Job<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.what {
            What::Curve(name) => format!("curve {name}"),
            What::Run(run) => run.name.clone(),
            What::Measure(_, run) | What::Transfer(_, run) => (*run).to_owned(),
        };
        write!(f, "{}, seed {}, {name}", self.experiment.id, self.seed)
    }
}

/// The curves of an experiment that were measured with this seed.
///
/// # Errors
/// If one of them is missing.
pub fn read_curves(
    experiment: &Experiment,
    seed: u64,
    store: &Store,
) -> anyhow::Result<BTreeMap<String, Curve>> {
    let read = |name: &String| Ok((name.clone(), Curve::read(&store.curve(&experiment.id, seed, name))?));
    experiment.curve.keys().map(read).collect()
}
