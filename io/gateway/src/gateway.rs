//! The handle of a running gateway: start it, change it, ask it, stop it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use weir_backend::{BackendSpec, Opened};
use weir_clock::Clock;
use weir_engine::Recorder;
use weir_model::Span;
use weir_nbd::Exports;
use weir_status::{Explanation, GatewayStatus, Why};

use crate::error::GatewayError;
use crate::exports::{ExportTable, Place};
use crate::front::Front;
use crate::leased::LeasedPool;
use crate::listen::Listener;
use crate::loss::Estate;
use crate::memory;
use crate::opening::Opening;
use crate::shard::{Command, NewVolume, ShardHandle};
use crate::shared_promise::SharedPool;
use crate::spec::{GatewaySpec, PoolSpec, VolumeSpec};

/// Time beyond that of a shutdown, for the last flush and for clients to close their side.
const LAST_FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
const GOODBYE: Duration = Duration::from_millis(500);

/// A gateway that serves. Its methods belong to the thread that started it.
pub struct Gateway {
    spec: GatewaySpec,
    shards: Vec<ShardHandle>,
    places: BTreeMap<String, PoolPlace>,
    /// Volumes that a reload removed, and that may still have accepted requests to finish.
    leaving: Vec<Ending>,
    front: Arc<Front>,
    acceptors: Vec<JoinHandle<()>>,
    recorders: Option<Recorders>,
}

/// Makes the recorder of a pool's engine, given the pool's name, just before the pool is made. If it returns
/// `None`, the pool is served without a recorder.
pub type Recorders = Box<dyn FnMut(&str) -> Option<Box<dyn Recorder + Send>>>;

/// A change of what the gateway serves, while its backends are being opened. The gateway still serves what it
/// served before. Dropping the reload gives it up.
pub struct Reload {
    spec: GatewaySpec,
    opening: Opening,
}

impl Reload {
    /// Returns when all backends are open. The caller may drop the future and call again. A device that does
    /// not answer delays this for as long, so no other work should wait for it.
    ///
    /// # Errors
    /// If a backend cannot be opened. The caller then drops the reload, and nothing has changed.
    pub async fn opened(&mut self) -> Result<(), GatewayError> {
        self.opening.wait().await
    }
}

/// Where a pool and its volumes are.
struct PoolPlace {
    shard: usize,
    pool: usize,
    volumes: BTreeMap<String, Place>,
}

impl Gateway {
    /// Opens the backends, starts the shards, and then accepts clients on `listeners`. The pools are divided
    /// among at most `cores` shards. With `recorders`, the engine of each pool is recorded, also of the pools
    /// that a reload adds. The caller may drop the future while it waits for a device: then nothing runs, as
    /// after an error.
    ///
    /// # Errors
    /// If a backend cannot be opened or a thread cannot be started. Then nothing runs, and no file is left
    /// behind that was not there before.
    ///
    /// # Panics
    /// Outside a tokio `LocalSet`.
    pub async fn start(
        spec: GatewaySpec,
        listeners: Vec<Listener>,
        cores: usize,
        recorders: Option<Recorders>,
    ) -> Result<Self, GatewayError> {
        let wanted = spec.volumes().map(|(_, name, volume)| (name, volume));
        let mut opening = Opening::begin(wanted, Opening::default())?;
        opening.wait().await?;
        let opened = opening.take();
        let shards = match start_shards(&spec, cores) {
            Ok(shards) => shards,
            Err(error) => {
                opened.into_values().for_each(Opened::discard);
                return Err(error);
            }
        };
        let limits = spec.limits;
        let front = Arc::new(Front::new(limits));
        let nothing = GatewaySpec { pools: BTreeMap::new(), limits };
        let mut gateway = Self {
            spec: nothing,
            shards,
            places: BTreeMap::new(),
            leaving: Vec::new(),
            front,
            acceptors: Vec::new(),
            recorders,
        };
        gateway.apply(spec, opened).await;
        let senders: Vec<_> = gateway.shards.iter().map(ShardHandle::sender).collect();
        let accept = |(number, listener)| gateway.front.accept_on(number, listener, senders.clone());
        gateway.acceptors = listeners.into_iter().enumerate().map(accept).collect();
        Ok(gateway)
    }

