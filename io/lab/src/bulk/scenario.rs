//! Storage nodes, and transfers to and from them, as the file of an experiment says it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;
use weir_model::Span;
use weir_transfer::{Policy, PolicyName, SmR1, SmR2, SmR2Form, SmR3, StaticQos};

use crate::quantities::{Rate, Size, Text};

/// The set-up of all runs of an experiment.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkScenario {
    /// The host of all nodes.
    pub host: HostSpec,
    /// The nodes, by name.
    pub node: BTreeMap<String, NodeSpec>,
    /// The transfers that are asked for.
    pub requests: RequestsSpec,
    /// The runs, by name.
    pub run: BTreeMap<String, BulkRunSpec>,
}

/// What all transfers share.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// The most that one transfer gets.
    pub stream: Text<Rate>,
    /// By how much of itself a transfer's share of its node may be smaller or larger; uniformly distributed.
    /// From 0 to 1.
    pub spread: f64,
    /// By how much of itself what a node does may be less or more in a second; uniformly distributed. From 0
    /// to 1.
    pub sway: f64,
    /// How many transfers the host serves before they slow one another down.
    pub crowd: NonZeroU32,
}

/// A storage node.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// The most that it does, reading and writing.
    pub peak: Text<Rate>,
    /// By which part each further transfer lowers what it does in sum; not below zero.
    pub overhead: f64,
}

/// Transfers that are asked for one after the other.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestsSpec {
    /// How many.
    pub count: u32,
    /// The bytes of each.
    pub size: Text<Size>,
    /// The rate that each asks for, on average.
    pub rate: Text<Rate>,
    /// How long after the start of one the next is asked for.
    pub every: Text<Span>,
    /// For reads: the nodes with a replica of the first file, of the second, and so on, over and over.
    /// Absent: all are writes, to any node.
    #[serde(default)]
    pub replicas: Vec<Vec<String>>,
}

/// One run.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkRunSpec {
    /// A few words about the run, for the head of its panel in a figure.
    pub says: String,
    /// The policy that places the transfers.
    pub policy: String,
    /// Its coefficient: *k1* to *k4*. Absent: the paper's, and 4 for *k4*.
    pub coefficient: Option<f64>,
    /// For SM-R2: whether the coefficient stands where equation 2 has it, and not where figure 4(b) has it.
    #[serde(default)]
    pub by_equation: bool,
    /// Others that use nodes, by the nodes' names.
    #[serde(default)]
    pub external: BTreeMap<String, ExternalSpec>,
    /// The nodes that cannot be reached.
    #[serde(default)]
    pub down: Vec<String>,
    /// In this run, the overhead of all nodes.
    pub overhead: Option<f64>,
    /// In this run, the most that one transfer gets.
    pub stream: Option<Text<Rate>>,
    /// In this run, how many transfers the host serves before they slow one another down.
    pub crowd: Option<NonZeroU32>,
}

/// Others use a node.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalSpec {
    /// From when on, after the start of the run.
    pub from: Text<Span>,
    /// Which share of what the node does they take. From 0 to 1.
    pub share: f64,
}

impl RequestsSpec {
    /// The nodes with a replica of what the transfer of that number reads; `None`: it writes.
    pub fn replicas_of(&self, number: u32) -> Option<&[String]> {
        let place = (number as usize).checked_rem(self.replicas.len())?;
        self.replicas.get(place).map(Vec::as_slice)
    }
}

