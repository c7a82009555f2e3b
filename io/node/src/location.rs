//! The places of nodes, as URLs.
//!
//! A URL may be shown to everybody, so it never has a password in it: such a URL is refused. Credentials
//! come from a file ([`Credentials`](crate::Credentials)).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;
use url::{Host, Url};

/// The region of an S3 node that names none.
const REGION: &str = "us-east-1";

/// A text that is no place of a node.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("node: found {found}; accepted: {accepted}")]
pub struct LocationError {
    found: String,
    accepted: &'static str,
}

/// Where a node is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// `file:///absolute/root`: a directory of this host.
    File {
        /// The directory.
        root: PathBuf,
    },
    /// `s3://bucket[/prefix]?endpoint=http(s)://host:port[&region=REGION]`: a bucket.
    S3 {
        /// The bucket.
        bucket: String,
        /// What all keys begin with, without a slash at its ends. It may be empty.
        prefix: String,
        /// The server, as a URL of a scheme, a host and perhaps a port.
        endpoint: Url,
        /// The region, which is a part of what is signed.
        region: String,
    },
    /// `webdav://host[:port]/path`, or `webdavs://` over TLS: a collection.
    WebDav {
        /// The collection, as a URL of HTTP whose path ends with a slash.
        url: Url,
    },
    /// `sftp://[user@]host[:port]/absolute/root`: a directory of a host that ssh can reach.
    Sftp {
        /// The user, if it is not for ssh to choose.
        user: Option<String>,
        /// The host, or a name that ssh's configuration knows.
        host: String,
        /// The port, if it is not for ssh to choose.
        port: Option<u16>,
        /// The directory.
        root: String,
    },
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        let Ok(url) = Url::parse(text) else {
            return refuse(
                "no URL",
                "file:///ROOT, s3://BUCKET, webdav://HOST/PATH, webdavs://HOST/PATH or sftp://HOST/ROOT",
            );
        };
        if url.password().is_some() {
            return refuse("a password in the URL", "a URL without one, and a file of credentials");
        }
        if url.fragment().is_some() {
            return refuse("a \"#\" in the URL", "a URL without one; in a path it is \"%23\"");
        }
        if url.query().is_some() && url.scheme() != "s3" {
            return refuse("a \"?\" in the URL", "a URL without one; in a path it is \"%3F\"");
        }
        match url.scheme() {
            "file" => file(&url),
            "s3" => s3(&url),
            "webdav" => webdav(text, "http"),
            "webdavs" => webdav(text, "https"),
            "sftp" => sftp(&url),
            _ => refuse(format!("the scheme {:?}", url.scheme()), "file, s3, webdav, webdavs or sftp"),
        }
    }
}

impl fmt::Display for Location {
    /// The URL that this was read from, in one form for all spellings of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { root } => write!(f, "file://{}", encoded(&root.to_string_lossy())),
            Self::S3 { bucket, prefix, endpoint, region } => {
                let slash = if prefix.is_empty() { "" } else { "/" };
                let endpoint = endpoint.as_str().trim_end_matches('/');
                write!(f, "s3://{bucket}{slash}{}?endpoint={endpoint}&region={region}", encoded(prefix))
            }
            Self::WebDav { url } => write!(f, "webdav{}", url.as_str().trim_start_matches("http")),
            Self::Sftp { user, host, port, root } => {
                let user = user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
                let port = port.map(|port| format!(":{port}")).unwrap_or_default();
                // Only an address of IPv6 has colons.
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                write!(f, "sftp://{user}{open}{host}{close}{port}{}", encoded(root))
            }
        }
    }
}

fn refuse<T>(found: impl fmt::Display, accepted: &'static str) -> Result<T, LocationError> {
    let found = found.to_string().chars().take(200).collect();
    Err(LocationError { found, accepted })
}

fn file(url: &Url) -> Result<Location, LocationError> {
    if url.host().is_some() {
        return refuse("a host", "file:///ABSOLUTE/ROOT, with three slashes");
    }
    let root = PathBuf::from(path_of(url)?);
    Ok(Location::File { root })
}

fn s3(url: &Url) -> Result<Location, LocationError> {
    if !url.username().is_empty() || url.port().is_some() {
        return refuse("a user or a port before the bucket", "s3://BUCKET, with the port in the endpoint");
    }
    let bucket = url.host_str().unwrap_or_default().to_owned();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(is_plain) {
        return refuse(format!("the bucket {bucket:?}"), "3 to 63 letters, digits, \".\", \"-\" and \"_\"");
    }
    let prefix = path_of(url)?.trim_matches('/').to_owned();
    if prefix.len() > 400 || prefix.split('/').any(|part| part.is_empty()) && !prefix.is_empty() {
        return refuse("this prefix", "at most 400 bytes, without \"//\"");
    }
    let (mut endpoint, mut region) = (None, None);
    for (key, value) in url.query_pairs() {
        let place = match &*key {
            "endpoint" => &mut endpoint,
            "region" => &mut region,
            _ => return refuse(format!("the key {key:?}"), "endpoint and region"),
        };
        if place.replace(value.into_owned()).is_some() {
            return refuse(format!("{key} twice"), "each key once");
        }
    }
    let endpoint = endpoint.and_then(|endpoint| Url::parse(&endpoint).ok()).filter(is_server);
    let Some(endpoint) = endpoint else {
        return refuse("no server to ask", "?endpoint=http://HOST:PORT or ?endpoint=https://HOST:PORT");
    };
    let region = region.unwrap_or_else(|| REGION.to_owned());
    if !(1..=64).contains(&region.len()) || !region.bytes().all(is_plain) {
        return refuse("this region", "1 to 64 letters, digits, \".\", \"-\" and \"_\"");
    }
    Ok(Location::S3 { bucket, prefix, endpoint, region })
}