    /// Begins to change what the gateway serves to `spec`: starts to open the backends of new volumes, and
    /// waits for none. If a reload is under way, it is passed as `superseded`. Of the backends that it has
    /// begun to open, those that `spec` wants too go on; the others are given up.
    ///
    /// # Errors
    /// If a volume would have to move, if a volume of the same name has not ended, or if the limits cannot
    /// hold. Then nothing has changed.
    pub fn begin_reload(
        &self,
        spec: GatewaySpec,
        superseded: Option<Reload>,
    ) -> Result<Reload, GatewayError> {
        memory::check(&spec, self.shards.len())?;
        let ports_differ = |served: &PoolSpec, pool: &PoolSpec| served.ports != pool.ports;
        for (name, pool) in &spec.pools {
            if self.spec.pools.get(name).is_some_and(|served| ports_differ(served, pool)) {
                return Err(GatewayError::FixedPorts { pool: name.clone() });
            }
        }
        for (pool, name, volume) in spec.volumes() {
            if let Some(key) = self.served(name).and_then(|served| fixed_key(served, (pool, volume))) {
                return Err(GatewayError::Fixed { volume: name.to_owned(), key });
            }
        }
        // What it still has at its device, or has to tell of a loss, would meet what the new one does.
        let is_leaving =
            |name: &str| self.leaving.iter().any(|(left, ended)| left == name && ended.is_empty());
        if let Some((_, name, _)) =
            spec.volumes().find(|(_, name, _)| self.served(name).is_none() && is_leaving(name))
        {
            return Err(GatewayError::Leaving { volume: name.to_owned() });
        }
        let before = superseded.map(|reload| reload.opening).unwrap_or_default();
        let new = spec.volumes().filter(|(_, name, _)| self.served(name).is_none());
        let opening = Opening::begin(new.map(|(_, name, volume)| (name, volume)), before)?;
        Ok(Reload { spec, opening })
    }

    /// Puts in force a reload that has opened all its backends. It does not disturb connections to volumes
    /// that stay, nor their requests, queued or in flight. Volumes that go finish the requests that they
    /// accepted, in the background.
    pub async fn finish_reload(&mut self, reload: Reload) {
        self.apply(reload.spec, reload.opening.take()).await;
    }

    /// Counters and state of everything that the gateway serves now.
    pub async fn status(&self) -> GatewayStatus {
        self.probe().status().await
    }

    /// Asks for the status from any task of this thread, without the handle.
    pub fn probe(&self) -> StatusProbe {
        let senders = self.shards.iter().map(ShardHandle::sender).collect();
        StatusProbe { senders, front: Arc::clone(&self.front) }
    }

    /// The link to the pool of this name, if the pool is leased.
    pub fn leased_pool(&self, pool: &str) -> Option<LeasedPool> {
        let (shard, number) =
            self.pool_of(pool, |control| matches!(control, weir_engine::Control::Leased(_)))?;
        Some(LeasedPool::new(shard, number))
    }

    /// The link to the pool of this name, if it is under the law of promises and shares its device with other
    /// gateways.
    pub fn shared_pool(&self, pool: &str) -> Option<SharedPool> {
        let (shard, number) =
            self.pool_of(pool, |control| *control == weir_engine::Control::SharedPromise)?;
        Some(SharedPool::new(shard, number))
    }

    /// The shard of the pool of this name, and its number there, if it is under such a control.
    fn pool_of(
        &self,
        pool: &str,
        is_such: impl Fn(&weir_engine::Control) -> bool,
    ) -> Option<(UnboundedSender<Command>, usize)> {
        let is_there = is_such(&self.spec.pools.get(pool)?.engine.control);
        let place = self.places.get(pool).filter(|_| is_there)?;
        Some((self.shards.get(place.shard)?.sender(), place.pool))
    }

    /// Stops the gateway. It accepts nothing more, and finishes what it accepted within
    /// `limits.shutdown_timeout`. It answers requests that are then still queued with ESHUTDOWN, flushes
    /// every volume and closes it. Returns the names of the volumes whose requests or flush did not finish in
    /// time. The threads that wait for their devices end with the process.
    pub async fn shutdown(mut self) -> Vec<String> {
        for acceptor in self.acceptors.drain(..) {
            acceptor.abort();
        }
        let mut waiting = std::mem::take(&mut self.leaving);
        for place in self.places.values() {
            for (name, at) in &place.volumes {
                let (done, ended) = oneshot::channel();
                let remove = Command::RemoveVolume { pool: at.pool, volume: at.volume, done };
                self.shards[at.shard].send(remove);
                waiting.push((name.clone(), ended));
            }
        }
        waiting = wait_within(self.spec.limits.shutdown_timeout.into(), waiting).await;
        if !waiting.is_empty() {
            // No peer: once, at the end.
            tracing::warn!("time is up: what is still queued is answered with ESHUTDOWN");
            self.shards.iter().for_each(|shard| shard.send(Command::AbortQueued));
            waiting = wait_within(LAST_FLUSH_TIMEOUT, waiting).await;
        }
        self.let_clients_leave().await;
        if !waiting.is_empty() {
            // A thread ends only after its device has answered, which this one may never do.
            self.shards.iter_mut().for_each(ShardHandle::leave_behind);
        }
        waiting.into_iter().map(|(name, _)| name).collect()
    }

