//! Rules in front of a device in memory and of a station, in virtual time.

use super::*;
use crate::memory::MemoryDevice;
use crate::rig::{command, read, write};
use crate::{BlockErrorKind, Token};

const SIZE: u64 = 1 << 20;

fn rule(on: Option<IoKind>, every: u64, effect: FaultEffect) -> FaultRule {
    FaultRule { on, every: NonZeroU64::new(every).unwrap(), effect }
}

fn device(rules: Vec<FaultRule>) -> Device {
    Device::new(Box::new(MemoryDevice::new(SIZE).unwrap()), rules)
}

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(millis)
}

fn start(device: &mut Device, now: Instant, request: DeviceRequest) -> Vec<Finished> {
    let mut finished = Vec::new();
    device.start(now, request, &mut finished);
    finished
}

fn poll(device: &mut Device, now: Instant) -> Vec<u64> {
    let mut finished = Vec::new();
    device.poll_finished(now, &mut finished);
    finished.iter().map(|done| done.token.0).collect()
}

#[test]
fn every_third_read_fails_with_the_errno_of_the_rule_and_nothing_else_does() {
    let mut device = device(vec![rule(Some(IoKind::Read), 3, FaultEffect::Error(Errno::NOSPC))]);
    let mut failed = Vec::new();
    for n in 1..=9 {
        assert!(start(&mut device, at(0), write(0, &[1; 512]))[0].result.is_ok());
        if let Err(error) = start(&mut device, at(0), read(0, 512))[0].result {
            assert_eq!((error.kind, error.errno), (BlockErrorKind::NoSpace, Errno::NOSPC));
            failed.push(n);
        }
    }
    assert_eq!(failed, [3, 6, 9]);
}

#[test]
fn a_failed_request_gives_its_buffer_back() {
    let mut device = device(vec![rule(None, 1, FaultEffect::Error(Errno::IO))]);
    assert_eq!(start(&mut device, at(0), read(0, 512))[0].buffer.as_ref().unwrap().len(), 512);
}

#[test]
fn a_delayed_request_starts_when_its_delay_is_over() {
    let mut device = device(vec![rule(None, 1, FaultEffect::Delay(Span::from_millis(7)))]);
    for token in [1, 2] {
        assert!(start(&mut device, at(3), DeviceRequest { token: Token(token), ..read(0, 512) }).is_empty());
    }
    assert_eq!(device.poll_timeout(), Some(at(10)));
    assert!(poll(&mut device, at(9)).is_empty());
    assert_eq!(poll(&mut device, at(10)), [1, 2]);
    assert_eq!(device.poll_timeout(), None);
}

#[test]
fn stalled_requests_finish_when_the_rules_change() {
    let mut device = device(vec![rule(None, 1, FaultEffect::Stall)]);
    assert!(start(&mut device, at(0), write(0, &[5; 512])).is_empty());
    assert_eq!((device.poll_timeout(), poll(&mut device, at(1_000)).len()), (None, 0));
    let mut finished = Vec::new();
    device.set_faults(at(1_000), Vec::new(), &mut finished);
    assert!(finished[0].result.is_ok());
    let done = start(&mut device, at(1_000), read(0, 512));
    assert_eq!(done[0].buffer.as_ref().unwrap()[..], [5; 512]);
}

#[test]
fn a_delay_outlives_the_rule_that_made_it() {
    let mut device = device(vec![rule(None, 1, FaultEffect::Delay(Span::from_millis(5)))]);
    assert!(start(&mut device, at(0), read(0, 512)).is_empty());
    device.set_faults(at(1), Vec::new(), &mut Vec::new());
    assert_eq!(device.poll_timeout(), Some(at(5)));
    assert_eq!(poll(&mut device, at(5)).len(), 1);
}

#[test]
fn without_rules_nothing_is_kept_in_front_of_the_device() {
    let mut device = device(vec![rule(None, 1, FaultEffect::Stall)]);
    device.set_faults(at(0), Vec::new(), &mut Vec::new());
    assert!(device.faults.is_none());
}

#[test]
fn of_several_rules_the_first_that_strikes_decides_and_all_count() {
    let io = rule(None, 2, FaultEffect::Error(Errno::IO));
    let mut device = device(vec![io, rule(None, 1, FaultEffect::Error(Errno::NOSPC))]);
    let errnos: Vec<_> =
        (0..4).map(|_| start(&mut device, at(0), read(0, 512))[0].result.unwrap_err().errno).collect();
    assert_eq!(errnos, [Errno::NOSPC, Errno::IO, Errno::NOSPC, Errno::IO]);
}

#[test]
fn a_request_beyond_the_device_is_refused() {
    let mut device = device(Vec::new());
    for (offset, length) in [(SIZE, 1), (SIZE - 511, 512), (u64::MAX, 2)] {
        let done = start(&mut device, at(0), command(IoKind::Trim, offset, length));
        assert_eq!(done[0].result.unwrap_err().kind, BlockErrorKind::Invalid);
    }
    assert!(start(&mut device, at(0), command(IoKind::Trim, SIZE - 512, 512))[0].result.is_ok());
}

#[test]
fn a_request_for_no_bytes_is_done() {
    let mut device = device(Vec::new());
    assert!(start(&mut device, at(0), command(IoKind::WriteZeroes, SIZE, 0))[0].result.is_ok());
}

#[test]
#[should_panic(expected = "a write carries its data")]
fn a_write_without_its_data_is_the_drivers_mistake() {
    start(&mut device(Vec::new()), at(0), command(IoKind::Write, 0, 512));
}
