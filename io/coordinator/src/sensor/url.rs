//! Where a sensor is, and which of its devices counts: `http://HOST:PORT/metrics#/srv/array`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The longest url, in bytes.
const LONGEST: usize = 1024;

/// The url of a sensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SensorUrl {
    authority: String,
    path: String,
    choice: Option<String>,
}

/// A text that is no url of a sensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("accepted: {}", SensorUrl::ACCEPTED)]
pub struct NoSensorUrl;

impl SensorUrl {
    /// What is accepted, in words.
    pub const ACCEPTED: &str =
        "http://HOST:PORT/metrics, and #DIRECTORY or #DEVICE behind it if the agent serves several";

    /// `host:port`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The path of the metrics, with its `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The directory or the device that counts, if the operator has named one.
    pub fn choice(&self) -> Option<&str> {
        self.choice.as_deref()
    }
}

impl FromStr for SensorUrl {
    type Err = NoSensorUrl;

    fn from_str(text: &str) -> Result<Self, NoSensorUrl> {
        let rest = text.strip_prefix("http://").filter(|_| text.len() <= LONGEST).ok_or(NoSensorUrl)?;
        let (address, choice) = match rest.split_once('#') {
            Some((address, choice)) => (address, Some(choice)),
            None => (rest, None),
        };
        let (authority, path) = address.split_once('/').ok_or(NoSensorUrl)?;
        let (host, port) = authority.rsplit_once(':').ok_or(NoSensorUrl)?;
        let is_port =
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
        let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            // A dot at the end: the name is absolute.
            None => host.strip_suffix('.').unwrap_or(host).split('.').all(is_label),
        };
        let is_path = path.bytes().all(|byte| byte.is_ascii_graphic());
        let is_choice = choice.is_none_or(|choice| !choice.is_empty() && !choice.contains(char::is_control));
        if !(is_host && is_port && is_path && is_choice) {
            return Err(NoSensorUrl);
        }
        let choice = choice.map(str::to_owned);
        Ok(Self { authority: authority.to_owned(), path: format!("/{path}"), choice })
    }
}

/// Whether this is a part of the name of a host (RFC 1123, 2.1).
fn is_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

impl fmt::Display for SensorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)?;
        self.choice.as_ref().map_or(Ok(()), |choice| write!(f, "#{choice}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_a_port_a_path_and_perhaps_what_counts() {
        let read = |text: &str| {
            let url: SensorUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), text);
            (url.authority().to_owned(), url.path().to_owned(), url.choice().map(str::to_owned))
        };
        let of = |authority: &str, choice: Option<&str>| {
            (authority.to_owned(), "/metrics".to_owned(), choice.map(str::to_owned))
        };
        assert_eq!(read("http://array.example:9813/metrics"), of("array.example:9813", None));
        assert_eq!(read("http://[::1]:9813/metrics#sda"), of("[::1]:9813", Some("sda")));
        assert_eq!(read("http://10.0.0.1:1/metrics#/srv/my disk"), of("10.0.0.1:1", Some("/srv/my disk")));
        assert_eq!(read("http://h:1/").1, "/");
    }

    #[test]
    fn what_is_no_url_of_a_sensor_is_refused() {
        for text in [
            "",
            "array:9813",
            "https://array:9813/metrics",
            "http://array/metrics",
            "http://array:9813",
            "http://:9813/metrics",
            "http://.:9813/metrics",
            "http://array..example:9813/metrics",
            "http://-array:9813/metrics",
            "http://array-.example:9813/metrics",
            "http://array:0/metrics",
            "http://array:65536/metrics",
            "http://array:+1/metrics",
            "http://u:secret@array:9813/metrics",
            "http://array:9813/me trics",
            "http://array:9813/metrics#",
            "http://array:9813/metrics#a\nb",
            "http://[array]:9813/metrics",
            &format!("http://array:9813/{}", "x".repeat(LONGEST)),
        ] {
            assert_eq!(text.parse::<SensorUrl>(), Err(NoSensorUrl), "{text}");
        }
    }
}
