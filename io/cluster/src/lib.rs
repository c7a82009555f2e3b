//! A controller and its gateways across hosts: their messages by gRPC, over mutual TLS.
//!
//! What is said is decided in `weir-controller`; here it is carried. The gateway opens one stream and keeps opening it:
//! observations and acknowledgements go up, grants come down. Both sides show a certificate of the operator's own
//! authority, and a gateway may only say that it is somebody whom its certificate names.
//!
//! A controller's side is a [`Server`], which drives the state machine; a gateway's is a [`Client`]. Both run as tasks of the tokio
//! runtime that they are started in.

mod client;
mod error;
mod identity;
#[cfg(test)]
mod loopback;
mod server;
mod tls;
mod wire;

/// As the build script makes it of `proto/cluster.proto`.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod proto {
    tonic::include_proto!("weir.cluster");
}

pub use client::{Client, ClientSpec, LinkState, Told};
pub use error::ClusterError;
pub use server::Server;
pub use tls::{Tls, TlsFiles};
