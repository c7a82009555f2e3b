//! `[limits]`: the most that clients may take of the gateway's memory and time, so that both stay bounded.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use bytesize::ByteSize;
use weir_model::Span;

use super::accepts;
use super::origin::{Origin, Resolved};
use super::reader::Section;

pub(super) const KEYS: &[&str] = &[
    "connections",
    "connections_per_address",
    "connections_per_volume",
    "connections_kept",
    "handshakes",
    "handshake_timeout",
    "requests_per_connection",
    "bytes_per_connection",
    "bytes_in_flight",
    "reply_timeout",
    "shutdown_timeout",
    "api_connections",
    "api_timeout",
    "api_header_bytes",
    "api_body_bytes",
];

/// The largest payload that a client may send under the NBD protocol without asking for the server's limit.
/// If a connection could not hold one such request, the request would never be done.
const LARGEST_REQUEST: ByteSize = ByteSize::mib(32);

/// The default of `bytes_in_flight`, unless the promises need more.
const BYTES_IN_FLIGHT: ByteSize = ByteSize::gib(1);

/// The range of timeouts: from too short for a packet that is lost once, to longer than anybody waits.
const TIMEOUTS: RangeInclusive<Span> = Span::from_millis(100)..=Span::from_secs(3600);

/// The reason for the default of a share.
const SHARE: &str = "three quarters of limits.connections, at least 16: a quarter is left for others";

/// The least share. A gateway with so few places serves one client.
const LEAST_SHARE: u32 = 16;

/// The most that clients may take of the gateway's memory and time.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Limits {
    /// Clients connected at a time. A further client is closed.
    pub(crate) connections: Resolved<NonZeroU32>,
    /// Clients connected at a time from one address.
    pub(crate) connections_per_address: Resolved<NonZeroU32>,
    /// Clients connected at a time to one volume.
    pub(crate) connections_per_volume: Resolved<NonZeroU32>,
    /// Places of each volume that clients of other volumes cannot take.
    pub(crate) connections_kept: Resolved<NonZeroU32>,
    /// Peers that have not finished their handshake. A further peer gets the place of another.
    pub(crate) handshakes: Resolved<NonZeroU32>,
    /// How long a client may take from connecting to the end of the negotiation.
    pub(crate) handshake_timeout: Resolved<Span>,
    /// Requests that a connection may have read and not yet answered. Beyond this, its socket is not read.
    pub(crate) requests_per_connection: Resolved<NonZeroU32>,
    /// Payload that a connection may have in memory. Beyond this, its socket is not read. At least 32 MiB.
    pub(crate) bytes_per_connection: Resolved<ByteSize>,
    /// Payload that all connections together may have in memory. At least `bytes_per_connection`.
    pub(crate) bytes_in_flight: Resolved<ByteSize>,
    /// How long a client may take none of its replies' bytes, or send the data of one write, before it is
    /// closed.
    pub(crate) reply_timeout: Resolved<Span>,
    /// How long a shutdown waits for requests in flight.
    pub(crate) shutdown_timeout: Resolved<Span>,
    /// Connections at a time to the metrics address, and as many to the control socket.
    pub(crate) api_connections: Resolved<NonZeroU32>,
    /// Time from connecting to one of these two until the client has taken the last byte of the answer.
    pub(crate) api_timeout: Resolved<Span>,
    /// Bytes of a request over HTTP before its body.
    pub(crate) api_header_bytes: Resolved<ByteSize>,
    /// Bytes of the body.
    pub(crate) api_body_bytes: Resolved<ByteSize>,
}

