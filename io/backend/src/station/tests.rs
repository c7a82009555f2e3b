//! In virtual time: when each request ends.

use weir_model::IoKind;

use super::*;
use crate::rig::{command, read, write};
use crate::{DeviceRequest, Token};

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(millis)
}

fn station(servers: u32, millis: u64) -> Rc<RefCell<Station>> {
    let servers = NonZeroU32::new(servers).unwrap();
    Rc::new(RefCell::new(Station::new(servers, Span::from_millis(millis))))
}

/// Starts a request. It must not finish anything at once.
fn start(device: &mut StationDevice, now: Instant, token: u64, request: DeviceRequest) {
    let mut finished = Vec::new();
    device.start(now, DeviceRequest { token: Token(token), ..request }, &mut finished);
    assert!(finished.is_empty());
}

fn tokens_done(device: &mut StationDevice, now: Instant) -> Vec<u64> {
    let mut finished = Vec::new();
    device.poll_finished(now, &mut finished);
    finished.iter().map(|done| done.token.0).collect()
}

#[test]
fn eight_servers_at_five_milliseconds_give_1600_requests_a_second() {
    let mut device = StationDevice::new(station(8, 5), MemoryDevice::new(1 << 20).unwrap());
    for token in 0..3200 {
        start(&mut device, at(0), token, command(IoKind::Flush, 0, 0));
    }
    let mut in_the_first_second = 0;
    while let Some(next) = device.poll_timeout().filter(|next| *next <= at(1000)) {
        in_the_first_second += tokens_done(&mut device, next).len();
    }
    assert_eq!(in_the_first_second, 1600);
}

#[test]
fn requests_are_served_in_the_order_in_which_they_came() {
    let mut device = StationDevice::new(station(2, 10), MemoryDevice::new(1 << 20).unwrap());
    for token in 0..5 {
        start(&mut device, at(token), token, command(IoKind::Flush, 0, 0));
    }
    // 0 and 1 start as they come; 2 starts when 0 ends, 3 when 1 ends, 4 when 2 ends.
    for (token, end) in [(0, 10), (1, 11), (2, 20), (3, 21), (4, 30)] {
        assert_eq!(device.poll_timeout(), Some(at(end)));
        assert_eq!(tokens_done(&mut device, at(end)), [token]);
    }
    assert_eq!(device.poll_timeout(), None);
}

#[test]
fn a_poll_that_comes_late_catches_up_and_costs_no_server_any_time() {
    let mut device = StationDevice::new(station(1, 10), MemoryDevice::new(1 << 20).unwrap());
    for token in 0..3 {
        start(&mut device, at(0), token, command(IoKind::Flush, 0, 0));
    }
    assert_eq!(tokens_done(&mut device, at(25)), [0, 1]);
    assert_eq!(device.poll_timeout(), Some(at(30)));
}

#[test]
fn the_volumes_of_a_station_wait_for_the_same_servers() {
    let shared = station(1, 10);
    let mut one = StationDevice::new(Rc::clone(&shared), MemoryDevice::new(1 << 20).unwrap());
    let mut other = StationDevice::new(shared, MemoryDevice::new(1 << 20).unwrap());
    start(&mut one, at(0), 1, command(IoKind::Flush, 0, 0));
    start(&mut other, at(0), 2, command(IoKind::Flush, 0, 0));
    assert_eq!(one.poll_timeout(), Some(at(10)));
    assert_eq!(other.poll_timeout(), Some(at(20)));
}

#[test]
fn a_server_that_was_idle_starts_at_once() {
    let mut device = StationDevice::new(station(1, 10), MemoryDevice::new(1 << 20).unwrap());
    start(&mut device, at(0), 0, command(IoKind::Flush, 0, 0));
    start(&mut device, at(100), 1, command(IoKind::Flush, 0, 0));
    assert_eq!(tokens_done(&mut device, at(109)), [0]);
    assert_eq!(tokens_done(&mut device, at(110)), [1]);
}

#[test]
fn every_kind_takes_a_server() {
    let mut device = StationDevice::new(station(1, 10), MemoryDevice::new(1 << 20).unwrap());
    for (token, kind) in (0..).zip(IoKind::ALL) {
        let request = match kind {
            IoKind::Read => read(0, 512),
            IoKind::Write => write(0, &[7; 512]),
            kind => command(kind, 0, 512),
        };
        start(&mut device, at(0), token, request);
    }
    assert_eq!(tokens_done(&mut device, at(69)).len(), 6);
    assert_eq!(tokens_done(&mut device, at(70)).len(), 1);
}
