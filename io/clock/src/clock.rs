//! The clock of the machine, in the project's own [`Instant`].

use std::num::NonZeroU32;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use weir_model::{Instant, Span};

/// The kernel's clock of the time since the machine was started (`CLOCK_BOOTTIME`). It never goes back, and
/// it goes on while the machine sleeps.
///
/// A lease needs a clock that goes on during sleep. A gateway holds a grant for a limited time, and that time
/// passes for everybody else while the gateway's machine sleeps. With a clock that stops (`CLOCK_MONOTONIC`),
/// the gateway would wake up with a lease that was over long ago. It would then use bounds that other
/// gateways have been granted meanwhile. There is one clock for all instants and not a second one for leases,
/// because instants of two clocks cannot be compared.
///
/// The processes of a machine can compare their instants. So the decisions of several gateways, each in a
/// recording of its own, can be put in order. The standard library's clock has an origin of its own in each
/// process. With it, the order would need the time of day as well, which is set back now and then.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    speed: NonZeroU32,
}

impl Clock {
    /// The clock.
    pub const fn new() -> Self {
        Self { speed: NonZeroU32::MIN }
    }

    /// A clock on which `speed` seconds pass in a second: for an experiment that takes an hour, and is run
    /// in minutes with everything smaller by as much.
    pub const fn sped_up(speed: NonZeroU32) -> Self {
        Self { speed }
    }

    /// The time since the machine was started, to the nanosecond. Never goes back; costs no system call.
    pub fn now(self) -> Instant {
        let now = clock_gettime(ClockId::Boottime);
        let part = |part: i64| u64::try_from(part).expect("the clock begins at zero with the machine");
        let since_start = Span::from_secs(part(now.tv_sec)) + Span::from_nanos(part(now.tv_nsec));
        Instant::ORIGIN + since_start.saturating_mul(u64::from(self.speed.get()))
    }

    /// How long it takes until `span` has passed on this clock. For timers, which know no other clock than
    /// the machine's.
    pub fn takes(self, span: Span) -> Duration {
        Duration::from(span) / self.speed.get()
    }

    /// The time of day, in milliseconds of Unix time; zero before 1970. It jumps when somebody sets the
    /// clock, so it is for people and for what outlives the machine's start, and no span is measured with
    /// it. It is as fast as the machine's, also on a clock that is sped up.
    #[allow(clippy::unused_self)] // whoever reads a clock was given one
    pub fn unix_ms(self) -> u64 {
        let now = clock_gettime(ClockId::Realtime);
        let part = |part: i64| u64::try_from(part).unwrap_or(0);
        part(now.tv_sec).saturating_mul(1_000).saturating_add(part(now.tv_nsec) / 1_000_000)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// Set if the test below runs itself again: how many seconds the machine seems to have slept.
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
    fn on_a_clock_that_is_sped_up_more_time_passes_and_a_span_takes_less() {
        let (usual, fast) = (Clock::new(), Clock::sped_up(NonZeroU32::new(50).unwrap()));
        let before = usual.now().since(Instant::ORIGIN);
        let between = fast.now().since(Instant::ORIGIN);
        let after = usual.now().since(Instant::ORIGIN);
        assert!(before.saturating_mul(50) <= between && between <= after.saturating_mul(50));
        assert_eq!(fast.takes(Span::from_secs(1)), Duration::from_millis(20));
        assert_eq!(usual.takes(Span::from_secs(1)), Duration::from_secs(1));
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
