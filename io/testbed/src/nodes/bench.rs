//! The bench of real nodes: the real coordinator and its real clients run the transfers of an experiment.
//!
//! Everything is smaller and faster by a stated factor: see [`SMALLER`] and [`FASTER`]. The coordinator and
//! the clients have a clock that is faster, so that a second of theirs is a sample, as always.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use weir_clock::Clock;
use weir_coordinator::proto::TransferInfo;
use weir_coordinator::{
    Address, Asked, Client, ClientError, DeskConfig, NodeConfig, Phase, Server, ServerSpec, Stored, Target,
    What,
};
use weir_lab::bulk::{Bench, BulkRecord, BulkRunSpec, BulkScenario, BulkTransfer};
use weir_model::Bandwidth;
use weir_node::{Node, ObjectName};
use weir_sim::Seed;
use weir_transfer::{Policy, PolicyName};

use super::bed::{Bed, PLACES};
use super::network;
use super::shaper::{NodeShape, Shape, Shaper};
use crate::stop::Stop;

/// By how much each object is smaller. So is each rate, on the clock of the run.
const SMALLER: u32 = 180;
/// How many seconds of the run pass in a second. So the rates of the machine are smaller by `SMALLER /
/// FASTER`.
const FASTER: NonZeroU32 = NonZeroU32::new(60).expect("above zero");

/// Real nodes on this machine.
pub struct RealNodes {
    clock: Clock,
    stop: Stop,
    runtime: Runtime,
    bed: Bed,
    /// What was run already: some experiments have the same runs.
    known: Mutex<BTreeMap<String, BulkRecord>>,
}

/// What a transfer was told at its end.
type Ending = JoinHandle<Result<(), ClientError>>;

impl RealNodes {
    /// Starts the nodes, in a network of their own, which this thread has from now on. Their transfers end
    /// when `stop` is set.
    ///
    /// # Errors
    /// If this machine lacks a part of them, or the user is not root.
    pub fn start(stop: Stop) -> anyhow::Result<Self> {
        network::have_its_own()?;
        let clock = Clock::sped_up(FASTER);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let bed = runtime.block_on(async { Bed::start(Shaper::start(clock)).await })?;
        Ok(Self { clock, stop, runtime, bed, known: Mutex::default() })
    }

    /// Runs the transfers of a run, on nodes that were prepared for it.
    async fn run(&self, scenario: &BulkScenario, run: &BulkRunSpec, seed: u64) -> anyhow::Result<BulkRecord> {
        let names: Vec<_> = scenario.node.keys().cloned().collect();
        ensure!(
            names.len() <= PLACES.len(),
            "found {} nodes; accepted: {} at most",
            names.len(),
            PLACES.len()
        );
        let nodes: BTreeMap<String, Node> = names.iter().cloned().zip(self.bed.nodes()?).collect();
        let state = tempfile::tempdir_in(self.bed.folder()).context("a directory for a coordinator")?;
        let source = state.path().join("source");
        std::fs::write(&source, data(scenario.requests.size.0.0 / u64::from(SMALLER)))
            .context("a file to put")?;
        self.bed.set_away(false)?;
        self.bed.shaper.set(None, Seed(seed));
        if !scenario.requests.replicas.is_empty() {
            let server = self.serve(scenario, PolicyName::Rr.policy(), state.path(), &nodes).await?;
            for (number, replicas) in scenario.requests.replicas.iter().enumerate() {
                let there = nodes.iter().filter(|(name, _)| replicas.contains(name));
                let client = self
                    .client(state.path(), there.map(|(name, node)| (name.clone(), node.clone())).collect())?;
                let watched = replicas.iter().map(|_| Client::watched().0).collect();
                let what = What::File(source.clone());
                for stored in client.put(&name_of(number)?, &what, &Asked::default(), watched).await? {
                    stored.context("storing what is to be read")?;
                }
            }
            server.stop().await;
        }
        self.bed.set_away(!run.down.is_empty())?;
        let policy = run.policy().map_err(anyhow::Error::msg)?;
        let server = self.serve(scenario, policy, state.path(), &nodes).await?;
        self.bed.shaper.set(Some(shape(scenario, run)), Seed(seed));
        let client = self.client(state.path(), nodes.clone())?;
        let ran = self.ask_for_all(scenario, &client, &source).await;
        self.bed.shaper.set(None, Seed(seed));
        let listed = client.transfers(true).await?;
        for object in client.objects("").await? {
            client.remove(&object.name).await?;
        }
        server.stop().await;
        self.bed.set_away(false)?;
        Ok(BulkRecord {
            transfers: transfers(scenario, &names, ran?, &listed)?,
            nodes: names,
            rate: scenario.requests.rate.0.0.get(),
        })
    }

