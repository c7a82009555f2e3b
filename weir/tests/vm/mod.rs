//! Linux's own NBD client and its file systems on weir, in a virtual machine with a stock kernel: no test may load modules
//! into the kernel of a developer's machine, make its file systems fail, or wait for an unmount that hangs.
//!
//! The guest runs this same program: the tests in `guest` are ignored elsewhere, and one test boots a guest for all of them,
//! as a boot costs more than most of them do.

use std::process::Command;

use crate::harness::skipped;

mod guest;
mod kernel_client;
mod rounds;

pub(crate) use rounds::rounds;

/// Seconds for all of it. An idle machine takes a tenth; the guest's processor is emulated.
const LIMIT: &str = "2400";
/// The exit status of `run-in-vm` where no guest is to be had.
const UNAVAILABLE: i32 = 69;

#[test]
fn linux_and_its_file_systems_are_served_right_by_a_stock_kernel() {
    let program = std::env::current_exe().expect("a test has a program");
    let list = Command::new(&program).args(["--ignored", "--list", "vm::"]).output().expect("it runs again");
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let tests: Vec<_> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let ran = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/run-in-vm"))
        .args(["--mem", "3072", "--timeout", LIMIT, "--", "env"])
        .args(rounds::passed_on())
        .arg(&program)
        .args(["--ignored", "--test-threads=1", "vm::"])
        .output()
        .expect("scripts/run-in-vm is there");
    let (out, log) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if ran.status.code() == Some(UNAVAILABLE) {
        tests.iter().for_each(|test| skipped(test, log.lines().last().unwrap_or_default()));
        return;
    }
    let all = format!("test result: ok. {} passed; 0 failed", tests.len());
    assert!(ran.status.success() && out.contains(&all), "{}\n{out}\n{log}", ran.status);
}
