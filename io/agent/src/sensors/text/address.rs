//! Addresses, as targets write them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::Unfit;

/// An IP address: `10.9.0.11`, `fd00::1`, `[fd00::1]`, `fe80::1%eth0`. An IPv4 address that is mapped into
/// IPv6 (`::ffff:10.9.0.11`) becomes the IPv4 address, because its packets are IPv4 packets.
///
/// # Errors
/// If it is none.
pub fn address(text: &str) -> Result<IpAddr, Unfit> {
    let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
    let bare = bare.split_once('%').map_or(bare, |(address, _interface)| address);
    let parsed: Result<IpAddr, _> = bare.parse();
    parsed.map(|ip| ip.to_canonical()).map_err(|_| Unfit::new(text, "an IPv4 or IPv6 address"))
}

/// A portal: `10.9.0.1:3260`, `[fd00::1]:3260`, `[fe80::1%eth0]:3260`. Only here `[::]` stays what it is, and
/// stands for all addresses of the host.
///
/// # Errors
/// If it is none.
pub fn portal(text: &str) -> Result<SocketAddr, Unfit> {
    let unfit = || Unfit::new(text, "ADDRESS:PORT, such as 10.9.0.1:3260 or [fd00::1]:3260");
    let (host, port) = text.trim().rsplit_once(':').ok_or_else(unfit)?;
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if host.contains(':') && !bracketed {
        return Err(unfit());
    }
    let port: u16 = port.parse().map_err(|_| unfit())?;
    let ip = address(host).map_err(|_| unfit())?;
    if port == 0 || bracketed != host.contains(':') {
        return Err(unfit());
    }
    Ok(SocketAddr::new(ip, port))
}

/// Whether a connection whose end at this host is `local` comes in through `portal`.
pub fn is_at(local: SocketAddr, portal: SocketAddr) -> bool {
    let any = match portal.ip() {
        IpAddr::V4(ip) => ip.is_unspecified() && local.is_ipv4(),
        IpAddr::V6(ip) => ip == Ipv6Addr::UNSPECIFIED,
    };
    local.port() == portal.port() && (any || local.ip() == portal.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_however_it_is_written() {
        let v4: IpAddr = "10.9.0.11".parse().unwrap();
        let v6: IpAddr = "fe80::1".parse().unwrap();
        for (text, is) in
            [("10.9.0.11", v4), ("::ffff:10.9.0.11", v4), ("[fe80::1]", v6), ("fe80::1%eth0\n", v6)]
        {
            assert_eq!(address(text), Ok(is), "{text}");
        }
        for none in ["", "10.9.0", "host", "[", "1.2.3.4.5", "%eth0"] {
            assert!(address(none).is_err(), "{none}");
        }
    }

    #[test]
    fn a_portal_has_an_address_and_a_port() {
        for text in ["10.9.0.1:3260", "[fd00::1]:860", "[::]:3260", "0.0.0.0:3260"] {
            assert_eq!(portal(text).unwrap().to_string(), text);
        }
        assert_eq!(portal("[::0]:3260").unwrap().to_string(), "[::]:3260");
        assert_eq!(portal("[fe80::1%eth0]:3260").unwrap().to_string(), "[fe80::1]:3260");
        for none in ["", "10.9.0.1", "fd00::1:3260", "[10.9.0.1]:3260", ":3260", "1.2.3.4:0", "1.2.3.4:99999"]
        {
            assert!(portal(none).is_err(), "{none}");
        }
    }

    #[test]
    fn a_portal_of_all_addresses_has_every_connection_of_its_port_and_family() {
        let at = |local: &str, portal: &str| is_at(local.parse().unwrap(), portal.parse().unwrap());
        assert!(at("10.9.0.1:3260", "10.9.0.1:3260") && at("10.9.0.1:3260", "0.0.0.0:3260"));
        assert!(at("10.9.0.1:3260", "[::]:3260") && at("[fd00::1]:3260", "[::]:3260"));
        assert!(!at("[fd00::1]:3260", "0.0.0.0:3260") && !at("10.9.0.1:3261", "0.0.0.0:3260"));
        assert!(!at("10.9.0.2:3260", "10.9.0.1:3260"));
    }
}
