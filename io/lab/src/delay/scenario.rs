//! What is set up before an iSCSI target, as the file of an experiment says it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;
use weir_model::{Iops, Span};

use crate::quantities::{Bytes, Rate, Size, Text};

/// How often the counters are read, the law steps, and a sample is taken: the paper's interval.
pub const SAMPLE: Span = Span::from_millis(100);

/// The set-up of all runs of an experiment.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Whether a model says nothing about it, so that it is measured on a real kernel only.
    #[serde(default)]
    pub real_only: bool,
    /// How many times longer everything takes on a real kernel, so that its processor counts for less beside
    /// the disk.
    #[serde(default = "usual_slow_motion")]
    pub slow_motion: NonZeroU32,
    /// The disk of each volume group.
    pub disk: DiskSpec,
    /// The network between each initiator and the target.
    pub link: LinkSpec,
    /// The initiators, by name. Each has a logical volume of its own.
    pub initiator: BTreeMap<String, InitiatorSpec>,
    /// The runs, by name.
    pub run: BTreeMap<String, RunSpec>,
}

/// By how much most experiments are slower on a real kernel.
fn usual_slow_motion() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(2)
}

/// A disk that works on one request at a time, in the order of their coming. Where a request lies on the disk
/// makes no difference.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// How long a request takes on average.
    pub service_time: Text<Span>,
    /// By how much of that a request may take less or more; uniformly distributed. From 0 to 1.
    pub spread: f64,
}

/// The network between each initiator and the target.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// The way there and back, together with what initiator and target need for a request.
    pub round_trip: Text<Span>,
    /// Bytes a second in each direction, for each initiator.
    pub bandwidth: Text<Rate>,
}

/// An initiator, with its load on its logical volume.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitiatorSpec {
    /// Whether it reads or writes.
    pub direction: Direction,
    /// Where its requests lie.
    pub pattern: Pattern,
    /// Bytes of a request.
    pub request: Text<Bytes>,
    /// How many requests it has outstanding at most.
    pub threads: NonZeroU32,
    /// How many requests a second it begins at most; absent: as many as it can.
    pub pace: Option<Text<Iops>>,
    /// Whether a write waits until the target asks for its data (R2T). Otherwise the data come with the
    /// command.
    #[serde(default)]
    pub r2t: bool,
    /// The volume group of its logical volume.
    #[serde(default = "first_group")]
    pub group: String,
    /// When it begins; absent: at once.
    pub start: Option<Text<Span>>,
    /// For how long it works until it pauses; absent: to the end.
    pub burst: Option<Text<Span>>,
    /// For how long it pauses until it works again; absent: to the end.
    pub pause: Option<Text<Span>>,
}

/// What an initiator does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// Where the requests of an initiator lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Each after the one before.
    Sequential,
    /// Anywhere.
    Random,
}

/// One run.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// A few words about the run, for the head of its column in a figure.
    pub says: String,
    /// The initiators; absent: all of them.
    pub initiators: Option<Vec<String>>,
    /// How long the run lasts; absent: until the jobs of its curve are done.
    pub duration: Option<Text<Span>>,
    /// Who is delayed.
    pub throttle: ThrottleSpec,
}

/// Who is delayed, and by how much.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThrottleSpec {
    /// Nobody.
    None,
    /// The delays are set at these times.
    Fixed(Vec<FixedDelay>),
    /// The run's only initiator does jobs under each of several delays.
    Curve(CurveSpec),
    /// What `weir throttle` does.
    Pid(PidSpec),
}

/// A change of the delay of some initiators.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedDelay {
    /// When, after the start of the run.
    pub at: Text<Span>,
    /// How long each packet to them is delayed from then on.
    pub delay: Text<Span>,
    /// The initiators.
    pub initiators: Vec<String>,
}

/// Jobs under each of several delays. There are no samples, only the durations of the jobs.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveSpec {
    /// The delays, rising from zero.
    pub delays: Vec<Text<Span>>,
    /// The bytes that a job reads or writes.
    pub job: Text<Size>,
    /// How often the job is done under each delay.
    pub repeats: u32,
}

/// The settings of `weir throttle`. All others, above all the gains, are its defaults.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PidSpec {
    /// The read wait that must not be exceeded.
    pub threshold: Text<Span>,
    /// The setpoint as a share of the threshold.
    pub setpoint: f64,
    /// The longest delay.
    pub ceiling: Text<Span>,
    /// How the members are chosen.
    pub members: Members,
}

/// How the initiators that are delayed are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Members {
    /// By name: all that write are forced, and all that read are exempt.
    Named,
    /// By what they write: nothing is configured but the threshold.
    Found,
    /// By name: all are exempt. The law sees the wait, and may delay nobody.
    Nobody,
}

impl Scenario {
    /// The initiators of a run, in the order of their names. None if there is no such run.
    pub fn initiators(&self, run: &str) -> Vec<(&str, &InitiatorSpec)> {
        let Some(run) = self.run.get(run) else { return Vec::new() };
        let takes_part =
            |name: &str| run.initiators.as_ref().is_none_or(|names| names.iter().any(|known| known == name));
        let all = self.initiator.iter().map(|(name, spec)| (name.as_str(), spec));
        all.filter(|(name, _)| takes_part(name)).collect()
    }

