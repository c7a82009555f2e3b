//! What happens when a controller or a gateway is lost, comes back, or is told something else.

mod world;

use std::num::NonZeroU32;

use weir_control::Limits;
use weir_leases::{Event, VolumeConfig};
use weir_model::Span;
use world::{BANDWIDTH, INTERVAL, IOPS, LEASE, STEP, World, priority};

const SECOND: Span = Span::from_secs(1);

fn settled(total: u32, gateways: usize) -> World {
    let mut world = World::new(total, gateways, false);
    world.run(SECOND);
    world
}

fn bounds(world: &World) -> Vec<u32> {
    (0..world.gateways.len()).map(|n| world.of(n)).collect()
}

#[test]
fn what_there_is_is_shared_out() {
    let world = settled(96, 4);
    assert!(world.sum() > 60, "{:?}", bounds(&world));
    let (_, iops, bandwidth) = world.held("limited");
    assert!(iops > u64::from(IOPS) * 990 && bandwidth > BANDWIDTH - 10, "{iops} {bandwidth}");
    assert_eq!(world.held("narrow").0, 9);
}

#[test]
fn when_the_controller_is_lost_the_sum_is_at_most_half_the_total_after_a_lease() {
    let mut world = settled(96, 4);
    let before = bounds(&world);
    world.stop_controller(STEP);
    world.run(INTERVAL);
    assert_eq!(bounds(&world), before, "the lease holds");
    world.run(INTERVAL + INTERVAL);
    assert!(world.sum() <= 48, "{:?}", bounds(&world));
    for _ in 0..40 {
        world.run(INTERVAL);
        assert!(world.sum() <= 48);
    }
    assert_eq!(bounds(&world), [12; 4], "in the end everyone has the part that was left for it");
}

#[test]
fn the_share_of_a_lost_gateway_goes_to_the_others_within_a_lease_and_two_intervals() {
    let mut world = settled(96, 4);
    let before = world.of(0);
    world.cut(3, SECOND, STEP);
    world.run(LEASE + INTERVAL + INTERVAL);
    assert!(world.of(0) > before, "{:?}", bounds(&world));
    assert!(world.sum() - world.of(3) >= 60, "{:?}", bounds(&world));
    assert!(world.events.contains(&Event::GatewayLost { gateway: "gateway3".to_owned() }));
    world.run(SECOND + LEASE);
    assert_eq!(world.of(0), before, "and comes back with it: {:?}", bounds(&world));
}

#[test]
fn a_restart_of_the_controller_moves_nobodys_bound() {
    let mut world = settled(96, 4);
    let before = bounds(&world);
    world
        .gateways
        .iter_mut()
        .enumerate()
        .for_each(|(n, gateway)| gateway.backoff = STEP.saturating_mul(n as u64));
    world.stop_controller(STEP);
    world.run(STEP + STEP);
    world.start_controller();
    for _ in 0..100 {
        world.run(STEP);
        assert_eq!(bounds(&world), before);
    }
}

#[test]
fn a_controller_that_starts_while_a_gateway_is_away_raises_nobody_for_a_lease() {
    let mut world = settled(96, 4);
    let before = bounds(&world);
    world.stop_controller(STEP);
    world.gateways[3].backoff = SECOND;
    world.run(STEP + STEP);
    world.start_controller();
    let lease_over = world.now + LEASE;
    while world.now < lease_over {
        world.run(STEP);
        assert!(bounds(&world).iter().zip(&before).all(|(now, before)| now <= before));
    }
    world.run(INTERVAL + INTERVAL);
    assert!(world.of(0) > before[0], "then its share is others': {:?}", bounds(&world));
}

/// With fewer volumes, a gateway has a larger static part of each. A controller that has just started does
/// not know which volumes an absent gateway serves.
#[test]
fn the_limits_of_a_volume_hold_beside_a_gateway_with_fewer_volumes_that_a_new_controller_has_not_met() {
    let mut world = World::new(96, 4, true);
    let narrow = Limits { concurrency: NonZeroU32::new(40), ..Limits::default() };
    world.volumes.insert("narrow".to_owned(), VolumeConfig { limits: narrow, ..priority(20.0) });
    world.start_controller();
    world.run_unchecked(SECOND);
    world.stop_controller(STEP);
    world.gateways[0].backoff = SECOND.saturating_mul(60);
    world.run_unchecked(LEASE.saturating_mul(4));
    assert_eq!(world.of(0), 5, "half of a quarter of 40, though it would be 4 of 12 with three volumes");
    world.start_controller();
    for _ in 0..200 {
        world.run_unchecked(STEP);
        assert!(world.held("narrow").0 <= 40 && world.sum() <= 96, "{:?}", bounds(&world));
    }
    assert!(world.held("narrow").0 > 30, "the others have the rest: {:?}", bounds(&world));
}

