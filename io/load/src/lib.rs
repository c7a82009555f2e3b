//! An NBD load generator for any server.
//!
//! [`run()`] drives a [`LoadSpec`] against a server and gives a [`Report`]. There are two ways to load a
//! server:
//!
//! - In a **closed loop**, each connection keeps `depth` requests outstanding. It finds out how much a server
//!   can do.
//! - In an **open loop**, requests arrive at a rate, whatever the server does, as they do from many
//!   independent users. It finds out how long requests wait.
//!
//! In an open loop, the latency of a request counts from the instant at which it was meant to be sent. So a
//! stall of the server is charged to all requests that would have come meanwhile, not only to the few that
//! were let in ("coordinated omission"; G. Tene). Existing generators do not give this at high rates. Some
//! have no open loop for NBD (nbdcopy, qemu-img bench). fio's engine makes a library call for each request,
//! and becomes the limit itself above some 250,000 requests a second.
//!
//! [`replay()`] is the open loop of a recording: each request comes at the time at which it once came.
//!
//! # Where the time is read
//! The clock is read once for each turn of a connection: after a read from the socket, and before the
//! generator looks at the replies and writes the next requests. So a latency is exact to a turn, which is the
//! few microseconds that it takes to look through one read of at most 256 KiB.
//!
//! # Parts
//! - [`Arrivals`] and [`Pacer`]: when requests come, and which are late; pure, `now` is an argument.
//! - `workload`: the requests of a made-up load. `feed`: recorded requests. `source`: one or the other.
//!   `slots`: the outstanding requests. `record`: the measurements. All of these are pure, too.
//! - `connect`: socket and handshake. `connection`: the turn (read, look, issue, write). `supervise`: all
//!   connections, to the end. `run`: a made-up load. `replay`: a recorded load.

mod arrivals;
mod connect;
mod connection;
mod error;
mod feed;
mod record;
mod replay;
mod report;
mod run;
mod slots;
mod source;
mod spec;
mod supervise;
mod workload;

pub use arrivals::{Arrivals, Due, Pacer, Share};
pub use error::LoadError;
pub use feed::ReplayRequest;
pub use record::Interval;
pub use replay::{ReplaySpec, Replayed, replay};
pub use report::{Latency, Report, Summary};
pub use run::run;
pub use spec::{Arrival, LoadSpec, Pace, Pattern, SpecError, Until};
pub use weir_nbd::client::{Address, Target, TargetError};
