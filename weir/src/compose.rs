//! Makes the running parts from a configuration. Only this module knows both.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::sync::Arc;

use bytesize::ByteSize;
use weir_api::ApiLimits;
use weir_backend::{BackendSpec, FaultEffect, FaultRule};
use weir_cluster::{Array, ClientSpec, ClusterError, Tls, TlsFiles};
use weir_engine::{
    Control, DepthFeedbackConfig, EngineConfig, LeasedConfig, MaestroConfig, OneSidedPidConfig, PidConfig,
    TotalConcurrency, VolumeConfig,
};
use weir_gateway::{Address, GatewaySpec, Limits, PoolSpec, VolumeSpec};
use weir_leases::{Controller, Messenger};
use weir_model::{Instant, Objective, Span};

use crate::config::{self, Config};

/// How long a gateway of promises waits between two attempts to reach its controller, at most, and how often
/// it looks whether the connection lives. What it said is believed for twice as long.
const OF_PROMISES: Span = Span::from_secs(1);

/// The gateway that the configuration describes.
pub(crate) fn gateway_spec(config: &Config) -> GatewaySpec {
    let mut pools: BTreeMap<String, PoolSpec> = config
        .pools
        .iter()
        .map(|(name, pool)| {
            let (engine, ports) = (engine_config(pool), port_names(config, pool));
            (name.clone(), PoolSpec { engine, ports, volumes: BTreeMap::new() })
        })
        .collect();
    for (name, volume) in &config.volumes {
        let pool =
            pools.get_mut(&volume.pool.value).expect("a valid configuration has the pool of each volume");
        pool.volumes.insert(name.clone(), volume_spec(config, volume));
    }
    GatewaySpec { pools, limits: limits(&config.limits) }
}

/// The address to listen on. Names are looked up now.
///
/// # Errors
/// If a name has no address.
pub(crate) fn listen_address(address: &config::Address) -> io::Result<Address> {
    match address {
        config::Address::Unix(path) => Ok(Address::Unix(path.clone())),
        config::Address::Tcp(tcp) => socket_address(tcp).map(Address::Tcp),
    }
}

/// The first address of a host.
///
/// # Errors
/// If the host has none.
pub(crate) fn socket_address(address: &config::TcpAddress) -> io::Result<SocketAddr> {
    let host = address.host.as_str();
    let not_found =
        |error: io::Error| io::Error::new(error.kind(), format!("no address of the host {host}: {error}"));
    let mut found = (host, address.port).to_socket_addrs().map_err(not_found)?;
    found.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))
}

/// The listeners, if each is a port of the pool.
fn port_names(config: &Config, pool: &config::Pool) -> Vec<String> {
    match pool.ports() {
        config::Ports::One => Vec::new(),
        config::Ports::Listeners => {
            config.listen.nbd.iter().map(|address| address.value.to_string()).collect()
        }
    }
}

fn engine_config(pool: &config::Pool) -> EngineConfig {
    let unused = EngineConfig::default().background_share; // of the deadline order alone
    let (control, background_share) = match &pool.control.value {
        config::Control::None => (Control::None, unused),
        config::Control::Leased(leased) => {
            (Control::Leased(LeasedConfig { interval: leased.control_interval.value }), unused)
        }
        config::Control::Maestro(maestro) => {
            let total = total(maestro.total_concurrency.value.requests());
            let interval = maestro.control_interval.value;
            (Control::Maestro(MaestroConfig { interval, total }), unused)
        }
        config::Control::Promise(promise) => {
            let is_shared = promise.controller.value.is_some();
            let control = if is_shared { Control::SharedPromise } else { Control::Promise };
            (control, promise.background_share.value)
        }
        config::Control::Pid(pid) => {
            let law = OneSidedPidConfig {
                ceiling: pid.ceiling.value,
                proportional_gain: pid.proportional_gain.value,
                integral_time: pid.integral_time.value,
                ..OneSidedPidConfig::default()
            };
            let (threshold, write_limit) = (pid.threshold.value, pid.write_limit.value);
            (Control::Pid(PidConfig { law, threshold, write_limit }), unused)
        }
        config::Control::Facade(facade) => {
            let feedback = DepthFeedbackConfig {
                period: facade.control_period.value,
                growth: facade.growth.value,
                initial_depth: facade.initial_depth.value,
                max_depth: facade.max_depth.value,
            };
            (Control::Facade(feedback), facade.background_share.value)
        }
    };
    EngineConfig { control, slo_window: pool.slo_window.value, background_share, ..EngineConfig::default() }
}

fn volume_spec(config: &Config, volume: &config::Volume) -> VolumeSpec {
    VolumeSpec {
        description: volume.description.value.clone().unwrap_or_default(),
        backend: backend_spec(config, volume),
        size: volume.size.value.map(|size| size.as_u64()),
        config: VolumeConfig {
            slo: volume.slo.value.clone(),
            objective: Objective { target: volume.target.value, priority: volume.priority.value },
            concurrency: volume.max_concurrency.value,
            max_iops: volume.max_iops.value,
            max_bandwidth: volume.max_bandwidth.value,
            ..VolumeConfig::default()
        },
        goal: volume.slo_goal.value,
        faults: volume.faults.iter().map(|fault| fault_rule(&fault.value)).collect(),
    }
}

