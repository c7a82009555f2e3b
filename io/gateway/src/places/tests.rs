//! The places that a peer can take, and the places that stay for others.

use std::net::{IpAddr, Ipv4Addr};

use weir_model::Span;

use super::*;

const BAD: Origin = Origin::V4(Ipv4Addr::new(10, 0, 0, 1));
const GOOD: Origin = Origin::V4(Ipv4Addr::new(10, 0, 0, 2));

const LIMITS: Limits = Limits {
    connections: 100,
    handshakes: 10,
    connections_per_address: 75,
    connections_per_volume: 80,
    connections_kept: 4,
    handshake_timeout: Span::from_secs(10),
    requests_per_connection: 1,
    bytes_per_connection: 1,
    bytes_in_flight: 1,
    reply_timeout: Span::from_secs(1),
    shutdown_timeout: Span::from_secs(1),
};

fn places(volumes: &[&str]) -> Places {
    let mut places = Places::new(LIMITS);
    places.set_served(volumes.iter().map(|volume| (*volume).to_owned()).collect());
    places
}

/// A whole handshake.
fn connect(places: &mut Places, origin: Origin, volume: &str) -> Result<(), Full> {
    let (ticket, _) = places.begin(origin)?;
    places.settle(ticket, origin, volume)
}

/// Connects `many` peers; returns how many of them get in.
fn connect_many(places: &mut Places, origin: Origin, volume: &str, many: u32) -> u32 {
    (0..many).map(|_| u32::from(connect(places, origin, volume).is_ok())).sum()
}

fn host(number: u8) -> Origin {
    Origin::V4(Ipv4Addr::new(10, 1, 0, number))
}

#[test]
fn silent_peers_keep_nobody_out_not_even_from_their_own_address() {
    for good in [GOOD, BAD] {
        let mut places = places(&["v"]);
        for _ in 0..10_000 {
            places.begin(BAD).unwrap();
        }
        assert_eq!(places.connected(), 10, "limits.handshakes");
        let (ticket, given_up) = places.begin(good).unwrap();
        assert_eq!(given_up, Some((9_990, BAD)), "the oldest gives way");
        // Others come while it talks.
        for _ in 0..9 {
            places.begin(BAD).unwrap();
        }
        places.settle(ticket, good, "v").unwrap();
        assert_eq!((places.clients, places.handshakes.count()), (1, 9));
    }
}

#[test]
fn the_handshake_that_gives_way_is_of_the_address_with_the_most() {
    let mut places = places(&["v"]);
    let (first, _) = places.begin(GOOD).unwrap();
    for _ in 0..10_000 {
        let (_, given_up) = places.begin(BAD).unwrap();
        assert!(given_up.is_none_or(|(_, origin)| origin == BAD));
    }
    assert_eq!(places.settle(first, GOOD, "v"), Ok(()));
}

#[test]
fn a_handshake_that_gave_way_is_not_ended_twice() {
    let mut places = places(&["v"]);
    let tickets: Vec<_> = (0..20).map(|_| places.begin(BAD).unwrap().0).collect();
    tickets.iter().for_each(|ticket| places.end(*ticket, BAD));
    assert_eq!(places.connected(), 0);
}

#[test]
fn an_address_has_a_share_and_beyond_it_only_what_a_volume_keeps() {
    let mut places = places(&["v", "w"]);
    assert_eq!(connect_many(&mut places, BAD, "v", 100), 75);
    assert_eq!(connect(&mut places, BAD, "v"), Err(Full::Address));
    assert_eq!(connect_many(&mut places, BAD, "w", 100), 4, "clients of one address may be several hosts");
    assert_eq!(connect(&mut places, BAD, "w"), Err(Full::Address));
    assert_eq!(connect(&mut places, GOOD, "v"), Ok(()));
    (0..5).for_each(|_| places.leave(BAD, "v"));
    assert_eq!(connect(&mut places, BAD, "v"), Ok(()));
}

#[test]
fn clients_of_one_volume_leave_places_for_those_of_each_other() {
    let mut places = places(&["v", "w", "x"]);
    // From many hosts, so that no address is at its limit.
    let in_all: u32 = (0..50).map(|number| connect_many(&mut places, host(number), "v", 10)).sum();
    assert_eq!(in_all, 80, "limits.connections_per_volume");
    assert_eq!(connect(&mut places, GOOD, "v"), Err(Full::Volume));
    assert_eq!(connect_many(&mut places, GOOD, "w", 50), 16, "four are kept for x");
    assert_eq!(connect(&mut places, GOOD, "w"), Err(Full::Connections));
    assert_eq!(connect_many(&mut places, GOOD, "x", 50), 4);
    assert_eq!(places.begin(GOOD), Err(Full::Connections), "nothing is left");
}

#[test]
fn volumes_keep_at_most_half_of_all_places() {
    let names: Vec<_> = (0..1000).map(|number| number.to_string()).collect();
    let mut places = places(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(connect_many(&mut places, GOOD, "7", 50), 50, "fewer places than volumes: none are kept");
    places.set_served(names.into_iter().take(25).collect());
    assert_eq!(connect_many(&mut places, BAD, "7", 50), 2, "two for each of 24 others");
}

#[test]
fn a_limit_that_is_lowered_holds_for_those_to_come() {
    let mut places = places(&["v"]);
    assert_eq!(connect_many(&mut places, GOOD, "v", 20), 20);
    places.set_limits(Limits { connections: 10, ..LIMITS });
    assert_eq!(connect(&mut places, GOOD, "v"), Err(Full::Connections));
    (0..11).for_each(|_| places.leave(GOOD, "v"));
    assert_eq!(connect(&mut places, GOOD, "v"), Ok(()));
    assert_eq!(places.connected(), 10);
}

#[test]
fn addresses_of_one_network_of_ipv6_are_one_and_a_mapped_one_is_the_one_it_maps() {
    let origin = |text: &str| Origin::from(text.parse::<IpAddr>().unwrap());
    assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:1"));
    assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
    assert_eq!(origin("::ffff:10.0.0.1"), BAD);
    assert_eq!(origin("2001:db8::1").to_string(), "2001:db8::/64");
}
