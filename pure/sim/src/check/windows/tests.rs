//! The second judgement, compared with numbers by hand. Each wrong number, and each wrong time, is caught.

use super::*;

const VOLUME: VolumeId = VolumeId(0);

const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + ms(millis)
}

const fn id(slot: u32) -> IoId {
    IoId { slot, generation: 0 }
}

fn offered(reads: u64) -> Offered {
    Offered { reads, writes: 0, over: Span::from_secs(1) }
}

/// A window of a second with two reads, promised 10 ms: one was answered after 8 ms, and one came 6 ms before
/// the end.
fn windows() -> Windows {
    let mut windows = Windows::default();
    windows.on_arrival(at(0), id(0));
    windows.on_answer(at(8), id(0), true, None);
    windows.on_arrival(at(994), id(1));
    windows.end(at(1_000), offered(2), Promise::Mean(ms(10)));
    windows
}

fn report(completed: u64, mean_latency: Span, verdict: Verdict) -> WindowReport {
    let mean_latency = Some(mean_latency);
    WindowReport { offered: offered(2), completed, mean_latency, target: Some(ms(10)), verdict }
}

fn why(checked: Verified) -> &'static str {
    match *checked.unwrap_err() {
        Breach::WindowTiming { why, .. } => why,
        other => panic!("{other}"),
    }
}

#[test]
fn a_window_that_is_right_passes_and_every_number_that_is_wrong_is_caught() {
    let answered = || {
        let mut windows = windows();
        windows.on_answer(at(1_004), id(1), true, None);
        windows
    };
    let right = report(2, ms(9), Verdict::Met);
    assert_eq!(answered().close(at(1_004), VOLUME, &right), Ok(()));
    for wrong in [
        WindowReport { offered: offered(1), ..right },
        WindowReport { completed: 1, ..right },
        WindowReport { mean_latency: Some(ms(8)), ..right },
        WindowReport { target: None, ..right },
        WindowReport { verdict: Verdict::Missed, ..right },
    ] {
        let breach = *answered().close(at(1_004), VOLUME, &wrong).unwrap_err();
        assert_eq!(breach, Breach::Window { volume: VOLUME, reported: wrong, computed: right });
    }
}

#[test]
fn a_window_that_is_closed_too_early_or_too_late_is_caught() {
    let met = report(1, ms(7), Verdict::Met);
    assert_eq!(why(windows().close(at(1_000), VOLUME, &met)), "was closed before its verdict was certain");
    assert_eq!(why(Windows::default().close(at(0), VOLUME, &met)), "was closed before it ended");
    let mut late = windows();
    assert_eq!(late.at_rest(at(1_000), VOLUME), Ok(()));
    late.on_answer(at(1_004), id(1), true, None);
    assert_eq!(why(late.at_rest(at(1_004), VOLUME)), "is not closed, though its verdict is certain");
}

#[test]
fn a_window_is_missed_by_the_age_of_what_hangs_at_the_latest_when_the_next_ends() {
    let mut windows = windows();
    assert_eq!(windows.at_rest(at(1_500), VOLUME), Ok(()), "the engine looks when something ends");
    windows.end(at(2_000), offered(0), Promise::Certain(Verdict::NoSlo, None));
    assert_eq!(why(windows.at_rest(at(2_000), VOLUME)), "is not closed, though its verdict is certain");
    let missed = report(1, ms((8 + 1_006) / 2), Verdict::Missed);
    assert_eq!(windows.close(at(2_000), VOLUME, &missed), Ok(()));
}

#[test]
fn one_that_fails_counts_for_nothing_and_one_that_is_taken_back_with_its_age() {
    let mut failed = windows();
    failed.on_answer(at(1_900), id(1), false, None);
    assert_eq!(failed.close(at(1_900), VOLUME, &report(1, ms(8), Verdict::Met)), Ok(()));
    let mut aborted = windows();
    aborted.on_abort(at(1_004), id(1), None);
    assert_eq!(aborted.close(at(1_900), VOLUME, &report(1, ms(9), Verdict::Met)), Ok(()));
}

#[test]
fn more_windows_than_may_be_open_are_closed_by_the_ages_of_now() {
    let mut windows = windows();
    // It may take 1,994 s on average, as so many have taken no time.
    let fate = Fate::Answered(Ended { at: at(1), is_late: false });
    let fast = (2..200).map(|_| Request { came: at(1), fate });
    windows.ended[0].requests.came.extend(fast);
    for window in 0..MOST_OPEN as u64 {
        assert_eq!(windows.at_rest(at(1_000 + window), VOLUME), Ok(()));
        windows.end(at(1_001 + window), offered(0), Promise::Certain(Verdict::NoSlo, None));
    }
    assert!(windows.at_rest(at(1_064), VOLUME).is_err(), "one too many");
    let met = WindowReport { completed: 199, ..report(0, Span::from_nanos(390_000), Verdict::Met) };
    assert_eq!(windows.close(at(1_064), VOLUME, &met), Ok(()));
}

/// 20 requests of which half may take 10 ms at most: 9 take longer, and two hang.
fn percentile() -> Windows {
    let mut windows = Windows::default();
    (0..20).for_each(|slot| windows.on_arrival(at(980), id(slot)));
    (0..9).for_each(|slot| windows.on_answer(at(985), id(slot), true, Some(ms(10))));
    (9..18).for_each(|slot| windows.on_answer(at(991), id(slot), true, Some(ms(10))));
    let median = Percentile::from_tenths(500).unwrap();
    windows.end(
        at(1_000),
        Offered { reads: 20, ..offered(0) },
        Promise::Percentile(median, ms(10), at(1_000)),
    );
    windows
}

#[test]
fn a_percentile_is_certain_when_no_request_that_waits_can_change_it() {
    let sum = |late: u64| Span::from_nanos((9 * 5 + 9 * 11 + late) * 1_000_000 / 20);
    let reported = |completed, late, verdict| WindowReport {
        offered: Offered { reads: 20, ..offered(0) },
        ..report(completed, sum(late), verdict)
    };
    let missed = reported(18, 2 * 30, Verdict::Missed);
    assert_eq!(
        why(percentile().close(at(1_010), VOLUME, &missed)),
        "was closed before its verdict was certain"
    );
    let missed = reported(18, 2 * 31, Verdict::Missed);
    assert_eq!(percentile().close(at(1_011), VOLUME, &missed), Ok(()));
    let mut failed = percentile();
    (18..20).for_each(|slot| failed.on_answer(at(1_005), id(slot), false, None));
    let met = WindowReport { mean_latency: Some(ms(8)), ..reported(18, 0, Verdict::Met) };
    assert_eq!(failed.close(at(1_005), VOLUME, &met), Ok(()));
}
