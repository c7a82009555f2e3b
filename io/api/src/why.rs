//! Where the time of a volume's requests went, over HTTP.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use weir_gateway::StatusProbe;
use weir_model::Span;

use crate::named_volume::NamedVolume;
use crate::refusal::refused;

/// The path, for the router.
pub(crate) const WHY_PATH: &str = "/v1/volumes/{volume}/why";

/// How far back a question may go, in seconds. The engine remembers no more.
const MOST_SECONDS: u64 = 180;

/// How far back it goes if it does not say, in seconds.
const USUAL_SECONDS: u64 = 60;

/// How far back a question may go.
pub const MOST_REMEMBERED: Span = Span::from_secs(MOST_SECONDS);

/// The path of where the time of `volume` went since `last` ago, in whole seconds. Its name needs no
/// escaping.
pub fn why_path(volume: &str, last: Span) -> String {
    let seconds = last.as_nanos().div_ceil(1_000_000_000);
    format!("{}?last_s={seconds}", WHY_PATH.replace("{volume}", volume))
}

pub(crate) async fn tell_why(
    State(probe): State<StatusProbe>,
    NamedVolume(volume): NamedVolume,
    RawQuery(query): RawQuery,
) -> Response {
    let last = match last_of(query.as_deref()) {
        Ok(last) => last,
        Err(refusal) => return refused(StatusCode::BAD_REQUEST, refusal),
    };
    match probe.why(&volume, last).await {
        Ok(why) => Json(why).into_response(),
        Err(volumes) => {
            let found = format!("volume {volume}: not served; accepted: {}", volumes.join(", "));
            refused(StatusCode::NOT_FOUND, found)
        }
    }
}

/// A controller has no requests.
pub(crate) async fn ask_a_gateway(NamedVolume(volume): NamedVolume) -> Response {
    let found = format!(
        "volume {volume}: a controller sees no requests; accepted: to ask a gateway that serves the volume"
    );
    refused(StatusCode::NOT_FOUND, found)
}

/// How far back a question goes.
fn last_of(query: Option<&str>) -> Result<Span, String> {
    let Some(query) = query.filter(|query| !query.is_empty()) else {
        return Ok(Span::from_secs(USUAL_SECONDS));
    };
    let seconds = query.strip_prefix("last_s=").and_then(|text| text.parse().ok());
    let seconds = seconds.filter(|seconds| (1..=MOST_SECONDS).contains(seconds));
    seconds.map(Span::from_secs).ok_or_else(|| {
        let found: String = query.chars().filter(|c| !c.is_control()).take(40).collect();
        format!("the query: found {found}; accepted: last_s=N, with N seconds from 1 to {MOST_SECONDS}")
    })
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;

    use super::*;
    use crate::serve::Routes;

    #[tokio::test]
    async fn a_name_that_is_no_text_is_refused_as_json() {
        let routes = Routes { router: Router::new().route(WHY_PATH, get(ask_a_gateway)), paths: &[WHY_PATH] };
        let (head, body) = crate::refusal::answered(routes, "GET", "/v1/volumes/%ff/why", "").await;
        assert!(head.starts_with("http/1.1 400 "), "{head}");
        assert!(head.contains("content-type: application/json"), "{head}");
        assert!(
            body.starts_with(r#"{"error":"/v1/volumes/%ff/why: found the name of a volume that is"#),
            "{body}"
        );
    }

    #[test]
    fn a_question_goes_back_a_minute_or_as_far_as_it_says() {
        assert_eq!(last_of(None), Ok(Span::from_secs(60)));
        assert_eq!(last_of(Some("last_s=180")), Ok(Span::from_secs(180)));
        let path = why_path("db", Span::from_millis(1_500));
        assert_eq!(path, "/v1/volumes/db/why?last_s=2");
        for wrong in ["last_s=0", "last_s=181", "last_s=-1", "last_s=1m", "last=60", "last_s=1&last_s=2"] {
            let refused = last_of(Some(wrong)).unwrap_err();
            assert!(refused.contains(wrong) && refused.contains("from 1 to 180"), "{refused}");
        }
    }
}
