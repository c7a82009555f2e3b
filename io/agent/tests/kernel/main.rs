//! The actuator and the guard on a stock kernel, in a virtual machine: on a developer's own machine, no test
//! may change queues or nftables, or load kernel modules.
//!
//! The guest runs this same program. The first test boots one guest for all of them, because a boot takes
//! longer than most tests. Each test then reports how it went in the guest.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;
use std::sync::OnceLock;

mod delays;
mod failures;
mod order;
mod processes;
mod restoration;
mod scene;

/// The time limit for all of it, in seconds. An idle machine needs a tenth; the guest's processor is
/// emulated.
const LIMIT: &str = "900";
/// The exit status of `run-in-vm` if there can be no guest.
const UNAVAILABLE: i32 = 69;
/// Tells the program that it is in the guest.
const IN_GUEST: &str = "WEIR_IN_GUEST";

/// The result of the guest.
enum Guest {
    /// There is none, for this reason.
    Unavailable(String),
    /// The output of the tests in it.
    Ran(String),
}

/// In the guest, runs the check of the test `name`. Outside, reports how that test went in the guest.
///
/// # Panics
/// If the test failed.
fn in_guest(name: &str, check: impl FnOnce()) {
    static GUEST: OnceLock<Guest> = OnceLock::new();
    if std::env::var_os(IN_GUEST).is_some() {
        return check();
    }
    match GUEST.get_or_init(boot) {
        Guest::Unavailable(why) => skipped(&format!("kernel: {name}"), why),
        Guest::Ran(said) => assert!(said.contains(&format!("::{name} ... ok")), "{said}"),
    }
}

fn boot() -> Guest {
    let program = std::env::current_exe().expect("a test has a program");
    let ran = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/run-in-vm"))
        .args(["--mem", "1024", "--timeout", LIMIT, "--", "env"])
        .arg(format!("{IN_GUEST}=1"))
        .arg(&program)
        .args(["--test-threads=1"])
        .output()
        .expect("scripts/run-in-vm is there");
    let (out, log) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if ran.status.code() == Some(UNAVAILABLE) {
        return Guest::Unavailable(log.lines().last().unwrap_or_default().to_owned());
    }
    Guest::Ran(format!("{}\n{out}\n{log}", ran.status))
}

/// Notes a test that this machine cannot do, for the count at the end of `make test`.
fn skipped(what: &str, why: &str) {
    let line = format!("skipped: {what}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes()); // nobody may be there to read it
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped");
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the build has a directory for tests");
}
