//! Gateways never hold more than there is, whatever is lost, late, cut off or restarted.

mod world;

use proptest::prelude::*;
use weir_model::Span;
use world::{IOPS, LEASE, STEP, World};

const GATEWAYS: usize = 3;
const TOTAL: u32 = 60;

#[derive(Clone, Debug)]
enum Fault {
    Cut { gateway: usize, gateway_notices: u64, controller_notices: u64 },
    Away { gateway: usize, steps: u64 },
    Lose { gateway: usize, up: u32, down: u32 },
    Delay { steps: u64 },
    Load { gateway: usize, demand: u32 },
    GatewayRestarts { gateway: usize, down: u64 },
    ControllerStops { notice: u64 },
    ControllerStarts,
}

fn steps(n: u64) -> Span {
    STEP.saturating_mul(n)
}

fn fault() -> impl Strategy<Value = Fault> {
    let gateway = || 0..GATEWAYS;
    prop_oneof![
        4 => (gateway(), 0..40u64, 0..40u64).prop_map(|(gateway, gateway_notices, controller_notices)| {
            Fault::Cut { gateway, gateway_notices, controller_notices }
        }),
        3 => (gateway(), 0..300u64).prop_map(|(gateway, steps)| Fault::Away { gateway, steps }),
        2 => (gateway(), 0..5u32, 0..5u32).prop_map(|(gateway, up, down)| Fault::Lose { gateway, up, down }),
        2 => (0..60u64).prop_map(|steps| Fault::Delay { steps }),
        3 => (gateway(), 0..200u32).prop_map(|(gateway, demand)| Fault::Load { gateway, demand }),
        1 => (gateway(), 0..150u64).prop_map(|(gateway, down)| Fault::GatewayRestarts { gateway, down }),
        2 => (0..20u64).prop_map(|notice| Fault::ControllerStops { notice }),
        3 => Just(Fault::ControllerStarts),
    ]
}

fn fault_of_network() -> impl Strategy<Value = Fault> {
    fault().prop_filter("the controller runs", |fault| !matches!(fault, Fault::ControllerStops { .. }))
}

fn apply(world: &mut World, fault: &Fault) {
    match *fault {
        Fault::Cut { gateway, gateway_notices, controller_notices } => {
            world.cut(gateway, steps(gateway_notices), steps(controller_notices));
        }
        Fault::Away { gateway, steps: away } => {
            world.gateways[gateway].backoff = steps(away);
            world.cut(gateway, STEP, STEP);
        }
        Fault::Lose { gateway, up, down } => {
            if let Some(stream) = world.stream(gateway) {
                (stream.up.lose, stream.down.lose) = (stream.up.lose.max(up), stream.down.lose.max(down));
            }
        }
        Fault::Delay { steps: slow } => {
            world.delay = steps(slow);
            for (_, stream) in &mut world.streams {
                (stream.up.delay, stream.down.delay) = (steps(slow), steps(slow / 3));
            }
        }
        Fault::Load { gateway, demand } => world.gateways[gateway].demand = demand,
        Fault::GatewayRestarts { gateway, down } => world.stop_gateway(gateway, steps(down)),
        Fault::ControllerStops { notice } => world.stop_controller(steps(notice)),
        Fault::ControllerStarts => {
            if world.controller.is_none() {
                world.start_controller();
            }
        }
    }
}

/// All links work again, and everything has time to settle.
fn heal(world: &mut World) {
    apply(world, &Fault::Delay { steps: 1 });
    apply(world, &Fault::ControllerStarts);
    world.gateways.iter_mut().for_each(|gateway| gateway.backoff = STEP);
    (0..GATEWAYS).for_each(|gateway| world.cut(gateway, STEP, STEP));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nobody_holds_more_than_there_is_whatever_happens(
        uneven: bool,
        faults in prop::collection::vec((1..60u64, fault()), 1..40),
    ) {
        let mut world = World::new(TOTAL, GATEWAYS, uneven);
        for (after, fault) in &faults {
            world.run(steps(*after));
            apply(&mut world, fault);
        }
        heal(&mut world);
        world.run(Span::from_secs(5));
        let (_, iops, _) = world.held("limited");
        prop_assert!(world.sum() >= 40 && iops > u64::from(IOPS) * 990, "{} {iops}", world.sum());
    }

    /// But for restarts of the controller: one that starts with another total than the last had does not know
    /// what was left for gateways that are away.
    #[test]
    fn a_total_that_falls_is_kept_by_all_within_a_lease_even_if_they_do_not_hear_of_it(
        uneven: bool,
        faults in prop::collection::vec((1..60u64, fault_of_network()), 1..10),
        totals in prop::collection::vec(40..200u32, 1..5),
    ) {
        let mut world = World::new(TOTAL, GATEWAYS, uneven);
        let mut most = TOTAL;
        for ((after, fault), total) in faults.iter().zip(totals.iter().cycle()) {
            for _ in 0..*after {
                world.step();
                prop_assert!(world.sum() <= most);
            }
            apply(&mut world, fault);
            most = most.max(*total);
            world.set_total(*total);
        }
        heal(&mut world);
        world.run_unchecked(Span::from_secs(4) + LEASE);
        world.check();
    }
}
