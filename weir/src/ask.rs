//! Asks a running server for a verb: finds it by its configuration file, its metrics address, or its control
//! socket, and reads its answer.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use weir_api::{AskError, Server};

use crate::config::{Source, TcpAddress};
use crate::failure::Failure;

/// The metrics address of a server that was started with the usual addresses.
pub(crate) const USUAL_METRICS: &str = "http://127.0.0.1:9810";

/// The address of an agent's state, if it was started with the usual one.
pub(crate) const USUAL_THROTTLE: &str = "http://127.0.0.1:9811";

/// The control socket of a server that was started with the usual addresses.
pub(crate) const USUAL_CONTROL: &str = "unix:/run/weir/control.sock";

/// The server at `source`, to ask about its state.
///
/// # Errors
/// If `source` is no address, and no configuration file of a server that can be asked.
pub(crate) fn to_ask(source: &str) -> Result<Server, Failure> {
    if let Some(server) = Server::read(source) {
        return Ok(server);
    }
    let Addresses { key, told_at, control } = addresses(source)?;
    let told_at = told_at.and_then(|address| Server::read(&format!("http://{address}")));
    told_at.or_else(|| control.map(Server::Unix)).ok_or_else(|| {
        Failure::usage(format!("{source}: {key}: found nothing; accepted: the address to ask"))
    })
}

/// The server at `source`, to send changes to.
///
/// # Errors
/// If `source` is no control socket, and no configuration file of a server that has one.
pub(crate) fn to_change(source: &str) -> Result<Server, Failure> {
    if let Some(Server::Unix(path)) = Server::read(source) {
        return Ok(Server::Unix(path));
    }
    let refused = |found: &str| {
        let accepted = "the control socket of the server, such as \"unix:/run/weir/control.sock\"";
        Failure::usage(format!("{source}: {found}; accepted: {accepted}"))
    };
    if Server::read(source).is_some() {
        return Err(refused("found an address where nothing can be changed"));
    }
    addresses(source)?.control.map(Server::Unix).ok_or_else(|| refused("no control socket in it"))
}

/// The addresses at which the server of a configuration file can be asked.
struct Addresses {
    /// The key of the address of its status.
    key: &'static str,
    told_at: Option<TcpAddress>,
    control: Option<PathBuf>,
}

/// The addresses in the file of a gateway, a controller, a packet-delay agent or a coordinator of transfers.
fn addresses(file: &str) -> Result<Addresses, Failure> {
    let source = Source::read(Path::new(file)).map_err(Failure::usage)?;
    if source.is_of_controller() {
        let config = source.controller().map_err(Failure::usage)?;
        let (told_at, control) = (config.status.value, config.control.value);
        return Ok(Addresses { key: "controller.status", told_at, control });
    }
    if source.is_of_throttle() {
        let metrics = source.throttle().map_err(Failure::usage)?.metrics.value;
        return Ok(Addresses { key: "throttle.metrics", told_at: Some(metrics), control: None });
    }
    if source.is_of_transfers() {
        let metrics = source.transfers().map_err(Failure::usage)?.metrics.value;
        return Ok(Addresses { key: "transfers.metrics", told_at: Some(metrics), control: None });
    }
    let listen = source.config().map_err(Failure::usage)?.listen;
    Ok(Addresses { key: "listen.metrics", told_at: listen.metrics.value, control: listen.control.value })
}

/// The server's answer to a GET of `path`.
///
/// # Errors
/// If the server does not answer, or refuses, or if its answer is not the expected one.
pub(crate) async fn get<T: DeserializeOwned>(server: &Server, path: &str) -> Result<T, Failure> {
    read(server, &text(server, path).await?)
}

/// The text at `path` of the server.
///
/// # Errors
/// If the server does not answer, or refuses.
pub(crate) async fn text(server: &Server, path: &str) -> Result<String, Failure> {
    server.get(path).await.map_err(failure)
}

/// Reads the JSON that a server answered.
///
/// A server of another version may leave out a field, or use a word that this program does not know. The
/// program then refuses the whole answer: a table could show only a guess.
///
/// # Errors
/// If the answer is not the expected one. The error names the field that was read last.
pub(crate) fn read<T: DeserializeOwned>(server: &Server, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let found = match last_field(text, &error) {
            Some(field) => format!("near {field:?}: {error}"),
            None => error.to_string(),
        };
        // The unknown word stands in it as the server wrote it. It is no text for the terminal to obey.
        failure(AskError::NotWeir(server.clone(), found.replace(char::is_control, "?")))
    })
}

/// The name of the last field that begins before the error.
fn last_field<'t>(text: &'t str, error: &serde_json::Error) -> Option<&'t str> {
    let lines_before = text.split_inclusive('\n').take(error.line().checked_sub(1)?);
    let line_begins = lines_before.map(str::len).sum::<usize>();
    let (before, _) = text.get(..line_begins + error.column())?.rsplit_once("\":")?;
    Some(before.rsplit_once('"')?.1)
}

/// The failure of a question. If the server refused, the operator can mend it.
pub(crate) fn failure(error: AskError) -> Failure {
    match error {
        AskError::Refused(why) => Failure::Usage(why),
        error => Failure::Runtime(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use weir_status::{IntervalStatus, PoolSharing, RequestCounters, TargetStatus};

    use super::*;

    fn refusal<T: DeserializeOwned>(text: &str) -> String {
        let server = Server::read("http://127.0.0.1:9810").unwrap();
        read::<T>(&server, text).err().unwrap().to_string()
    }

    #[test]
    fn an_unknown_word_is_refused_with_the_name_of_its_field() {
        for (refused, field) in [
            (refusal::<PoolSharing>(r#"{"total_concurrency":6,"is_probed":true,"case":"new"}"#), "case"),
            (refusal::<PoolSharing>("{\n \"case\": \"new\",\n \"is_probed\": true\n}"), "case"),
            (refusal::<TargetStatus>(r#"{"metric":"new","value":1.0,"unit":"us"}"#), "metric"),
            (refusal::<Vec<TargetStatus>>(r#"[{"value":1.0,"unit":"us","metric":"new"}]"#), "metric"),
            (refusal::<TargetStatus>(r#"{"metric":"p95","value":1.0,"unit":"new"}"#), "unit"),
            (refusal::<IntervalStatus>(r#"{"age_s":1.0,"fit":"new","fit_value":null}"#), "fit"),
            (refusal::<RequestCounters>(r#"{"kind":"new","count":1}"#), "kind"),
        ] {
            let named = format!("near \"{field}\": unknown ");
            assert!(refused.contains(&named) && refused.contains("new"), "{refused}");
        }
    }

    #[test]
    fn an_answer_that_is_no_json_is_refused_without_a_field() {
        let refused = refusal::<PoolSharing>("<html>\u{1b}");
        assert!(refused.contains("expected value at line 1") && !refused.contains("near"), "{refused}");
        let refused = refusal::<PoolSharing>("{\"case\":\"\\u001b[2J\"}");
        assert!(refused.contains("near \"case\"") && !refused.contains('\u{1b}'), "{refused}");
    }
}
