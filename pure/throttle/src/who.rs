//! Whom an operator means: an initiator by its name, or the initiators of an address or a network.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// An initiator, or all initiators of a network.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Who {
    /// The initiator of that iSCSI name, in lower case.
    Initiator(String),
    /// All initiators with an address in that network. A single address is a network too.
    Network(Network),
}

/// A network: an address and how many of its bits count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// What names no initiator.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NoInitiator {
    /// Neither a name nor an address.
    #[error(
        "{0:?} names no initiator; accepted: an iSCSI name (iqn., eui., naa.), an address, or ADDRESS/BITS"
    )]
    Unreadable(String),
    /// More bits than the address has.
    #[error("{address}/{prefix} is no network; accepted: at most {most} bits")]
    Prefix {
        /// The address.
        address: IpAddr,
        /// Its bits, as given.
        prefix: u8,
        /// The bits that such an address has.
        most: u8,
    },
    /// A network of IPv6 addresses that stand for those of IPv4, and of others.
    #[error(
        "{address}/{prefix} is a network of IPv4 addresses and of others; accepted: 96 bits or more, or the \
         IPv4 network itself"
    )]
    Mapped {
        /// The address.
        address: IpAddr,
        /// Its bits, as given.
        prefix: u8,
    },
    /// The unspecified address, or one of a group.
    #[error("{0} is no initiator's address; accepted: an address of a host, or ADDRESS/BITS")]
    Nobodys(IpAddr),
}

/// The bits that all IPv6 addresses have that stand for IPv4 ones.
const MAPPED: u8 = 96;

/// What the names of iSCSI begin with (RFC 7143, 4.2.7.1).
const NAMES_BEGIN: [&str; 3] = ["iqn.", "eui.", "naa."];

impl FromStr for Who {
    type Err = NoInitiator;

    fn from_str(text: &str) -> Result<Self, NoInitiator> {
        let name = text.trim().to_lowercase();
        let unreadable = || NoInitiator::Unreadable(text.to_string());
        if NAMES_BEGIN.iter().any(|begin| name.strip_prefix(begin).is_some_and(|rest| !rest.is_empty())) {
            return Ok(Self::Initiator(name));
        }
        let (address, prefix) = match name.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse().map_err(|_| unreadable())?)),
            None => (name.as_str(), None),
        };
        Network::new(address.parse().map_err(|_| unreadable())?, prefix).map(Self::Network)
    }
}

impl Network {
    fn new(address: IpAddr, prefix: Option<u8>) -> Result<Self, NoInitiator> {
        // On the wire, an IPv4 address that is written as an IPv6 one (RFC 4291, 2.5.5.2) is one of IPv4.
        let canonical = address.to_canonical();
        if let Some(bits) = prefix.filter(|bits| *bits <= 128 && canonical != address) {
            let prefix = bits.checked_sub(MAPPED).ok_or(NoInitiator::Mapped { address, prefix: bits })?;
            return Self::new(canonical, Some(prefix));
        }
        let address = canonical;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if prefix.is_none() && (address.is_unspecified() || address.is_multicast()) {
            return Err(NoInitiator::Nobodys(address));
        }
        let prefix = prefix.unwrap_or(most);
        if prefix > most {
            Err(NoInitiator::Prefix { address, prefix, most })
        } else {
            Ok(Self { address, prefix })
        }
    }

    fn contains(self, address: IpAddr) -> bool {
        let apart = match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(other)) => (ours.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V6(ours), IpAddr::V6(other)) => (ours.to_bits() ^ other.to_bits()).leading_zeros(),
            _ => return false,
        };
        apart >= u32::from(self.prefix)
    }
}

impl Who {
    /// Whether the initiator of that name is meant by its name.
    pub(crate) fn is_named(&self, initiator: &str) -> bool {
        matches!(self, Self::Initiator(name) if name.eq_ignore_ascii_case(initiator))
    }

    /// Whether all whom `other` means are meant, by their names or by their addresses.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Network(ours), Self::Network(theirs)) => {
                ours.prefix <= theirs.prefix && ours.contains(theirs.address)
            }
            _ => self == other,
        }
    }

    /// Whether the initiators of an address are meant.
    pub(crate) fn is_at(&self, address: IpAddr) -> bool {
        matches!(self, Self::Network(network) if network.contains(address))
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initiator(name) => f.write_str(name),
            Self::Network(Network { address: IpAddr::V4(address), prefix: 32 }) => write!(f, "{address}"),
            Self::Network(Network { address: IpAddr::V6(address), prefix: 128 }) => write!(f, "{address}"),
            Self::Network(Network { address, prefix }) => write!(f, "{address}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(text: &str) -> Who {
        text.parse().unwrap()
    }

    #[test]
    fn an_initiator_is_meant_by_its_name_whatever_its_case() {
        assert!(who("iqn.2026-01.example:DB").is_named("IQN.2026-01.example:db"));
        assert!(!who("iqn.2026-01.example:db").is_named("iqn.2026-01.example:db2"));
        assert!(!who("10.0.0.1").is_named("10.0.0.1"));
    }

    #[test]
    fn a_network_has_the_addresses_that_share_its_bits() {
        let cases = [
            ("10.0.0.5", "10.0.0.5", true),
            ("10.0.0.5", "10.0.0.4", false),
            ("10.0.0.0/24", "10.0.0.255", true),
            ("10.0.0.0/24", "10.0.1.0", false),
            ("0.0.0.0/0", "192.168.1.1", true),
            ("0.0.0.0/0", "fd00::1", false),
            ("fd00::/64", "fd00::1234", true),
            ("fd00::/64", "fd00:0:0:1::1", false),
            ("::ffff:10.9.0.0/120", "10.9.0.7", true),
            ("::ffff:10.9.0.0/120", "10.9.1.7", false),
            ("::ffff:0.0.0.0/96", "10.9.1.7", true),
            ("::ffff:10.9.0.7", "10.9.0.7", true),
        ];
        for (network, address, is_in) in cases {
            assert_eq!(who(network).is_at(address.parse().unwrap()), is_in, "{address} in {network}");
        }
    }

    #[test]
    fn what_names_no_initiator_is_refused_with_what_would_be_accepted() {
        let message = |text: &str| text.parse::<Who>().unwrap_err().to_string();
        for text in ["db1", "iqn.", "", "10.0.0.256", "10.0.0.0/x", "10.0.0.0/300", "10.0.0.1:3260"] {
            assert!(message(text).contains("accepted: an iSCSI name"), "{text}: {}", message(text));
        }
        assert_eq!(message("10.0.0.0/33"), "10.0.0.0/33 is no network; accepted: at most 32 bits");
        assert_eq!(
            message("::ffff:10.9.0.0/95"),
            "::ffff:10.9.0.0/95 is a network of IPv4 addresses and of others; accepted: 96 bits or more, or the \
             IPv4 network itself"
        );
        assert!(message("::ffff:10.9.0.0/129").contains("at most"));
        for text in ["0.0.0.0", "::ffff:0.0.0.0", "::", "224.0.0.1", "ff02::1"] {
            assert!(message(text).contains("is no initiator's address"), "{text}");
        }
    }

    #[test]
    fn it_is_shown_as_it_was_written() {
        for text in ["iqn.2026-01.example:db", "10.0.0.5", "10.0.0.0/24", "fd00::1", "fd00::/64"] {
            assert_eq!(who(text).to_string(), text);
        }
        assert_eq!(who("::ffff:10.9.0.0/120").to_string(), "10.9.0.0/24");
    }
}
