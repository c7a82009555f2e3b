//! Delays that an experiment sets itself, without an agent: the agent's own queues and its table, with a leaf
//! for each initiator.

use std::collections::BTreeSet;

use anyhow::{Context, anyhow, ensure};
use weir_agent::actuator::Actuator;
use weir_model::Span;
use weir_throttle::{Command, LeafId, risen};

use crate::bed::Host;

/// The queues, while this lives.
pub(crate) struct FixedDelays {
    actuator: Actuator,
    hosts: Vec<Host>,
    /// The delay of each host, and the one that it is to have.
    delays: Vec<(Span, Span)>,
}

impl FixedDelays {
    /// Gives the links of all initiators queues, which delay nothing yet. Every connection stays in the leaf
    /// of its initiator, also without a delay: one that left it would overtake its own packets.
    pub(crate) fn install(hosts: &[Host], ceiling: Span) -> anyhow::Result<Self> {
        let mut actuator = Actuator::open().map_err(said)?;
        let links: BTreeSet<_> = hosts.iter().map(Host::link).collect();
        let absent = actuator.install(&links, ceiling).map_err(said)?;
        ensure!(absent.is_empty(), "there are no interfaces {absent:?}");
        let delays = vec![(Span::ZERO, Span::ZERO); hosts.len()];
        let mut fixed = Self { actuator, hosts: hosts.to_vec(), delays };
        let delay = Span::ZERO;
        let leaf = |host: &Host| Command::AddLeaf { interface: host.link(), leaf: leaf(host), delay };
        let leaves = hosts.iter().map(leaf).chain([Command::Classify(true)]);
        fixed.apply(&leaves.collect::<Vec<_>>())?;
        fixed.renew()?;
        Ok(fixed)
    }

    /// Delays what is sent to an initiator from now on.
    pub(crate) fn set(&mut self, host: usize, delay: Span) -> anyhow::Result<()> {
        self.delays[host] = (delay, delay);
        let (interface, leaf) = (self.hosts[host].link(), leaf(&self.hosts[host]));
        self.apply(&[Command::SetDelay { interface, leaf, delay }])
    }

    /// From now on, each [turn](Self::turn) brings the delay of an initiator closer to this one, as fast as
    /// an agent would.
    pub(crate) fn aim(&mut self, host: usize, delay: Span) {
        self.delays[host].1 = delay;
    }

    /// Ten times a second.
    pub(crate) fn turn(&mut self) -> anyhow::Result<()> {
        for host in 0..self.hosts.len() {
            let (present, wanted) = self.delays[host];
            if present != wanted {
                self.set(host, risen(present, wanted))?;
                self.delays[host].1 = wanted;
            }
        }
        Ok(())
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
