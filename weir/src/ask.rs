//! Finds the server that a verb asks: by its configuration file, its metrics address, or its control socket.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use weir_api::{AskError, Server};

use crate::config::{Source, TcpAddress};
use crate::failure::Failure;

/// The metrics address of a server that was started with the usual addresses.
pub(crate) const USUAL_METRICS: &str = "http://127.0.0.1:9810";

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

/// The addresses in the file of a gateway or a controller.
fn addresses(file: &str) -> Result<Addresses, Failure> {
    let source = Source::read(Path::new(file)).map_err(Failure::usage)?;
    if source.is_of_controller() {
        let config = source.controller().map_err(Failure::usage)?;
        let (told_at, control) = (config.status.value, config.control.value);
        return Ok(Addresses { key: "controller.status", told_at, control });
    }
    let listen = source.config().map_err(Failure::usage)?.listen;
    Ok(Addresses { key: "listen.metrics", told_at: listen.metrics.value, control: listen.control.value })
}

/// The server's answer to a GET of `path`.
///
/// # Errors
/// If it does not answer, or refuses.
pub(crate) async fn get<T: DeserializeOwned>(server: &Server, path: &str) -> Result<T, Failure> {
    let text = server.get(path).await.map_err(failure)?;
    serde_json::from_str(&text).map_err(|error| failure(AskError::NotWeir(server.clone(), error.to_string())))
}

/// The failure of a question. If the server refused, the operator can mend it.
pub(crate) fn failure(error: AskError) -> Failure {
    match error {
        AskError::Refused(why) => Failure::Usage(why),
        error => Failure::Runtime(error.into()),
    }
}
