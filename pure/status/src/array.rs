//! What a controller reports: how it shares out an array among its gateways, or how their promises stand.
//!
//! The volumes are described in the same types as those of a gateway that shares out a device itself, so that
//! one table and one script serve for both.

use serde::{Deserialize, Serialize};
use weir_control::Standing;

use crate::sharing::{PoolSharing, VolumeSharing};
use crate::words::ControlKind;

/// The state of an array.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayStatus {
    /// The name of the pool.
    pub pool: String,
    /// The law of the pool.
    pub control: ControlKind,
    /// How much the controller shares out; `None` under the law of promises, where it shares out nothing.
    pub sharing: Option<PoolSharing>,
    /// The most requests that all gateways together may have at the array now; `None` while a gateway has not
    /// said yet what it holds, and under the law of promises.
    pub held: Option<u32>,
    /// The gateways, in order of name.
    pub gateways: Vec<ArrayGateway>,
    /// The volumes, in order of name. There are none under the law of promises.
    pub volumes: Vec<ArrayVolume>,
}

/// The state of a gateway, as its controller sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayGateway {
    /// Its name.
    pub name: String,
    /// Whether it is connected.
    pub connected: bool,
    /// How long ago it was heard of last; `None`: it has said nothing on this connection.
    pub reported_age_s: Option<f64>,
    /// The most requests that it may have at the array; `None` under the law of promises.
    pub held: Option<u32>,
    /// Under the law of promises: how its promises stand; `None`: it has not said so for two seconds.
    pub promises: Option<GatewayPromises>,
}

/// How the promises of a gateway stand.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct GatewayPromises {
    /// Whether a volume behind it is promised something.
    pub is_promised: bool,
    /// How close the volume that is worst off is to missing its promise: at 100 it is at the limit. `None`:
    /// no promised volume has requests.
    pub percent: Option<f64>,
    /// How many requests its background volumes may have at the device; 0: one at a time, for a share of the
    /// device's time. `None`: they have no bound or no requests, or no promise needs the bound now.
    pub background: Option<u64>,
}

impl GatewayPromises {
    /// What a gateway said. Its bound is shown if it is in force.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a standing is within its bounds
    pub fn new(standing: Standing, is_in_force: bool) -> Self {
        Self {
            is_promised: standing.is_promised,
            percent: standing.strain.map(|strain| strain.window * 100.0),
            background: (is_in_force && standing.bounded > 0).then_some(standing.bounds as u64),
        }
    }
}

/// The state of a volume of an array.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayVolume {
    /// Its name.
    pub name: String,
    /// Its part of the array.
    pub sharing: VolumeSharing,
}
