//! The clock of the machine, in the project's own [`Instant`].

use rustix::time::{ClockId, clock_gettime};
use weir_model::{Instant, Span};

/// The kernel's clock of the time since the machine was started: it never goes back, and it goes on while the
/// machine sleeps (`CLOCK_BOOTTIME`).
///
/// What a gateway was granted, it was granted for a time that goes by for all others while it sleeps. A clock
/// that stops with the machine (`CLOCK_MONOTONIC`) would let it wake up with a lease that was over long ago,
/// and with it take what others have by then. One clock for all instants, and not one more for leases, as
/// instants of two clocks cannot be compared.
///
/// The processes of a machine can compare their instants: what several gateways decided and when, each in a
/// recording of its own, can be put in order. A clock with an origin of its own for each process, as that of
/// the standard library has, would need the time of day for it, which is set back now and then.
#[derive(Clone, Copy, Default, Debug)]
pub struct Clock;

impl Clock {
    /// The clock.
    pub const fn new() -> Self {
        Self
    }

    /// The time since the machine was started, to the nanosecond. Never goes back; costs no system call.
    #[allow(clippy::unused_self)] // whoever reads a clock was given one
    pub fn now(self) -> Instant {
        let now = clock_gettime(ClockId::Boottime);
        let part = |part: i64| u64::try_from(part).expect("the clock begins at zero with the machine");
        Instant::ORIGIN + Span::from_secs(part(now.tv_sec)) + Span::from_nanos(part(now.tv_nsec))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// Set where the test below runs itself once more: how many seconds the machine seems to have slept.
    const SLEPT: &str = "WEIR_TEST_SLEPT";

    /// A time namespace shows the process a machine that slept: its boot time is ahead of its monotonic time.
    #[test]
    fn the_clock_counts_the_time_that_the_machine_slept() {
        const NAME: &str = "clock::tests::the_clock_counts_the_time_that_the_machine_slept";
        let seconds = |id| clock_gettime(id).tv_sec.cast_unsigned();
        if let Ok(slept) = std::env::var(SLEPT) {
            let since_start = Clock::new().now().since(Instant::ORIGIN);
            let awake = Span::from_secs(seconds(ClockId::Monotonic));
            assert!(since_start >= awake + Span::from_secs(slept.parse().unwrap()), "{since_start} {awake}");
            return;
        }
        let slept = "5000";
        let asleep = |program: &Path| {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--time", "--boottime", slept]).arg(program);
            command
        };
        if !asleep(Path::new("true")).status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: no time namespace can be had here");
            return;
        }
        let mut again = asleep(&std::env::current_exe().unwrap());
        let outcome = again.args(["--exact", NAME]).env(SLEPT, slept).output().unwrap();
        assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
    }

    #[test]
    fn time_never_goes_back_and_copies_agree() {
        let clock = Clock::new();
        let copy = clock;
        let first = clock.now();
        let second = copy.now();
        assert!(first <= second && second <= clock.now());
    }
}
