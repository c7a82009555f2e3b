//! Where a server is, as an NBD URI.
//!
//! Source: `doc/uri.md` of the NetworkBlockDevice/nbd project: `nbd://host[:port]/export` and
//! `nbd+unix:///export?socket=/path`. The schemes with TLS and vsock are refused.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;
use url::{Host, Url, form_urlencoded};

/// The port that IANA has given to NBD.
const DEFAULT_PORT: u16 = 10809;

/// An export of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    uri: String,
    address: Address,
    export: String,
}

/// Where the server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// TCP.
    Tcp {
        /// A name or a number.
        host: String,
        /// The port.
        port: u16,
    },
    /// A unix socket.
    Unix(PathBuf),
}

/// Why a text names no target.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{uri:?} is no NBD URI: {problem}; accepted: nbd://host[:port]/export or nbd+unix:///export?socket=/path"
)]
pub struct TargetError {
    uri: String,
    problem: String,
}

impl Target {
    /// Where the server listens.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// The name of the export; empty for the server's default.
    pub fn export(&self) -> &str {
        &self.export
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(uri: &str) -> Result<Self, TargetError> {
        let fail = |problem: &str| TargetError { uri: uri.to_owned(), problem: problem.to_owned() };
        let url = Url::parse(uri).map_err(|error| fail(&error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            // Without the text itself: nobody should read the password in a log.
            let uri = format!("{}://...@{}", url.scheme(), url.host_str().unwrap_or_default());
            return Err(TargetError { uri, problem: "NBD has no users and passwords".to_owned() });
        }
        let mut keys = form_urlencoded::parse(url.query().unwrap_or_default().as_bytes());
        if let Some((key, _)) = keys.find(|(key, _)| key != "socket") {
            return Err(fail(&format!("its query has {key:?}")));
        }
        if url.port() == Some(0) {
            return Err(fail("no server listens on port 0"));
        }
        let socket = url.query().and_then(|query| {
            form_urlencoded::parse(query.replace('+', "%2B").as_bytes())
                .find(|(key, _)| key == "socket")
                .map(|(_, value)| PathBuf::from(value.into_owned()))
        });
        let address = match (url.scheme(), socket) {
            ("nbd", None) => {
                let host = match url.host() {
                    Some(Host::Domain(name)) if !name.is_empty() => decoded(name),
                    Some(Host::Ipv4(ip)) => ip.to_string(),
                    Some(Host::Ipv6(ip)) => ip.to_string(),
                    _ => "localhost".to_owned(),
                };
                Address::Tcp { host, port: url.port().unwrap_or(DEFAULT_PORT) }
            }
            ("nbd+unix", Some(path)) => Address::Unix(path),
            ("nbd", Some(_)) => return Err(fail("a socket needs the scheme nbd+unix")),
            ("nbd+unix", None) => return Err(fail("the socket is missing")),
            ("nbds" | "nbds+unix", _) => return Err(fail("TLS is not supported")),
            (scheme, _) => return Err(fail(&format!("its scheme is {scheme:?}"))),
        };
        let export = decoded(url.path().strip_prefix('/').unwrap_or(url.path()));
        Ok(Self { uri: uri.to_owned(), address, export })
    }
}

/// The text with its `%xx` decoded, as the value of a form's field. `+` and `&` are escaped first, because
/// only in a form are they special.
fn decoded(text: &str) -> String {
    let field = format!("={}", text.replace('+', "%2B").replace('&', "%26"));
    form_urlencoded::parse(field.as_bytes()).map(|(_, value)| value.into_owned()).collect()
}

/// The URI that it was made from.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn every_form_of_the_uri_is_understood() {
        for (uri, address, export) in [
            ("nbd://server/disk", tcp("server", 10809), "disk"),
            ("nbd://server", tcp("server", 10809), ""),
            ("nbd://zürich/disk", tcp("zürich", 10809), "disk"),
            ("nbd://127.0.0.1:7000/", tcp("127.0.0.1", 7000), ""),
            ("nbd://[::1]:7000/a/b", tcp("::1", 7000), "a/b"),
            ("nbd:///disk", tcp("localhost", 10809), "disk"),
            ("nbd+unix:///?socket=/run/nbd.sock", Address::Unix("/run/nbd.sock".into()), ""),
            ("nbd+unix:///a%20b+c&d=e?socket=/run/a+b%20c", Address::Unix("/run/a+b c".into()), "a b+c&d=e"),
        ] {
            let target: Target = uri.parse().unwrap();
            assert_eq!((target.address(), target.export()), (&address, export), "{uri}");
            assert_eq!(target.to_string(), uri);
        }
    }

    #[test]
    fn what_is_no_nbd_uri_is_refused_with_what_would_be_accepted() {
        for uri in [
            "",
            "disk",
            "http://server/",
            "nbds://server/",
            "nbd+unix:///disk",
            "nbd://h/?socket=/x",
            "nbd://h/x?tls=on",
            "nbd+unix:///x?socket=/x&sockets=/y",
            "nbd://h:0/x",
            "nbd://user@h/x",
        ] {
            let error = uri.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains("accepted: nbd://"), "{error}");
        }
    }

    #[test]
    fn a_password_is_refused_and_not_repeated() {
        let error = "nbd://user:secret@server/disk".parse::<Target>().unwrap_err().to_string();
        assert!(error.contains("no users and passwords") && !error.contains("secret"), "{error}");
    }
}
