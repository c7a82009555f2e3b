//! A load, as heavy as a cell wants it.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use weir_model::{Iops, Span};
use weir_sim::{Arrivals, Locality, Phase, Trace, TraceRequest, Workload};

use super::matrix::{MadeUpSpec, Matrix};
use crate::run::RECORDINGS;
use crate::trace;

/// A load is made no faster than this on average, in requests a second: a cell of flash would take minutes.
pub(super) const MOST_RATE: f64 = 4_000.0;
/// The most requests of a recording that are read.
const MOST_REQUESTS: usize = 1_000_000;

/// All loads that there are: the made-up ones of a matrix, and the recordings on this machine.
#[derive(Debug)]
pub struct Loads {
    recorded: BTreeMap<String, Arc<[TraceRequest]>>,
    made_up: BTreeMap<String, MadeUpSpec>,
}

/// A load of a matrix with its weight: how many times faster than recorded, or how many requests a second.
#[derive(Clone, Debug)]
pub(super) struct Load {
    source: Source,
    pub(super) weight: f64,
    /// Of so many requests of a recording, from this one on, one is asked for.
    dealt: (usize, usize),
}

/// All requests of a recording are asked for.
const ALL: (usize, usize) = (0, 1);

#[derive(Clone, Debug)]
enum Source {
    Recorded(Arc<[TraceRequest]>),
    MadeUp(MadeUpSpec),
}

impl Loads {
    /// Reads the recordings: each `NAME/NAME.csv.gz` in the folder that `WEIR_TRACES` names, and among the
    /// project's own. Of two with one name, the first counts.
    ///
    /// # Errors
    /// If one of them cannot be read or is empty, or `WEIR_TRACES` names no folder.
    pub fn read(matrix: &Matrix) -> anyhow::Result<Self> {
        let mut recorded = BTreeMap::new();
        let elsewhere = std::env::var_os("WEIR_TRACES").map(PathBuf::from);
        if let Some(folder) = elsewhere.as_ref().filter(|folder| !folder.is_dir()) {
            anyhow::bail!("WEIR_TRACES: found {}; accepted: a folder", folder.display());
        }
        for folder in elsewhere.iter().map(PathBuf::as_path).chain([Path::new(RECORDINGS)]) {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let name = entry?.file_name().to_string_lossy().into_owned();
                let path = folder.join(&name).join(format!("{name}.csv.gz"));
                if !path.exists() || recorded.contains_key(&name) {
                    continue;
                }
                let requests =
                    trace::open(&path, None)?.take(MOST_REQUESTS).collect::<Result<Vec<_>, _>>()?;
                anyhow::ensure!(!requests.is_empty(), "{}: found no request; accepted: one", path.display());
                recorded.insert(name, requests.into());
            }
        }
        Ok(Self { recorded, made_up: matrix.load.clone() })
    }

    /// The made-up loads, and recordings of one request with these names.
    #[cfg(test)]
    pub(super) fn made_up_and(names: &[&str]) -> Self {
        let request =
            TraceRequest { at: Span::ZERO, kind: weir_model::IoKind::Read, offset: 0, length: 4096 };
        let recorded = names.iter().map(|name| ((*name).to_owned(), Arc::from([request])));
        Self { recorded: recorded.collect(), made_up: Matrix::embedded().load }
    }

    /// The names of the recordings.
    pub fn recorded(&self) -> impl Iterator<Item = &str> {
        self.recorded.keys().map(String::as_str)
    }

    /// The names of all loads.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.recorded().chain(self.made_up.keys().map(String::as_str))
    }

    /// Whether the requests of a load come whether those before them were answered or not. Only then does the
    /// load, and not the law, say how many there are to be judged.
    pub(super) fn is_open(&self, name: &str) -> bool {
        self.recorded.contains_key(name) || self.made_up.get(name).is_some_and(MadeUpSpec::is_open)
    }

    /// The load of this name, with a weight to begin with: as recorded, but no faster than [`MOST_RATE`]; or
    /// a hundred requests a second.
    #[allow(clippy::cast_precision_loss)] // at most MOST_REQUESTS
    pub(super) fn load(&self, name: &str) -> anyhow::Result<Load> {
        if let Some(requests) = self.recorded.get(name) {
            let weight = (MOST_RATE * whole(requests) / requests.len() as f64).min(1.0);
            return Ok(Load { source: Source::Recorded(Arc::clone(requests)), weight, dealt: ALL });
        }
        let spec = self.made_up.get(name).with_context(|| format!("there is no load {name}"))?;
        Ok(Load::made_up(spec.clone()))
    }
}

