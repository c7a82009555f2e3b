//! A controller's reports over HTTP: how it shares out an array among gateways, and why.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use weir_cluster::{Array, Server};
use weir_control::TotalConcurrency;
use weir_leases::{Allocated, Controller, GatewayStanding, Messenger, Record};
use weir_model::{Instant, Span};
use weir_status::{
    ArrayGateway, ArrayStatus, ArrayVolume, ControlKind, Explanation, GatewayPromises, GrantStatus,
    IntervalStatus, PoolSharing, VolumeSharing,
};

use crate::named_volume::NamedVolume;
use crate::refusal::refused;
use crate::shared::{Shared, tell};
use crate::why::{WHY_PATH, ask_a_gateway};
use crate::{INTERVALS_PATH, JSON, STATUS_PATH};

/// Asks a running controller for its state.
#[derive(Clone, Debug)]
pub struct ArrayProbe {
    server: Arc<Server>,
    pool: String,
}

impl ArrayProbe {
    /// A probe of the controller of `server`, whose pool has this name.
    pub const fn new(server: Arc<Server>, pool: String) -> Self {
        Self { server, pool }
    }

    async fn status(&self) -> ArrayStatus {
        let pool = self.pool.clone();
        self.server.ask(move |now, array| status(now, pool, array)).await
    }

    async fn explain(&self, volume: &str) -> Result<Explanation, Vec<String>> {
        let (pool, volume) = (self.pool.clone(), volume.to_owned());
        let explain = move |now, array: &mut Array| match array {
            Array::Leases(controller) => explain(now, pool, volume, controller),
            Array::Promises(_) => Err(Vec::new()),
        };
        self.server.ask(explain).await
    }
}

/// The reports that a controller serves at each of its addresses, and their maker.
pub(crate) fn reports(probe: &ArrayProbe) -> (Router, impl Future<Output = ()>) {
    let collect = async || probe.status().await;
    let (status, made) = Shared::new(JSON, collect, |status: ArrayStatus| serde_json::to_vec(&status));
    let routes = Router::new().route(INTERVALS_PATH, get(tell_intervals)).with_state(probe.clone());
    let routes = routes.route(WHY_PATH, get(ask_a_gateway));
    (routes.route(STATUS_PATH, get(tell).with_state(status)), made)
}

async fn tell_intervals(State(probe): State<ArrayProbe>, NamedVolume(volume): NamedVolume) -> Response {
    match probe.explain(&volume).await {
        Ok(explanation) => Json(explanation).into_response(),
        Err(volumes) => {
            let found = if volumes.is_empty() {
                format!(
                    "volume {volume}: not known here; ask its gateway, which keeps the promises of its own volumes"
                )
            } else {
                format!("volume {volume}: not shared out here; accepted: {}", volumes.join(", "))
            };
            refused(StatusCode::NOT_FOUND, found)
        }
    }
}

fn status(now: Instant, pool: String, array: &Array) -> ArrayStatus {
    match array {
        Array::Leases(controller) => shared_out(now, pool, controller),
        Array::Promises(messenger) => promised(now, pool, messenger),
    }
}

/// What the gateways of a pool under the law of promises said last.
fn promised(now: Instant, pool: String, messenger: &Messenger) -> ArrayStatus {
    let standings: Vec<_> = messenger.gateways(now).collect();
    // A bound is kept in mind while all promised volumes are silent, and is not in force.
    let is_in_force = standings.iter().filter_map(|gateway| gateway.standing).any(|it| it.is_there);
    let gateway = |GatewayStanding { gateway, connected, heard, standing }| ArrayGateway {
        name: gateway,
        connected,
        reported_age_s: heard.map(Span::as_secs_f64),
        held: None,
        promises: standing.map(|standing| GatewayPromises::new(standing, is_in_force)),
    };
    let gateways = standings.into_iter().map(gateway).collect();
    let control = ControlKind::Promise;
    ArrayStatus { pool, control, sharing: None, held: None, gateways, volumes: Vec::new() }
}

fn shared_out(now: Instant, pool: String, controller: &Controller) -> ArrayStatus {
    let array = controller.status(now);
    let last = controller.history().next_back();
    let case = last.and_then(|record| record.volumes.first()).map(|volume| volume.reasoning.case.into());
    let sharing = PoolSharing {
        total_concurrency: Some(array.total),
        is_probed: controller.config().total == TotalConcurrency::Auto,
        case,
    };
    let gateways = array.gateways.iter().map(|gateway| ArrayGateway {
        name: gateway.gateway.clone(),
        connected: gateway.connected,
        reported_age_s: gateway.reported.map(Span::as_secs_f64),
        held: Some(gateway.held),
        promises: None,
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
    let control = ControlKind::Maestro;
    let (gateways, volumes) = (gateways.collect(), volumes.collect());
    ArrayStatus { pool, control, sharing: Some(sharing), held: array.held, gateways, volumes }
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
    Ok(Explanation { volume, pool, control: ControlKind::Maestro, intervals, background: None })
}

fn allocated<'r>(record: &'r Record, volume: &str) -> Option<&'r Allocated> {
    record.volumes.iter().find(|allocated| allocated.volume == volume)
}
