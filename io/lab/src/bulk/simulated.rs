//! Bulk transfers in simulated time: the model of `weir_sim::transfers`.

use std::num::NonZeroU64;

use anyhow::Context;
use weir_model::{Direction, Instant, Span};
use weir_sim::Seed;
use weir_sim::transfers::{External, StorageNode, TransferOptions, TransferOutcome, run_transfers};
use weir_transfer::{Class, NodeIndex, NodeSet, Request, TransferId};

use super::{Bench, BulkRecord, BulkRunSpec, BulkScenario, BulkTransfer};
use crate::run::Simulated;

/// Longer than any run takes.
const AT_MOST: Span = Span::from_secs(200_000);

impl Bench for Simulated {
    fn name(&self) -> String {
        "simulated".to_owned()
    }

    fn transfer(&self, scenario: &BulkScenario, run: &str, seed: u64) -> anyhow::Result<BulkRecord> {
        let spec = scenario.run.get(run).with_context(|| format!("there is no run {run}"))?;
        let policy = spec.policy().map_err(anyhow::Error::msg)?;
        let requests: Vec<_> = (0..scenario.requests.count).map(|number| request(scenario, number)).collect();
        let options = options(scenario, spec);
        let every = scenario.requests.every.0;
        let outcomes = run_transfers(&options, policy, requests.clone(), every, Seed(seed));
        let transfers = requests.iter().zip(outcomes).map(|(request, outcome)| transfer(request, outcome));
        Ok(BulkRecord {
            nodes: scenario.node.keys().cloned().collect(),
            rate: scenario.requests.rate.0.0.get(),
            transfers: transfers.collect(),
        })
    }
}

fn options(scenario: &BulkScenario, run: &BulkRunSpec) -> TransferOptions {
    let node = |(name, node): (&String, &super::NodeSpec)| StorageNode {
        peak: node.peak.0.0,
        overhead: run.overhead.unwrap_or(node.overhead),
        external: run.external.get(name).map(|spec| External { from: spec.from.0, share: spec.share }),
        is_down: run.down.contains(name),
    };
    TransferOptions {
        nodes: scenario.node.iter().map(node).collect(),
        stream: run.stream.as_ref().unwrap_or(&scenario.host.stream).0.0,
        spread: scenario.host.spread,
        sway: scenario.host.sway,
        clients: std::collections::BTreeMap::new(),
        crowd: run.crowd.unwrap_or(scenario.host.crowd).get(),
        piece: NonZeroU64::MIN,
        ending: Span::ZERO,
        at_most: AT_MOST,
    }
}

fn request(scenario: &BulkScenario, number: u32) -> Request {
    let spec = &scenario.requests;
    let (direction, nodes) = match spec.replicas_of(number) {
        None => (Direction::Write, NodeSet::first(scenario.node.len())),
        Some(names) => {
            let places = names.iter().filter_map(|name| scenario.place(name));
            (Direction::Read, places.map(NodeIndex).collect())
        }
    };
    Request {
        id: TransferId(u64::from(number)),
        direction,
        bytes: Some(spec.size.0.0),
        rate: spec.rate.0.0,
        class: Class::default(),
        deadline: None,
        nodes,
        object: None,
    }
}

fn transfer(request: &Request, outcome: TransferOutcome) -> BulkTransfer {
    let us = |instant: Instant| instant.saturating_since(Instant::ORIGIN).as_micros();
    BulkTransfer {
        bytes: request.bytes.unwrap_or(0),
        nodes: request.nodes.iter().map(|node| node.0).collect(),
        asked_us: us(outcome.asked),
        refused: outcome.refused.map(|refused| refused.to_string()),
        node: outcome.started.map(|(_, node)| node.0),
        started_us: outcome.started.map(|(at, _)| us(at)),
        ended_us: outcome.ended.map(us),
    }
}
