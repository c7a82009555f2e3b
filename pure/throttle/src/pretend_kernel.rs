//! A kernel for tests: it does what the real one does with a command, and panics at what the real one refuses
//! and at what loses packets.

use crate::kernel::{Command, Present};

/// Applies a command.
pub(crate) fn apply(kernel: &mut Present, command: &Command) {
    let leaves = |interface| kernel.interfaces.get(interface);
    match command {
        Command::AddRoot { interface } => assert_eq!(leaves(interface), None, "a second root"),
        Command::AddLeaf { interface, leaf, .. } => {
            assert!(!leaves(interface).expect("a root").contains_key(leaf), "a second leaf of that number");
        }
        Command::SetDelay { interface, leaf, .. } => {
            assert!(leaves(interface).expect("a root").contains_key(leaf), "no such leaf");
        }
        Command::RemoveLeaf { interface, leaf } => {
            let (_, has_packets) = leaves(interface).expect("a root").get(leaf).expect("a leaf");
            assert!(!has_packets, "packets were lost");
            assert!(!kernel.members.values().any(|member| member.0 == *leaf), "packets could still come in");
        }
        Command::Enter { .. } => {}
        Command::Leave { connections } => {
            let is_in = |connection| kernel.members.contains_key(connection);
            assert!(connections.iter().all(is_in), "it leaves and was not in");
        }
        Command::Classify(on) => assert_ne!(kernel.classifies, *on, "the rule was so already"),
    }
    kernel.assume(command);
}