#[test]
fn a_change_of_configuration_is_in_force_within_an_interval() {
    let mut world = settled(96, 4);
    let round_trip = Span::from_millis(40);
    world.set_total(48);
    world.run_unchecked(INTERVAL + round_trip);
    world.check();
    world.set_volume("free", priority(4.0));
    world.run(INTERVAL + round_trip);
    let controller = world.controller.as_ref().expect("running");
    let record = controller.history().next_back().expect("steps were made");
    let free = record.volumes.iter().find(|allocated| allocated.volume == "free").expect("served");
    assert_eq!(free.objective, priority(4.0).objective);
    assert_eq!(free.total(), world.held("free").0);
}

#[test]
fn a_volume_that_the_controller_does_not_know_is_served_and_said_once() {
    let mut world = World::new(96, 4, false);
    world.volumes.remove("free");
    world.start_controller();
    world.run(SECOND);
    assert!(world.gateways.iter().all(|gateway| gateway.grant(world.now, "free").is_some()));
    let unknown = world.events.iter().filter(|event| matches!(event, Event::VolumeUnknown { .. }));
    assert_eq!(unknown.count(), 1);
}

#[test]
fn a_gateway_that_is_not_configured_is_refused_by_name() {
    let mut world = settled(96, 2);
    let now = world.theirs();
    let controller = world.controller.as_mut().expect("running");
    let refused = controller.handle_connected(now, "stranger", &Default::default()).unwrap_err();
    let line = "gateway stranger is not configured at this controller; accepted: gateway0, gateway1";
    assert_eq!(refused.to_string(), line);
}

#[test]
fn a_second_gateway_of_one_name_takes_nobodys_place_and_is_counted() {
    let mut world = settled(96, 4);
    let before = bounds(&world);
    let twin = world.start_twin(0);
    let volumes = 3;
    for _ in 0..500 {
        world.run_unchecked(STEP);
        assert!(world.sum() <= 96 + volumes, "but for what a gateway does that nobody knows of");
    }
    assert_eq!(world.accepted("gateway0"), 1, "the first stays, and nobody else gets in");
    assert_eq!(world.of(twin), volumes);
    assert!(world.of(0) + volumes >= before[0], "{:?}", bounds(&world));
    world.run(SECOND);
}

#[test]
fn the_sum_holds_while_two_gateways_of_one_name_take_turns() {
    let mut world = settled(96, 4);
    let twin = world.start_twin(0);
    world.run_unchecked(LEASE);
    for round in 0..20 {
        let (gateway, notices) = if round % 2 == 0 { (0, INTERVAL) } else { (twin, STEP) };
        world.cut(gateway, notices, STEP);
        for _ in 0..80 {
            world.run_unchecked(STEP);
            assert!(world.sum() <= 96, "{:?} in round {round}", bounds(&world));
        }
    }
    assert!(world.accepted("gateway0") > 5, "they did take turns");
}

#[test]
fn a_gateway_that_crashed_is_accepted_at_once_and_has_its_share_when_the_lease_before_is_over() {
    let mut world = settled(96, 4);
    let before = bounds(&world);
    world.stop_gateway(3, STEP);
    world.run(INTERVAL + INTERVAL);
    assert_eq!(world.accepted("gateway3"), 2);
    assert!(world.of(0) + 3 >= before[0], "the others hardly notice: {:?}", bounds(&world));
    world.run(LEASE + INTERVAL);
    assert!(world.of(3) + 3 >= before[3], "{:?}", bounds(&world));
}

#[test]
fn a_gateway_that_wakes_up_has_no_lease() {
    let mut world = settled(96, 4);
    world.suspend_gateway(3, SECOND);
    world.run(Span::from_millis(980));
    assert!(world.sum() > 72, "its share is others': {:?}", bounds(&world));
    assert_eq!(world.of(3), 0);
    for _ in 0..3 {
        world.run(STEP); // checks the sum
        assert!(world.of(3) <= 12, "it has its static part: {:?}", bounds(&world));
    }
    world.run(SECOND + LEASE);
    assert!(world.of(3) > 12, "{:?}", bounds(&world));
}

/// Its engine was held up, so that it acknowledged nothing for a lease; its stream lived all the while.
#[test]
fn a_gateway_that_acknowledged_nothing_for_a_lease_takes_part_again_on_the_same_stream() {
    let mut world = settled(96, 4);
    let (before, accepted) = (world.of(0), world.accepted("gateway0"));
    world.stream(0).expect("it is connected").up.lose = u32::MAX;
    world.run(LEASE + LEASE);
    assert!(world.of(0) <= 12, "{:?}", bounds(&world));
    world.stream(0).expect("it is connected").up.lose = 0;
    world.run(SECOND);
    assert_eq!((world.of(0), world.accepted("gateway0")), (before, accepted), "{:?}", bounds(&world));
}
