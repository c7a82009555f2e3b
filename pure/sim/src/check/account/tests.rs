//! The second computation of windows and deadlines, compared with numbers by hand. Each wrong number is
//! caught.

use weir_model::{Iops, Objective, SloPoint, Target};

use super::*;

const VOLUME: VolumeId = VolumeId(0);
const SECOND: Span = Span::from_secs(1);

fn slo() -> VolumeConfig {
    let (read, write) = (Span::from_millis(10), Span::from_millis(20));
    let point = SloPoint { up_to: Iops::new(100.0).unwrap(), read, write };
    VolumeConfig { slo: Some(Slo::new(vec![point]).unwrap()), ..VolumeConfig::default() }
}

/// A volume that had a read of 8 ms and a write of 12 ms in its first second.
fn account() -> Account {
    let mut account = Account::new(Instant::ORIGIN, &slo());
    for (direction, millis) in [(Direction::Read, 8), (Direction::Write, 12)] {
        account.on_arrival(Some(direction));
        account.on_answer(direction, Span::from_millis(2), Span::from_millis(millis));
    }
    account
}

fn right() -> WindowReport {
    WindowReport {
        offered: Offered { reads: 1, writes: 1, over: SECOND },
        completed: 2,
        mean_latency: Some(Span::from_millis(10)),
        target: Some(Span::from_millis(15)),
        verdict: Verdict::Met,
    }
}

fn verify(reported: WindowReport) -> Verified {
    account().close_window(Instant::ORIGIN + SECOND, SECOND, VOLUME, None, &reported)
}

#[test]
fn a_window_that_is_right_passes_and_every_number_that_is_wrong_is_caught() {
    assert_eq!(verify(right()), Ok(()));
    for wrong in [
        WindowReport { offered: Offered { reads: 2, ..right().offered }, ..right() },
        WindowReport { completed: 1, ..right() },
        WindowReport { mean_latency: Some(Span::from_nanos(10_000_001)), ..right() },
        WindowReport { target: None, ..right() },
        WindowReport { verdict: Verdict::Missed, ..right() },
    ] {
        let breach = *verify(wrong).unwrap_err();
        assert_eq!(breach, Breach::Window { volume: VOLUME, reported: wrong, computed: right() });
    }
}

#[test]
fn a_window_that_is_too_long_is_caught() {
    let late = Instant::ORIGIN + SECOND + Span::from_nanos(1);
    let breach = *account().close_window(late, SECOND, VOLUME, None, &right()).unwrap_err();
    assert!(matches!(breach, Breach::WindowLength { .. }));
}

#[test]
fn a_request_is_due_its_target_less_twice_its_time_at_the_array() {
    let (config, mut account) = (EngineConfig::default(), account());
    assert_eq!(account.due_after(&config), Some(Span::from_millis(10)));
    account.on_control_tick();
    assert_eq!(account.due_after(&config), Some(Span::from_millis(15 - 4)));
    let background = Account::new(Instant::ORIGIN, &VolumeConfig::default());
    assert_eq!(background.due_after(&config), None);
}

#[test]
fn under_the_law_of_promises_a_request_is_due_when_it_arrives_if_anything_is_promised() {
    let config = EngineConfig { control: Control::Promise, ..EngineConfig::default() };
    assert_eq!(account().due_after(&config), Some(Span::ZERO));
    let target = Some(Target::Rate(Iops::new(100.0).unwrap()));
    let objective = Objective { target, ..Objective::default() };
    let aimed = VolumeConfig { objective, ..VolumeConfig::default() };
    let mut volume = Account::new(Instant::ORIGIN, &aimed);
    assert_eq!(volume.due_after(&config), Some(Span::ZERO));
    volume.set_promise(&VolumeConfig::default());
    assert_eq!(volume.due_after(&config), None);
}
