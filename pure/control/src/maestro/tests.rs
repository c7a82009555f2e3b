//! The law on arrays that are formulas: what the paper shows in §5.1, and what this law adds.

mod literal;

use std::num::NonZeroU32;

use weir_model::{Bandwidth, Iops, Objective, Percentile, Priority, Span, Target};

use super::plant::{Client, Plant, REQUEST};
use super::*;
use crate::{Limits, PortObservation};

/// Answers in a second of an array that is busy.
const RATE: f64 = 4000.0;
const TOTAL: u32 = 112;

fn client(target: Option<Target>, priority: f64, threads: &[u32]) -> Client {
    let objective = Objective { target, priority: Priority::new(priority).unwrap() };
    Client { objective, limits: Limits::default(), threads: threads.to_vec() }
}

fn rate(target: f64, priority: f64, threads: u32) -> Client {
    client(Iops::new(target).map(Target::Rate), priority, &[threads])
}

fn plant(clients: Vec<Client>) -> Plant {
    Plant::new(TOTAL, RATE, clients)
}

#[test]
fn equal_priorities_settle_to_equal_performance() {
    let seen = plant(vec![rate(2000.0, 1.0, 100), rate(4000.0, 1.0, 100)]).settle(80);
    assert!((seen[0] - seen[1]).abs() < 0.05, "{seen:?}");
    assert!((seen[0] - 4.0 / 6.0).abs() < 0.05, "{seen:?}");
}

#[test]
fn a_priority_of_four_falls_short_by_a_quarter() {
    let seen = plant(vec![rate(3000.0, 4.0, 100), rate(4000.0, 1.0, 100)]).settle(80);
    let ratio = (1.0 - seen[1]) / (1.0 - seen[0]);
    assert!((3.0..5.0).contains(&ratio), "{seen:?}: {ratio}");
}

#[test]
fn a_priority_that_is_changed_is_in_force_within_some_steps() {
    let mut plant = plant(vec![rate(1000.0, 1.0, 25), rate(4500.0, 1.0, 100)]);
    let before = plant.settle(60);
    assert!((before[0] - before[1]).abs() < 0.1, "{before:?}");
    plant.clients[1].objective.priority = Priority::new(4.0).unwrap();
    let after = plant.settle(60);
    let ratio = (1.0 - after[0]) / (1.0 - after[1]);
    assert!((3.0..5.0).contains(&ratio), "{after:?}: {ratio}");
}

#[test]
fn everybody_is_at_its_target_if_all_fit() {
    let seen = plant(vec![rate(2000.0, 1.0, 100), rate(1500.0, 1.0, 100)]).settle(80);
    assert!(seen.iter().all(|y| *y >= 0.97), "{seen:?}");
}

#[test]
fn a_latency_stands_beside_a_throughput() {
    let latency = client(Some(Target::Latency(Span::from_millis(20))), 1.0, &[100]);
    let throughput = client(Bandwidth::new(3000 * REQUEST).map(Target::Throughput), 1.0, &[100]);
    let seen = plant(vec![latency, throughput]).settle(80);
    assert!((seen[0] - seen[1]).abs() < 0.1 && seen[0] < 0.7, "{seen:?}");
}

#[test]
fn a_percentile_is_met_as_a_mean_is() {
    let p95 = Target::Percentile(Percentile::from_tenths(950).unwrap(), Span::from_millis(80));
    let seen = plant(vec![client(Some(p95), 1.0, &[50]), client(None, 1.0, &[200])]).settle(80);
    assert!(seen[0] >= 0.95, "{seen:?}");
}

#[test]
fn the_share_of_who_is_idle_goes_to_others() {
    let mut plant = plant(vec![rate(2000.0, 1.0, 100), rate(4000.0, 1.0, 100)]);
    plant.settle(40);
    plant.clients[0].threads = vec![0];
    let seen = plant.settle(40);
    assert!(seen[1] > 0.95, "{seen:?}");
    plant.clients[0].threads = vec![100];
    let seen = plant.settle(80);
    assert!((seen[0] - seen[1]).abs() < 0.05, "{seen:?}");
}

#[test]
fn who_was_promised_nothing_takes_nothing_from_those_who_were() {
    let seen = plant(vec![rate(3600.0, 1.0, 100), client(None, 100.0, &[200])]).settle(80);
    assert!(seen[0] > 0.93, "{seen:?}");
}

#[test]
fn who_was_promised_nothing_gets_what_the_others_leave() {
    let mut plant = plant(vec![rate(300.0, 1.0, 10), client(None, 1.0, &[200])]);
    let seen = plant.settle(60);
    let outcome = plant.interval();
    assert!(seen[0] >= 0.95, "{seen:?}");
    assert!(outcome.granted[1][0] >= TOTAL / 2 - 8, "{outcome:?}");
}

#[test]
fn who_has_few_threads_reaches_its_target_beside_many() {
    let clients = vec![rate(1200.0, 1.0, 25), rate(1500.0, 1.0, 100)];
    let seen = plant(clients).settle(80);
    assert!(seen.iter().all(|y| *y >= 1.0), "{seen:?}");
}

#[test]
fn others_give_nothing_up_for_good_where_it_does_not_help() {
    // The array has a server for each request: no client slows down another.
    let mut plant = plant(vec![rate(1000.0, 1.0, 1), rate(500.0, 1.0, 20)]);
    plant.servers = f64::from(TOTAL);
    let seen = plant.settle(200);
    assert!(seen[0] < 0.1 && seen[1] > 1.2, "{seen:?}");
}

