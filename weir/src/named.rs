//! The one way to name a server: `--server`, for every verb that asks a server or changes something there.
//!
//! A server is named by its configuration file, by its address, or by its control socket. What is asked goes
//! to the address of its status, and what is changed goes to its control socket, whichever of the three names
//! it. The text alone says which of the three it is, but for a path, which the file at it tells.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::Args;
use weir_api::Server;

use crate::config::{Source, TcpAddress, tcp_address_argument};
use crate::failure::Failure;

/// What names a server.
pub(crate) const ACCEPTED: &str = "the configuration file of the server, its address such as 127.0.0.1:9810, or its control \
     socket such as unix:/run/weir/control.sock";

/// The variable, if it is set to something: `WEIR_SERVER=` in a shell takes away what it named.
pub(crate) fn variable(name: &'static str) -> Option<&'static str> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(|_| name)
}

/// Which server.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerArgument {
    /// The server: its configuration file, its address such as 127.0.0.1:9810, or its control socket such as
    /// unix:/run/weir/control.sock [default: /etc/weir/weir.toml if it can be read (of an agent:
    /// /etc/weir/throttle.toml), or else the addresses of the examples]
    #[arg(long, value_name = "SERVER", env = variable("WEIR_SERVER"))]
    server: Option<String>,
}

/// The server that is meant if none is named: that of its usual file, or, if there is none that can be read,
/// the one at the usual address. An operator may not be allowed to read the file, and an agent needs none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usual {
    file: &'static str,
    address: &'static str,
}

impl Usual {
    /// A gateway.
    pub(crate) const GATEWAY: Self = Self { file: "/etc/weir/weir.toml", address: "127.0.0.1:9810" };

    /// A packet-delay agent.
    pub(crate) const AGENT: Self = Self { file: "/etc/weir/throttle.toml", address: "127.0.0.1:9811" };
}

/// The control socket that stands for the usual gateway if it has no file that can be read.
const USUAL_CONTROL: &str = "unix:/run/weir/control.sock";

/// The file, if it can be read, or else this.
fn file_or<'t>(file: &'t str, otherwise: &'t str) -> &'t str {
    if fs::File::open(file).is_ok() { file } else { otherwise }
}

/// What a text names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    /// A server at its address, or at its control socket.
    Server(Server),
    /// The file at this path.
    File(PathBuf),
}

impl ServerArgument {
    /// The server, to ask about its state.
    ///
    /// # Errors
    /// If it is none of [`ACCEPTED`], or its file has no address at which it can be asked.
    pub(crate) fn to_ask(&self, usual: Usual) -> Result<Server, Failure> {
        to_ask(self.server.as_deref().unwrap_or_else(|| file_or(usual.file, usual.address)))
    }

    /// The gateway or controller, to send changes to.
    ///
    /// # Errors
    /// If it is none of [`ACCEPTED`], or has no control socket.
    pub(crate) fn to_change(&self) -> Result<Server, Failure> {
        let usual = || file_or(Usual::GATEWAY.file, USUAL_CONTROL);
        to_change(self.server.as_deref().unwrap_or_else(usual))
    }
}

/// What `text` names.
///
/// # Errors
/// If it is no address and no socket, and there is nothing at the path.
pub(crate) fn named(text: &str) -> Result<Named, Failure> {
    // A URL with a user may have a password, and a message ends up in logs.
    if text.split_once("://").is_some_and(|(_, rest)| rest.contains('@')) || is_user_at_host(text) {
        let found = "found a user before an @, and weir asks for none";
        return Err(Failure::usage(format!("server: taken for a URL: {found}; accepted: {ACCEPTED}")));
    }
    let wrong = |taken: &str, found: &str| {
        Failure::usage(format!("server {text:?}: taken for {taken}: {found}; accepted: {ACCEPTED}"))
    };
    if let Some(path) = text.strip_prefix("unix:") {
        return match path.starts_with('/') {
            true => Ok(Named::Server(Server::Unix(path.into()))),
            false => Err(wrong("a control socket", "found no absolute path")),
        };
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let authority = rest.split('/').next().unwrap_or_default();
        return match Server::read(text) {
            Some(server) if !authority.is_empty() => Ok(Named::Server(server)),
            Some(_) => Err(wrong("a URL", "found no host")),
            None => Err(wrong("a URL", &format!("found the scheme {scheme:?} instead of http"))),
        };
    }
    if tcp_address_argument(text, "127.0.0.1:9810").is_ok() {
        return Ok(Named::Server(at(text)));
    }
    let path = Path::new(text);
    match fs::metadata(path) {
        Ok(found) if found.file_type().is_socket() => Ok(Named::Server(Server::Unix(path.to_owned()))),
        Ok(_) => Ok(Named::File(path.to_owned())),
        Err(error) => {
            let taken = "a configuration file, as it is neither HOST:PORT nor http://... nor unix:/...";
            Err(wrong(taken, &error.to_string()))
        }
    }
}

/// Whether the text is a user with a password at a host, without a scheme. A path may have an `@`, too.
fn is_user_at_host(text: &str) -> bool {
    let user = text.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':') && !user.starts_with("unix:")) && !Path::new(text).exists()
}

