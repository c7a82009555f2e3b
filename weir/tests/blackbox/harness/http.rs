//! The server's reports over HTTP.

use serde_json::Value;

use super::Server;

/// The body at `url`.
pub(crate) fn get(url: &str) -> String {
    let mut answer = ureq::get(url).call().unwrap_or_else(|error| panic!("{url}: {error}"));
    answer.body_mut().read_to_string().expect("the answer is text")
}

/// The status, in the form that weir's tools read.
pub(crate) fn status(server: &Server) -> Value {
    let url = server.metrics.replace("/metrics", "/v1/status");
    serde_json::from_str(&get(&url)).expect("the status is JSON")
}
