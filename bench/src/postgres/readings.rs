//! What pgbench and fio report in the guest.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// One run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Reading {
    /// Transactions a second.
    pub(super) tps: f64,
    /// The mean time of a transaction.
    pub(super) latency_ms: f64,
    pub(super) hog_iops: f64,
}

impl Reading {
    /// The reports `NAME.pgbench` and `NAME.fio` in a directory.
    ///
    /// # Errors
    /// If there are none, or they say something else.
    pub(super) fn read(directory: &Path, name: &str) -> anyhow::Result<Self> {
        let text = |end: &str| {
            let path = directory.join(format!("{name}.{end}"));
            fs::read_to_string(&path).with_context(|| path.display().to_string())
        };
        let (pgbench, fio) = (text("pgbench")?, text("fio")?);
        let said = || format!("pgbench: {}", pgbench.trim());
        Ok(Self {
            tps: after(&pgbench, "tps = ").with_context(said)?,
            latency_ms: after(&pgbench, "latency average = ").with_context(said)?,
            hog_iops: reads_of_fio(&fio)?,
        })
    }
}

/// The number after this text.
fn after(text: &str, what: &str) -> Option<f64> {
    let (_, rest) = text.split_once(what)?;
    rest.split_whitespace().next()?.parse().ok()
}

fn reads_of_fio(output: &str) -> anyhow::Result<f64> {
    #[derive(Deserialize)]
    struct Output {
        jobs: [Job; 1],
    }
    #[derive(Deserialize)]
    struct Job {
        read: Read,
    }
    #[derive(Deserialize)]
    struct Read {
        iops: f64,
    }
    // fio's nbd engine prints a line of its own first.
    let json = output.find('{').map_or("", |start| &output[start..]);
    let Output { jobs: [job] } = serde_json::from_str(json).context("fio: its report")?;
    Ok(job.read.iops)
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tps, latency_ms, hog_iops } = self;
        write!(f, "{tps:.1} tps, {latency_ms:.0} ms, hog {hog_iops:.0} IO/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reports_of_both_are_read() {
        let pgbench = "number of failed transactions: 0 (0.000%)\nlatency average = 202.1 ms\n\
                       initial connection time = 40.2 ms\ntps = 19.79 (without initial connection time)\n";
        assert_eq!(after(pgbench, "tps = "), Some(19.79));
        assert_eq!(after(pgbench, "latency average = "), Some(202.1));
        assert_eq!(after("connection refused", "tps = "), None);
        let fio = "fio: connected to NBD server\n{ \"jobs\": [ { \"read\": { \"iops\": 612.5 } } ] }";
        assert!((reads_of_fio(fio).unwrap() - 612.5).abs() < 1e-9);
        assert!(reads_of_fio("fio: no such engine").is_err());
    }
}
