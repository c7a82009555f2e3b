//! For tests only: tests that run on a stock kernel in a virtual machine, and notes of tests that cannot run.
//!
//! On a developer's own machine, no test may load kernel modules, change queues or nftables, or make file
//! systems fail. The guest runs the same test program. The first test boots one guest for all of them,
//! because a boot takes longer than most tests. Each test then reports how it went in the guest.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;
use std::sync::OnceLock;

/// The exit status of `run-in-vm` if there can be no guest.
const UNAVAILABLE: i32 = 69;
/// Tells the program that it is in the guest.
const IN_GUEST: &str = "WEIR_IN_GUEST";

/// The guest of a test program.
pub struct Guest {
    /// The kind of tests, for the note of those that are skipped.
    pub kind: &'static str,
    /// The part of the program's tests that run in the guest: the beginning of their names.
    pub tests: &'static str,
    /// The memory of the guest, in MiB.
    pub memory: &'static str,
    /// The time limit for all tests, in seconds. The guest's processor is emulated, so an idle machine should
    /// need no more than a tenth.
    pub limit: &'static str,
    /// The environment variables that the guest gets, where they are set.
    pub passes: &'static [&'static str],
    /// The file that notes skipped tests: `skipped` in `CARGO_TARGET_TMPDIR`, which only tests know.
    pub skipped: &'static str,
    /// What came of it. It begins empty.
    pub outcome: OnceLock<Outcome>,
}

/// What came of a guest.
pub enum Outcome {
    /// There is none, for this reason.
    Unavailable(String),
    /// The output of the tests in it.
    Ran(String),
}

impl Guest {
    /// In the guest, runs the check of the test `name`. Outside, reports how that test went in the guest.
    ///
    /// # Panics
    /// If the test failed.
    pub fn run(&self, name: &str, check: impl FnOnce()) {
        if std::env::var_os(IN_GUEST).is_some() {
            return check();
        }
        match self.outcome.get_or_init(|| self.boot()) {
            Outcome::Unavailable(why) => skipped(self.skipped, &format!("{}: {name}", self.kind), why),
            Outcome::Ran(said) => assert!(said.contains(&format!("::{name} ... ok")), "{said}"),
        }
    }

    fn boot(&self) -> Outcome {
        let program = std::env::current_exe().expect("a test has a program");
        let variable = |name: &&str| std::env::var(name).ok().map(|value| format!("{name}={value}"));
        let ran = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/run-in-vm"))
            .args(["--mem", self.memory, "--timeout", self.limit, "--", "env"])
            .arg(format!("{IN_GUEST}=1"))
            .args(self.passes.iter().filter_map(variable))
            .arg(&program)
            .args(["--test-threads=1", self.tests])
            .output()
            .expect("scripts/run-in-vm is there");
        let (out, log) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        if ran.status.code() == Some(UNAVAILABLE) {
            return Outcome::Unavailable(log.lines().last().unwrap_or_default().to_owned());
        }
        Outcome::Ran(format!("{}\n{out}\n{log}", ran.status))
    }
}

/// Notes that `what` was not tested, and `why`. The note goes to standard error, where the test runner does
/// not capture it, and to the file `list`, which `make test` counts at its end. If such a test just passed,
/// nobody would know.
///
/// # Panics
/// If that file cannot be written.
pub fn skipped(list: &str, what: &str, why: &str) {
    let line = format!("skipped: {what}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes()); // nobody may be there to read it
    let file = OpenOptions::new().create(true).append(true).open(list);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the build has a directory for tests");
}
