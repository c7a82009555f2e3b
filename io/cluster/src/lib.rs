//! A controller and its gateways on several hosts: their messages by gRPC, over mutual TLS.
//!
//! The crate `weir-leases` decides what the messages say; this crate carries them. A gateway opens one
//! stream, and opens it again whenever it ends. It sends observations and acknowledgements; the controller
//! sends grants. Both sides show a certificate of the operator's own authority. A gateway may only use a name
//! that its certificate has.
//!
//! The controller's side is a [`Server`], which drives the state machine. A gateway's side is a [`Client`].
//! Both run as tasks of the tokio runtime that they are started in.
//!
//! ```no_run
//! # use weir_cluster::{Array, Business, Client, ClientSpec, ClusterError, Server, Tls, Told};
//! # use {tokio::net::TcpListener, weir_clock::Clock, weir_leases::Controller};
//! # async fn on_the_controllers_host(tls: Tls, controller: Controller) -> Result<(), ClusterError> {
//! let listener = TcpListener::bind("0.0.0.0:10810").await?;
//! let server = Server::start(listener, &tls, Clock::new(), Array::Leases(Box::new(controller)))?;
//! let is_shared_out = server.ask(|_, array| matches!(array, Array::Leases(_))).await;
//! # Ok(()) }
//! # async fn on_a_gateways_host(spec: ClientSpec, clock: Clock) -> Result<(), ClusterError> {
//! let mut client = Client::start(spec.check()?, clock, Business::Leases(vec!["oltp".to_owned()]));
//! loop {
//!     match client.next().await {
//!         // Engine::set_fallback(now, terms.after); Engine::handle_grants(now, terms.until, terms.volumes); only then:
//!         Told::Terms(terms) => client.applied(terms).await,
//!         Told::Others(_) => {} // of a pool under the law of promises
//!         Told::Link(state) => println!("{state:?}"),
//!     }
//!     // And whenever Engine::poll_observation has something: client.report(volumes).await
//! }
//! # }
//! ```

mod array;
mod client;
mod error;
mod identity;
mod incoming;
#[cfg(test)]
mod loopback;
#[doc(hidden)]
pub mod messages;
mod server;
mod tls;
mod wire;

/// As the build script makes it of `proto/cluster.proto`.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod proto {
    tonic::include_proto!("weir.cluster");
}

pub use array::Array;
pub use client::{Business, CheckedSpec, Client, ClientSpec, LinkState, Told};
pub use error::{ClusterError, with_causes};
pub use incoming::{Admitted, Bounds, Full, Seat, accept};
pub use server::Server;
pub use tls::{Tls, TlsFiles};
