//! Random requests and failures: each request is answered once, and a second run is the same.

use proptest::prelude::*;

use super::*;

/// An event that happens to an array.
#[derive(Clone, Copy, Debug)]
enum Step {
    Submit(IoKind, u64, u64),
    Wait(u64),
    Fail(usize, usize),
    Rebuild(usize),
    Stall(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop::sample::select(vec![
        IoKind::Read,
        IoKind::Read,
        IoKind::Write,
        IoKind::Write,
        IoKind::Write,
        IoKind::Flush,
        IoKind::Trim,
    ]);
    let submit =
        (kind, 0..SIZE, 1_u64..200_000).prop_map(|(kind, at, length)| Step::Submit(kind, at, length));
    let near =
        (0_u64..40, 0_u64..20).prop_map(|(at, blocks)| Step::Submit(IoKind::Read, at * 4096, blocks * 4096));
    let fail = (0_usize..2, 0_usize..6).prop_map(|(unit, disk)| Step::Fail(unit, disk));
    let step = prop_oneof![
        40 => submit,
        20 => near,
        20 => (0_u64..20_000).prop_map(Step::Wait),
        1 => fail,
        2 => (0_usize..2).prop_map(Step::Rebuild),
        1 => (0_u64..100_000).prop_map(Step::Stall),
    ];
    prop::collection::vec(step, 1..300)
}

fn options() -> impl Strategy<Value = ArrayOptions> {
    let raid = prop::sample::select(vec![
        (RaidLevel::Raid0, 6),
        (RaidLevel::Raid1, 6),
        (RaidLevel::Raid5, 6),
        (RaidLevel::Raid5, 7),
    ]);
    let some = (0_u64..3, 0_u64..3, any::<bool>(), any::<bool>());
    let cache = some.prop_map(|(nvram, read_cache, flush, filled)| CacheOptions {
        nvram: nvram * 512 * 1024,
        destages: 4,
        filled: if filled { 0.3 } else { 0.0 },
        flush_after: flush.then_some(Span::from_millis(30)),
        read_cache: read_cache * 256 * 1024,
        prefetch: read_cache * 128 * 1024,
        ..CacheOptions::NONE
    });
    (raid, cache, any::<bool>(), 0_usize..3).prop_map(|((raid, members), cache, striped, ports)| {
        let bandwidth = Bandwidth::new(50_000_000).unwrap();
        let one = UnitOptions {
            cache,
            size: Some(20 * MIB),
            overhead: Span::from_micros(50),
            ..unit(raid, members)
        };
        let layout = if striped { Layout::Striped { unit_bytes: 64 * 1024 } } else { Layout::Concatenated };
        let ports = vec![LinkOptions { bandwidth, overhead: Span::ZERO }; ports];
        ArrayOptions { units: vec![one.clone(), one], layout, ports }
    })
}

/// Every answer and its time.
fn run(options: &ArrayOptions, steps: &[Step]) -> (u32, Vec<(Instant, Finished)>) {
    let mut rig = Rig::new(Array::new(options, Seed(3)));
    let size = rig.array.size();
    let mut answers = Vec::new();
    for step in steps {
        match *step {
            Step::Submit(kind, at, length) => {
                let offset = at % size;
                let length = u32::try_from(length.min(size - offset)).unwrap();
                rig.submit(kind, offset, if kind == IoKind::Flush { 0 } else { length });
            }
            Step::Wait(micros) => {
                rig.now = rig.now + Span::from_micros(micros);
                rig.array.handle_timeout(rig.now);
            }
            Step::Fail(unit, disk) => rig.array.fail_disk(rig.now, unit, disk),
            Step::Rebuild(unit) => rig.array.start_rebuild(rig.now, unit),
            Step::Stall(micros) => rig.array.stall(rig.now, rig.now + Span::from_micros(micros)),
        }
        answers.extend(std::iter::from_fn(|| rig.array.poll_finished()).map(|finished| (rig.now, finished)));
    }
    while let Some(finished) = rig.next() {
        answers.push((rig.now, finished));
    }
    (rig.tag, answers)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_command_is_answered_once_and_a_second_run_is_the_same(options in options(), steps in steps()) {
        let (submitted, answers) = run(&options, &steps);
        let mut tags: Vec<u32> = answers.iter().map(|(_, finished)| finished.tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (1..=submitted).collect::<Vec<_>>());
        let failures = steps.iter().any(|step| matches!(step, Step::Fail(..)));
        prop_assert!(failures || answers.iter().all(|(_, finished)| finished.ok));
        prop_assert_eq!(run(&options, &steps).1, answers);
    }
}
