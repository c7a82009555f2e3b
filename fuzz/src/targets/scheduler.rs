//! A scheduler, with legal calls in any order. The harness of `weir-testkit` keeps account, and the naive
//! oracle must decide the same.

use std::num::NonZeroU32;

use weir_model::{Bandwidth, IoKind, Iops, QueueDepth, Span, TimeShare, VolumeId};
use weir_sched::{BackgroundKnobs, Covered, Edf, PassThrough, VolumeKnobs};
use weir_testkit::OracleEdf;
use weir_testkit::operations::{Harness, Operation, Outcome, VOLUMES};

use super::Target;
use super::bytes::Bytes;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "scheduler",
    run,
    seeds,
    words: &[&[0, 0], &[1], &[5, 0, 15, 66, 64]],
    must_reach: &["issued", "waits", "at depth", "idle", "aborted", "taken"],
};

fn seeds() -> Vec<Script> {
    let busy: Vec<Vec<u8>> =
        (0..24_u8).map(|i| vec![0, i % 4, i % 3, i]).chain([vec![2], vec![3, 0, 1], vec![2]]).collect();
    let limited = vec![
        vec![7, 1, 3, 2, 1, 1],
        vec![0, 1, 0, 1],
        vec![0, 1, 1, 3],
        vec![0, 1, 2, 0],
        vec![2],
        vec![5, 0, 15, 66, 64],
        vec![2],
        vec![3, 0, 0],
        vec![1],
        vec![4, 0, 1],
        vec![8],
        vec![6, 2],
    ];
    let held_back = [vec![7, 2, 3], vec![9, 2, 0, 1], vec![9, 0, 0, 0]].into_iter().chain(busy.clone());
    let scan =
        |volume| (0..3_u8).flat_map(move |_| [vec![10, volume, 63], vec![2], vec![3, 0, 0], vec![3, 0, 1]]);
    let turns = [vec![7, 2, 3], vec![7, 3, 3], vec![9, 2, 0, 0], vec![11, 3]].into_iter();
    let turns: Vec<_> =
        turns.chain(scan(2)).chain(scan(3)).chain(busy.clone()).chain([vec![11, 0]]).collect();
    vec![Script::new(turns), Script::new(held_back.collect()), Script::new(busy), Script::new(limited)]
}

fn run(script: &Script, seen: &mut Seen) {
    let operations: Vec<Operation> = script.pieces.iter().map(|piece| operation(piece)).collect();
    operations.iter().for_each(|_| seen.message());
    let share = [TimeShare::PERCENT, TimeShare::ZERO, TimeShare::MAX][script.pieces.len() % 3];
    let outcomes = Harness::new(|depth| Edf::new(depth, share), Some(share)).run(&operations);
    // The oracle knows no turns by time.
    if !operations.iter().any(|operation| matches!(operation, Operation::SetQuantum(_))) {
        let oracle = Harness::new(|depth| OracleEdf::new(depth, share), Some(share)).run(&operations);
        assert_eq!(oracle, outcomes, "the oracle decides otherwise");
    }
    Harness::new(|_| PassThrough::new(), None).run(&operations);
    for outcome in &outcomes {
        seen.reach(match outcome {
            Outcome::Polled(weir_sched::Dispatch::Issue(_)) => "issued",
            Outcome::Polled(weir_sched::Dispatch::WaitUntil(_)) => "waits",
            Outcome::Polled(weir_sched::Dispatch::AtDepth { .. }) => "at depth",
            Outcome::Polled(weir_sched::Dispatch::Idle) => "idle",
            Outcome::Aborted(_) => "aborted",
            Outcome::Taken(_) => "taken",
        });
    }
}

fn operation(piece: &[u8]) -> Operation {
    let mut bytes = Bytes::new(piece);
    let call = bytes.u8() % 12;
    let volume = |bytes: &mut Bytes<'_>| VolumeId(u32::from(bytes.u8()) % VOLUMES);
    match call {
        0 => Operation::Submit {
            volume: volume(&mut bytes),
            kind: bytes.one_of(IoKind::ALL),
            length: bytes.one_of([512, 4096, 65_536, 1 << 20]),
        },
        1 => Operation::Poll,
        2 => Operation::Drain,
        3 => Operation::Complete(bytes.u16().into()),
        4 => Operation::Abort(bytes.u16().into()),
        5 => Operation::Advance(Span::from_nanos(bytes.u32().into())),
        6 => Operation::SetDepth(QueueDepth::new(1 + u32::from(bytes.u8()) % 16)),
        7 => Operation::SetVolume(volume(&mut bytes), knobs(&mut bytes)),
        8 => Operation::TakeQueued,
        9 => Operation::SetBackground(background_knobs(&mut bytes)),
        10 => Operation::Scan(volume(&mut bytes), u32::from(bytes.u8()) % 64),
        _ => Operation::SetQuantum(bytes.one_of([
            None,
            Some(Span::ZERO),
            Some(Span::from_nanos(1)),
            Some(Span::from_millis(2)),
            Some(Span::MAX),
        ])),
    }
}

fn background_knobs(bytes: &mut Bytes<'_>) -> BackgroundKnobs {
    BackgroundKnobs {
        most: bytes.one_of([0, 1, 3, u32::MAX]),
        share: bytes.one_of([TimeShare::PERCENT, TimeShare::ZERO, TimeShare::MAX]),
        least: bytes.one_of([Span::ZERO, Span::from_millis(2), Span::from_nanos(7), Span::MAX]),
    }
}

/// The rates that a promise covers, from a number up to 51: mostly all requests.
fn covered(number: u8) -> Covered {
    let iops = match number % 4 {
        1 => Iops::new(1.0),
        2 => Iops::new(3_333.0),
        _ => None,
    };
    let bandwidth = if number % 3 == 1 { Bandwidth::new(4_096) } else { None };
    Covered { iops, bandwidth }
}

fn knobs(bytes: &mut Bytes<'_>) -> VolumeKnobs {
    let due_after =
        bytes.one_of([Some(Span::ZERO), Some(Span::from_micros(50)), Some(Span::from_millis(5)), None]);
    let bounds = bytes.u8();
    VolumeKnobs {
        due_after,
        covered: covered(bounds / 5),
        concurrency: NonZeroU32::new(u32::from(bounds) % 5),
        max_iops: bytes.one_of([None, Some(1.0), Some(50.0), Some(3_333.0), Some(1e9)]).and_then(Iops::new),
        max_bandwidth: bytes
            .one_of([None, Some(100), Some(4_096), Some(1 << 30), Some(u64::MAX)])
            .and_then(Bandwidth::new),
        priority: bytes.one_of([0.001, 1.0, 4.0]).try_into().expect("above zero"),
    }
}