/// How long a recording lasts until it begins anew, in seconds.
#[allow(clippy::cast_precision_loss)] // at most MOST_REQUESTS
fn whole(requests: &[TraceRequest]) -> f64 {
    let recorded = requests.last().map_or(0.0, |last| last.at.as_secs_f64());
    recorded + (recorded / requests.len() as f64).max(1e-3)
}

impl Load {
    /// A load of a hundred requests a second, unless it is closed.
    pub(super) const fn made_up(spec: MadeUpSpec) -> Self {
        Self { source: Source::MadeUp(spec), weight: 100.0, dealt: ALL }
    }

    /// Whether its requests come whether those before them were answered or not.
    pub(super) fn is_open(&self) -> bool {
        match &self.source {
            Source::Recorded(_) => true,
            Source::MadeUp(spec) => spec.is_open(),
        }
    }

    /// What the clients of a made-up load do for `lasting`; a recorded load has none.
    pub(super) fn phases(&self, lasting: Span) -> Vec<Phase> {
        let Source::MadeUp(spec) = &self.source else { return Vec::new() };
        let workload = |part: f64| Workload {
            arrivals: match (spec.threads, Iops::new(self.weight * part)) {
                (Some(threads), _) => Arrivals::Closed { threads: threads.get(), think: Span::ZERO },
                (None, Some(rate)) => Arrivals::Poisson(rate),
                (None, None) => unreachable!("a weight is above zero"),
            },
            reads: spec.reads,
            sizes: vec![(spec.request.0.0, 1.0)],
            flush_every: spec.flush_every,
            locality: spec.run.map_or(Locality::Uniform, |run| Locality::Runs(run.get())),
        };
        let from = |at: Span, part: f64| Phase { at, workload: Some(workload(part)) };
        let idle = |at: Span| Phase { at, workload: None };
        let mut phases = match (spec.bursts, spec.steps) {
            (Some(bursts), _) => {
                let (on, off) = (bursts.on.0, bursts.off.0);
                let starts = (0..).map(|burst| (on + off).saturating_mul(burst));
                let starts = starts.take_while(|start| *start < lasting);
                starts.flat_map(|start| [from(start, 1.0), idle(start + on)]).collect()
            }
            (None, Some(steps)) => {
                let all = f64::from(steps.get());
                let step = |step: f64| {
                    let at = Span::from_secs_f64(lasting.as_secs_f64() / 2.0 * step / all);
                    from(at, (step + 1.0) / all)
                };
                (0..steps.get()).map(|number| step(f64::from(number))).collect()
            }
            (None, None) => vec![from(Span::ZERO, 1.0)],
        };
        phases.retain(|phase| phase.at < lasting);
        phases.push(idle(lasting));
        phases
    }

