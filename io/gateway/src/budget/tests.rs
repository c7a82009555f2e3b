//! The properties that the budget promises, step by step and for random loads.

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;

/// The charges of connections, so that they can be given back in any order.
struct Rig {
    budget: Budget,
    owners: Vec<OwnerId>,
    charges: Vec<Charge>,
    next: usize,
}

impl Rig {
    fn new(total: u64, parts: &[Part]) -> Self {
        let mut budget = Budget::new(total);
        let owners = parts.iter().map(|part| budget.add_owner(*part)).collect();
        Self { budget, owners, charges: Vec::new(), next: 0 }
    }

    /// A new connection of the volume asks; its reserve is used up. Returns its key if it waits.
    fn ask(&mut self, volume: usize, bytes: u64) -> Option<usize> {
        self.next += 1;
        match self.budget.take(self.owners[volume], self.next, bytes, RESERVE) {
            Some(charge) => {
                self.charges.push(charge);
                None
            }
            None => Some(self.next),
        }
    }

    /// Lets in the requests for which there is room; returns their connections.
    fn settle(&mut self) -> Vec<usize> {
        let mut granted = Vec::new();
        while let Some((connection, charge)) = self.budget.poll_granted() {
            granted.push(connection);
            self.charges.push(charge);
        }
        granted
    }

    fn give_back(&mut self, index: usize) {
        let charge = self.charges.swap_remove(index);
        self.budget.give_back(charge);
    }

    fn sum(&self) -> u64 {
        self.charges.iter().map(|charge| charge.bytes()).sum::<u64>() + self.budget.held
    }
}

#[test]
fn a_promised_volume_has_room_for_its_largest_request_when_another_takes_all_that_it_can() {
    let mut rig = Rig::new(256 * MIB, &[Part::Promised, Part::Equal]);
    let stuck = (0..64).filter(|_| rig.ask(1, LARGEST).is_none()).count();
    assert_eq!(stuck, 7, "all but the part of the promised volume");
    for _ in 0..10 {
        assert_eq!(rig.ask(0, LARGEST), None);
        let waits = rig.ask(0, 4096).expect("it has what it owns, and others wait for the rest");
        let last = rig.charges.len() - 1;
        rig.give_back(last);
        assert_eq!(rig.settle(), [waits]);
        let last = rig.charges.len() - 1;
        rig.give_back(last);
    }
}

#[test]
fn volumes_without_a_promise_have_equal_parts_and_one_largest_request_stays_shared() {
    let mut rig = Rig::new(96 * MIB, &[Part::Promised, Part::Equal, Part::Equal]);
    // 32 MiB of the first, 32 MiB shared in any case, and a quarter of the rest each.
    while rig.ask(1, MIB).is_none() {}
    assert_eq!(rig.sum(), (8 + 32 + 16) * MIB);
    assert_eq!(rig.ask(2, 8 * MIB), None, "its part is its own");
    assert!(rig.ask(2, MIB).is_some());
    assert_eq!(rig.ask(0, LARGEST), None);
    assert_eq!(rig.sum(), 96 * MIB);
}

#[test]
fn one_connection_of_a_volume_waits_for_one_request_of_another_and_not_for_all_that_wait_there() {
    let mut rig = Rig::new(33 * MIB, &[Part::Equal, Part::Equal]);
    assert_eq!(rig.ask(0, LARGEST), None);
    let crowd: Vec<_> = (0..64).map(|_| rig.ask(0, LARGEST).unwrap()).collect();
    let single = rig.ask(1, LARGEST).unwrap();
    rig.give_back(0);
    assert_eq!(rig.settle(), [crowd[0]]);
    rig.give_back(0);
    assert_eq!(rig.settle(), [single]);
    rig.give_back(0);
    assert_eq!(rig.settle(), [crowd[1]]);
}

#[test]
fn within_a_volume_the_first_that_waits_is_let_in_first() {
    let mut rig = Rig::new(33 * MIB, &[Part::Equal]);
    assert_eq!(rig.ask(0, LARGEST), None);
    let large = rig.ask(0, 30 * MIB).unwrap();
    let small = rig.ask(0, 90_000).unwrap();
    rig.give_back(0);
    assert_eq!(rig.settle(), [large, small]);
}

