//! The coordinator of bulk transfers, and its clients.
//!
//! A coordinator queues transfers, places them on storage nodes, starts them, measures them, and remembers
//! what is stored where. A client asks the coordinator, and moves the data itself, from its own machine to a
//! node or back. The data never passes through the coordinator. The crate `weir-transfer` decides which
//! transfer starts when; `weir-node` moves the bytes; this crate is between them and the network.
//!
//! | part | what it does |
//! |---|---|
//! | `catalogue` | remembers objects, replicas and transfers, in a database |
//! | `desk` | decides, without a socket: what may be asked for, where it may run, what follows from each message |
//! | `sensor` | where the sensor of a node is, and what its answers say |
//! | `server` | drives the desk: streams of clients, probes of nodes, removals |
//! | `client` | asks a coordinator, and moves the data |
//!
//! **What a second coordinator would need.** All that a coordinator knows is in its catalogue and in the
//! streams of its clients; a client that loses its coordinator asks again. So a second one could take over
//! if it had the catalogue, and a lease that says which of the two decides. There is one coordinator today:
//! the database's lock keeps a second one out.

mod catalogue;
mod client;
mod codec;
mod desk;
pub mod sensor;
mod server;

pub use catalogue::CatalogueError;
pub use client::{Address, Asked, Client, ClientError, Phase, Progress, Stored, Target, Watched, What};
pub use desk::{CALIBRATION, DeskConfig, NodeConfig};
pub use sensor::SensorUrl;
pub use server::{Server, ServerError, ServerSpec, StatusProbe};

/// As the build script makes it of `proto/transfers.proto`.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
#[allow(clippy::pedantic)]
pub mod proto {
    tonic::include_proto!("weir.transfers");
}
