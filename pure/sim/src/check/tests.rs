//! The rule on replies that are held. The parts have tests of their own.

use weir_engine::{OneSidedPidConfig, PidConfig};
use weir_model::{Bandwidth, IoKind};

use super::*;

const VOLUME: VolumeId = VolumeId(0);
const ID: IoId = IoId { slot: 0, generation: 0 };

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// A run under this control, in which the array has answered one request at 10 ms.
fn answered(control: Control) -> Checkers {
    let config = EngineConfig { control, ..EngineConfig::default() };
    let mut checkers = Checkers::new(at(0), config, None);
    checkers.on_volume_added(at(0), &VolumeConfig::default());
    let io = Io { id: ID, volume: VOLUME, kind: IoKind::Write, offset: 0, length: 4096, arrived: at(0) };
    checkers.on_submit(&io).unwrap();
    checkers.on_issue(at(0), &io).unwrap();
    checkers.on_answer(at(10), ID.slot, true).unwrap();
    checkers
}

fn pid() -> Control {
    let write_limit = Bandwidth::new(1).unwrap();
    let (law, threshold) = (OneSidedPidConfig::default(), Span::from_millis(1));
    Control::Pid(PidConfig { law, threshold, write_limit })
}

fn too_long(held: Span, most: Span) -> Verified {
    Err(Box::new(Breach::HeldTooLong { volume: VOLUME, held, most }))
}

#[test]
fn a_reply_that_is_held_without_a_law_that_holds_replies_is_caught() {
    assert_eq!(answered(Control::None).on_reply(at(10), ID.slot), Ok(()));
    let held = Span::from_millis(1);
    assert_eq!(answered(Control::None).on_reply(at(11), ID.slot), too_long(held, Span::ZERO));
}

#[test]
fn a_reply_that_is_held_beyond_the_ceiling_or_for_ever_is_caught() {
    let ceiling = OneSidedPidConfig::default().ceiling;
    assert_eq!(answered(pid()).on_reply(at(30), ID.slot), Ok(()));
    assert_eq!(answered(pid()).on_reply(at(31), ID.slot), too_long(Span::from_millis(21), ceiling));
    let outstanding = || [(VOLUME, 1)].into_iter();
    assert_eq!(answered(pid()).at_end(at(30), outstanding()), Ok(()));
    assert_eq!(answered(pid()).at_end(at(31), outstanding()), too_long(Span::from_millis(21), ceiling));
}
