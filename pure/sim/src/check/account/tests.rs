//! The second computation of windows and deadlines, compared with numbers by hand. Each wrong number is
//! caught.

use weir_model::{IoKind, Iops, Objective, SloPoint, Target};

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
    let mut account = Account::new(Instant::ORIGIN, &slo(), &Control::None);
    let arrived = Instant::ORIGIN;
    let id = |slot| IoId { slot, generation: 0 };
    for (kind, slot) in [(IoKind::Read, 0), (IoKind::Write, 1)] {
        account.on_arrival(&Io { id: id(slot), volume: VOLUME, kind, offset: 0, length: 4096, arrived });
    }
    for (slot, millis) in [(0, 8), (1, 12)] {
        let (id, total) = (id(slot), Span::from_millis(millis));
        account.on_answer(arrived + total, id, Some(4096), Some(Span::from_millis(2)), total);
    }
    account
}

fn traffic() -> WindowTraffic {
    let offered = Offered { reads: 1, writes: 1, over: SECOND };
    WindowTraffic { offered, answered: 2, mean_latency: Some(Span::from_millis(10)) }
}

fn right() -> WindowReport {
    WindowReport {
        offered: traffic().offered,
        completed: 2,
        mean_latency: Some(Span::from_millis(10)),
        target: Some(Span::from_millis(15)),
        verdict: Verdict::Met,
    }
}

fn end(account: &mut Account, reported: WindowTraffic) -> Verified {
    account.end_window(account.since + SECOND, SECOND, VOLUME, None, &reported)
}

#[test]
fn a_window_that_is_right_passes_and_traffic_that_is_wrong_is_caught() {
    let mut account = account();
    assert_eq!(end(&mut account, traffic()), Ok(()));
    assert_eq!(account.close_window(Instant::ORIGIN + SECOND, VOLUME, &right()), Ok(()));
    for wrong in [
        WindowTraffic { offered: Offered { reads: 2, ..traffic().offered }, ..traffic() },
        WindowTraffic { answered: 1, ..traffic() },
        WindowTraffic { mean_latency: Some(Span::from_nanos(10_000_001)), ..traffic() },
    ] {
        let breach = *end(&mut self::account(), wrong).unwrap_err();
        assert_eq!(breach, Breach::Traffic { volume: VOLUME, reported: wrong, computed: traffic() });
    }
}

#[test]
fn a_window_that_is_too_long_is_caught() {
    let late = Instant::ORIGIN + SECOND + Span::from_nanos(1);
    let breach = *account().end_window(late, SECOND, VOLUME, None, &traffic()).unwrap_err();
    assert!(matches!(breach, Breach::WindowLength { .. }));
}

#[test]
fn a_window_in_which_nothing_came_is_judged_by_what_waits() {
    let silent = WindowTraffic {
        offered: Offered { over: SECOND, ..Offered::default() },
        answered: 0,
        mean_latency: None,
    };
    let verdicts = [(None, Verdict::Idle), (Some(10), Verdict::Idle), (Some(11), Verdict::Missed)];
    for (waited, verdict) in verdicts {
        let mut account = Account::new(Instant::ORIGIN, &slo(), &Control::None);
        let now = Instant::ORIGIN + SECOND;
        let oldest = waited.map(|millis| now - Span::from_millis(millis));
        account.end_window(now, SECOND, VOLUME, oldest, &silent).unwrap();
        let target = Some(Span::from_millis(10));
        let WindowTraffic { offered, .. } = silent;
        let report = WindowReport { offered, completed: 0, mean_latency: None, target, verdict };
        assert_eq!(account.close_window(now, VOLUME, &report), Ok(()));
    }
}

#[test]
fn a_request_is_due_its_target_less_twice_its_time_at_the_array() {
    let (config, mut account) = (EngineConfig::default(), account());
    assert_eq!(account.due_after(&config), Some(Span::from_millis(10)));
    account.on_control_tick();
    assert_eq!(account.due_after(&config), Some(Span::from_millis(15 - 4)));
    let background = Account::new(Instant::ORIGIN, &VolumeConfig::default(), &Control::None);
    assert_eq!(background.due_after(&config), None);
}

#[test]
fn under_the_law_of_promises_a_request_is_due_when_it_arrives_if_anything_is_promised() {
    let config = EngineConfig { control: Control::Promise, ..EngineConfig::default() };
    assert_eq!(account().due_after(&config), Some(Span::ZERO));
    let target = Some(Target::Rate(Iops::new(100.0).unwrap()));
    let objective = Objective { target, ..Objective::default() };
    let aimed = VolumeConfig { objective, ..VolumeConfig::default() };
    let mut volume = Account::new(Instant::ORIGIN, &aimed, &config.control);
    assert_eq!(volume.due_after(&config), Some(Span::ZERO));
    volume.set_promise(Instant::ORIGIN, &VolumeConfig::default(), &config.control);
    assert_eq!(volume.due_after(&config), None);
}