    async fn serve(
        &self,
        scenario: &BulkScenario,
        policy: Policy,
        state: &Path,
        nodes: &BTreeMap<String, Node>,
    ) -> anyhow::Result<Server> {
        let node = |(name, spec): (&String, &weir_lab::bulk::NodeSpec)| {
            let peak = smaller(spec.peak.0.0);
            NodeConfig {
                name: name.clone(),
                url: String::new(),
                peak_read: Some(peak),
                peak_write: Some(peak),
                class: 0,
                cost: 0,
                capacity: None,
                domain: name.clone(),
            }
        };
        let desk = DeskConfig {
            policy,
            classes: vec!["all".to_owned()],
            rate: smaller(scenario.requests.rate.0.0),
            nodes: scenario.node.iter().map(node).collect(),
        };
        let nodes: Vec<_> = nodes.values().cloned().collect();
        let sensors = nodes.iter().map(|_: &Node| None).collect();
        let spec = ServerSpec { state: state.to_owned(), remote: None, desk, nodes, sensors };
        Ok(Server::start(self.clock, spec).await?)
    }

    fn client(&self, state: &Path, nodes: BTreeMap<String, Node>) -> anyhow::Result<Client> {
        Ok(Client::new(self.clock, Address::State(state.to_owned()), nodes)?)
    }

    /// Asks for one transfer after the other, each `every` after the one before has started, and waits for
    /// the end of all. What each was told.
    async fn ask_for_all(
        &self,
        scenario: &BulkScenario,
        client: &Client,
        source: &Path,
    ) -> anyhow::Result<Vec<Option<String>>> {
        let mut endings: Vec<Ending> = Vec::new();
        for number in 0..scenario.requests.count {
            self.stop.check()?;
            let (watched, mut watch) = Client::watched();
            let (client, source) = (client.clone(), source.to_owned());
            let place = (number as usize).checked_rem(scenario.requests.replicas.len());
            endings.push(tokio::spawn(async move {
                match place {
                    None => {
                        let name = name_of(number as usize)
                            .map_err(|error| ClientError::Wrong(error.to_string()))?;
                        let what = What::File(source);
                        let mut stored = client.put(&name, &what, &Asked::default(), vec![watched]).await?;
                        stored.remove(0).map(drop)
                    }
                    Some(place) => {
                        get(&client, place, source.with_extension(number.to_string()), watched).await
                    }
                }
            }));
            // It ends without a start if it is refused: then its watch is closed.
            let started = |progress: &weir_coordinator::Progress| {
                matches!(progress.phase, Phase::Moving(_) | Phase::Done(_))
            };
            let _ = watch.wait_for(started).await;
            tokio::time::sleep(self.clock.takes(scenario.requests.every.0)).await;
        }
        let mut told = Vec::new();
        for ending in endings {
            self.stop.check()?;
            told.push(ending.await?.err().map(|error| error.to_string()));
        }
        Ok(told)
    }
}

impl Bench for RealNodes {
    fn name(&self) -> String {
        let places = PLACES[..3].join(", ");
        format!("{places}; 1/{SMALLER} of each object; {FASTER} times as fast")
    }

