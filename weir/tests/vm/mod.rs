//! Linux's own NBD client and its file systems on weir, and the packet-delay agent at Linux's iSCSI targets:
//! in a virtual machine with a stock kernel. On a developer's own machine, no test may load kernel modules,
//! make file systems fail, or wait for an unmount that hangs.
//!
//! The guest runs this same program. The first of the tests in `guest` that runs on a machine boots one guest
//! for all of them, because a boot takes longer than most tests. Each test then reports how it went in the
//! guest.

use std::process::Command;
use std::sync::OnceLock;

use crate::harness::skipped;

mod guest;
mod initiator;
mod kernel_client;
mod rounds;

pub(crate) use rounds::rounds;

/// The time limit for all of it, in seconds. An idle machine needs a tenth; the guest's processor is
/// emulated.
const LIMIT: &str = "2400";
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
