//! What was measured in a run before an iSCSI target: a file of JSON lines, the first of which is the header.

use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::json_lines;

/// Everything that was measured in a run. All instants are counted from the start of the run.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Measured {
    /// The names of the initiators. Everywhere else stands their place in this list.
    pub initiators: Vec<String>,
    /// When each initiator worked, in order of time.
    pub worked: Vec<Burst>,
    /// The changes of fixed delays, in order of time.
    pub changes: Vec<DelayChange>,
    /// The samples, one for each interval.
    pub samples: Vec<Sample>,
    /// The jobs, in the order in which they were done.
    pub jobs: Vec<Job>,
    /// What became of packets.
    pub tcp: Tcp,
}

/// The description of the run that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasuredHeader {
    /// The experiment.
    pub experiment: String,
    /// The run.
    pub run: String,
    /// The seed, or the number of the repetition.
    pub seed: u64,
    /// The bench that measured it.
    pub bench: String,
    /// The commit that the program was built from.
    pub commit: String,
    /// The hash of the program.
    pub program: String,
    /// The hash of the configuration.
    pub hash: String,
    /// The configuration, with every value in force.
    pub configuration: String,
}

/// An initiator worked from one instant to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Burst {
    /// The initiator.
    pub initiator: usize,
    /// From when on.
    pub from_us: u64,
    /// Until when.
    pub to_us: u64,
}

/// The delay of an initiator was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DelayChange {
    /// The initiator.
    pub initiator: usize,
    /// When.
    pub at_us: u64,
    /// To how much.
    pub delay_us: u64,
}

/// An interval.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// When it ended.
    pub at_us: u64,
    /// How many reads the disks finished in it, of all initiators.
    pub reads: u64,
    /// How long these were at the disks, in sum.
    pub read_us: u64,
    /// The law's EWMA of the wait at its end; zero without a law.
    pub ewma_us: u64,
    /// The threshold; zero without a law.
    pub threshold_us: u64,
    /// The delay of packets to members from its end on; zero while there is no member.
    pub delay_us: u64,
    /// The initiators that the law delays.
    pub members: Vec<usize>,
    /// The bytes that each initiator has read in it.
    pub read: Vec<u64>,
    /// The bytes that each initiator has written in it.
    pub written: Vec<u64>,
}

/// A job: so many bytes, read or written under a delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The delay.
    pub delay_us: u64,
    /// The bytes.
    pub bytes: u64,
    /// How long it took.
    pub took_us: u64,
}

/// How often TCP lost patience during the run, at both ends of all connections together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Tcp {
    /// Retransmission timers that ran out (`TcpExtTCPTimeouts`).
    pub timeouts: u64,
    /// Segments that were sent again (`TcpRetransSegs`).
    pub retransmitted: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header(MeasuredHeader),
    Initiator(String),
    Burst(Burst),
    Change(DelayChange),
    Sample(Sample),
    Job(Job),
    Tcp(Tcp),
}

impl MeasuredHeader {
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

impl Measured {
    /// What the record at `path` holds, and its header.
    ///
    /// # Errors
    /// If there is no such file, or it is no whole record.
    pub fn read(path: &Path) -> anyhow::Result<(MeasuredHeader, Self)> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// The text of the record's file.
    pub(crate) fn to_text(&self, header: &MeasuredHeader) -> String {
        let head = [Line::Header(header.clone())].into_iter();
        let lines = head
            .chain(self.initiators.iter().cloned().map(Line::Initiator))
            .chain(self.worked.iter().copied().map(Line::Burst))
            .chain(self.changes.iter().copied().map(Line::Change))
            .chain(self.samples.iter().cloned().map(Line::Sample))
            .chain(self.jobs.iter().copied().map(Line::Job));
        json_lines::to_text(lines.chain([Line::Tcp(self.tcp)]))
    }

    fn parse(text: &str) -> anyhow::Result<(MeasuredHeader, Self)> {
        let (mut header, mut measured, mut is_whole) = (None, Self::default(), false);
        for line in json_lines::parse(text) {
            match line? {
                Line::Header(found) => header = Some(found),
                Line::Initiator(name) => measured.initiators.push(name),
                Line::Burst(burst) => measured.worked.push(burst),
                Line::Change(change) => measured.changes.push(change),
                Line::Sample(sample) => measured.samples.push(sample),
                Line::Job(job) => measured.jobs.push(job),
                Line::Tcp(tcp) => (measured.tcp, is_whole) = (tcp, true),
            }
        }
        let header = header.context("found no header; accepted: a record that `weir lab run` wrote")?;
        anyhow::ensure!(is_whole, "found no end; accepted: a whole record");
        Ok((header, measured))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_half_a_record_is_refused() {
        let header = MeasuredHeader {
            experiment: "delay-pid".into(),
            run: "none".into(),
            seed: 1,
            bench: "simulated".into(),
            commit: String::new(),
            program: String::new(),
            hash: String::new(),
            configuration: String::new(),
        };
        let measured = Measured {
            initiators: vec!["db".into(), "backup".into()],
            worked: vec![Burst { initiator: 1, from_us: 5, to_us: 9 }],
            changes: vec![DelayChange { initiator: 1, at_us: 6, delay_us: 500 }],
            samples: vec![Sample { at_us: 100_000, members: vec![1], ..Sample::default() }],
            jobs: vec![Job { delay_us: 0, bytes: 4096, took_us: 3_000 }],
            tcp: Tcp { timeouts: 0, retransmitted: 2 },
        };
        let text = measured.to_text(&header);
        assert_eq!(Measured::parse(&text).unwrap(), (header, measured));
        let half = text.rsplit_once("{\"tcp\"").unwrap().0;
        assert!(Measured::parse(half).unwrap_err().to_string().contains("found no end"));
    }
}
