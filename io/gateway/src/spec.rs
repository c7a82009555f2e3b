//! What a gateway is to serve: pools, their volumes and the limits, validated and without any text in it.

use std::collections::BTreeMap;

use weir_backend::{BackendSpec, FaultRule};
use weir_engine::{EngineConfig, VolumeConfig};
use weir_model::Span;

/// Everything that a gateway serves. Two specs can be compared: a reload applies the difference.
#[derive(Clone, PartialEq, Debug)]
pub struct GatewaySpec {
    /// The pools by name.
    pub pools: BTreeMap<String, PoolSpec>,
    /// What clients may use up.
    pub limits: Limits,
}

/// One pool: volumes that share a device, and the law that shares it out.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolSpec {
    /// The law and its periods.
    pub engine: EngineConfig,
    /// The names of its ports, if each listener is one: as many as there are listeners, in their order.
    /// Empty: whichever listener a request comes through, it comes through the same port.
    pub ports: Vec<String>,
    /// The volumes by name; a name is unique in the whole gateway, since it is the name of an export.
    pub volumes: BTreeMap<String, VolumeSpec>,
}

/// One volume: where its bytes are, and what it was promised.
#[derive(Clone, PartialEq, Debug)]
pub struct VolumeSpec {
    /// Shown to clients that list the exports; may be empty.
    pub description: String,
    /// Where the bytes are.
    pub backend: BackendSpec,
    /// Size in bytes; `None` takes what is there.
    pub size: Option<u64>,
    /// Its SLO and its own limits.
    pub config: VolumeConfig,
    /// Faults to inject, none in production.
    pub faults: Vec<FaultRule>,
}

/// What clients may use up, so that none disturbs another and memory is bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Clients at a time; one more is closed.
    pub connections: u32,
    /// Peers at a time that have not finished their handshake; one more gets the place of another.
    pub handshakes: u32,
    /// Clients at a time from one address: a host, a network of /64, or a user of this host.
    pub connections_per_address: u32,
    /// Clients at a time of one volume.
    pub connections_per_volume: u32,
    /// Places that a volume has for its clients and that those of other volumes cannot take.
    pub connections_kept: u32,
    /// Time from accept to the end of the negotiation.
    pub handshake_timeout: Span,
    /// Requests of one connection that are not answered yet; further ones stay in its socket.
    pub requests_per_connection: u32,
    /// Bytes of data that one connection may have in flight; further requests stay in its socket.
    pub bytes_per_connection: u64,
    /// Bytes of data that all connections may have in flight. Each shard has what its volumes own and an
    /// equal part of the rest, so that no request touches state that threads share.
    pub bytes_in_flight: u64,
    /// A client that falls so far behind the least rate, at which it sends the data of a write or takes its
    /// replies, is disconnected.
    pub reply_timeout: Span,
    /// How long a shutdown waits for what is queued and in flight.
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
    /// Every volume with the name of its pool.
    pub fn volumes(&self) -> impl Iterator<Item = (&str, &str, &VolumeSpec)> {
        self.pools.iter().flat_map(|(pool, spec)| {
            spec.volumes.iter().map(move |(name, volume)| (pool.as_str(), name.as_str(), volume))
        })
    }
}