    /// Waits, for a bounded time, until the clients have read their last replies and closed their side. The
    /// caller cuts off the other clients.
    async fn let_clients_leave(&self) {
        let _ = tokio::time::timeout(GOODBYE, self.front.wait_until_all_are_gone()).await;
    }

    fn served(&self, name: &str) -> Option<(&str, &VolumeSpec)> {
        self.spec.volumes().find(|(_, served, _)| *served == name).map(|(pool, _, volume)| (pool, volume))
    }

    /// Changes what the shards serve to `spec`; `opened` holds the backends of the new volumes. Cannot fail.
    async fn apply(&mut self, spec: GatewaySpec, mut opened: BTreeMap<String, Opened>) {
        let mut exports = ExportTable::clone(&self.front.exports());
        self.remove_what_went(&spec, &mut exports);
        for (name, pool) in &spec.pools {
            self.apply_pool(name, pool, &mut opened, &mut exports).await;
        }
        for (number, shard) in self.shards.iter().enumerate() {
            let pools = self.places.iter().filter(|(_, place)| place.shard == number);
            let budget = memory::share(&spec, self.shards.len(), pools.map(|(name, _)| name.as_str()));
            shard.send(Command::SetLimits { limits: spec.limits, budget });
        }
        self.front.set(exports, spec.limits);
        self.spec = spec;
    }

