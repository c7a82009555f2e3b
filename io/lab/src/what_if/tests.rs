//! Claims about which promises hold and which do not.

use std::num::NonZeroU32;

use hdrhistogram::Histogram;
use weir_model::{Iops, Slo, SloPoint, Span};

use super::*;
use crate::replay::Windows;

fn outcome(met: u64, missed: u64, out_of_contract: u64, queued: Span, device: Span) -> Outcome {
    Outcome {
        offered: 1,
        errors: 0,
        unanswered: 0,
        late: 0,
        late_max: Span::ZERO,
        elapsed: Span::from_secs(1),
        read_ns: Histogram::new(3).unwrap(),
        write_ns: Histogram::new(3).unwrap(),
        queued_time: queued,
        device_time: device,
        utilisation: Utilisation { members: 0.5, port: 0.25, nvram_full: 0.0 },
        windows: Windows { met, missed, out_of_contract },
    }
}

fn promised() -> VolumeConfig {
    let limit = Span::from_millis(10);
    let point = SloPoint { up_to: Iops::new(100.0).unwrap(), read: limit, write: limit };
    VolumeConfig { slo: Slo::new(vec![point]).ok(), ..VolumeConfig::default() }
}

#[test]
fn a_promise_holds_if_it_is_kept_in_99_of_100_windows() {
    let (queued, device) = (Span::ZERO, Span::from_secs(1));
    assert_eq!(answer(&promised(), &outcome(99, 1, 50, queued, device)), Answer::Holds);
    assert_eq!(
        answer(&promised(), &outcome(98, 2, 0, queued, device)),
        Answer::Fails(Binding::Disks { busy: 0.5 })
    );
    assert_eq!(answer(&VolumeConfig::default(), &outcome(0, 0, 0, queued, device)), Answer::NoPromise);
    assert_eq!(answer(&promised(), &outcome(0, 0, 0, queued, device)), Answer::NoPromise);
}

#[test]
fn a_load_that_is_always_above_its_slo_does_not_hold() {
    let always_above = outcome(0, 0, 60, Span::ZERO, Span::ZERO);
    assert_eq!(answer(&promised(), &always_above), Answer::Fails(Binding::Contract));
}

#[test]
fn what_binds_is_where_requests_wait() {
    let waits = outcome(1, 99, 0, Span::from_secs(3), Span::from_secs(1));
    assert_eq!(answer(&promised(), &waits), Answer::Fails(Binding::Depth { share: 0.75 }));
    let limited = VolumeConfig { concurrency: NonZeroU32::new(2), ..promised() };
    assert_eq!(answer(&limited, &waits), Answer::Fails(Binding::OwnLimit { share: 0.75 }));
}

#[test]
fn a_part_of_the_array_that_has_no_time_left_binds_even_if_requests_wait_before_it() {
    let saturated = |members, port, nvram_full| Outcome {
        utilisation: Utilisation { members, port, nvram_full },
        ..outcome(1, 99, 0, Span::from_secs(3), Span::from_secs(1))
    };
    for (outcome, binds) in [
        (saturated(0.97, 0.2, 1.0), Binding::Disks { busy: 0.97 }),
        (saturated(0.5, 0.95, 0.0), Binding::Port { busy: 0.95 }),
        (saturated(0.5, 0.2, 0.9), Binding::Nvram { full: 0.9 }),
    ] {
        assert_eq!(answer(&promised(), &outcome), Answer::Fails(binds));
    }
}

#[test]
fn what_binds_is_told_with_its_name_and_its_figure() {
    for (binding, words) in [
        (Binding::Disks { busy: 0.97 }, "disks of array fc60: busiest 97 % busy"),
        (Binding::Port { busy: 0.951 }, "ports of array fc60: busiest 95 % busy"),
        (Binding::Nvram { full: 0.4 }, "NVRAM of array fc60: full 40 % of the time"),
        (Binding::Depth { share: 0.75 }, "the queue depth of the pool: 75 % of its latency"),
        (Binding::OwnLimit { share: 0.75 }, "its own limit: 75 % of its latency"),
    ] {
        assert_eq!(binding.words("fc60"), words);
    }
}
