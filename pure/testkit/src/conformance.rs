//! What every scheduler must obey, as tests that any of them can be put through.

use proptest::test_runner::{Config, TestRunner};
use weir_model::QueueDepth;
use weir_sched::Scheduler;

use crate::operations::{Harness, Operation, operations};

/// How many lists of operations each property is tried with.
const CASES: u32 = 150;

/// Tests that a scheduler issues each request once, in order within its volume, or gives it back to an abort; that it
/// is not idle while something waits; that the instants which it names are exact; and that it hands over
/// everything that waits.
///
/// `$make` takes the [`QueueDepth`] to begin with.
#[macro_export]
macro_rules! scheduler_conformance {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn keeps_account_of_every_request_and_of_every_instant_that_it_names() {
                $crate::conformance::keeps_account($make, false);
            }

            #[test]
            fn gives_equal_outputs_for_equal_inputs() {
                $crate::conformance::is_deterministic($make);
            }
        }
    };
}

/// [`scheduler_conformance!`], and that neither a volume's bound nor, but for what is past due, the depth is exceeded.
#[macro_export]
macro_rules! gate_conformance {
    ($name:ident, $make:expr) => {
        $crate::scheduler_conformance!($name, $make);

        #[test]
        fn $name() {
            $crate::conformance::keeps_account($make, true);
        }
    };
}

/// Runs random operations through a [`Harness`], which checks.
///
/// # Panics
/// With the smallest list of operations that breaks a rule.
pub fn keeps_account<S: Scheduler>(make: impl Fn(QueueDepth) -> S, has_gates: bool) {
    for_all_operations(|operations| {
        Harness::new(&make, has_gates).run(operations);
    });
}

/// Runs random operations twice.
///
/// # Panics
/// With the smallest list of operations whose outcomes differ.
pub fn is_deterministic<S: Scheduler>(make: impl Fn(QueueDepth) -> S) {
    behaves_like(&make, &make);
}

/// Runs random operations through two schedulers.
///
/// # Panics
/// With the smallest list of operations whose outcomes differ.
pub fn behaves_like<A: Scheduler, B: Scheduler>(
    one: impl Fn(QueueDepth) -> A,
    other: impl Fn(QueueDepth) -> B,
) {
    for_all_operations(|operations| {
        let (one, other) = (Harness::new(&one, false), Harness::new(&other, false));
        assert_eq!(one.run(operations), other.run(operations));
    });
}

fn for_all_operations(check: impl Fn(&[Operation])) {
    let mut runner = TestRunner::new(Config::with_cases(CASES));
    let result = runner.run(&operations(), |operations| {
        check(&operations);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
