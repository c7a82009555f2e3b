//! The record of a run: a file of JSON lines, the first of which is the header.
//!
//! A record holds every SLO window of every volume, the queue depth a few times a second, and each change of
//! a volume's bound with its reason. It also holds totals for each volume that need every single request. A
//! line for each request would answer every later question, but the file would be ten thousand times as long.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weir_engine::Reasoning;
use weir_model::{Span, Target, Verdict};

use super::build::{commit, fingerprint, fnv1a};
use crate::experiment::Resolved;

/// The record of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The description of the run.
    pub header: Header,
    /// The windows of each volume, in order of time. The volumes have the order of [`Header::volumes`].
    pub windows: Vec<Vec<Window>>,
    /// The queue depth, in order of time.
    pub depths: Vec<DepthSample>,
    /// The bounds of each volume, in order of time: one entry for each change.
    pub bounds: Vec<Vec<Bound>>,
    /// The decisions of Maestro's law about each volume, in order of time.
    pub decisions: Vec<Vec<Decision>>,
    /// The counts for each volume after the warm-up.
    pub totals: Vec<VolumeTotal>,
}

/// The description of the run that a record is of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The experiment.
    pub experiment: String,
    /// The run.
    pub run: String,
    /// The seed.
    pub seed: u64,
    /// The names of the volumes, by place. A volume with several ports has the places `name/0`, `name/1` and
    /// so on.
    pub volumes: Vec<String>,
    /// The target of each under Maestro's law.
    pub targets: Vec<Option<Target>>,
    /// The value of the sweep that the run belongs to.
    pub value: Option<f64>,
    /// The time at the beginning of the run that is not judged, in microseconds.
    pub warm_up_us: u64,
    /// How long the run was, in microseconds.
    pub duration_us: u64,
    /// The commit that the program was built from.
    pub commit: String,
    /// The hash of the program.
    pub program: String,
    /// The hash of the configuration.
    pub hash: String,
    /// The configuration, with every value in force.
    pub configuration: String,
}

/// One SLO window of one volume. Latencies in microseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Window {
    /// When it ended, after the start of the run.
    pub end_us: u64,
    /// How many requests arrived.
    pub offered: u64,
    /// How many were answered, whenever they came. This goes for all counts and latencies below.
    pub completed: u64,
    /// How many of these were reads.
    pub reads: u64,
    /// The bytes of all answered requests.
    pub bytes: u64,
    /// The mean latency of reads.
    pub read_us: Option<u64>,
    /// The mean latency of writes.
    pub write_us: Option<u64>,
    /// The mean latency of both.
    pub mean_us: Option<u64>,
    /// The median latency.
    pub p50_us: Option<u64>,
    /// The 95th percentile of the latencies.
    pub p95_us: Option<u64>,
    /// The 99th percentile of the latencies.
    pub p99_us: Option<u64>,
    /// The mean latency that was promised to the requests that came in the window.
    pub target_us: Option<u64>,
    /// Whether these requests kept it; `None`: that was not certain when the run ended.
    pub verdict: Option<Verdict>,
}

/// The queue depth over some control periods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DepthSample {
    /// When the last of these periods ended, after the start of the run.
    pub end_us: u64,
    /// The depth in force then.
    pub depth: u32,
    /// The most requests that were at the device in any of them.
    pub peak: u32,
}

/// The bound of a volume from an instant on: how many requests it may have at the array at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bound {
    /// The instant, after the start of the run.
    pub at_us: u64,
    /// The bound.
    pub requests: u32,
}

/// A decision of Maestro's law about a volume.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Decision {
    /// The instant, after the start of the run.
    pub at_us: u64,
    /// How the law came to its decision.
    pub reasoning: Reasoning,
}

/// The counts for a volume after the warm-up, request by request.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct VolumeTotal {
    /// How many requests were answered.
    pub completed: u64,
    /// How many of these failed.
    pub failed: u64,
    /// Their mean latency in microseconds.
    pub mean_us: f64,
    /// The standard deviation of their latencies in microseconds.
    pub deviation_us: f64,
    /// The longest latency in microseconds.
    pub max_us: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header(Header),
    Window(usize, Window),
    Depth(DepthSample),
    Bound(usize, Bound),
    Decision(usize, Decision),
    Total(VolumeTotal),
}

