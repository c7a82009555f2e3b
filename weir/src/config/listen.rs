//! `[listen]`: the addresses for clients, scrapers and operators.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::accepts::Accepts;
use super::origin::Resolved;
use super::reader::Section;

pub(super) const KEYS: &[&str] = &["nbd", "metrics", "control"];

/// The longest path of a Unix socket: `sun_path` of unix(7) without its closing zero.
const MOST_SOCKET_PATH: usize = 107;

const SOCKET: &str = "a Unix socket: \"unix:/path\" (absolute, at most 107 bytes)";

/// The addresses for clients, scrapers and operators.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Listen {
    /// The addresses for NBD clients; at least one, none twice.
    pub(crate) nbd: Vec<Resolved<Address>>,
    /// The address of `/metrics`; absent: none.
    pub(crate) metrics: Resolved<Option<TcpAddress>>,
    /// The Unix socket for `weir set`, by an absolute path; absent: none.
    pub(crate) control: Resolved<Option<PathBuf>>,
}

/// An address to listen on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Address {
    /// `host:port`, `[::1]:port`.
    Tcp(TcpAddress),
    /// `unix:/path`; absolute.
    Unix(PathBuf),
}

/// A host, by name or number, and a port; port 0 lets the system choose one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TcpAddress {
    /// In the form of the system's resolver: without brackets around an IPv6 address.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
}

pub(super) fn resolve(root: &Section<'_>) -> Listen {
    let Some(section) = root.section("listen", KEYS) else {
        if !root.has("listen") {
            root.refuse_found("listen", "nothing", "a table [listen] with the key nbd");
        }
        return Listen {
            nbd: Vec::new(),
            metrics: Resolved::placeholder(None),
            control: Resolved::placeholder(None),
        };
    };
    let address = Accepts::text(
        "an address: \"host:port\", \"[::1]:port\" or \"unix:/path\" (absolute, at most 107 bytes)",
        read_address,
    );
    let elements = section.elements("nbd", "an array of addresses, such as [\"127.0.0.1:10809\"]");
    let mut nbd: Vec<Resolved<Address>> = Vec::new();
    for element in &elements {
        let Some(found) = element.read(&address) else { continue };
        if nbd.contains(&found) && !found.value.is_any_port() {
            element.refuse("each address once");
        }
        nbd.push(found);
    }
    if !section.has("nbd") {
        section.refuse_found("nbd", "nothing", "at least one address, such as [\"127.0.0.1:10809\"]");
    }
    let metrics_address = tcp("127.0.0.1:9810");
    let metrics = section.optional("metrics", &metrics_address, "no metrics are served");
    let taken = |metrics: &TcpAddress| {
        let same = Address::Tcp(metrics.clone());
        !same.is_any_port() && nbd.iter().any(|nbd| nbd.value == same)
    };
    if metrics.value.as_ref().is_some_and(taken) {
        section.refuse("metrics", "an address that is not in listen.nbd");
    }
    let control =
        section.optional("control", &control_socket(), "nothing but a reload changes what is served");
    if control
        .value
        .as_ref()
        .is_some_and(|path| nbd.iter().any(|nbd| nbd.value == Address::Unix(path.clone())))
    {
        section.refuse("control", "a path that is not in listen.nbd");
    }
    Listen { nbd, metrics, control }
}

/// The path of a Unix socket.
pub(super) fn control_socket() -> Accepts<PathBuf> {
    Accepts::text(SOCKET, |text| text.strip_prefix("unix:").and_then(read_socket))
}

fn read_address(text: &str) -> Option<Address> {
    match text.strip_prefix("unix:") {
        Some(path) => read_socket(path).map(Address::Unix),
        None => read_tcp(text).map(Address::Tcp),
    }
}

fn read_socket(path: &str) -> Option<PathBuf> {
    let fits = path.starts_with('/') && path.len() <= MOST_SOCKET_PATH && !path.contains('\0');
    fits.then(|| PathBuf::from(path))
}

/// An address of TCP as an argument; `such_as` is one.
///
/// # Errors
/// If it is none, in words for the operator.
pub(crate) fn tcp_address_argument(text: &str, such_as: &str) -> Result<TcpAddress, String> {
    read_tcp(text).ok_or_else(|| format!("found {text:?}; accepted: {}", tcp(such_as).words()))
}

/// An address of TCP; `such_as` is one.
pub(super) fn tcp(such_as: &str) -> Accepts<TcpAddress> {
    Accepts::text(format!("an address or a host name, with a port, such as {such_as:?}"), read_tcp)
}

pub(super) fn read_tcp(text: &str) -> Option<TcpAddress> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(TcpAddress { host: address.ip().to_string(), port: address.port() });
    }
    let (host, port) = text.rsplit_once(':')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    // Without a letter, it would be a number that is no IPv4 address, such as 127.0.0.300.
    let is_name = host.bytes().all(plain) && host.bytes().any(|byte| byte.is_ascii_alphabetic());
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok()?;
    (is_name && digits).then(|| TcpAddress { host: host.to_owned(), port })
}

impl Address {
    fn is_any_port(&self) -> bool {
        matches!(self, Self::Tcp(TcpAddress { port: 0, .. }))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for TcpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}