/// The server at `text`, to ask about its state.
///
/// # Errors
/// As [`ServerArgument::to_ask`].
pub(crate) fn to_ask(text: &str) -> Result<Server, Failure> {
    let file = match named(text)? {
        Named::Server(server) => return Ok(server),
        Named::File(file) => file,
    };
    let Addresses { key, told_at, control } = addresses(&file)?;
    // A port that the system has chosen is in no file.
    let told_at = told_at.filter(|address| address.port != 0 || control.is_none());
    let told_at = told_at.map(|address| at(&address.to_string()));
    told_at.or_else(|| control.map(Server::Unix)).ok_or_else(|| {
        Failure::usage(format!("{}: {key}: found nothing; accepted: the address to ask", file.display()))
    })
}

/// The server at `text`, to send changes to.
///
/// # Errors
/// As [`ServerArgument::to_change`].
fn to_change(text: &str) -> Result<Server, Failure> {
    let refused = |found: &str| {
        let accepted = "the control socket of the server such as unix:/run/weir/control.sock, or its \
                        configuration file with one in it";
        Failure::usage(format!("server {text:?}: {found}; accepted: {accepted}"))
    };
    match named(text)? {
        Named::Server(server @ Server::Unix(_)) => Ok(server),
        Named::Server(Server::Http { .. }) => Err(refused("found an address where nothing can be changed")),
        Named::File(file) => {
            let control = addresses(&file)?.control;
            control.map(Server::Unix).ok_or_else(|| refused("found no control socket in the file"))
        }
    }
}

fn at(address: &str) -> Server {
    Server::Http { authority: address.to_owned(), prefix: String::new() }
}

/// The addresses at which the server of a configuration file can be asked.
struct Addresses {
    /// The key of the address of its status.
    key: &'static str,
    told_at: Option<TcpAddress>,
    control: Option<PathBuf>,
}

/// The addresses in the file of a gateway, a controller, a packet-delay agent or a coordinator of transfers.
fn addresses(file: &Path) -> Result<Addresses, Failure> {
    let source = Source::read(file).map_err(Failure::usage)?;
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn refusal(text: &str) -> String {
        named(text).unwrap_err().to_string()
    }

    #[test]
    fn an_address_a_socket_and_a_file_are_told_apart() {
        let server = |text: &str| Ok(Named::Server(Server::read(text).unwrap()));
        let found = |text: &str| named(text).map_err(|failure| failure.to_string());
        assert_eq!(found("127.0.0.1:9810"), server("http://127.0.0.1:9810"));
        assert_eq!(found("[::1]:9810"), server("http://[::1]:9810"));
        assert_eq!(found("gateway-1:9810"), server("http://gateway-1:9810"));
        assert_eq!(found("http://gateway/weir"), server("http://gateway/weir"));
        assert_eq!(found("unix:/run/weir.sock"), server("unix:/run/weir.sock"));
        let directory = tempfile::tempdir().unwrap();
        let (file, socket) = (directory.path().join("weir.toml"), directory.path().join("weir.sock"));
        fs::write(&file, "").unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(found(file.to_str().unwrap()), Ok(Named::File(file.clone())));
        assert_eq!(found(socket.to_str().unwrap()), Ok(Named::Server(Server::Unix(socket.clone()))));
    }

    #[test]
    fn what_names_no_server_is_told_what_it_was_taken_for_and_what_is_accepted() {
        for (text, taken, found) in [
            ("127.0.0.1", "a configuration file, as it is neither HOST:PORT", "No such file"),
            ("wether.toml", "a configuration file, as it is neither HOST:PORT", "No such file"),
            ("gateway:98100", "a configuration file, as it is neither HOST:PORT", "No such file"),
            ("https://gateway", "a URL", "found the scheme \"https\" instead of http"),
            ("http:///v1", "a URL", "found no host"),
            ("unix:weir.sock", "a control socket", "found no absolute path"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.starts_with(&format!("server {text:?}: taken for {taken}")), "{refusal}");
            assert!(refusal.contains(found) && refusal.ends_with(ACCEPTED), "{refusal}");
            assert_eq!(refusal.lines().count(), 1, "{refusal}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_shown() {
        for text in [
            "http://user:hunter2@gateway:9810",
            "http://user:hun/hunter2@gateway",
            "https://hunter2@gateway",
            "user:hunter2@gateway:9810",
        ] {
            let refusal = refusal(text);
            assert!(refusal.contains("found a user") && refusal.ends_with(ACCEPTED), "{refusal}");
            assert!(!refusal.contains("hunter2"), "{refusal}");
        }
        let path = refusal("/etc/weir@1.toml");
        assert!(path.contains("/etc/weir@1.toml"), "{path}");
    }

    #[test]
    fn a_file_that_can_be_read_comes_before_the_usual_address() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("weir.toml");
        let file = file.to_str().unwrap();
        assert_eq!(file_or(file, Usual::GATEWAY.address), Usual::GATEWAY.address);
        fs::write(file, "").unwrap();
        assert_eq!(file_or(file, Usual::GATEWAY.address), file);
    }

    #[test]
    fn nothing_is_changed_at_an_address_that_everybody_reaches() {
        let refused = to_change("127.0.0.1:9810").unwrap_err().to_string();
        assert!(refused.contains("found an address where nothing can be changed; accepted: the control"));
    }
}