impl Header {
    /// The header of a run.
    pub fn of(experiment: &str, run: &str, seed: u64, resolved: &Resolved, value: Option<f64>) -> Self {
        let scenario = &resolved.scenario;
        let configuration = format!("{scenario:?} warm-up {} traces {:?}", resolved.warm_up, resolved.traces);
        Self {
            experiment: experiment.to_owned(),
            run: run.to_owned(),
            seed,
            volumes: scenario.volumes.iter().map(|volume| volume.name.clone()).collect(),
            value,
            targets: scenario.volumes.iter().map(|volume| volume.config.objective.target).collect(),
            warm_up_us: resolved.warm_up.as_micros(),
            duration_us: scenario.duration.as_micros(),
            commit: commit().to_owned(),
            program: fingerprint().to_owned(),
            hash: format!("{:016x}", fnv1a(configuration.as_bytes())),
            configuration,
        }
    }

    /// Whether a record of the run that `other` describes is one of this run: all that matters is the same.
    pub fn is_same_run(&self, other: &Self) -> bool {
        (self.seed, &self.program, &self.configuration) == (other.seed, &other.program, &other.configuration)
    }

    /// The header of the record at `path`, if there is one.
    pub fn read(path: &Path) -> Option<Self> {
        let mut first = String::new();
        BufReader::new(std::fs::File::open(path).ok()?).read_line(&mut first).ok()?;
        match serde_json::from_str(&first).ok()? {
            Line::Header(header) => Some(header),
            _ => None,
        }
    }
}

impl Record {
    /// The record at `path`.
    ///
    /// # Errors
    /// If there is no such file, or one of its lines does not belong to a record.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut lines = text.lines().zip(1..);
        let mut next = || -> anyhow::Result<Option<Line>> {
            let Some((line, number)) = lines.next() else { return Ok(None) };
            Ok(Some(serde_json::from_str(line).with_context(|| format!("line {number}"))?))
        };
        let Some(Line::Header(header)) = next()? else {
            anyhow::bail!("line 1: found no header; accepted: a record that `weir lab run` wrote")
        };
        let mut record = Self::new(header);
        while let Some(line) = next()? {
            match line {
                Line::Header(_) => anyhow::bail!("found a second header; accepted: one"),
                Line::Window(volume, window) => {
                    let windows = record.windows.get_mut(volume).context("a window of an unknown volume")?;
                    windows.push(window);
                }
                Line::Depth(sample) => record.depths.push(sample),
                Line::Bound(volume, bound) => {
                    record.bounds.get_mut(volume).context("a bound of an unknown volume")?.push(bound);
                }
                Line::Decision(volume, decision) => {
                    let decisions = record.decisions.get_mut(volume);
                    decisions.context("a decision about an unknown volume")?.push(decision);
                }
                Line::Total(total) => record.totals.push(total),
            }
        }
        anyhow::ensure!(
            record.totals.len() == record.windows.len(),
            "found no end; accepted: a whole record"
        );
        Ok(record)
    }

    /// The text of the record at `path` under another header. The run that `header` describes must be the
    /// same but for its name.
    ///
    /// # Errors
    /// If there is no such file.
    pub(crate) fn renamed(path: &Path, header: Header) -> anyhow::Result<String> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let (_, rest) = text.split_once('\n').with_context(|| path.display().to_string())?;
        let line = serde_json::to_string(&Line::Header(header)).expect("numbers and text are JSON");
        Ok(format!("{line}\n{rest}"))
    }

    /// The record of a run in which nothing has happened yet.
    pub(crate) fn new(header: Header) -> Self {
        let volumes = header.volumes.len();
        let windows = vec![Vec::new(); volumes];
        let (bounds, decisions) = (vec![Vec::new(); volumes], vec![Vec::new(); volumes]);
        Self { header, windows, depths: Vec::new(), bounds, decisions, totals: Vec::new() }
    }

    /// The text of the record's file.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let mut push = |line: &Line| {
            let json = serde_json::to_string(line).expect("numbers and text are JSON");
            writeln!(text, "{json}").expect("memory takes it");
        };
        push(&Line::Header(self.header.clone()));
        for (volume, windows) in self.windows.iter().enumerate() {
            windows.iter().for_each(|window| push(&Line::Window(volume, window.clone())));
        }
        self.depths.iter().for_each(|sample| push(&Line::Depth(*sample)));
        for (volume, bounds) in self.bounds.iter().enumerate() {
            bounds.iter().for_each(|bound| push(&Line::Bound(volume, *bound)));
        }
        for (volume, decisions) in self.decisions.iter().enumerate() {
            decisions.iter().for_each(|decision| push(&Line::Decision(volume, *decision)));
        }
        self.totals.iter().for_each(|total| push(&Line::Total(*total)));
        text
    }

    /// How long the judged part of the run was.
    pub fn judged(&self) -> Span {
        Span::from_micros(self.header.duration_us - self.header.warm_up_us)
    }
}