    fn remove_what_went(&mut self, spec: &GatewaySpec, exports: &mut ExportTable) {
        let (shards, served, leaving) = (&self.shards, &self.spec.pools, &mut self.leaving);
        leaving.retain_mut(|(_, ended)| matches!(ended.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        self.places.retain(|pool, place| {
            let stays = spec.pools.get(pool);
            place.volumes.retain(|name, at| {
                let keep = stays.is_some_and(|stays| stays.volumes.contains_key(name));
                if !keep {
                    exports.remove(name);
                    // Its faults go with it: what they hold back could never be answered.
                    let was = &served[pool].volumes[name];
                    let (config, goal, faults) = (was.config.clone(), was.goal, Vec::new());
                    shards[at.shard].send(Command::SetVolume {
                        pool: at.pool,
                        volume: at.volume,
                        config,
                        goal,
                        faults,
                    });
                    let (done, ended) = oneshot::channel();
                    leaving.push((name.clone(), ended));
                    shards[at.shard].send(Command::RemoveVolume { pool: at.pool, volume: at.volume, done });
                }
                keep
            });
            if stays.is_none() {
                shards[place.shard].send(Command::ClosePool { pool: place.pool });
            }
            stays.is_some()
        });
    }

    async fn apply_pool(
        &mut self,
        name: &str,
        spec: &PoolSpec,
        opened: &mut BTreeMap<String, Opened>,
        exports: &mut ExportTable,
    ) {
        let before = self.spec.pools.get(name);
        if !self.places.contains_key(name) {
            let shard = self.least_used_shard();
            let (answer, pool) = oneshot::channel();
            let recorder = self.recorders.as_mut().and_then(|recorders| recorders(name));
            let (name_of_pool, config) = (name.to_owned(), spec.engine);
            let ports = spec.ports.clone();
            self.shards[shard].send(Command::AddPool { name: name_of_pool, config, ports, recorder, answer });
            let pool = pool.await.expect("a shard answers for as long as there is its handle");
            self.places.insert(name.to_owned(), PoolPlace { shard, pool, volumes: BTreeMap::new() });
        }
        let place = self.places.get_mut(name).expect("a pool has its place from here on");
        if before.is_some_and(|before| before.engine != spec.engine) {
            self.shards[place.shard].send(Command::SetPool { pool: place.pool, config: spec.engine });
        }
        for (volume_name, volume) in &spec.volumes {
            let shard = &self.shards[place.shard];
            if let Some(new) = opened.remove(volume_name) {
                let properties = new.properties();
                let (answer, id) = oneshot::channel();
                let new = NewVolume {
                    name: volume_name.clone(),
                    opened: new,
                    config: volume.config.clone(),
                    goal: volume.goal,
                    faults: volume.faults.clone(),
                };
                shard.send(Command::AddVolume { pool: place.pool, volume: Box::new(new), answer });
                let id = id.await.expect("a shard answers for as long as there is its handle");
                let at = Place { shard: place.shard, pool: place.pool, volume: id };
                place.volumes.insert(volume_name.clone(), at);
                exports.insert(volume_name, &volume.description, properties, at);
            } else if before.and_then(|before| before.volumes.get(volume_name)) != Some(volume) {
                let at = place.volumes[volume_name];
                let (config, goal) = (volume.config.clone(), volume.goal);
                let faults = volume.faults.clone();
                shard.send(Command::SetVolume { pool: at.pool, volume: at.volume, config, goal, faults });
                exports.describe(volume_name, &volume.description);
            }
        }
    }

    fn least_used_shard(&self) -> usize {
        let pools_on = |shard: &usize| self.places.values().filter(|place| place.shard == *shard).count();
        (0..self.shards.len()).min_by_key(pools_on).expect("a gateway has shards")
    }
}

/// Asks a running gateway for its status.
#[derive(Clone)]
pub struct StatusProbe {
    senders: Vec<UnboundedSender<Command>>,
    front: Arc<Front>,
}

impl StatusProbe {
    /// Counters and state of everything that the gateway serves now. If it has stopped, its pools are left
    /// out.
    pub async fn status(&self) -> GatewayStatus {
        let mut pools = Vec::new();
        for sender in &self.senders {
            let (answer, status) = oneshot::channel();
            let _ = sender.send(Command::Status { answer });
            pools.extend(status.await.unwrap_or_default());
        }
        pools.sort_by(|a, b| a.name.cmp(&b.name));
        let connections = self.front.connected();
        GatewayStatus { connections, pools }
    }

    /// The decisions about a volume in the last control intervals.
    ///
    /// # Errors
    /// If there is no such volume; the error lists the volumes that there are.
    pub async fn explain(&self, volume: &str) -> Result<Explanation, Vec<String>> {
        let exports = self.front.exports();
        if let Some(Place { shard, pool, volume }) = exports.place(volume) {
            let (answer, explained) = oneshot::channel();
            let _ = self.senders[shard].send(Command::Explain { pool, volume, answer });
            if let Ok(Some(explanation)) = explained.await {
                return Ok(explanation);
            }
        }
        Err(exports.names())
    }

    /// Where the time of a volume's requests went since `last` ago, and on whose behalf they waited.
    ///
    /// # Errors
    /// As [`StatusProbe::explain`].
    pub async fn why(&self, volume: &str, last: Span) -> Result<Why, Vec<String>> {
        let exports = self.front.exports();
        if let Some(Place { shard, pool, volume }) = exports.place(volume) {
            let (answer, told) = oneshot::channel();
            let question = Command::Why { pool, volume, last, answer };
            if let Some(sender) = self.senders.get(shard) {
                let _ = sender.send(question);
            }
            if let Ok(Some(why)) = told.await {
                return Ok(why);
            }
        }
        Err(exports.names())
    }
}

fn start_shards(spec: &GatewaySpec, cores: usize) -> Result<Vec<ShardHandle>, GatewayError> {
    let count = cores.min(spec.pools.len()).min(memory::most_shards(spec)).max(1);
    memory::check(spec, count)?;
    let clock = Clock::new();
    let budget = memory::share(spec, count, [].into_iter());
    let estate = Estate::default();
    let start = |i| ShardHandle::start(format!("weir-shard-{i}"), clock, spec.limits, budget, estate.clone());
    (0..count).map(|i| Ok(start(i)?)).collect()
}

/// The first key that differs and cannot change while the volume is served.
fn fixed_key(served: (&str, &VolumeSpec), wanted: (&str, &VolumeSpec)) -> Option<&'static str> {
    if served.0 != wanted.0 {
        Some("pool")
    } else if served.1.backend != wanted.1.backend {
        match (&served.1.backend, &wanted.1.backend) {
            (BackendSpec::Upstream { target: was, .. }, BackendSpec::Upstream { target: is, .. })
                if was == is =>
            {
                Some("connections")
            }
            _ => Some("backend"),
        }
    } else if served.1.size != wanted.1.size {
        Some("size")
    } else {
        None
    }
}

type Ending = (String, oneshot::Receiver<()>);

/// Waits for the volumes to end; returns the volumes that have not ended when the time is up.
async fn wait_within(limit: Duration, volumes: Vec<Ending>) -> Vec<Ending> {
    let mut time_is_up = std::pin::pin!(tokio::time::sleep(limit));
    let mut left = Vec::new();
    for (name, mut ended) in volumes {
        tokio::select! {
            biased;
            _ = &mut ended => {}
            () = &mut time_is_up => left.push((name, ended)),
        }
    }
    left
}
