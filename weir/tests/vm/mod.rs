//! Linux's own NBD client and its file systems on weir, and the packet-delay agent at Linux's iSCSI targets:
//! on a stock kernel, in a virtual machine.

use std::sync::OnceLock;

use weir_guest::Guest;

mod guest;
mod initiator;
mod kernel_client;
mod rounds;

pub(crate) use rounds::rounds;

/// In the guest, runs the check of the test `name`. Outside, reports how that test went in the guest.
///
/// # Panics
/// If the test failed.
fn in_guest(name: &str, check: impl FnOnce()) {
    static GUEST: Guest = Guest {
        kind: "vm",
        tests: "vm::guest::",
        memory: "3072",
        limit: "2400",
        passes: &[rounds::VARIABLE],
        skipped: concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped"),
        outcome: OnceLock::new(),
    };
    GUEST.run(name, check);
}
