//! Storage nodes, as a policy sees them.

use weir_model::{Bandwidth, Direction};

/// The place of a node in the scheduler's list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeIndex(pub usize);

/// What fails together, such as a rack: replicas of an object lie in different domains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Domain(pub u32);

/// What is known of a node before anything is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeSpec {
    /// The most that it reads.
    pub peak_read: Bandwidth,
    /// The most that it writes.
    pub peak_write: Bandwidth,
    /// What it fails with.
    pub domain: Domain,
}

impl NodeSpec {
    /// The most that it does in one direction.
    pub const fn peak(&self, direction: Direction) -> Bandwidth {
        match direction {
            Direction::Read => self.peak_read,
            Direction::Write => self.peak_write,
        }
    }
}

/// What a policy knows of a node, in the direction of the transfer that is to be placed. Rates are in bytes a
/// second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeView {
    /// The node.
    pub node: NodeIndex,
    /// The most that it does: the paper's *max*.
    pub peak: Bandwidth,
    /// The sum of the rates that its transfers asked for: *res_ban*.
    pub reserved: u64,
    /// Their measured rate in sum, averaged over the last ten samples: *ma10*.
    pub average: u64,
    /// How many transfers it has: *np*.
    pub active: u32,
    /// The sum of the rates that its transfers need from now on. A transfer that got more than it asked for
    /// needs less.
    pub needed: u64,
    /// What others than the transfers move there; `None`: nobody knows. Only `deadline` looks at it.
    pub external: Option<u64>,
}

/// Some of the nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct NodeSet {
    /// A bit for each node. The last word is not zero, so that equal sets are equal words.
    words: Vec<u64>,
}

impl NodeSet {
    /// No node.
    pub const EMPTY: Self = Self { words: Vec::new() };

    /// The first `count` nodes.
    pub fn first(count: usize) -> Self {
        (0..count).map(NodeIndex).collect()
    }

    /// Adds a node.
    pub fn insert(&mut self, NodeIndex(node): NodeIndex) {
        let word = node / WORD;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (node % WORD);
    }

    /// Takes a node out.
    pub fn remove(&mut self, NodeIndex(node): NodeIndex) {
        if let Some(word) = self.words.get_mut(node / WORD) {
            *word &= !(1 << (node % WORD));
        }
        self.shorten();
    }

    /// Whether a node is one of them.
    pub fn contains(&self, NodeIndex(node): NodeIndex) -> bool {
        self.words.get(node / WORD).is_some_and(|word| word & (1 << (node % WORD)) != 0)
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Adds all nodes of another set.
    pub fn add_all(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Takes out all nodes of another set.
    pub fn remove_all(&mut self, other: &Self) {
        for (word, less) in self.words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
        self.shorten();
    }

    /// The nodes, rising.
    pub fn iter(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        let of_word = |(place, word): (usize, &u64)| {
            let word = *word;
            (0..WORD).filter(move |bit| word & (1 << bit) != 0).map(move |bit| NodeIndex(place * WORD + bit))
        };
        self.words.iter().enumerate().flat_map(of_word)
    }
}

impl NodeSet {
    fn shorten(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

impl FromIterator<NodeIndex> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeIndex>>(nodes: I) -> Self {
        let mut set = Self::EMPTY;
        nodes.into_iter().for_each(|node| set.insert(node));
        set
    }
}

const WORD: usize = u64::BITS as usize;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_nodes_is_a_set(
            changes in prop::collection::vec((any::<bool>(), 0_usize..200), 0..60),
            others in prop::collection::btree_set(0_usize..200, 0..60),
        ) {
            let (mut set, mut model) = (NodeSet::EMPTY, BTreeSet::new());
            for (is_there, node) in changes {
                if is_there {
                    set.insert(NodeIndex(node));
                    model.insert(node);
                } else {
                    set.remove(NodeIndex(node));
                    model.remove(&node);
                }
            }
            prop_assert_eq!(set.iter().map(|NodeIndex(node)| node).collect::<BTreeSet<_>>(), model.clone());
            prop_assert_eq!(set.is_empty(), model.is_empty());
            let other: NodeSet = others.iter().copied().map(NodeIndex).collect();
            let same: NodeSet = model.iter().rev().copied().map(NodeIndex).collect();
            prop_assert_eq!(&set, &same);
            let members = |set: &NodeSet| set.iter().map(|NodeIndex(node)| node).collect::<BTreeSet<_>>();
            let mut both = set.clone();
            both.add_all(&other);
            prop_assert_eq!(members(&both), &model | &others);
            set.remove_all(&other);
            prop_assert_eq!(members(&set), &model - &others);
            prop_assert_eq!(set.is_empty(), model.is_subset(&others));
        }
    }
}
