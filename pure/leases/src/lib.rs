//! The controller of an array that several gateways serve, and its counterpart in each gateway.
//!
//! Each gateway bounds the requests that it has at the array; nobody sees all of them. The [`Controller`] is
//! told by each gateway what its volumes got, applies Maestro's law to all of it, and grants each gateway its
//! part for a time. Both sides are pure state machines: the `io/cluster` crate carries their messages, and a
//! test carries them through simulated time, losing what it likes.
//!
//! What holds whatever is lost: the sum of what gateways hold does not exceed the total, nor the limits of
//! any volume (`ledger.rs` says how); a gateway that is cut off falls back to its part of the array, and
//! never takes more than was left for it ([`Leaseholder`]). What gateways say is believed as far as it can be
//! true (`claims.rs`), and of two with one name only one is accepted (`arrivals.rs`).
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
mod controller;
mod gateways;
mod leaseholder;
mod ledger;
mod message;
mod names;
mod record;
mod share;
mod step;

pub use arrivals::{Connection, Refused};
pub use config::{ControllerConfig, VolumeConfig};
pub use controller::Controller;
pub use leaseholder::{Leaseholder, Terms, UNTOLD};
pub use message::{Grants, Held, Hello, Report, VolumeGrant};
pub use record::{Allocated, ArrayStatus, Event, GatewayStatus, Record};
