//! Tests that cannot run on this machine, reported and counted. If they just passed, nobody would know.

use std::fs::OpenOptions;
use std::io::Write;

/// Notes that `what` was not tested, and `why`. The note goes to standard error, where the test runner does
/// not capture it, and to the file that `make test` counts at its end.
///
/// # Panics
/// If that file cannot be written.
pub(crate) fn skipped(what: &str, why: &str) {
    let line = format!("skipped: {what}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes()); // nobody may be there to read it
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped");
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the build has a directory for tests");
}
