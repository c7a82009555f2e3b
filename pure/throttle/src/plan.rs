//! Which commands lead from what the kernel holds to what it is to hold.
//!
//! A plan is computed from both alone. So it needs no memory of what was done before, it repairs what
//! somebody else has changed, and it goes on where an earlier plan failed. A plan of what is already there is
//! empty.
//!
//! **The order is safe at every prefix**: whichever command fails, no connection is delayed for longer than
//! it was before or than it is to be, whichever is longer. A connection that is no member is delayed no
//! longer than before. So whatever takes a delay away comes first, and whatever brings one comes last:
//!
//! 1. With no member wanted, the rule goes. From then on no packet is touched.
//! 2. Connections that are no members leave. Otherwise a delay that rises would hit them.
//! 3. Delays that are to be shorter are shortened.
//! 4. Members enter their leaves, or move there, or are renewed. A leaf that they enter has a delay that is
//!    no longer than wanted. A leaf that they leave has not been lengthened yet.
//! 5. Roots and leaves that are missing are added. A class that does not exist delays nobody, so a connection
//!    may enter a leaf before the leaf is there.
//! 6. Delays that are to be longer are lengthened.
//! 7. With members wanted, the rule comes.
//! 8. Leaves that nobody wants are removed, once they are empty and no element leads there. A packet may come
//!    in as long as an element leads there, and would be lost with the leaf. So a leaf goes one plan later
//!    than its members.
//!
//! The root queue of an interface stays once it is there: to exchange a root queue loses the packets in it.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::Span;

use crate::kernel::{Command, LeafId, Present, Wanted, WantedLeaf};
use crate::survey::Connection;

/// A member is renewed when less than this is left: once a second, with two attempts to spare.
pub const RENEW_BELOW: Span = Span::from_secs(2);

/// The commands that lead from `present` to `wanted`, in the order in which they are safe.
///
/// After all of them were applied, the next plan is empty, or removes leaves whose last members left with
/// this one. Leaves with packets in them are left for a later plan.
pub fn plan(present: &Present, wanted: &Wanted) -> Vec<Command> {
    let Moves { leave, enter } = moves(present, wanted);
    let has_members = wanted.leaves.values().any(|leaf| !leaf.members.is_empty());
    let mut commands = Vec::new();
    if present.classifies && !has_members {
        commands.push(Command::Classify(false));
    }
    if !leave.is_empty() {
        commands.push(Command::Leave { connections: leave });
    }
    set_delays(present, wanted, |is, wanted| wanted < is, &mut commands);
    commands.extend(enter.into_iter().map(|(leaf, connections)| Command::Enter { leaf, connections }));
    add_missing(present, wanted, &mut commands);
    set_delays(present, wanted, |is, wanted| wanted > is, &mut commands);
    if !present.classifies && has_members {
        commands.push(Command::Classify(true));
    }
    remove_unused(present, wanted, &mut commands);
    commands
}

/// The connections that leave, and those that enter each leaf or are renewed in it.
#[derive(Default)]
struct Moves {
    leave: BTreeSet<Connection>,
    enter: BTreeMap<LeafId, BTreeSet<Connection>>,
}

/// What is present and what is wanted are gone through side by side, in the order of the connections. This is
/// done in each interval, for all members.
fn moves(present: &Present, wanted: &Wanted) -> Moves {
    let members = wanted
        .leaves
        .iter()
        .flat_map(|(&leaf, WantedLeaf { members, .. })| members.iter().map(move |&member| (member, leaf)));
    let mut members: Vec<_> = members.collect();
    members.sort();
    let mut moves = Moves::default();
    let mut present = present.members.iter().peekable();
    for (member, leaf) in members {
        while let Some((&gone, _)) = present.next_if(|(connection, _)| **connection < member) {
            moves.leave.insert(gone);
        }
        let is_in = present.next_if(|(connection, _)| **connection == member);
        if !is_in.is_some_and(|(_, &(is_in, left))| is_in == leaf && left >= RENEW_BELOW) {
            moves.enter.entry(leaf).or_default().insert(member);
        }
    }
    moves.leave.extend(present.map(|(&gone, _)| gone));
    moves
}

/// On all interfaces, also on those that no member uses any more: their leaves stay, and a route may lead
/// there again.
fn set_delays(
    present: &Present,
    wanted: &Wanted,
    differs: impl Fn(Span, Span) -> bool,
    commands: &mut Vec<Command>,
) {
    for (interface, leaves) in &present.interfaces {
        for (&leaf, &(is, _)) in leaves {
            let delay = wanted.leaves.get(&leaf).map(|leaf| leaf.delay);
            if let Some(delay) = delay.filter(|&delay| differs(is, delay)) {
                commands.push(Command::SetDelay { interface: interface.clone(), leaf, delay });
            }
        }
    }
}

fn add_missing(present: &Present, wanted: &Wanted, commands: &mut Vec<Command>) {
    let none = BTreeMap::new();
    for interface in &wanted.interfaces {
        let leaves = present.interfaces.get(interface);
        if leaves.is_none() {
            commands.push(Command::AddRoot { interface: interface.clone() });
        }
        let leaves = leaves.unwrap_or(&none);
        for (&leaf, WantedLeaf { delay, .. }) in
            wanted.leaves.iter().filter(|leaf| !leaves.contains_key(leaf.0))
        {
            commands.push(Command::AddLeaf { interface: interface.clone(), leaf, delay: *delay });
        }
    }
}

fn remove_unused(present: &Present, wanted: &Wanted, commands: &mut Vec<Command>) {
    let entered: BTreeSet<LeafId> = present.members.values().map(|&(leaf, _)| leaf).collect();
    for (interface, leaves) in &present.interfaces {
        for (&leaf, &(_, has_packets)) in leaves {
            if !has_packets && !entered.contains(&leaf) && !wanted.leaves.contains_key(&leaf) {
                commands.push(Command::RemoveLeaf { interface: interface.clone(), leaf });
            }
        }
    }
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
