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
use crate::object::{self, Object};
use crate::refusal::refused;
use crate::serve::{self, Routes};
use crate::volumes::VOLUMES_PATH;
use crate::why::WHY_PATH;
use crate::{ApiLimits, CHANGES_PATH, INTERVALS_PATH, STATUS_PATH, reports};

/// Changes that are put in force together, or not at all.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// The changes, at least one.
    #[serde(deserialize_with = "object::list")]
    pub changes: Vec<Change>,
    /// Whether only to say what would differ. Nothing changes then.
    #[serde(default)]
    pub dry_run: bool,
}

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

/// What changes have done, or would do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Changed {
    /// Whether nothing has changed, because only this was asked.
    pub dry_run: bool,
    /// The settings that differ, in the order of `weir check`.
    pub settings: Vec<Setting>,
    /// The time within which a law takes them up, in seconds; 0: they are in force at once.
    pub within_s: f64,
    /// The file whose next reading ends them.
    pub until_read: String,
    /// Whether that file is being read now.
    pub is_being_read: bool,
}

/// A setting of the configuration, before and after a change, as `weir check` shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// Its key, such as `volume.db.priority`.
    pub key: String,
    /// Its value before, with its unit; `None`: there was none.
    pub old: Option<String>,
    /// Its value after; `None`: there is none.
    pub new: Option<String>,
}

/// Requested changes, and the channel for the answer: what differs, or why nothing has changed.
#[derive(Debug)]
pub struct Asked {
    /// The changes.
    pub changes: Changes,
    /// The channel for the answer.
    pub answer: oneshot::Sender<Result<Changed, String>>,
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
        let paths = &[STATUS_PATH, VOLUMES_PATH, INTERVALS_PATH, WHY_PATH, CHANGES_PATH];
        let routes = Routes { router: reports.merge(to_change(changes)), paths };
        tokio::select! {
            () = serve::serve(self.0, routes, limits) => {}
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
        let paths = &[STATUS_PATH, INTERVALS_PATH, CHANGES_PATH];
        let routes = Routes { router: reports.merge(to_change(changes)), paths };
        tokio::select! {
            () = serve::serve(self.0, routes, limits) => {}
            () = made => {} // when nobody can ask any more
        }
        Ok(())
    }
}

fn to_change(changes: mpsc::Sender<Asked>) -> axum::Router {
    axum::Router::new().route(CHANGES_PATH, post(change)).with_state(changes)
}

async fn change(
    State(owner): State<mpsc::Sender<Asked>>,
    asked: Result<Json<Object<Changes>>, JsonRejection>,
) -> Response {
    let Json(Object(changes)) = match asked {
        Ok(changes) => changes,
        Err(rejection) => {
            let found = rejection.body_text().replace(char::is_control, " ");
            let accepted = "changes, each an object with a table, a name, and keys with their values, as JSON within \
                            limits.api_body_bytes";
            return refused(rejection.status(), format!("the change: found {found}; accepted: {accepted}"));
        }
    };
    let (answer, answered) = oneshot::channel();
    let _ = owner.send(Asked { changes, answer }).await;
    match answered.await {
        Ok(Ok(changed)) => Json(changed).into_response(),
        Ok(Err(why)) => refused(StatusCode::UNPROCESSABLE_ENTITY, why),
        Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to a body, and what the owner of the configuration was asked for.
    async fn answered(body: &str) -> (String, Option<Changes>) {
        let (sender, mut asked) = mpsc::channel(1);
        let owner = async {
            let Asked { changes, answer } = asked.recv().await?;
            answer.send(Err("as asked".to_owned())).unwrap();
            Some(changes)
        };
        let routes = Routes { router: to_change(sender), paths: &[CHANGES_PATH] };
        let answer = crate::refusal::answered(routes, "POST", CHANGES_PATH, body);
        let ((head, body), changes) = tokio::join!(answer, owner);
        (format!("{head} {body}"), changes)
    }

    #[tokio::test]
    async fn an_array_in_place_of_an_object_changes_nothing() {
        for body in [
            r#"[[["volume","db",[["priority","7"]]]]]"#,
            r#"[[["volume","db",[["priority","7"]]]],false]"#,
            r#"{"changes":[["volume","db",[["priority","7"]]]]}"#,
        ] {
            let (answer, changes) = answered(body).await;
            assert!(answer.starts_with("http/1.1 422 ") && answer.contains("an object"), "{answer}");
            assert_eq!(changes, None, "{body}");
        }
        let (answer, changes) =
            answered(r#"{"changes":[{"table":"volume","name":"db","set":[["priority","7"]]}]}"#).await;
        let set = vec![("priority".to_owned(), "7".to_owned())];
        let change = Change { table: "volume".to_owned(), name: "db".to_owned(), set };
        assert_eq!(changes, Some(Changes { changes: vec![change], dry_run: false }));
        assert!(answer.contains("as asked"), "{answer}");
        let (answer, _) = answered(r#"{"changes":[{"table":"volume","name":"db","set":[],"x":1}]}"#).await;
        assert!(answer.contains("unknown field"), "{answer}");
    }
}
