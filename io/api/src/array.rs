//! What a controller tells: how an array is shared out among gateways, and how that came to be.
//!
//! In the words that a gateway uses for what it shares out itself, so that whoever reads the one reads the
//! other.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use weir_cluster::Server;
use weir_control::{Case, TotalConcurrency};
use weir_gateway::{Explanation, GrantStatus, IntervalStatus, PoolSharing, VolumeSharing};
use weir_leases::{Allocated, Controller, Record};
use weir_model::{Instant, Span};

use crate::{INTERVALS_PATH, STATUS_PATH};

/// How an array stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayStatus {
    /// The name of the pool.
    pub pool: String,
    /// How much there is to share out.
    pub sharing: PoolSharing,
    /// How many requests the gateways may be holding at most at this instant, in sum; `None` while some have
    /// not said yet.
    pub held: Option<u32>,
    /// The gateways, in order of name.
    pub gateways: Vec<ArrayGateway>,
    /// The volumes, in order of name.
    pub volumes: Vec<ArrayVolume>,
}

/// A gateway of an array.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayGateway {
    /// Its name.
    pub name: String,
    /// Whether it is there.
    pub connected: bool,
    /// How long ago it said what it saw; `None`: not on this connection.
    pub reported_age_s: Option<f64>,
    /// How many requests it may be holding at most.
    pub held: u32,
}

/// A volume of an array.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayVolume {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub sharing: VolumeSharing,
}

/// A controller that tells, and the name of its pool.
#[derive(Clone, Debug)]
pub struct ArrayProbe {
    server: Arc<Server>,
    pool: String,
}

impl ArrayProbe {
    /// The one of `server`, whose pool has this name.
    pub const fn new(server: Arc<Server>, pool: String) -> Self {
        Self { server, pool }
    }

    async fn status(&self) -> ArrayStatus {
        let pool = self.pool.clone();
        self.server.ask(move |now, controller| status(now, pool, controller)).await
    }

    async fn explain(&self, volume: &str) -> Result<Explanation, Vec<String>> {
        let (pool, volume) = (self.pool.clone(), volume.to_owned());
        self.server.ask(move |now, controller| explain(now, pool, volume, controller)).await
    }
}

/// What a controller tells wherever somebody asks.
pub(crate) fn reports(probe: ArrayProbe) -> Router {
    Router::new()
        .route(STATUS_PATH, get(tell_status))
        .route(INTERVALS_PATH, get(tell_intervals))
        .with_state(probe)
}

async fn tell_status(State(probe): State<ArrayProbe>) -> Response {
    Json(probe.status().await).into_response()
}

async fn tell_intervals(State(probe): State<ArrayProbe>, Path(volume): Path<String>) -> Response {
    match probe.explain(&volume).await {
        Ok(explanation) => Json(explanation).into_response(),
        Err(volumes) => {
            let found = format!("volume {volume}: not shared out here; accepted: {}", volumes.join(", "));
            (StatusCode::NOT_FOUND, found).into_response()
        }
    }
}

fn status(now: Instant, pool: String, controller: &Controller) -> ArrayStatus {
    let array = controller.status(now);
    let last = controller.history().next_back();
    let case = last.and_then(|record| record.volumes.first()).map(|volume| volume.reasoning.case);
    let sharing = PoolSharing {
        total_concurrency: Some(array.total),
        is_probed: controller.config().total == TotalConcurrency::Auto,
        case: case.map(|case| match case {
            Case::Underload => "underload".to_owned(),
            Case::Overload => "overload".to_owned(),
        }),
    };
    let gateways = array.gateways.iter().map(|gateway| ArrayGateway {
        name: gateway.gateway.clone(),
        connected: gateway.connected,
        reported_age_s: gateway.reported.map(Span::as_secs_f64),
        held: gateway.held,
    });
    let volumes = controller.volumes().map(|(name, config)| {
        let effective = array.gateways.iter().filter_map(|gateway| {
            let (_, grant) = gateway.volumes.iter().find(|(volume, _)| volume == name)?;
            Some(GrantStatus::new(Some(gateway.gateway.clone()), *grant))
        });
        let last =
            last.and_then(|record| allocated(record, name)).map(|last| (last.objective, &last.reasoning));
        let desired = (config.objective, config.limits);
        ArrayVolume { name: name.to_owned(), sharing: VolumeSharing::new(desired, effective.collect(), last) }
    });
    ArrayStatus { pool, sharing, held: array.held, gateways: gateways.collect(), volumes: volumes.collect() }
}

fn explain(
    now: Instant,
    pool: String,
    volume: String,
    controller: &Controller,
) -> Result<Explanation, Vec<String>> {
    if !controller.volumes().any(|(name, _)| name == volume) {
        return Err(controller.volumes().map(|(name, _)| name.to_owned()).collect());
    }
    let interval = |record: &Record| {
        let Allocated { objective, reasoning, split, .. } = allocated(record, &volume)?;
        let grants = split.iter().map(|(gateway, grant)| GrantStatus::new(Some(gateway.clone()), *grant));
        let age_s = now.saturating_since(record.at).as_secs_f64();
        Some(IntervalStatus::new(age_s, *objective, reasoning, grants.collect()))
    };
    let intervals = controller.history().filter_map(interval).collect();
    Ok(Explanation { volume, pool, control: "maestro".to_owned(), intervals })
}

fn allocated<'r>(record: &'r Record, volume: &str) -> Option<&'r Allocated> {
    record.volumes.iter().find(|allocated| allocated.volume == volume)
}
