//! The gateway: listeners, sessions, and the driver loop around an engine.
//!
//! ```text
//!  client ── listener ── negotiate ─┐            one thread for each shard:
//!                                   ├─▶ shard:  receive ─▶ Engine ─▶ device
//!  client ── listener ── negotiate ─┘              ▲ reply ◀─┘  ◀───────┘
//! ```
//!
//! [`Gateway::start`] opens the backends, starts the shards and accepts clients. The front (accepting,
//! negotiating, reloading) lives on the caller's thread. A request lives on the thread of its pool from its
//! first byte to its reply, see `shard.rs`. `weir_engine::Engine` makes all decisions; this crate only
//! carries bytes and time to it.
//!
//! The gateway keeps no dirty data. It acknowledges a write when the backend has finished the write, and a
//! flush when the backend has flushed. So a write that was acknowledged and flushed is on the backend,
//! whatever happens to the gateway.

mod address;
mod budget;
mod connection;
mod error;
mod exports;
mod front;
mod gateway;
mod leased;
mod listen;
mod loss;
mod memory;
mod negotiate;
mod opening;
mod output;
mod pace;
mod places;
mod reply;
mod shard;
mod shared_promise;
mod spec;
mod stats;
mod stream;
mod unix_socket;

pub use address::{Address, ListenError};
pub use error::GatewayError;
pub use front::is_of_one_peer;
pub use gateway::{Gateway, Recorders, Reload, StatusProbe};
pub use leased::LeasedPool;
pub use listen::Listener;
pub use shard::{LeaseTerms, Observations, ShardError};
pub use shared_promise::SharedPool;
pub use spec::{GatewaySpec, Limits, PoolSpec, VolumeSpec};
pub use unix_socket::UnixSocket;
