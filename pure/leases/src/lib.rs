//! Leases: grants to several gateways of one array that never add up to more than the total.
//!
//! Each gateway bounds the requests that it has at the array, and no gateway sees the requests of the others.
//! So each gateway reports to the [`Controller`] what its volumes got. The controller applies Maestro's law
//! to all reports, and grants each gateway its part for the time of a lease. A [`Leaseholder`] in each
//! gateway knows what is granted, and for how long. Both are pure state machines: the crate `io/cluster`
//! carries their messages, and tests carry them through simulated time, where messages may be lost at any
//! point.
//!
//! Whatever is lost:
//!
//! - The sum of what gateways hold exceeds neither the total nor the limits of any volume (`ledger.rs`).
//! - A gateway that is cut off falls back to its static part of the array, and never takes more than was left
//!   for it (`leaseholder.rs`).
//! - The controller believes a gateway's claim only as far as it can be true (`claims.rs`).
//! - Of two gateways with one name, the controller accepts only one (`arrivals.rs`).
//!
//! Of a pool under the law of promises there is nothing to share out: its controller is a [`Messenger`],
//! which tells each gateway how the promises of all others stand. It is driven in the same way.
//!
//! # Driving the controller
//!
//! After every `handle_*` and `set_*`, drain [`Controller::poll_grants`] and [`Controller::poll_event`], and
//! set the one timer to [`Controller::poll_timeout`]. `now` never goes back.

mod amounts;
mod arrivals;
mod bound;
mod claims;
mod config;
mod connection;
mod controller;
mod gateways;
mod leaseholder;
mod ledger;
mod message;
mod messenger;
mod names;
mod record;
mod share;
mod step;

pub use config::{ControllerConfig, VolumeConfig};
pub use connection::{Connection, Refused};
pub use controller::Controller;
pub use leaseholder::{Leaseholder, Terms, UNTOLD};
pub use message::{Grants, Held, Hello, Report, VolumeGrant};
pub use messenger::{GatewayStanding, Messenger};
pub use record::{Allocated, ArrayStatus, Event, GatewayStatus, Record};