/// Whether a URL is a scheme of HTTP, a host and perhaps a port, and nothing else.
fn is_server(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.path() == "/"
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}

/// `text` has been parsed as a URL with another scheme, whose hosts are any text. As a URL of HTTP, its host
/// is checked.
fn webdav(text: &str, scheme: &str) -> Result<Location, LocationError> {
    let rest = text.split_once(':').map(|(_, rest)| rest).unwrap_or_default();
    let Some(mut url) = Url::parse(&format!("{scheme}:{rest}")).ok().filter(|_| rest.starts_with("//"))
    else {
        return refuse("no host in the URL", "webdav://HOST[:PORT]/PATH, with a host in ASCII");
    };
    if !url.username().is_empty() {
        return refuse("a user in the URL", "a URL without one, and a file of credentials");
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(Location::WebDav { url })
}

fn sftp(url: &Url) -> Result<Location, LocationError> {
    let accepted = "sftp://[USER@]HOST[:PORT]/ABSOLUTE/ROOT, with plain names of a user and a host";
    let host = match url.host() {
        Some(Host::Ipv6(address)) => address.to_string(),
        Some(host) => host.to_string(),
        None => return refuse("no host", accepted),
    };
    // Both become arguments of ssh. One that begins with "-" would be an option.
    let is_plain = |text: &str| {
        !text.is_empty()
            && !text.starts_with('-')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte))
    };
    let user = (!url.username().is_empty()).then(|| url.username().to_owned());
    if !is_plain(&host) || user.as_deref().is_some_and(|user| !is_plain(user)) {
        return refuse("another character in the user or the host", accepted);
    }
    Ok(Location::Sftp { user, host, port: url.port(), root: path_of(url)? })
}

/// The path of a URL, decoded.
fn path_of(url: &Url) -> Result<String, LocationError> {
    let mut bytes = Vec::with_capacity(url.path().len());
    let mut rest = url.path().as_bytes();
    while let [first, after @ ..] = rest {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    match String::from_utf8(bytes) {
        Ok(path) if path.is_empty() => Ok("/".to_owned()),
        // A URL has none left, but for one that was hidden by "%2F".
        Ok(path) if path.split('/').any(|part| part == "." || part == "..") => {
            refuse("\".\" or \"..\" in the path", "a path without them")
        }
        Ok(path) if path.len() <= 3_000 && !path.chars().any(char::is_control) => Ok(path),
        _ => refuse("this path", "at most 3000 bytes of UTF-8, without control characters"),
    }
}

/// A path as it stands in a URL.
fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'/'
            | b'.'
            | b'-'
            | b'_'
            | b'~'
            | b'+'
            | b'='
            | b',' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_comes_back_as_it_was() {
        for text in [
            "file:///srv/nodes/a%20b",
            "s3://bulk/site/a?endpoint=http://127.0.0.1:9000&region=eu-1",
            "s3://bulk?endpoint=https://s3.example.org&region=us-east-1",
            "webdav://127.0.0.1:8080/a%20b/",
            "webdavs://dav.example.org/",
            "sftp://me@host.example.org:2222/srv/bulk",
            "sftp://host/",
            "sftp://me@[fd00::1]:22/srv",
        ] {
            assert_eq!(text.parse::<Location>().unwrap().to_string(), text);
        }
        let short: Location = "s3://bulk/a/?endpoint=http://h:1/".parse().unwrap();
        assert_eq!(short.to_string(), "s3://bulk/a?endpoint=http://h:1&region=us-east-1");
        let Location::File { root } = "file:///a%20b/c".parse().unwrap() else { panic!("another sort") };
        assert_eq!(root, PathBuf::from("/a b/c"));
    }

    #[test]
    fn a_mistake_in_a_url_is_one_line_without_the_password() {
        for text in [
            "srv",
            "http://host/",
            "file://host/root",
            "webdav://user:hidden@host/",
            "webdav://user@host/",
            "webdav:path",
            "sftp://user:hidden@host/root",
            "sftp://-oProxyCommand=x/root",
            "sftp://-x@host/root",
            "sftp:///root",
            "s3://bulk",
            "s3://ab?endpoint=http://h:1",
            "s3://bulk?endpoint=ftp://h:1",
            "s3://bulk?endpoint=http://u:hidden@h:1",
            "s3://bulk?endpoint=http://h:1&secret=hidden",
            "s3://bulk?endpoint=http://h:1&endpoint=http://h:2",
            "file:///a?b",
            "file:///a#b",
            "file:///a%00b",
            "file:///a%2F..%2Fb",
        ] {
            let error =
                text.parse::<Location>().map(|found| panic!("{text}: {found}")).unwrap_err().to_string();
            assert!(error.starts_with("node: found ") && error.contains("; accepted: "), "{error}");
            assert!(!error.contains("hidden") && !error.contains('\n'), "{error}");
        }
    }
}