    /// The first thing that refers to nothing or cannot be: its key, and what is wrong with it.
    pub(crate) fn problem(&self) -> Option<(String, String)> {
        if !(0.0..=1.0).contains(&self.disk.spread) {
            let found = format!("found {}; accepted: from 0 to 1", self.disk.spread);
            return Some(("delay.disk.spread".into(), found));
        }
        let stands_still = |spec: &InitiatorSpec| spec.burst.is_some_and(|burst| burst.0.is_zero());
        if let Some((name, _)) = self.initiator.iter().find(|(_, spec)| stands_still(spec)) {
            return Some((
                format!("delay.initiator.{name}.burst"),
                "found zero; accepted: above zero".into(),
            ));
        }
        self.run.iter().find_map(|(name, run)| {
            let (key, problem) = self.problem_of(name, run)?;
            Some((format!("delay.run.{name}.{key}"), problem))
        })
    }

    fn problem_of(&self, name: &str, run: &RunSpec) -> Option<(&'static str, String)> {
        let known: Vec<_> = self.initiator.keys().map(String::as_str).collect();
        let unknown = |wanted: &str| {
            let found = || format!("found \"{wanted}\"; accepted: one of {}", known.join(", "));
            (!known.contains(&wanted)).then(found)
        };
        if let Some(problem) = run.initiators.iter().flatten().find_map(|name| unknown(name)) {
            return Some(("initiators", problem));
        }
        match &run.throttle {
            ThrottleSpec::Curve(_) if run.duration.is_some() || self.initiators(name).len() != 1 => {
                Some(("throttle.curve", "accepted: with one initiator, and without a duration".into()))
            }
            ThrottleSpec::Curve(_) => None,
            _ if run.duration.is_none() => Some(("duration", "accepted: a duration such as \"60s\"".into())),
            ThrottleSpec::Fixed(changes) => {
                let names = changes.iter().flat_map(|change| &change.initiators);
                names.into_iter().find_map(|name| unknown(name)).map(|problem| ("throttle.fixed", problem))
            }
            ThrottleSpec::None | ThrottleSpec::Pid(_) => None,
        }
    }
}

impl InitiatorSpec {
    /// When it works until the end of the run: from and to, after the start of the run.
    pub fn bursts(&self, end: Span) -> Vec<(Span, Span)> {
        let mut from = self.start.map_or(Span::ZERO, |start| start.0);
        let mut bursts = Vec::new();
        while from < end {
            let to = self.burst.map_or(end, |burst| (from + burst.0).min(end));
            bursts.push((from, to));
            from = self.pause.map_or(end, |pause| to + pause.0);
        }
        bursts
    }
}

fn first_group() -> String {
    "vg0".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_refers_to_nothing_or_cannot_be_is_named() {
        let text = include_str!("../../../../experiments/packet-delay/delay-curve.toml");
        let message = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            let changed = text.replacen(from, to, 1);
            let experiment = crate::experiment::Experiment::parse("x/delay-curve.toml", &changed);
            experiment.expect_err("it is wrong").to_string()
        };
        for (from, to, wanted) in [
            ("spread = 0.33", "spread = 1.5", "delay.disk.spread: found 1.5; accepted: from 0 to 1"),
            (
                "[\"reader1\"]",
                "[\"db\"]",
                "delay.run.read.initiators: found \"db\"; accepted: one of reader1,",
            ),
            (
                "[\"reader1\"]",
                "[\"reader1\", \"writer1\"]",
                "delay.run.read.throttle.curve: accepted: with one",
            ),
            ("threads = 1", "threads = 1\nburst = \"0s\"", "delay.initiator.reader1.burst: found zero"),
            ("\"0.5ms\"", "\"soon\"", "found \"soon\"; accepted: a duration"),
            ("runs = [\"read\"", "runs = [\"reed\"", "plot.runs: found \"reed\"; accepted: one of read,"),
        ] {
            let found = message(from, to);
            assert!(found.contains(wanted), "{found}");
        }
    }

    #[test]
    fn an_initiator_works_in_bursts_until_the_end() {
        let text = "direction = \"read\"\npattern = \"random\"\nrequest = \"4KiB\"\nthreads = 1\n";
        let bursts = |more: &str| -> Vec<_> {
            let spec: InitiatorSpec = toml::from_str(&format!("{text}{more}")).unwrap();
            let whole = |span: Span| span.as_micros() / 1_000_000;
            spec.bursts(Span::from_secs(42)).iter().map(|(from, to)| (whole(*from), whole(*to))).collect()
        };
        assert_eq!(bursts(""), [(0, 42)]);
        assert_eq!(bursts("start = \"3s\"\nburst = \"5s\""), [(3, 8)]);
        let all = "start = \"10s\"\nburst = \"15s\"\npause = \"5s\"";
        assert_eq!(bursts(all), [(10, 25), (30, 42)]);
    }
}
