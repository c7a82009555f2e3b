//! What a controller reports: how it shares out an array among its gateways.
//!
//! The volumes are described in the same types as those of a gateway that shares out a device itself, so that
//! one table and one script serve for both.

use serde::{Deserialize, Serialize};

use crate::sharing::{PoolSharing, VolumeSharing};

/// The state of an array.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayStatus {
    /// The name of the pool.
    pub pool: String,
    /// How much the controller shares out.
    pub sharing: PoolSharing,
    /// The most requests that all gateways together may have at the array now; `None` while a gateway has not
    /// said yet what it holds.
    pub held: Option<u32>,
    /// The gateways, in order of name.
    pub gateways: Vec<ArrayGateway>,
    /// The volumes, in order of name.
    pub volumes: Vec<ArrayVolume>,
}

/// The state of a gateway, as its controller sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayGateway {
    /// Its name.
    pub name: String,
    /// Whether it is connected.
    pub connected: bool,
    /// How long ago its last report came; `None`: none has come on this connection.
    pub reported_age_s: Option<f64>,
    /// The most requests that it may have at the array.
    pub held: u32,
}

/// The state of a volume of an array.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayVolume {
    /// Its name.
    pub name: String,
    /// Its part of the array.
    pub sharing: VolumeSharing,
}
