//! Tests that cannot run on this machine, reported and counted.

/// Notes that `what` was not tested, and `why`.
///
/// # Panics
/// If the file of such notes cannot be written.
pub(crate) fn skipped(what: &str, why: &str) {
    weir_guest::skipped(concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped"), what, why);
}
