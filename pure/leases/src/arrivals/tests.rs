//! Who gets in under which name, what its claims count, and what is kept of names that it makes up.

use std::num::NonZeroU32;

use weir_control::{Grant, PortObservation, TotalConcurrency};
use weir_model::{Bandwidth, MilliIops, Span};

use super::*;
use crate::config::{ControllerConfig, VolumeConfig};
use crate::message::{Held, Report};
use crate::record::ArrayStatus;

const INTERVAL: Span = Span::from_secs(2);
const LEASE: Span = Span::from_secs(6);
const TOTAL: u32 = 160;

fn at(seconds: u64) -> Instant {
    Instant::ORIGIN + Span::from_secs(1_000 + seconds)
}

fn config(gateways: &[&str]) -> ControllerConfig {
    let gateways = gateways.iter().map(|&name| name.to_owned()).collect();
    ControllerConfig {
        total: TotalConcurrency::Fixed(NonZeroU32::new(TOTAL).unwrap()),
        interval: INTERVAL,
        gateways,
    }
}

fn controller() -> Controller {
    let volumes = ["v", "w"].map(|name| (name.to_owned(), VolumeConfig::default()));
    Controller::new(at(0), config(&["a", "b"]), volumes)
}

fn requests(concurrency: u32) -> Grant {
    Grant { concurrency: NonZeroU32::new(concurrency).unwrap(), max_iops: None, max_bandwidth: None }
}

/// A hello that claims so many requests of each volume, for so long.
fn hello(run: u64, concurrency: u32, left: Span) -> Hello {
    let held = |volume: &str| Held {
        volume: volume.to_owned(),
        grant: requests(concurrency),
        fallback: requests(concurrency),
    };
    Hello { run, volumes: ["v", "w"].map(held).into(), left, is_of_promises: false }
}

/// Everything that is sent to a gateway is acknowledged.
fn obey(controller: &mut Controller, now: Instant) {
    while let Some((connection, grants)) = controller.poll_grants(now) {
        controller.handle_acknowledged(now, connection, grants.number);
    }
}

fn report(controller: &mut Controller, now: Instant, connection: Connection, number: u64) {
    let seen = PortObservation {
        over: INTERVAL,
        answered: 100,
        at_device: 50.0,
        outstanding: 90.0,
        ..PortObservation::default()
    };
    let volumes = ["v", "w"].map(|volume| (volume.to_owned(), seen.clone())).into();
    controller.handle_report(now, connection, Report { number, volumes }).unwrap();
}

fn held(status: &ArrayStatus, gateway: &str) -> u32 {
    status.gateways.iter().find(|found| found.gateway == gateway).map_or(0, |found| found.held)
}

/// A controller whose gateways have come, in their first runs, and share the total out.
fn settled() -> (Controller, [Connection; 2]) {
    let mut controller = controller();
    let streams =
        ["a", "b"].map(|name| controller.handle_connected(at(0), name, &hello(1, 1, Span::ZERO)).unwrap());
    obey(&mut controller, at(0));
    for interval in 1..20 {
        let now = at(interval * 2);
        for stream in streams {
            report(&mut controller, now, stream, interval);
            obey(&mut controller, now);
        }
        controller.handle_timeout(now);
        obey(&mut controller, now);
    }
    assert_eq!(controller.status(at(38)).held, Some(TOTAL));
    (controller, streams)
}

#[test]
fn a_second_run_is_refused_while_the_first_reports_and_gets_in_a_lease_after_its_last_report() {
    let (mut controller, [a, _]) = settled();
    let second = hello(2, 1, Span::ZERO);
    let refused = controller.handle_connected(at(39), "a", &second).unwrap_err();
    assert_eq!(refused, Refused::Taken { name: "a".to_owned(), by: a });
    assert!(controller.is_connected(a), "the first does not notice");
    assert!(controller.handle_connected(at(38) + LEASE - Span::from_nanos(1), "a", &second).is_err());
    assert!(controller.handle_connected(at(38) + LEASE, "a", &second).is_ok(), "the first is silent");
    assert!(!controller.is_connected(a));
}

#[test]
fn a_run_takes_its_own_place_at_once_and_another_one_when_the_connection_is_gone() {
    let (mut controller, [a, b]) = settled();
    let again = controller.handle_connected(at(39), "a", &hello(1, 80, INTERVAL)).unwrap();
    assert!(controller.is_connected(again) && !controller.is_connected(a));
    controller.handle_disconnected(at(39), b);
    assert!(controller.handle_connected(at(39), "b", &hello(2, 1, Span::ZERO)).is_ok());
}

#[test]
fn what_a_run_before_may_still_hold_is_not_given_away_until_its_lease_is_over() {
    let (mut controller, [a, b]) = settled();
    let before = held(&controller.status(at(38)), "a");
    controller.handle_disconnected(at(39), a);
    let new = controller.handle_connected(at(39), "a", &hello(2, 1, Span::ZERO)).unwrap();
    obey(&mut controller, at(39));
    assert!(held(&controller.status(at(39)), "a (another run)") >= before);
    for second in [40, 42] {
        report(&mut controller, at(second), new, second);
        report(&mut controller, at(second), b, second);
        controller.handle_timeout(at(second));
        obey(&mut controller, at(second));
        assert!(controller.status(at(second)).held <= Some(TOTAL + 2), "but for what no run is ever without");
        assert!(held(&controller.status(at(second)), "a") <= TOTAL / 4, "it waits");
    }
    for second in [44, 46, 48, 50, 52, 54] {
        report(&mut controller, at(second), new, second);
        report(&mut controller, at(second), b, second);
        controller.handle_timeout(at(second));
        obey(&mut controller, at(second));
    }
    let status = controller.status(at(54));
    assert!(held(&status, "a") > TOTAL / 4 && held(&status, "a (another run)") == 0, "{status:?}");
    assert_eq!(status.held, Some(TOTAL));
}

