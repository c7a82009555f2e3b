//! A recorded load, as an experiment replays it.

use std::path::{Path, PathBuf};

use weir_model::Span;
use weir_sim::TraceRequest;

use crate::experiment::TraceSpec;
use crate::trace;

/// The project's own recordings, from its directory.
pub(crate) const FOLDER: &str = "traces";

/// The path of a recording: in the folder that `WEIR_TRACES` names, or else among the project's own.
pub(crate) fn find(file: &str) -> PathBuf {
    let elsewhere = std::env::var_os("WEIR_TRACES").map(|folder| Path::new(&folder).join(file));
    elsewhere.filter(|path| path.exists()).unwrap_or_else(|| Path::new(FOLDER).join(file))
}

/// The recording that `spec` names: without its skipped beginning, faster, after a delay, and no longer than
/// `lasting`. It is read before the run begins, because a simulation cannot stop at a line that cannot be
/// read.
///
/// # Errors
/// If the recording cannot be read.
pub(crate) fn open(spec: &TraceSpec, lasting: Span) -> anyhow::Result<weir_sim::Trace> {
    let skip = spec.skip.map_or(Span::ZERO, |text| text.0);
    let delay = spec.delay.map_or(Span::ZERO, |text| text.0);
    let mut requests = Vec::new();
    for request in trace::open(&find(&spec.file), None)? {
        let request = request?;
        if request.at < skip {
            continue;
        }
        let recorded = request.at.as_secs_f64() - skip.as_secs_f64();
        let at = delay + Span::from_secs_f64(recorded / spec.speed);
        if at > lasting {
            break;
        }
        requests.push(TraceRequest { at, ..request });
    }
    Ok(Box::new(requests.into_iter()))
}
