//! What a history remembers, and for how long.

use super::*;

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// Half of the time at the device.
fn split(millis: u64) -> TimeSplit {
    TimeSplit { turn: ms(millis / 2), device: ms(millis - millis / 2), ..TimeSplit::default() }
}

fn whom(key: Key) -> Whom {
    match key {
        Key::Volume(serial) => Whom::Volume(VolumeId(u32::try_from(serial).unwrap())),
        _ => Whom::Nobody,
    }
}

#[test]
fn a_percentile_is_told_with_parts_that_add_up_to_it() {
    let mut history = SpentHistory::new(at(0));
    (0..98).for_each(|_| history.record(at(5), &split(4)));
    (0..2).for_each(|_| history.record(at(5), &split(100)));
    let spent = history.over(at(10), ms(60_000), whom);
    assert_eq!((spent.count(), spent.sum().total()), (100, ms(98 * 4 + 2 * 100)));
    let around = |tenths| *spent.around(tenths).unwrap();
    assert_eq!((around(500).count, around(500).split.total()), (98, ms(98 * 4)));
    assert_eq!(
        (around(990).count, around(990).split),
        (2, {
            let mut sum = split(100);
            sum.add(&split(100));
            sum
        })
    );
    assert_eq!(history.over(at(10), ms(0), whom).count(), 100, "the running slice counts whole");
}

#[test]
fn three_minutes_are_kept_and_no_more() {
    let mut history = SpentHistory::new(at(0));
    for second in 0..1_000 {
        history.record(at(second * 1_000), &split(4));
    }
    assert_eq!(history.ended.len(), KEPT);
    let now = at(999_000);
    let spent = history.over(now, SpentHistory::LENGTH, whom);
    assert_eq!((spent.since, spent.count()), (at(810_000), 190));
    let minute = history.over(now, ms(60_000), whom);
    assert_eq!((minute.since, minute.count()), (at(930_000), 70));
    let silent = history.over(at(2_000_000), ms(60_000), whom);
    assert_eq!((silent.since, silent.count()), (at(1_940_000), 0), "nothing of long ago");
}

#[test]
fn a_history_that_is_younger_than_what_is_asked_for_says_so() {
    let mut history = SpentHistory::new(at(7_000));
    history.record(at(8_000), &split(4));
    assert_eq!(history.over(at(9_000), ms(60_000), whom).since, at(7_000));
}

#[test]
fn latencies_in_one_band_differ_by_less_than_a_quarter() {
    let mut before = (0, 0);
    for us in 0..100_000_u64 {
        let band = band_of(Span::from_micros(us));
        assert!(band >= before.0, "{us}");
        if band > before.0 {
            before = (band, us);
        }
        assert!(band == 0 || us * 4 < before.1 * 5, "{us} us is with {} us in band {band}", before.1);
    }
    assert_eq!(band_of(Span::MAX), BANDS - 1);
    assert_eq!(band_of(Span::from_secs(66)), BANDS - 2);
}

#[test]
fn charges_of_slices_add_up_and_the_slices_before_do_not_count() {
    let mut history = SpentHistory::new(at(0));
    for second in [5, 25, 26, 35] {
        let slice = history.slice(at(second * 1_000));
        slice.wait_for(Key::Volume(3), ms(second), 1);
        slice.hold(&[ms(1); Hold::ALL.len()]);
    }
    let spent = history.over(at(36_000), ms(10_000), whom);
    let charged = Charged { whom: Whom::Volume(VolumeId(3)), time: ms(25 + 26 + 35), requests: 3 };
    assert_eq!((spent.waited_for.as_slice(), spent.holds[0]), (&[charged][..], ms(3)));
    let twice = {
        let mut twice = spent.clone();
        twice.add(&spent);
        twice
    };
    assert_eq!((twice.waited_for[0].time, twice.waited_for.len()), (ms(2 * 86), 1));
}

#[test]
fn a_history_with_all_latencies_and_a_thousand_names_in_each_slice_takes_a_hundred_kilobytes() {
    let mut history = SpentHistory::new(at(0));
    for slice in 0..100 {
        let now = at(slice * 10_000);
        for us in (0..28).map(|power| 1 << power) {
            for quarters in 4..8 {
                let device = Span::from_micros(us * quarters / 4);
                history.record(now, &TimeSplit { device, ..TimeSplit::default() });
            }
        }
        for serial in 0..1_000 {
            history.slice(now).wait_for(Key::Volume(serial), ms(serial), 1);
            history.slice(now).be_beside(Key::Volume(serial), ms(serial), 1);
        }
    }
    let bytes = |slice: &Slice| {
        let names = slice.waited_for.bytes() + slice.beside.bytes();
        size_of::<Slice>() + slice.bands.capacity() * size_of::<Band>() + names
    };
    let all: usize = history.ended.iter().map(bytes).sum();
    assert_eq!((history.ended.len(), history.ended[0].bands.len()), (KEPT, usize::from(BANDS)));
    assert!(all < 100_000, "{all} bytes");
}
