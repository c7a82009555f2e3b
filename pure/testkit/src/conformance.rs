//! The conformance suite: the rules that every scheduler must obey, as tests for any scheduler.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use proptest::test_runner::{Config, TestRunner};
use weir_model::{Completion, Instant, Io, IoId, IoKind, QueueDepth, Span, TimeShare, VolumeId};
use weir_sched::{Dispatch, Scheduler, VolumeKnobs};

use crate::operations::{Harness, Operation, operations};

/// How many lists of operations each property is tried with.
const CASES: u32 = 150;

/// Tests the rules of every scheduler. It issues each request once, in order within its volume, or gives it
/// back to an abort. It is not idle while a request waits. The instants that it names are exact. It hands
/// over every waiting request.
///
/// `$make` takes the [`QueueDepth`] to begin with.
#[macro_export]
macro_rules! scheduler_conformance {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn keeps_account_of_every_request_and_of_every_instant_that_it_names() {
                $crate::conformance::keeps_account($make, None);
            }

            #[test]
            fn gives_equal_outputs_for_equal_inputs() {
                $crate::conformance::is_deterministic($make);
            }
        }
    };
}

/// [`scheduler_conformance!`], and the rules of the gates. A volume's bound is never exceeded, and the depth
/// only by past-due requests. No request without a promise goes before a promised request that could go.
/// Requests without a promise that pass the depth or their own bound get no more than their share of the
/// device.
///
/// `$share` is that share of the device's time to begin with.
#[macro_export]
macro_rules! gate_conformance {
    ($name:ident, $share:expr, $make:expr) => {
        mod $name {
            use super::*;

            $crate::scheduler_conformance!(as_every_scheduler, $make);

            #[test]
            fn obeys_depth_concurrency_and_the_share_of_the_background() {
                $crate::conformance::keeps_account($make, Some($share));
            }

            #[test]
            fn obeys_a_bound_that_fell_once_the_excess_has_drained() {
                $crate::conformance::holds_once_the_excess_has_drained($make);
            }
        }
    };
}

/// Runs random operations through a [`Harness`], which checks the scheduler. `gates`: the scheduler has
/// gates, with this share for background requests.
///
/// # Panics
/// With the smallest list of operations that breaks a rule.
pub fn keeps_account<S: Scheduler>(make: impl Fn(QueueDepth) -> S, gates: Option<TimeShare>) {
    for_all_operations(true, |operations| {
        Harness::new(&make, gates).run(operations);
    });
}

/// Lowers a volume's bound below the number of its requests at the device, all of them past due. None of its
/// requests is issued until it has fewer at the device than the new bound. From then on it never has more
/// than the bound, and all of its requests are issued.
///
/// # Panics
/// With the smallest bounds for which that does not hold.
pub fn holds_once_the_excess_has_drained<S: Scheduler>(make: impl Fn(QueueDepth) -> S) {
    let mut runner = TestRunner::new(Config::with_cases(CASES));
    let result = runner.run(&(1_u32..=32, 1_u32..=32, 0_u32..64), |(one, other, more)| {
        let (high, low) = (one.max(other), one.min(other));
        Drain::new(make(QueueDepth::MAX), high, high + more).to(low);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// A scheduler with one volume, whose requests were due when they came.
struct Drain<S> {
    scheduler: S,
    at_device: VecDeque<IoId>,
    left: u32,
}

impl<S: Scheduler> Drain<S> {
    /// Submits `requests`, of which the bound `high` lets as many through.
    fn new(scheduler: S, high: u32, requests: u32) -> Self {
        let mut drain = Self { scheduler, at_device: VecDeque::new(), left: requests };
        drain.set_bound(high);
        for slot in 0..requests {
            let id = IoId { slot, generation: 0 };
            let (volume, kind, arrived) = (VolumeId(0), IoKind::Read, Instant::ORIGIN);
            drain
                .scheduler
                .submit(Instant::ORIGIN, Io { id, volume, kind, offset: 0, length: 4096, arrived });
        }
        drain.issue();
        assert_eq!(drain.at_device.len(), high as usize);
        drain
    }

    fn set_bound(&mut self, bound: u32) {
        let knobs =
            VolumeKnobs { concurrency: NonZeroU32::new(bound), ..VolumeKnobs::with_target(Span::ZERO) };
        self.scheduler.set_volume(Instant::ORIGIN, VolumeId(0), &knobs);
    }

    fn issue(&mut self) {
        while let Dispatch::Issue(io) = self.scheduler.poll_dispatch(Instant::ORIGIN) {
            self.at_device.push_back(io.id);
        }
    }

    /// Lowers the bound to `low`, and completes one request after the other until none is left.
    fn to(mut self, low: u32) {
        self.set_bound(low);
        self.issue();
        while let Some(id) = self.at_device.pop_front() {
            self.scheduler.on_complete(Instant::ORIGIN, &Completion { id, volume: VolumeId(0), ok: true });
            self.left -= 1;
            let before = self.at_device.len();
            self.issue();
            let now = self.at_device.len();
            let drained = now <= low as usize;
            assert!(now == before || drained, "{now} at the device, {before} before, at a bound of {low}");
        }
        assert_eq!(self.left, 0, "some of it never left");
    }
}

/// Runs random operations twice.
///
/// # Panics
/// With the smallest list of operations whose outcomes differ.
pub fn is_deterministic<S: Scheduler>(make: impl Fn(QueueDepth) -> S) {
    for_all_operations(true, |operations| {
        let (one, other) = (Harness::new(&make, None), Harness::new(&make, None));
        assert_eq!(one.run(operations), other.run(operations));
    });
}

/// Runs random operations through two schedulers. Turns by time are none of them: the oracle has only turns
/// by requests.
///
/// # Panics
/// With the smallest list of operations whose outcomes differ.
pub fn behaves_like<A: Scheduler, B: Scheduler>(
    one: impl Fn(QueueDepth) -> A,
    other: impl Fn(QueueDepth) -> B,
) {
    for_all_operations(false, |operations| {
        let (one, other) = (Harness::new(&one, None), Harness::new(&other, None));
        assert_eq!(one.run(operations), other.run(operations));
    });
}

fn for_all_operations(quanta: bool, check: impl Fn(&[Operation])) {
    let mut runner = TestRunner::new(Config::with_cases(CASES));
    let result = runner.run(&operations(quanta), |operations| {
        check(&operations);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
