//! A recorded load, as an experiment replays it.

use std::path::PathBuf;

use weir_model::Span;
use weir_sim::TraceRequest;

use crate::experiment::TraceSpec;
use crate::trace;

/// Where recorded loads are looked for if the environment does not say.
const FOLDER: &str = "../shared/traces";

/// The folder of the recorded loads: `WEIR_TRACES`, or [`FOLDER`] from the working directory.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("WEIR_TRACES").map_or_else(|| FOLDER.into(), PathBuf::from)
}

/// The recording that `spec` names: the beginning left out, faster, after a delay, and no longer than `lasting`. Read
/// before the run begins, as a simulation has no way to stop at a line that cannot be read.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn open(spec: &TraceSpec, lasting: Span) -> anyhow::Result<weir_sim::Trace> {
    let skip = spec.skip.map_or(Span::ZERO, |text| text.0);
    let delay = spec.delay.map_or(Span::ZERO, |text| text.0);
    let mut requests = Vec::new();
    for request in trace::open(&folder().join(&spec.file), None)? {
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
