//! The sensors of nodes: where one is, and what its answers say. No file of this folder touches a network.

pub mod page;
mod url;

pub use url::{NoSensorUrl, SensorUrl};
