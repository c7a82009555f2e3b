//! Records made by hand.

use std::collections::BTreeMap;

use weir_model::Verdict;

use super::Records;
use crate::run::{Header, Record, VolumeTotal, Window};

/// The header of a run of `volumes` that lasts a minute.
pub(crate) fn header(volumes: &[&str]) -> Header {
    Header {
        experiment: "made-by-hand".to_owned(),
        run: "run".to_owned(),
        seed: 1,
        volumes: volumes.iter().map(|name| (*name).to_owned()).collect(),
        targets: vec![None; volumes.len()],
        value: None,
        warm_up_us: 0,
        duration_us: 60_000_000,
        commit: String::new(),
        program: String::new(),
        hash: String::new(),
        configuration: String::new(),
    }
}

/// A window that ends at `second`, with these counts of requests and this mean latency. The target is 50 ms.
pub(crate) fn window(second: u64, offered: u64, completed: u64, mean_ms: u64) -> Window {
    let verdict = match (completed, mean_ms) {
        (0, _) => Verdict::Idle,
        (_, ..=50) => Verdict::Met,
        _ => Verdict::Missed,
    };
    Window {
        end_us: second * 1_000_000,
        offered,
        completed,
        reads: completed,
        bytes: completed * 4096,
        read_us: None,
        write_us: None,
        mean_us: (completed > 0).then_some(mean_ms * 1000),
        p50_us: None,
        p95_us: None,
        p99_us: None,
        target_us: Some(50_000),
        verdict: Some(verdict),
    }
}

/// A record of these volumes with these windows.
pub(crate) fn record(volumes: &[(&str, Vec<Window>)]) -> Record {
    let names: Vec<_> = volumes.iter().map(|(name, _)| *name).collect();
    Record {
        windows: volumes.iter().map(|(_, windows)| windows.clone()).collect(),
        totals: vec![VolumeTotal::default(); volumes.len()],
        ..Record::new(header(&names))
    }
}

/// Records of runs with these names.
pub(crate) fn records(runs: Vec<(&str, Record)>) -> Records {
    let runs = runs.into_iter().map(|(name, record)| (name.to_owned(), record)).collect();
    Records {
        seed: 1,
        runs,
        measured: BTreeMap::new(),
        bulk: BTreeMap::new(),
        curves: BTreeMap::new(),
        commit: String::new(),
    }
}
