//! Linux's own NBD client and its file systems on weir, in a virtual machine with a stock kernel: no test may
//! load modules into the kernel of a developer's machine, make its file systems fail, or wait for an unmount
//! that hangs.
//!
//! The guest runs this same program. The first of the tests in `guest` that runs on a machine boots a guest
//! for all of them, as a boot costs more than most of them do, and each then tells how it went there.

use std::process::Command;
use std::sync::OnceLock;

use crate::harness::skipped;

mod guest;
mod kernel_client;
mod rounds;

pub(crate) use rounds::rounds;

/// Seconds for all of it. An idle machine takes a tenth; the guest's processor is emulated.
const LIMIT: &str = "2400";
/// The exit status of `run-in-vm` where no guest is to be had.
const UNAVAILABLE: i32 = 69;
/// Tells the program that it is in the guest.
const IN_GUEST: &str = "WEIR_IN_GUEST";

/// What became of the guest.
enum Guest {
    /// There is none, and why.
    Unavailable(String),
    /// What the tests said in it.
    Ran(String),
}

/// Makes the check of the test `name` if this is the guest; else tells how it went there.
///
/// # Panics
/// If it failed.
fn in_guest(name: &str, check: impl FnOnce()) {
    static GUEST: OnceLock<Guest> = OnceLock::new();
    if std::env::var_os(IN_GUEST).is_some() {
        return check();
    }
    match GUEST.get_or_init(boot) {
        Guest::Unavailable(why) => skipped(&format!("vm: {name}"), why),
        Guest::Ran(said) => assert!(said.contains(&format!("::{name} ... ok")), "{said}"),
    }
}

fn boot() -> Guest {
    let program = std::env::current_exe().expect("a test has a program");
    let ran = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/run-in-vm"))
        .args(["--mem", "3072", "--timeout", LIMIT, "--", "env"])
        .arg(format!("{IN_GUEST}=1"))
        .args(rounds::passed_on())
        .arg(&program)
        .args(["--test-threads=1", "vm::guest::"])
        .output()
        .expect("scripts/run-in-vm is there");
    let (out, log) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if ran.status.code() == Some(UNAVAILABLE) {
        return Guest::Unavailable(log.lines().last().unwrap_or_default().to_owned());
    }
    Guest::Ran(format!("{}\n{out}\n{log}", ran.status))
}
