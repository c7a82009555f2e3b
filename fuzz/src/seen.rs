//! The states that a target has reached: the proof that mutated messages get past the first check.

use std::collections::BTreeMap;

/// How often each state was reached, and how many messages were judged.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    messages: u64,
    states: BTreeMap<&'static str, u64>,
}

impl Seen {
    /// A message was judged, with any result.
    pub fn message(&mut self) {
        self.messages += 1;
    }

    /// A state was reached.
    pub fn reach(&mut self, state: &'static str) {
        *self.states.entry(state).or_default() += 1;
    }

    /// Counts a script without any message as one, so that a loop over a number of messages ends.
    pub(crate) fn message_if_none(&mut self, script: &Self) {
        self.messages += u64::from(script.messages == 0);
    }

    /// How many messages were judged.
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// How often a state was reached.
    pub fn times(&self, state: &str) -> u64 {
        self.states.get(state).copied().unwrap_or(0)
    }

    /// The states that were reached, each with the binary order of magnitude of how often. Scripts with the
    /// same shape count as alike.
    pub fn shape(&self) -> Vec<(&'static str, u32)> {
        self.states.iter().map(|(state, times)| (*state, times.ilog2())).collect()
    }

    /// Adds what another script has reached.
    pub fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        other.states.iter().for_each(|(state, times)| *self.states.entry(state).or_default() += times);
    }

    /// One line for a person to read.
    pub fn summary(&self) -> String {
        let states: Vec<_> = self.states.iter().map(|(state, times)| format!("{state} {times}")).collect();
        format!("{} messages; {}", self.messages, states.join(", "))
    }
}