    fn transfer(&self, scenario: &BulkScenario, run: &str, seed: u64) -> anyhow::Result<BulkRecord> {
        let spec = scenario.run.get(run).with_context(|| format!("there is no run {run}"))?;
        let same = BulkRunSpec { says: String::new(), ..spec.clone() };
        let BulkScenario { host, node, requests, .. } = scenario;
        let key = format!("{seed} {host:?} {node:?} {requests:?} {same:?}");
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = known.get(&key) {
            return Ok(record.clone());
        }
        let record = self.runtime.block_on(self.run(scenario, spec, seed))?;
        known.insert(key, record.clone());
        Ok(record)
    }
}

async fn get(
    client: &Client,
    place: usize,
    to: PathBuf,
    watched: weir_coordinator::Watched,
) -> Result<(), ClientError> {
    let name = name_of(place).map_err(|error| ClientError::Wrong(error.to_string()))?;
    let read: Result<Stored, _> =
        client.get(&name, Target::File(to.clone()), &Asked::default(), watched).await;
    let _ = std::fs::remove_file(&to); // nothing is there if it was refused
    read.map(drop)
}

/// The transfers in the units of the experiment, in the order in which they were asked for.
fn transfers(
    scenario: &BulkScenario,
    names: &[String],
    told: Vec<Option<String>>,
    listed: &[TransferInfo],
) -> anyhow::Result<Vec<BulkTransfer>> {
    // What was stored before it began is not part of the run. A coordinator numbers them in their order.
    let mut listed: Vec<_> = listed.iter().collect();
    listed.sort_by_key(|info| info.transfer);
    let before = listed.len().saturating_sub(told.len());
    let run = &listed[before..];
    ensure!(run.len() == told.len(), "found {} transfers at the coordinator of {}", run.len(), told.len());
    let begin = run.iter().map(|info| info.asked_ms).min().unwrap_or(0);
    let us = |at: u64| at.saturating_sub(begin) * 1_000;
    let place = |name: &str| names.iter().position(|known| known == name);
    let one = |(number, (info, told)): (u32, (&&TransferInfo, Option<String>))| {
        let nodes = match scenario.requests.replicas_of(number) {
            Some(replicas) => replicas.iter().filter_map(|name| place(name)).collect(),
            None => (0..names.len()).collect(),
        };
        BulkTransfer {
            bytes: scenario.requests.size.0.0,
            nodes,
            asked_us: us(info.asked_ms),
            node: place(&info.node),
            started_us: (info.started_ms > 0).then(|| us(info.started_ms)),
            ended_us: (info.started_ms > 0 && told.is_none()).then(|| us(info.ended_ms)),
            refused: told.filter(|_| info.started_ms == 0),
        }
    };
    Ok((0..).zip(run.iter().zip(told)).map(one).collect())
}

/// The model of the experiment, in the units of this bench.
fn shape(scenario: &BulkScenario, run: &BulkRunSpec) -> Shape {
    let rate = |rate: Bandwidth| bytes(smaller(rate));
    let node = |(name, node): (&String, &weir_lab::bulk::NodeSpec)| NodeShape {
        peak: rate(node.peak.0.0),
        overhead: run.overhead.unwrap_or(node.overhead),
        others: run.external.get(name).map_or(0.0, |others| others.share),
    };
    Shape {
        stream: rate(run.stream.as_ref().unwrap_or(&scenario.host.stream).0.0),
        spread: scenario.host.spread,
        sway: scenario.host.sway,
        crowd: f64::from(run.crowd.unwrap_or(scenario.host.crowd).get()),
        nodes: scenario.node.iter().map(node).collect(),
    }
}

fn smaller(rate: Bandwidth) -> Bandwidth {
    Bandwidth::new(rate.get() / u64::from(SMALLER)).unwrap_or(rate)
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
const fn bytes(rate: Bandwidth) -> f64 {
    rate.get() as f64
}

fn name_of(number: usize) -> anyhow::Result<ObjectName> {
    Ok(format!("object-{number:03}").parse()?)
}

/// Data that no server can make smaller.
fn data(bytes: u64) -> Vec<u8> {
    use rand::Rng;
    let mut data = vec![0; usize::try_from(bytes).unwrap_or(0)];
    Seed(1).stream("the data of an object").fill_bytes(&mut data);
    data
}