impl BulkScenario {
    /// The place of a node in the order of names.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.node.keys().position(|known| known == name)
    }

    /// The first thing that refers to nothing or cannot be: its key, and what is wrong with it.
    pub(crate) fn problem(&self) -> Option<(String, String)> {
        let share = |key: String, value: f64| {
            let wrong = !(0.0..=1.0).contains(&value);
            wrong.then(|| (key, format!("found {value}; accepted: from 0 to 1")))
        };
        let overhead = |key: String, value: f64| {
            let wrong = !(value >= 0.0 && value.is_finite());
            wrong.then(|| (key, format!("found {value}; accepted: zero or above")))
        };
        let unknown = |key: String, name: &str| {
            let known = || self.node.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let message = || format!("found \"{name}\"; accepted: one of {}", known());
            self.place(name).is_none().then(|| (key, message()))
        };
        let of_run = |(name, run): (&String, &BulkRunSpec)| {
            let key = |key: &str| format!("bulk.run.{name}.{key}");
            let external = run.external.iter().find_map(|(node, spec)| {
                let of_node = |field| key(&format!("external.{node}{field}"));
                unknown(of_node(""), node).or_else(|| share(of_node(".share"), spec.share))
            });
            external
                .or_else(|| run.policy().err().map(|problem| (key("policy"), problem)))
                .or_else(|| run.down.iter().find_map(|node| unknown(key("down"), node)))
                .or_else(|| run.overhead.and_then(|value| overhead(key("overhead"), value)))
        };
        let of_node = |(name, node): (&String, &NodeSpec)| {
            overhead(format!("bulk.node.{name}.overhead"), node.overhead)
        };
        let replicas = self.requests.replicas.iter().flatten();
        share("bulk.host.spread".into(), self.host.spread)
            .or_else(|| share("bulk.host.sway".into(), self.host.sway))
            .or_else(|| self.node.iter().find_map(of_node))
            .or_else(|| replicas.into_iter().find_map(|name| unknown("bulk.requests.replicas".into(), name)))
            .or_else(|| self.run.iter().find_map(of_run))
    }
}

impl BulkRunSpec {
    /// The policy with its coefficient.
    ///
    /// # Errors
    /// If there is no such policy, or it has no such coefficient.
    pub fn policy(&self) -> Result<Policy, String> {
        let name: PolicyName = self.policy.parse().map_err(|error| format!("{error}"))?;
        if self.by_equation && name != PolicyName::SmR2 {
            return Err(format!("found by_equation for {name}; accepted: for sm-r2"));
        }
        let Some(k) = self.coefficient else {
            return Ok(match name.policy() {
                Policy::SmR2(policy) if self.by_equation => {
                    Policy::SmR2(SmR2 { form: SmR2Form::Equation, ..policy })
                }
                policy => policy,
            });
        };
        if !(k > 0.0 && k.is_finite()) {
            return Err(format!("found a coefficient of {k}; accepted: above zero"));
        }
        let form = if self.by_equation { SmR2Form::Equation } else { SmR2Form::Figure };
        match name {
            PolicyName::Static => Ok(Policy::StaticQos(StaticQos { k4: k })),
            PolicyName::SmR1 => Ok(Policy::SmR1(SmR1 { k1: k })),
            PolicyName::SmR2 => Ok(Policy::SmR2(SmR2 { k2: k, form })),
            PolicyName::SmR3 => Ok(Policy::SmR3(SmR3 { k3: k })),
            PolicyName::Rr | PolicyName::Deadline => {
                Err(format!("found a coefficient for {name}; accepted: for static, sm-r1, sm-r2, sm-r3"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_refers_to_nothing_or_cannot_be_is_named() {
        let text = include_str!("../../../../experiments/transfers/transfer-load.toml");
        for (from, to, wanted) in [
            ("spread = 0.15", "spread = 1.5", "bulk.host.spread: found 1.5; accepted: from 0 to 1"),
            ("overhead = 0.0244", "overhead = -1.0", "overhead: found -1; accepted: zero or above"),
            ("external.vm2", "external.vm9", "external.vm9: found \"vm9\"; accepted: one of vm1, vm2, vm3"),
            ("share = 0.7", "share = 7.0", "share: found 7; accepted: from 0 to 1"),
            ("\"sm-r3\"", "\"sm-r4\"", "policy: found \"sm-r4\"; accepted: rr, static, sm-r1,"),
            ("\"static\"", "\"rr\"\ncoefficient = 2.0", "policy: found a coefficient for rr"),
            ("\"static\"", "\"static\"\ncoefficient = 0.0", "policy: found a coefficient of 0"),
            ("\"static\"", "\"static\"\nby_equation = true", "policy: found by_equation for static"),
            ("\"static\"", "\"static\"\ndown = [\"x\"]", "down: found \"x\"; accepted: one of vm1"),
            ("\"26MB/s\"", "\"0MB/s\"", "accepted: a rate above zero"),
        ] {
            assert!(text.contains(from), "{from}");
            let changed = text.replacen(from, to, 1);
            let found = crate::experiment::Experiment::parse("x/transfer-load.toml", &changed);
            let found = found.expect_err("it is wrong").to_string();
            assert!(found.contains(wanted), "{found}");
        }
    }
}