fn backend_spec(config: &Config, volume: &config::Volume) -> BackendSpec {
    match &volume.backend.value {
        config::BackendConfig::File(path) => BackendSpec::File { path: path.clone() },
        config::BackendConfig::Memory => BackendSpec::Memory,
        config::BackendConfig::Station(name) => {
            let station = &config.stations[name];
            BackendSpec::Station {
                name: name.clone(),
                servers: station.servers.value,
                service_time: station.service_time.value,
            }
        }
        config::BackendConfig::Array(name, path) => BackendSpec::Array {
            name: name.clone(),
            array: Arc::clone(&config.arrays[name].options),
            path: path.clone(),
        },
        config::BackendConfig::Upstream(target) => {
            BackendSpec::Upstream { target: target.clone(), connections: volume.connections.value }
        }
    }
}

fn fault_rule(fault: &config::Fault) -> FaultRule {
    let effect = match fault.effect {
        config::FaultEffect::Error(errno) => FaultEffect::Error(errno),
        config::FaultEffect::Delay(delay) => FaultEffect::Delay(delay),
        config::FaultEffect::Stall => FaultEffect::Stall,
    };
    FaultRule { on: fault.on, every: fault.every, effect }
}

fn limits(limits: &config::Limits) -> Limits {
    Limits {
        connections: limits.connections.value.get(),
        handshakes: limits.handshakes.value.get(),
        connections_per_address: limits.connections_per_address.value.get(),
        connections_per_volume: limits.connections_per_volume.value.get(),
        connections_kept: limits.connections_kept.value.get(),
        handshake_timeout: limits.handshake_timeout.value,
        requests_per_connection: limits.requests_per_connection.value.get(),
        bytes_per_connection: limits.bytes_per_connection.value.as_u64(),
        bytes_in_flight: limits.bytes_in_flight.value.as_u64(),
        reply_timeout: limits.reply_timeout.value,
        shutdown_timeout: limits.shutdown_timeout.value,
    }
}

/// The limits for clients over HTTP.
pub(crate) fn api_limits(config: &Config) -> ApiLimits {
    let limits = &config.limits;
    // On every machine that runs weir, `usize` holds more than the accepted range.
    let bytes = |size: ByteSize| usize::try_from(size.as_u64()).unwrap_or(usize::MAX);
    ApiLimits {
        connections: limits.api_connections.value.get(),
        timeout: limits.api_timeout.value.into(),
        header_bytes: bytes(limits.api_header_bytes.value),
        body_bytes: bytes(limits.api_body_bytes.value),
    }
}

/// The controllers of the pools that have one, by pool, with the gateway's certificate for them.
///
/// # Errors
/// If a file of `[cluster]` cannot be read.
pub(crate) fn link_specs(config: &Config) -> Result<BTreeMap<String, ClientSpec>, ClusterError> {
    let Some(cluster) = &config.cluster else { return Ok(BTreeMap::new()) };
    let tls = Tls::read(tls_files(&cluster.tls))?;
    let spec = |(name, pool): (&String, &config::Pool)| {
        let spec = ClientSpec {
            gateway: cluster.name.value.clone(),
            controller: pool.controller()?.to_string(),
            tls: tls.clone(),
            interval: pool.control_interval().unwrap_or(OF_PROMISES),
        };
        Some((name.clone(), spec))
    };
    Ok(config.pools.iter().filter_map(spec).collect())
}

/// The number of requests that an array may have. If it is not known beforehand, the law finds it by probing.
fn total(requests: Option<NonZeroU32>) -> TotalConcurrency {
    requests.map_or(TotalConcurrency::Auto, TotalConcurrency::Fixed)
}

/// The state machine of a controller that starts now.
pub(crate) fn array(now: Instant, config: &config::ControllerConfig) -> Array {
    match &config.law.value {
        config::ControllerLaw::Maestro(shared) => {
            let leases = leases_config(config, shared);
            Array::Leases(Box::new(Controller::new(now, leases, volume_configs(config))))
        }
        config::ControllerLaw::Promise => Array::Promises(Messenger::new(now, config.gateways.clone())),
    }
}

/// The array that a controller divides.
pub(crate) fn leases_config(
    config: &config::ControllerConfig,
    shared: &config::SharedOut,
) -> weir_leases::ControllerConfig {
    weir_leases::ControllerConfig {
        total: total(shared.total_concurrency.value.requests()),
        interval: shared.control_interval.value,
        gateways: config.gateways.clone(),
    }
}

/// The targets, priorities and limits of its volumes.
pub(crate) fn volume_configs(config: &config::ControllerConfig) -> Vec<(String, weir_leases::VolumeConfig)> {
    let volume = |volume: &config::ControlledVolume| weir_leases::VolumeConfig {
        objective: Objective { target: volume.target.value, priority: volume.priority.value },
        limits: weir_control::Limits {
            concurrency: volume.max_concurrency.value,
            max_iops: volume.max_iops.value,
            max_bandwidth: volume.max_bandwidth.value,
        },
    };
    config.volumes.iter().map(|(name, config)| (name.clone(), volume(config))).collect()
}

/// The paths of certificates and keys.
pub(crate) fn tls_files(tls: &config::TlsConfig) -> TlsFiles {
    TlsFiles {
        authority: tls.ca.value.clone(),
        certificate: tls.certificate.value.clone(),
        key: tls.key.value.clone(),
    }
}
