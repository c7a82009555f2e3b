//! Why a gateway cannot start, or cannot change.

use thiserror::Error;
use weir_backend::OpenError;

use crate::shard::ShardError;

/// Why a gateway cannot start, or cannot change.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// A volume's backend cannot be opened.
    #[error("volume.{volume}.backend: {source}")]
    Open {
        /// The volume.
        volume: String,
        /// The reason.
        source: OpenError,
    },
    /// The system starts no thread that would open a volume.
    #[error("a thread that opens volumes: {0}")]
    Thread(std::io::Error),
    /// A shard cannot run.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The memory limit does not hold the parts of the volumes with a promise.
    #[error(
        "limits.bytes_in_flight: {bytes} bytes is too little for {promised} volumes with an SLO or a target \
         and {shards} threads; accepted: at least {least} bytes, one request of 32 MiB for each"
    )]
    Memory {
        /// The limit.
        bytes: u64,
        /// How many volumes have a promise.
        promised: u64,
        /// How many threads serve pools.
        shards: usize,
        /// The bytes that the volumes and threads need at least.
        least: u64,
    },
    /// A reload adds a volume whose namesake was removed by an earlier reload and has not ended.
    #[error(
        "volume.{volume}: found one of this name that still finishes what it accepted; \
         accepted: the same reload once the log says that it is no longer served"
    )]
    Leaving {
        /// The volume.
        volume: String,
    },
    /// A reload asks for a change that only a restart can make.
    #[error(
        "pool.{pool}.ports: cannot change while the pool is served; \
         accepted: a pool of another name, or a restart"
    )]
    FixedPorts {
        /// The pool.
        pool: String,
    },
    /// A reload asks for a change that only a restart can make.
    #[error(
        "volume.{volume}.{key}: cannot change while the volume is served; \
         accepted: a volume of another name, or a restart"
    )]
    Fixed {
        /// The volume.
        volume: String,
        /// The key that changed.
        key: &'static str,
    },
}