/// The bound of an application whose latency is far from its target, because nothing is answered within an
/// interval any more, after twelve of them.
fn bound_without_answers(completions: Completions) -> u32 {
    let mut law = Maestro::with(completions);
    let targets = [Target::Latency(Span::from_millis(50)), Target::Rate(Iops::new(4000.0).unwrap())];
    let mut bounds = [TOTAL / 2; 2];
    for _ in 0..12 {
        let seen = |id: usize| ApplicationObservation {
            id: u64::try_from(id).unwrap(),
            objective: Objective { target: Some(targets[id]), priority: Priority::ONE },
            limits: Limits::default(),
            ports: vec![PortObservation {
                over: Span::from_secs(2),
                answered: [0, 4000][id],
                oldest: Some(Span::from_secs(9)),
                at_device: f64::from(bounds[id]),
                outstanding: 100.0,
                bound: NonZeroU32::new(bounds[id]),
                ..PortObservation::default()
            }],
        };
        let applications = vec![seen(0), seen(1)];
        let total = NonZeroU32::new(TOTAL).unwrap();
        let setting = law.step(Instant::ORIGIN, &ArrayObservation { total, applications });
        bounds = [0, 1].map(|id| setting.applications[id].ports[0].concurrency.get());
    }
    bounds[0]
}

#[test]
fn who_gets_no_answer_within_an_interval_is_not_starved_for_that() {
    assert!(bound_without_answers(Completions::ALL) > TOTAL / 2);
    let without = Completions::ALL.without(Completion::AgeForPerformance);
    assert_eq!(bound_without_answers(without), 1, "to the letter, it has no performance and gives way");
}

#[test]
fn nothing_moves_by_more_than_a_step_in_an_overload() {
    let mut plant = plant(vec![rate(3000.0, 1.0, 100), rate(4000.0, 1.0, 100)]);
    plant.settle(20);
    plant.clients[0].objective.priority = Priority::new(100.0).unwrap();
    for _ in 0..20 {
        for given in plant.interval().reasoning {
            assert_eq!(given.case, Case::Overload);
            assert!((given.allotted - given.had).abs() <= 0.05 * f64::from(TOTAL) + 1e-6, "{given:?}");
        }
    }
}

#[test]
fn at_its_limit_an_application_gets_no_more() {
    let mut plant = plant(vec![rate(4000.0, 1.0, 100), rate(4000.0, 1.0, 100)]);
    plant.clients[0].limits.concurrency = NonZeroU32::new(10);
    plant.settle(20);
    let outcome = plant.interval();
    assert_eq!((outcome.granted[0][0], outcome.granted[1][0]), (10, TOTAL - 10));
    assert_eq!(outcome.reasoning[0].bound_by, BoundBy::Limit);
}

#[test]
fn grants_follow_demand_from_port_to_port() {
    let both = client(Iops::new(4000.0).map(Target::Rate), 1.0, &[25, 25, 25, 25]);
    let mut plant = plant(vec![both.clone(), both]);
    plant.settle(20);
    for client in &mut plant.clients {
        client.threads = vec![50, 0, 50, 0];
    }
    plant.settle(6);
    for granted in plant.interval().granted {
        assert!(granted[0] >= 25 && granted[2] >= 25 && granted[1] == 1 && granted[3] == 1, "{granted:?}");
    }
}

#[test]
fn a_newcomer_begins_with_the_share_of_its_priority() {
    let mut plant = plant(vec![rate(4000.0, 1.0, 100), rate(4000.0, 1.0, 100)]);
    plant.settle(20);
    let mut newcomer = plant.observation();
    newcomer.applications.push(ApplicationObservation { id: 9, ..newcomer.applications[0].clone() });
    newcomer.applications[2].ports[0].bound = None;
    let setting = plant.law.step(Instant::ORIGIN, &newcomer);
    let had: Vec<f64> = setting.applications.iter().map(|given| given.reasoning.had.round()).collect();
    assert_eq!(had, [37.0, 37.0, 37.0]);
}

#[test]
fn a_law_that_was_started_anew_goes_on_from_what_the_ports_report() {
    let mut plant = plant(vec![rate(2000.0, 1.0, 100), rate(4000.0, 1.0, 100)]);
    plant.settle(40);
    let before = plant.interval().granted;
    plant.law = Maestro::new();
    let had: Vec<f64> = plant.interval().reasoning.iter().map(|given| given.had).collect();
    assert_eq!(had, before.iter().map(|ports| f64::from(ports[0])).collect::<Vec<_>>());
}

#[test]
fn who_is_gone_is_forgotten() {
    let mut plant = plant(vec![rate(2000.0, 1.0, 100), rate(4000.0, 1.0, 100)]);
    plant.settle(10);
    let mut seen = plant.observation();
    seen.applications.pop();
    plant.law.step(Instant::ORIGIN, &seen);
    assert_eq!(plant.law.known.keys().collect::<Vec<_>>(), [&0]);
}

#[test]
fn a_total_that_fell_cuts_everybody_at_once() {
    let mut plant = plant(vec![rate(2000.0, 1.0, 100), rate(4000.0, 1.0, 100)]);
    let before = plant.settle(40);
    plant.total = TOTAL / 2;
    plant.interval();
    let after = plant.settle(20);
    assert!((before[0] - after[0]).abs() < 0.05, "{before:?} {after:?}");
}

#[test]
fn who_cannot_be_helped_does_not_hold_back_for_good_others_that_have_little_at_the_array() {
    // On an array that is nearly idle, one thread gets a fraction of its target, whatever the others do.
    let mut plant = plant(vec![rate(100_000.0, 1.0, 1), client(None, 1.0, &[12])]);
    let outcomes: Vec<_> = (0..120).map(|_| plant.interval()).collect();
    let held_back = outcomes.iter().filter(|outcome| outcome.granted[1][0] < 12).count();
    assert!(held_back < 40, "in {held_back} of 120 intervals");
}
