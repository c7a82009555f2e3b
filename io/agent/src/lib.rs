//! The packet-delay agent: how it sees the host, how it delays packets, and the loop between the two.

pub mod actuator;
pub mod agent;
pub mod guard;
pub mod sensors;

mod history;
mod lookout;
mod report;
