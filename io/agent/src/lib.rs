//! The packet-delay agent: how it sees the host, and how it delays packets.

pub mod actuator;
pub mod guard;
