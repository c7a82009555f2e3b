//! A kernel for tests: it does what the real one does with a command, and panics at what the real one refuses
//! and at what loses packets.

use crate::kernel::{Command, InterfaceLeaves, Present};
use crate::plan::MEMBER_LASTS;

/// Applies a command.
pub(crate) fn apply(kernel: &mut Present, command: &Command) {
    match command.clone() {
        Command::AddRoot { interface } => {
            assert_eq!(kernel.interfaces.insert(interface, InterfaceLeaves::new()), None, "a second root");
        }
        Command::AddLeaf { interface, leaf, delay } => {
            let leaves = kernel.interfaces.get_mut(&interface).expect("a root");
            assert_eq!(leaves.insert(leaf, (delay, false)), None, "a second leaf of that number");
        }
        Command::SetDelay { interface, leaf, delay } => {
            let leaves = kernel.interfaces.get_mut(&interface).expect("a root");
            leaves.get_mut(&leaf).expect("a leaf").0 = delay;
        }
        Command::RemoveLeaf { interface, leaf } => {
            let leaves = kernel.interfaces.get_mut(&interface).expect("a root");
            let (_, has_packets) = leaves.remove(&leaf).expect("a leaf");
            assert!(!has_packets, "packets were lost");
            assert!(!kernel.members.values().any(|member| member.0 == leaf), "packets could still come in");
        }
        Command::Enter { leaf, connections } => {
            kernel.members.extend(connections.into_iter().map(|member| (member, (leaf, MEMBER_LASTS))));
        }
        Command::Leave { connections } => {
            for connection in connections {
                assert!(kernel.members.remove(&connection).is_some(), "it leaves and was not in");
            }
        }
        Command::Classify(on) => {
            assert_ne!(kernel.classifies, on, "the rule was so already");
            kernel.classifies = on;
        }
    }
}
