//! The actuator and the guard on a stock kernel, in a virtual machine.

use std::sync::OnceLock;

use weir_guest::Guest;

mod delays;
mod failures;
mod order;
mod processes;
mod restoration;
mod scene;
mod whole;

/// In the guest, runs the check of the test `name`. Outside, reports how that test went in the guest.
///
/// # Panics
/// If the test failed.
fn in_guest(name: &str, check: impl FnOnce()) {
    static GUEST: Guest = Guest {
        kind: "kernel",
        tests: "",
        memory: "1024",
        limit: "900",
        passes: &[],
        skipped: concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped"),
        outcome: OnceLock::new(),
    };
    GUEST.run(name, check);
}