#[test]
fn a_claim_counts_no_more_than_this_controller_granted_and_no_longer() {
    let (mut controller, [a, _]) = settled();
    let before = held(&controller.status(at(38)), "a");
    controller.handle_disconnected(at(39), a);
    controller.handle_connected(at(39), "a", &hello(1, 1_000_000, Span::MAX)).unwrap();
    let status = controller.status(at(39));
    assert!(held(&status, "a") <= before.max(TOTAL / 4), "{before}: {status:?}");
    assert!(held(&controller.status(at(38) + LEASE), "a") <= TOTAL / 4, "not beyond its lease");
}

#[test]
fn claims_to_a_controller_that_has_just_started_starve_nobody_for_more_than_a_lease() {
    for (acknowledges, new_runs) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut controller = controller();
        let mut claim = hello(7, 1_000_000, Span::MAX);
        claim.volumes[0].grant.max_iops = MilliIops::new(u64::MAX);
        claim.volumes[0].grant.max_bandwidth = Bandwidth::new(u64::MAX);
        let mut a = controller.handle_connected(at(0), "a", &claim).unwrap();
        assert_eq!(held(&controller.status(at(0)), "a"), TOTAL, "what it can have been granted before");
        let b = controller.handle_connected(at(0), "b", &hello(1, 1, Span::ZERO)).unwrap();
        for second in 1..40 {
            // It comes again and again, claims the same, and never reports.
            controller.handle_disconnected(at(second), a);
            claim.run += u64::from(new_runs);
            a = controller.handle_connected(at(second), "a", &claim).unwrap();
            report(&mut controller, at(second), b, second);
            controller.handle_timeout(at(second));
            while let Some((connection, grants)) = controller.poll_grants(at(second)) {
                if connection == b || acknowledges {
                    controller.handle_acknowledged(at(second), connection, grants.number);
                }
            }
        }
        let status = controller.status(at(39));
        let (least, most) = (TOTAL / 2, TOTAL - TOTAL / 4);
        assert!((least..=most).contains(&held(&status, "b")), "{acknowledges} {new_runs}: {status:?}");
        assert!(status.held <= Some(TOTAL), "{status:?}");
    }
}

#[test]
fn invented_volumes_take_nothing_from_another_gateway_and_are_forgotten() {
    let (mut controller, [a, b]) = settled();
    for round in 0..1_000_u64 {
        let invented = |n: u64| (format!("x{round}-{n}"), PortObservation::default());
        let volumes = (0..40).map(invented).collect();
        controller.handle_report(at(39), a, Report { number: 99 + round, volumes }).unwrap();
        let claim =
            |n: u64| Held { volume: format!("y{round}-{n}"), grant: requests(9), fallback: requests(9) };
        let claim = Hello {
            run: round + 5,
            volumes: (0..40).map(claim).collect(),
            left: LEASE,
            is_of_promises: false,
        };
        assert!(controller.handle_connected(at(39), "a", &claim).is_err());
        while controller.poll_event().is_some() {}
    }
    assert!(controller.names.len() <= 2 + 40 + 40 && controller.said.len() <= 80);
    for second in 40..80 {
        report(&mut controller, at(second), b, second);
        let invented = |n: u64| (format!("x{n}"), PortObservation::default());
        let volumes = (0..40).map(invented).collect();
        controller.handle_report(at(second), a, Report { number: 9_000 + second, volumes }).unwrap();
        controller.handle_timeout(at(second));
        obey(&mut controller, at(second));
    }
    assert_eq!(held(&controller.status(at(79)), "b"), TOTAL - 40, "all but the part of the other");
    let too_many = (0..41).map(|n| (format!("z{n}"), PortObservation::default())).collect();
    let refused = controller.handle_report(at(39), a, Report { number: 5_000, volumes: too_many });
    let line = "gateway a serves 41 volumes; accepted: at most 40, as each takes a request of the gateway's part of \
                the array: name them in the controller's file";
    assert_eq!(refused.unwrap_err().to_string(), line);
    controller.handle_disconnected(at(79), a);
    for second in (80..100).step_by(2) {
        controller.handle_timeout(at(second));
    }
    controller.handle_connected(at(100), "a", &hello(1, 1, Span::ZERO)).unwrap();
    assert_eq!(controller.names.len(), 2, "only those of the file are left");
}

#[test]
fn a_gateway_that_was_removed_is_refused_by_name_when_it_comes_back() {
    let (mut controller, [_, b]) = settled();
    controller.set_config(at(39), config(&["a"]));
    controller.handle_disconnected(at(39), b);
    for second in (40..60).step_by(2) {
        controller.handle_timeout(at(second));
    }
    let refused = controller.handle_connected(at(60), "b", &hello(1, 1, Span::ZERO)).unwrap_err();
    assert_eq!(refused.to_string(), "gateway b is not configured at this controller; accepted: a");
}
