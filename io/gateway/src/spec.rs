//! The things that a gateway serves: pools, their volumes and the limits. They are validated, and hold no
//! text from the configuration file.

use std::collections::BTreeMap;

use weir_backend::{BackendSpec, FaultRule};
use weir_engine::{EngineConfig, VolumeConfig};
use weir_model::{SloGoal, Span};

/// Everything that a gateway serves. Two specs can be compared: a reload applies the difference.
#[derive(Clone, PartialEq, Debug)]
pub struct GatewaySpec {
    /// The pools by name.
    pub pools: BTreeMap<String, PoolSpec>,
    /// The limits on clients.
    pub limits: Limits,
}

/// One pool: volumes that share a device, and the law that divides it among them.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolSpec {
    /// The law and its periods.
    pub engine: EngineConfig,
    /// The names of the pool's ports, if each listener is a port: as many as there are listeners, in their
    /// order. Empty: all listeners are one port.
    pub ports: Vec<String>,
    /// The volumes by name. A name is unique in the whole gateway, because it is the name of an export.
    pub volumes: BTreeMap<String, VolumeSpec>,
}

/// One volume: the place of its bytes, and its promise.
#[derive(Clone, PartialEq, Debug)]
pub struct VolumeSpec {
    /// Shown to clients that list the exports; may be empty.
    pub description: String,
    /// The place of the bytes.
    pub backend: BackendSpec,
    /// Size in bytes; `None` takes the size of the backend.
    pub size: Option<u64>,
    /// Its SLO and its own limits.
    pub config: VolumeConfig,
    /// In which share of the windows the SLO is to be met. It is only reported.
    pub goal: SloGoal,
    /// Faults to inject; none in production.
    pub faults: Vec<FaultRule>,
}

/// Limits on clients, so that no client disturbs another and memory is bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Clients at a time. A peer that would be one more is closed.
    pub connections: u32,
    /// Peers at a time that have not finished their handshake. One more peer gets the place of another.
    pub handshakes: u32,
    /// Clients at a time from one address: a host, a network of /64, or a user of this host.
    pub connections_per_address: u32,
    /// Clients at a time of one volume.
    pub connections_per_volume: u32,
    /// Places that a volume keeps for its clients; clients of other volumes cannot take them.
    pub connections_kept: u32,
    /// Time from accept to the end of the negotiation.
    pub handshake_timeout: Span,
    /// Requests of one connection that are not answered yet. Later requests stay in its socket.
    pub requests_per_connection: u32,
    /// Bytes of data that one connection may have in flight. Later requests stay in its socket.
    pub bytes_per_connection: u64,
    /// Bytes of data that all connections may have in flight. Each shard has the parts that its volumes own,
    /// and an equal part of the rest. So no request touches state that threads share.
    pub bytes_in_flight: u64,
    /// How far a client may fall behind the least rate before it is disconnected. The rate is that at which
    /// it sends the data of a write, or takes its replies.
    pub reply_timeout: Span,
    /// How long a shutdown waits for queued requests and requests in flight.
    pub shutdown_timeout: Span,
}

impl Limits {
    /// The defaults of `[limits]` while at most 16 volumes have a promise. More of them need more memory.
    pub const DEFAULT: Self = Self {
        connections: 10_500,
        handshakes: 1024,
        connections_per_address: 7875,
        connections_per_volume: 7875,
        connections_kept: 4,
        handshake_timeout: Span::from_secs(10),
        requests_per_connection: 1024,
        bytes_per_connection: 64 << 20,
        bytes_in_flight: 1 << 30,
        reply_timeout: Span::from_secs(60),
        shutdown_timeout: Span::from_secs(10),
    };
}

impl GatewaySpec {
    /// Every volume, as the name of its pool, its own name and its spec.
    pub fn volumes(&self) -> impl Iterator<Item = (&str, &str, &VolumeSpec)> {
        self.pools.iter().flat_map(|(pool, spec)| {
            spec.volumes.iter().map(move |(name, volume)| (pool.as_str(), name.as_str(), volume))
        })
    }
}