/// The values of the table. `promises` is the number of volumes with a promise.
pub(super) fn resolve(root: &Section<'_>, promises: u64) -> Limits {
    let section = root.section("limits", KEYS);
    let section = section.as_ref();
    let (bytes_in_flight, why_bytes) = default_bytes_in_flight(promises);
    let size = |key, accepted: RangeInclusive<ByteSize>, default, reason| {
        or_default(section, key, &accepts::size(accepted), default, reason)
    };
    let payload = LARGEST_REQUEST..=ByteSize::tib(1);
    let timeout = |key, default, reason| {
        or_default(section, key, &accepts::duration(TIMEOUTS), Span::from_secs(default), reason)
    };
    let count_to = |most, key, default: u32, reason| {
        let default = NonZeroU32::new(default).expect("no default is zero");
        or_default(section, key, &accepts::count(most), default, reason)
    };
    let count = |key, default, reason| count_to(1_000_000, key, default, reason);
    let connections =
        count("connections", 10_500, "10,000 clients and some that reconnect, at 64KiB each when idle");
    let share = share_of(connections.value.get());
    let limits = Limits {
        connections_per_address: count("connections_per_address", share, SHARE),
        connections_per_volume: count("connections_per_volume", share, SHARE),
        connections_kept: count(
            "connections_kept",
            4,
            "a client with four connections, or a few that reconnect",
        ),
        connections,
        handshakes: count(
            "handshakes",
            1024,
            "what a good client needs is milliseconds; 8MiB if all are taken",
        ),
        handshake_timeout: timeout("handshake_timeout", 10, "three losses of a packet and a slow client"),
        requests_per_connection: count_to(
            65_536,
            "requests_per_connection",
            1024,
            "beyond the depth of any client known, and 4MiB of 4KiB requests",
        ),
        bytes_per_connection: size(
            "bytes_per_connection",
            payload.clone(),
            ByteSize::mib(64),
            "two of the largest requests, so that one is read while the other is worked on",
        ),
        bytes_in_flight: size("bytes_in_flight", payload, bytes_in_flight, why_bytes),
        reply_timeout: timeout("reply_timeout", 60, "longer than a client's network is down and comes back"),
        shutdown_timeout: timeout(
            "shutdown_timeout",
            10,
            "a slow disk's queue, and well below systemd's 90s",
        ),
        api_connections: count("api_connections", 32, "some scrapers and people, each for milliseconds"),
        api_timeout: timeout("api_timeout", 10, "what a scraper waits by default"),
        api_header_bytes: size(
            "api_header_bytes",
            ByteSize::kib(8)..=ByteSize::mib(1),
            ByteSize::kib(16),
            "some times what a browser or a proxy sends",
        ),
        api_body_bytes: size(
            "api_body_bytes",
            ByteSize::kib(1)..=ByteSize::mib(1),
            ByteSize::kib(64),
            "a change is some hundred bytes",
        ),
    };
    check_sum(section, &limits);
    check_promises(section, &limits, promises);
    limits
}

/// The default follows from the promises: each volume with a promise owns room for the largest request, and
/// all share the same amount again.
fn default_bytes_in_flight(promises: u64) -> (ByteSize, &'static str) {
    let enough = ByteSize(promises.saturating_mul(2 * LARGEST_REQUEST.as_u64()));
    if enough > BYTES_IN_FLIGHT {
        (enough, "twice the largest request for each volume with an slo or a target")
    } else {
        (BYTES_IN_FLIGHT, "16 connections at their own limit")
    }
}

/// Checks that the memory suffices: each volume with a promise owns room for the largest request, and all
/// share room for one more.
fn check_promises(section: Option<&Section<'_>>, limits: &Limits, promises: u64) {
    let least = ByteSize((promises + 1).saturating_mul(LARGEST_REQUEST.as_u64()));
    if promises == 0 || limits.bytes_in_flight.value >= least {
        return;
    }
    if let Some(section) = section {
        let accepted = format!(
            "at least {}, 32MiB for each volume with an slo or a target and 32MiB for all",
            super::units::show_size(least)
        );
        section.refuse("bytes_in_flight", &accepted);
    }
}

/// The share of all connections that one address, or one volume, may have.
const fn share_of(connections: u32) -> u32 {
    let share = connections - connections / 4;
    if share < LEAST_SHARE { LEAST_SHARE } else { share }
}

/// Checks that the process may hold at least as much as one connection. Otherwise no connection could use its
/// limit.
fn check_sum(section: Option<&Section<'_>>, limits: &Limits) {
    let (one, all) = (limits.bytes_per_connection.value, limits.bytes_in_flight.value);
    if all < one
        && let Some(section) = section
    {
        let one = super::units::show_size(one);
        let key = if section.has("bytes_in_flight") { "bytes_in_flight" } else { "bytes_per_connection" };
        let accepted = if key == "bytes_in_flight" {
            format!("at least limits.bytes_per_connection, {one}")
        } else {
            format!("at most limits.bytes_in_flight, {}", super::units::show_size(all))
        };
        section.refuse(key, &accepted);
    }
}

fn or_default<T: 'static>(
    section: Option<&Section<'_>>,
    key: &str,
    accepts: &accepts::Accepts<T>,
    default: T,
    reason: &'static str,
) -> Resolved<T> {
    match section {
        Some(section) => section.or_default(key, accepts, default, reason),
        None => Resolved { value: default, origin: Origin::Default(reason) },
    }
}