#[test]
fn a_small_request_passes_on_the_reserve_of_its_connection_when_its_volume_holds_everything() {
    let mut budget = Budget::new(33 * MIB);
    let owner = budget.add_owner(Part::Equal);
    let stuck = budget.take(owner, 1, 33 * MIB, 0).unwrap();
    let charge = budget.take(owner, 2, 4_096, 0).unwrap();
    assert_eq!(charge.bytes(), 4_096);
    assert!(budget.take(owner, 2, RESERVE, 4_096).is_none(), "the reserve is used up");
    assert_eq!(budget.give_back(charge), 4_096);
    let charge = budget.take(owner, 2, RESERVE, 0).expect("the reserve is there again");
    assert!(!budget.is_waited_for(), "so the connection waits no more");
    assert_eq!((budget.give_back(charge), budget.give_back(stuck)), (RESERVE, 0));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a charge was lost")]
fn a_charge_that_is_not_given_back_is_a_panic() {
    let mut budget = Budget::new(33 * MIB);
    let owner = budget.add_owner(Part::Equal);
    drop(budget.take(owner, 1, 4_096, 0));
}

#[test]
fn a_charge_that_outlives_its_budget_is_owed_to_nobody() {
    let mut budget = Budget::new(33 * MIB);
    let owner = budget.add_owner(Part::Equal);
    let charge = budget.take(owner, 1, 4_096, 0);
    drop(budget);
    assert!(charge.is_some());
}

#[test]
fn what_was_read_and_waits_leaves_room_for_the_largest_request() {
    let mut rig = Rig::new(34 * MIB, &[Part::Equal]);
    let own = rig.budget.owner(rig.owners[0]).part;
    while rig.budget.may_hold(65_536) {
        rig.budget.hold(65_536);
    }
    assert!(rig.budget.held > 0 && rig.budget.held <= 2 * MIB - own);
    assert_eq!(rig.ask(0, LARGEST), None);
}

#[test]
fn a_connection_that_left_is_not_waited_for() {
    let mut rig = Rig::new(33 * MIB, &[Part::Equal, Part::Equal]);
    assert_eq!(rig.ask(0, LARGEST), None);
    let (gone, stays) = (rig.ask(0, LARGEST).unwrap(), rig.ask(1, LARGEST).unwrap());
    rig.budget.forget(gone);
    rig.give_back(0);
    assert_eq!(rig.settle(), [stays]);
}

#[test]
fn a_volume_on_its_way_out_owns_nothing_and_what_it_holds_counts_until_it_is_given_back() {
    let mut rig = Rig::new(64 * MIB, &[Part::Promised]);
    assert_eq!(rig.ask(0, LARGEST), None);
    rig.budget.set_part(rig.owners[0], Part::Nothing);
    let successor = rig.budget.add_owner(Part::Promised);
    rig.owners.push(successor);
    assert_eq!(rig.ask(1, LARGEST), None);
    assert!(rig.ask(1, LARGEST).is_some());
    rig.give_back(0);
    rig.budget.remove_owner(rig.owners[0]);
    assert_eq!(rig.settle().len(), 1);
    assert_eq!(rig.sum(), 64 * MIB);
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    prop::collection::vec(prop_oneof![Just(Part::Promised), Just(Part::Equal)], 1..6)
}

#[derive(Clone, Debug)]
enum Step {
    Ask { volume: usize, bytes: u64 },
    GiveBack(usize),
    Leave(usize),
    Hold,
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![512..100_000_u64, MIB..=LARGEST, Just(LARGEST)];
    prop_oneof![
        4 => (any::<usize>(), bytes).prop_map(|(volume, bytes)| Step::Ask { volume, bytes }),
        3 => any::<usize>().prop_map(Step::GiveBack),
        1 => any::<usize>().prop_map(Step::Leave),
        1 => Just(Step::Hold),
        1 => Just(Step::Release),
    ]
}

proptest! {
    #[test]
    fn the_sum_is_never_above_the_total_promises_hold_and_everybody_gets_in_at_last(
        parts in parts(),
        spare in 0..200 * MIB,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let promised = parts.iter().filter(|part| **part == Part::Promised).count() as u64;
        let total = (promised + 1) * LARGEST + spare;
        let mut rig = Rig::new(total, &parts);
        let mut waiting = Vec::new();
        for step in steps {
            match step {
                Step::Ask { volume, bytes } => waiting.extend(rig.ask(volume % parts.len(), bytes)),
                Step::GiveBack(index) if !rig.charges.is_empty() => rig.give_back(index % rig.charges.len()),
                Step::Leave(index) if !waiting.is_empty() => {
                    let index = index % waiting.len();
                    rig.budget.forget(waiting.swap_remove(index));
                }
                Step::Hold if rig.budget.may_hold(262_144) => rig.budget.hold(262_144),
                Step::Release if rig.budget.held > 0 => rig.budget.release(262_144),
                Step::GiveBack(_) | Step::Leave(_) | Step::Hold | Step::Release => {}
            }
            let granted = rig.settle();
            waiting.retain(|connection| !granted.contains(connection));
            prop_assert!(rig.sum() <= total);
            // Whatever the others hold: who is promised something and holds nothing gets in.
            for (volume, part) in parts.iter().enumerate() {
                let owner = rig.budget.owner(rig.owners[volume]);
                if *part == Part::Promised && owner.used == 0 {
                    prop_assert!(owner.waiting.is_empty());
                    prop_assert_eq!(rig.ask(volume, LARGEST), None);
                    let last = rig.charges.len() - 1;
                    rig.give_back(last);
                }
            }
        }
        // Requests end, what was read is not let in: everybody who waits gets in none the less.
        while !waiting.is_empty() {
            prop_assert!(!rig.charges.is_empty(), "somebody waits for nothing");
            rig.give_back(0);
            let granted = rig.settle();
            waiting.retain(|connection| !granted.contains(connection));
            prop_assert!(rig.sum() <= total);
        }
        prop_assert!(!rig.budget.is_waited_for());
    }

    #[test]
    fn no_volume_waits_for_more_than_one_request_of_each_other(
        volumes in 2..8_usize,
        crowds in prop::collection::vec(1..20_usize, 8),
    ) {
        let mut rig = Rig::new(LARGEST, &vec![Part::Equal; volumes]);
        prop_assert_eq!(rig.ask(0, LARGEST), None);
        let mut waiting: Vec<Vec<usize>> = (0..volumes)
            .map(|volume| (0..crowds[volume]).map(|_| rig.ask(volume, LARGEST).unwrap()).collect())
            .collect();
        let mut last = vec![0; volumes];
        for turn in 1.. {
            rig.give_back(0);
            let Some(connection) = rig.settle().pop() else { break };
            let of = waiting.iter().position(|keys| keys.contains(&connection)).unwrap();
            prop_assert!(turn - last[of] <= volumes);
            last[of] = turn;
            waiting[of].retain(|waits| *waits != connection);
        }
        prop_assert!(waiting.iter().all(Vec::is_empty));
    }
}
