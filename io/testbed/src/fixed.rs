//! Delays that an experiment sets itself, without an agent: the agent's own queues and its table, with a leaf
//! for each initiator.

use std::collections::BTreeSet;

use anyhow::{Context, anyhow, ensure};
use weir_agent::actuator::Actuator;
use weir_model::Span;
use weir_throttle::{Command, LeafId};

use crate::bed::Host;

/// The queues, while this lives.
pub(crate) struct FixedDelays {
    actuator: Actuator,
    hosts: Vec<Host>,
}

impl FixedDelays {
    /// Gives the links of all initiators queues, which delay nothing yet. Every connection stays in the leaf
    /// of its initiator, also without a delay: one that left it would overtake its own packets.
    pub(crate) fn install(hosts: &[Host], ceiling: Span) -> anyhow::Result<Self> {
        let mut actuator = Actuator::open().map_err(said)?;
        let links: BTreeSet<_> = hosts.iter().map(Host::link).collect();
        let absent = actuator.install(&links, ceiling).map_err(said)?;
        ensure!(absent.is_empty(), "there are no interfaces {absent:?}");
        let mut fixed = Self { actuator, hosts: hosts.to_vec() };
        let delay = Span::ZERO;
        let leaf = |host: &Host| Command::AddLeaf { interface: host.link(), leaf: leaf(host), delay };
        let leaves = hosts.iter().map(leaf).chain([Command::Classify(true)]);
        fixed.apply(&leaves.collect::<Vec<_>>())?;
        fixed.renew()?;
        Ok(fixed)
    }

    /// Delays what is sent to an initiator from now on.
    pub(crate) fn set(&mut self, host: usize, delay: Span) -> anyhow::Result<()> {
        let (interface, leaf) = (self.hosts[host].link(), leaf(&self.hosts[host]));
        self.apply(&[Command::SetDelay { interface, leaf, delay }])
    }

    /// The kernel stops delaying by itself if this is not called for three seconds.
    pub(crate) fn renew(&mut self) -> anyhow::Result<()> {
        let enter = |host: &Host| Command::Enter { leaf: leaf(host), connections: host.connections() };
        let commands: Vec<_> = self.hosts.iter().map(enter).collect();
        self.apply(&commands)
    }

    /// Takes the queues away.
    pub(crate) fn remove(mut self) -> anyhow::Result<()> {
        self.actuator.remove().map_err(said)
    }

    fn apply(&mut self, commands: &[Command]) -> anyhow::Result<()> {
        let absent = self.actuator.apply(commands).map_err(said).context("fixed delays")?;
        ensure!(absent.is_empty(), "there are no queues at {absent:?}");
        Ok(())
    }
}

fn leaf(host: &Host) -> LeafId {
    LeafId(u16::from(host.number) + 1)
}

fn said(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("{error}")
}
