//! What cannot be tested on this machine, said and counted: a test that only passed would hide it.

use std::fs::OpenOptions;
use std::io::Write;

/// Notes that `what` was not tested, and `why`: on standard error, past what the test runner keeps to itself,
/// and in the file that `make test` counts at its end.
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