    /// What the clients of a recorded load do for `lasting`, from this part of the recording on. At its end
    /// it begins anew, after a pause of its mean distance. A made-up load has none.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(super) fn trace(&self, from: f64, lasting: Span) -> Option<Trace> {
        let Source::Recorded(requests) = &self.source else { return None };
        let (requests, speed, count) = (Arc::clone(requests), self.weight, requests.len());
        let whole = whole(&requests);
        let first = ((from * count as f64) as usize).min(count - 1);
        let origin = requests[first].at.as_secs_f64();
        let request = move |place: usize| {
            let (round, request) = (place / count, requests[place % count]);
            let at = (whole * round as f64 + request.at.as_secs_f64() - origin) / speed;
            TraceRequest { at: Span::from_secs_f64(at), ..request }
        };
        let (place, of) = self.dealt;
        let requests = (first..).skip(place).step_by(of).map(request);
        Some(Box::new(requests.take_while(move |request| request.at < lasting)))
    }

    /// The part that the clients behind one of several gateways have: threads are divided, a rate is, and the
    /// requests of a recording are dealt. `None`: there are fewer threads than gateways.
    pub(super) fn part(&self, place: u32, of: u32) -> Option<Self> {
        let mut part = self.clone();
        match &mut part.source {
            Source::Recorded(_) => part.dealt = (place as usize, of as usize),
            Source::MadeUp(spec) => match &mut spec.threads {
                Some(threads) => {
                    let more = u32::from(place < threads.get() % of);
                    *threads = NonZeroU32::new(threads.get() / of + more)?;
                }
                None => part.weight /= f64::from(of),
            },
        }
        Some(part)
    }

    /// The mean rate of a load, as a part of its highest.
    pub(super) fn mean(&self) -> f64 {
        match &self.source {
            Source::Recorded(_) => 1.0,
            Source::MadeUp(spec) => spec.mean(),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_model::IoKind;

    use super::*;

    const LASTS: Span = Span::from_secs(300);

    fn recorded(at_ms: &[u64], weight: f64) -> Load {
        let request =
            |at| TraceRequest { at: Span::from_millis(at), kind: IoKind::Read, offset: 0, length: 512 };
        let requests: Vec<_> = at_ms.iter().copied().map(request).collect();
        Load { source: Source::Recorded(requests.into()), weight, dealt: ALL }
    }

    fn times(load: &Load, from: f64, lasting: u64) -> Vec<u64> {
        let trace = load.trace(from, Span::from_millis(lasting)).expect("it is recorded");
        trace.map(|request| request.at.as_micros() / 1_000).collect()
    }

    #[test]
    fn a_recording_begins_anew_at_its_end_and_may_begin_in_its_middle() {
        // Four requests in 3 s, so a pause of 0.75 s at the end.
        let load = recorded(&[0, 1_000, 2_000, 3_000], 1.0);
        assert_eq!(times(&load, 0.0, 5_000), [0, 1_000, 2_000, 3_000, 3_750, 4_750]);
        assert_eq!(times(&load, 0.5, 3_000), [0, 1_000, 1_750, 2_750]);
        assert_eq!(times(&recorded(&[0, 1_000, 2_000, 3_000], 2.0), 0.0, 1_600), [0, 500, 1_000, 1_500]);
    }

    #[test]
    fn a_recording_whose_requests_all_came_at_once_is_slowed_down_before_it_is_run() {
        let request = TraceRequest { at: Span::ZERO, kind: IoKind::Read, offset: 0, length: 512 };
        let recorded = [("flood".to_owned(), Arc::from(vec![request; 10_000]))].into();
        let load = Loads { recorded, made_up: BTreeMap::new() }.load("flood").expect("it is there");
        let count = load.trace(0.0, Span::from_secs(10)).expect("it is recorded").count();
        assert_eq!(count, 40_000);
    }

    #[test]
    fn a_made_up_load_is_over_when_the_run_is() {
        let loads = Loads::made_up_and(&[]);
        for name in ["small-reads", "bursts", "ramp", "write-flood"] {
            let phases = loads.load(name).expect("it is made up").phases(LASTS);
            let last = phases.last().expect("it has some");
            assert_eq!((last.at, &last.workload), (LASTS, &None), "{name}");
            assert!(phases.is_sorted_by(|one, next| one.at < next.at), "{name}");
        }
        for (name, mean) in [("small-reads", 1.0), ("bursts", 1.0 / 3.0), ("ramp", 0.775)] {
            let load = loads.load(name).expect("it is made up");
            assert!((load.mean() - mean).abs() < 1e-9, "{name}: {}", load.mean());
        }
    }
}
