//! The control socket, through which a running gateway takes changes of its configuration.
//!
//! It is HTTP over a Unix socket with the mode 0600. So the kernel checks the permission, and no secret has
//! to be kept anywhere. This module does not know what a change means. It hands the change to the owner of
//! the configuration, and hands the owner's answer back.

use std::io;
use std::path::Path;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};
use weir_gateway::{ListenError, StatusProbe, UnixSocket};

use crate::array::{self, ArrayProbe};
use crate::{ApiLimits, CHANGES_PATH, reports, serve};

/// A change of a table of the configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The table, such as `volume`.
    pub table: String,
    /// The name within that table.
    pub name: String,
    /// Keys, each with the text of its new value.
    pub set: Vec<(String, String)>,
}

/// A requested change, and the channel for the answer: the values now in force, or why nothing has changed.
#[derive(Debug)]
pub struct Asked {
    /// The change.
    pub change: Change,
    /// The channel for the answer.
    pub answer: oneshot::Sender<Result<String, String>>,
}

/// A bound control socket that answers nothing yet.
#[derive(Debug)]
pub struct ControlListener(UnixSocket);

impl ControlListener {
    /// Binds `path`. A socket that a dead server left behind is replaced; the path is removed when the
    /// listener is dropped.
    ///
    /// # Errors
    /// If the path is in use, not permitted, or taken by something else.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn bind(path: &Path) -> Result<Self, ListenError> {
        UnixSocket::bind_private(path).map(Self)
    }

    /// Answers until the task is dropped. Changes go to `changes`.
    pub async fn serve(
        self,
        probe: StatusProbe,
        changes: mpsc::Sender<Asked>,
        limits: watch::Receiver<ApiLimits>,
    ) {
        let (reports, made) = reports(&probe);
        tokio::select! {
            () = serve::serve(self.0, reports.merge(to_change(changes)), limits) => {}
            () = made => {} // when nobody can ask any more
        }
    }

    /// The same for a controller.
    ///
    /// # Errors
    /// Never in practice: an error of a single connection ends only that connection.
    pub async fn serve_array(self, probe: ArrayProbe, changes: mpsc::Sender<Asked>) -> io::Result<()> {
        let (_kept, limits) = watch::channel(ApiLimits::DEFAULT);
        let (reports, made) = array::reports(&probe);
        tokio::select! {
            () = serve::serve(self.0, reports.merge(to_change(changes)), limits) => {}
            () = made => {} // when nobody can ask any more
        }
        Ok(())
    }
}

fn to_change(changes: mpsc::Sender<Asked>) -> axum::Router {
    axum::Router::new().route(CHANGES_PATH, post(change)).with_state(changes)
}

async fn change(
    State(changes): State<mpsc::Sender<Asked>>,
    change: Result<Json<Change>, JsonRejection>,
) -> Response {
    let Json(change) = match change {
        Ok(change) => change,
        Err(rejection) => {
            let found = rejection.body_text().replace(char::is_control, " ");
            let accepted =
                "a table, a name, and keys with their values, as JSON within limits.api_body_bytes";
            return (rejection.status(), format!("the change: found {found}; accepted: {accepted}"))
                .into_response();
        }
    };
    let (answer, answered) = oneshot::channel();
    let _ = changes.send(Asked { change, answer }).await;
    match answered.await {
        Ok(Ok(in_force)) => in_force.into_response(),
        Ok(Err(refused)) => (StatusCode::UNPROCESSABLE_ENTITY, refused).into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the server is stopping").into_response(),
    }
}
