//! Messages as they are on the wire, turned into the types of `weir-leases` and back.
//!
//! This module checks each message of a peer as a whole, before weir acts on any part of it. It refuses
//! values that the types of the other side rule out, and values that no honest peer has a reason to send; the
//! error names the value. So the code behind this module may add up numbers, divide by times and print names.
//! The bounds are listed in `docs/several-gateways.md`.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use weir_control::{Grant, PortObservation, Standing, Strain};
use weir_leases::{Grants, Held, Hello, Report, VolumeGrant};
use weir_model::{Bandwidth, LatencyHistogram, MilliIops, Span};

use crate::proto;

/// The version of the protocol. Both sides refuse any other.
pub(crate) const VERSION: u32 = 4;

/// The most bytes of a message: some thousand volumes with all their latencies.
pub(crate) const MOST_BYTES: usize = 8 << 20;

/// The longest name of a volume or a gateway, in bytes.
const LONGEST_NAME: usize = 255;

/// The most volumes in a message.
const MOST_VOLUMES: usize = 16_384;

/// The most requests in a report or a grant, and the most requests in a second.
const MOST_REQUESTS: u64 = 1 << 40;

/// The most bytes in a report, and the most in a second. Sums over all volumes of all gateways stay far below
/// 2^64.
const MOST_BYTES_SEEN: u64 = 1 << 47;

/// The longest control interval, latency and lease. A gateway that was asleep for a month is still believed.
const LONGEST: Span = Span::from_secs(366 * 24 * 3600);

/// The most buckets of latencies: more than a histogram has.
const MOST_BUCKETS: usize = 2048;

/// A part of a message that the peer must not send, in words.
type Wrong = String;

/// The error if the other side has another version.
pub(crate) fn other_version(who: &str, found: u32) -> String {
    format!("{who} speaks another version of the protocol: found {found}, accepted: {VERSION}")
}

pub(crate) fn hello_to_wire(gateway: &str, hello: &Hello) -> proto::FromGateway {
    let volume = |held: &Held| proto::VolumeGrant {
        volume: held.volume.clone(),
        grant: Some(grant_to_wire(held.grant)),
        fallback: Some(grant_to_wire(held.fallback)),
    };
    up(proto::from_gateway::Message::Hello(proto::Hello {
        version: VERSION,
        gateway: gateway.to_owned(),
        volumes: hello.volumes.iter().map(volume).collect(),
        left_ns: hello.left.as_nanos(),
        run: hello.run,
        is_of_promises: hello.is_of_promises,
    }))
}

pub(crate) fn report_to_wire(report: &Report) -> proto::FromGateway {
    let volumes = report.volumes.iter().map(|(volume, seen)| observed_to_wire(volume, seen)).collect();
    up(proto::from_gateway::Message::Report(proto::Report { number: report.number, volumes }))
}

pub(crate) fn acknowledged_to_wire(number: u64) -> proto::FromGateway {
    up(proto::from_gateway::Message::Acknowledged(proto::Acknowledged { number }))
}

pub(crate) fn standing_to_wire(standing: &Standing) -> proto::FromGateway {
    up(proto::from_gateway::Message::Standing(standing.into()))
}

const fn up(message: proto::from_gateway::Message) -> proto::FromGateway {
    proto::FromGateway { message: Some(message) }
}

pub(crate) fn grants_to_wire(grants: &Grants) -> proto::FromController {
    let volume = |volume: &VolumeGrant| proto::VolumeGrant {
        volume: volume.volume.clone(),
        grant: Some(grant_to_wire(volume.grant)),
        fallback: Some(grant_to_wire(volume.fallback)),
    };
    proto::FromController {
        version: VERSION,
        number: grants.number,
        answers: grants.answers,
        lease_ns: grants.lease.as_nanos(),
        alone_after_ns: grants.alone_after.as_nanos(),
        volumes: grants.volumes.iter().map(volume).collect(),
        others: None,
    }
}

pub(crate) fn others_to_wire(others: &Standing) -> proto::FromController {
    let others = Some(others.into());
    proto::FromController { version: VERSION, others, ..proto::FromController::default() }
}

/// The name that a gateway gives, if it can be printed. Whether the gateway may use it is not checked here.
pub(crate) fn gateway_name(hello: &proto::Hello) -> Result<String, Wrong> {
    name("gateway", &hello.gateway)?;
    Ok(hello.gateway.clone())
}

/// The amounts of a hello are not bounded here: the controller knows best how much it can have granted.
pub(crate) fn hello(hello: proto::Hello) -> Result<Hello, Wrong> {
    let held = |volume| {
        let VolumeGrant { volume, grant, fallback } = volume_grant(volume)?;
        Ok(Held { volume, grant, fallback })
    };
    if hello.run == 0 {
        return Err("a run of the gateway without a number".to_owned());
    }
    let volumes = each(hello.volumes, held, |held| &held.volume)?;
    if hello.is_of_promises && !volumes.is_empty() {
        return Err(format!("{} volumes of a pool that holds no leases; accepted: none", volumes.len()));
    }
    let left = Span::from_nanos(hello.left_ns);
    Ok(Hello { run: hello.run, volumes, left, is_of_promises: hello.is_of_promises })
}

pub(crate) fn report(report: proto::Report) -> Result<Report, Wrong> {
    let volumes = each(report.volumes, observed, |(name, _)| name)?;
    Ok(Report { number: report.number, volumes })
}

pub(crate) fn grants(grants: proto::FromController) -> Result<Grants, Wrong> {
    Ok(Grants {
        number: grants.number,
        answers: grants.answers,
        lease: span("of a lease", grants.lease_ns)?,
        alone_after: span("alone", grants.alone_after_ns)?,
        volumes: each(grants.volumes, volume_grant, |volume| &volume.volume)?,
    })
}

/// A standing has no part that a peer must not send: what is out of its range is brought into it.
pub(crate) fn standing(found: proto::Standing) -> Standing {
    let strain = |found: proto::Strain| {
        let proto::Strain { window, lately, likely, latency, service } = found;
        Strain { window, lately, likely, latency, service }
    };
    let standing = Standing {
        is_promised: found.is_promised,
        is_there: found.is_there,
        latency: found.latency_ns.map(Span::from_nanos),
        strain: found.strain.map(strain),
        last_second: found.last_second,
        backgrounds: found.backgrounds,
        bounded: found.bounded,
        bounds: found.bounds,
        is_in_the_way: found.is_in_the_way,
        cuts: found.cuts,
    };
    standing.bounded()
}

impl From<&Standing> for proto::Standing {
    fn from(standing: &Standing) -> Self {
        let strain = |strain: Strain| {
            let Strain { window, lately, likely, latency, service } = strain;
            proto::Strain { window, lately, likely, latency, service }
        };
        Self {
            is_promised: standing.is_promised,
            is_there: standing.is_there,
            latency_ns: standing.latency.map(Span::as_nanos),
            strain: standing.strain.map(strain),
            last_second: standing.last_second,
            backgrounds: standing.backgrounds,
            bounded: standing.bounded,
            bounds: standing.bounds,
            is_in_the_way: standing.is_in_the_way,
            cuts: standing.cuts,
        }
    }
}

/// Reads the entries of volumes, if there are not too many and each volume comes once.
fn each<F, T>(
    found: Vec<F>,
    read: impl Fn(F) -> Result<T, Wrong>,
    name: impl Fn(&T) -> &str,
) -> Result<Vec<T>, Wrong> {
    if found.len() > MOST_VOLUMES {
        return Err(format!("{} volumes; accepted: at most {MOST_VOLUMES}", found.len()));
    }
    let volumes = found.into_iter().map(read).collect::<Result<Vec<T>, Wrong>>()?;
    let mut names = BTreeSet::new();
    match volumes.iter().map(name).find(|name| !names.insert(*name)) {
        Some(twice) => Err(format!("volume {twice} twice")),
        None => Ok(volumes),
    }
}

fn span(what: &str, nanos: u64) -> Result<Span, Wrong> {
    let span = Span::from_nanos(nanos);
    if span <= LONGEST { Ok(span) } else { Err(format!("{span} {what}; accepted: at most {LONGEST}")) }
}

fn at_most(what: &str, value: u64, most: u64) -> Result<u64, Wrong> {
    if value <= most { Ok(value) } else { Err(format!("{value} {what}; accepted: at most {most}")) }
}

fn volume_grant(volume: proto::VolumeGrant) -> Result<VolumeGrant, Wrong> {
    let name = volume_name(volume.volume)?;
    let of = |found: Option<proto::Grant>| {
        found
            .ok_or_else(|| "no grant".to_owned())
            .and_then(grant)
            .map_err(|wrong| format!("volume {name}: {wrong}"))
    };
    Ok(VolumeGrant { grant: of(volume.grant)?, fallback: of(volume.fallback)?, volume: name.clone() })
}

fn grant_to_wire(grant: Grant) -> proto::Grant {
    proto::Grant {
        concurrency: grant.concurrency.get(),
        max_milli_iops: grant.max_iops.map(MilliIops::get),
        max_bandwidth: grant.max_bandwidth.map(Bandwidth::get),
    }
}

fn grant(found: proto::Grant) -> Result<Grant, Wrong> {
    let concurrency = NonZeroU32::new(found.concurrency).ok_or("a concurrency of zero")?;
    let iops = |rate| MilliIops::new(rate).ok_or("zero requests a second");
    let bandwidth = |rate| Bandwidth::new(rate).ok_or("zero bytes a second");
    let max_iops = found.max_milli_iops.map(iops).transpose()?;
    let max_bandwidth = found.max_bandwidth.map(bandwidth).transpose()?;
    Ok(Grant { concurrency, max_iops, max_bandwidth })
}

fn observed_to_wire(volume: &str, seen: &PortObservation) -> proto::Observed {
    let (buckets, counts) = seen.latencies.counts().map(|(bucket, count)| (u32::from(bucket), count)).unzip();
    proto::Observed {
        volume: volume.to_owned(),
        over_ns: seen.over.as_nanos(),
        arrived: seen.arrived,
        arrived_bytes: seen.arrived_bytes,
        answered: seen.answered,
        answered_bytes: seen.answered_bytes,
        latency_sum_ns: seen.latency_sum.as_nanos(),
        latency_buckets: buckets,
        latency_counts: counts,
        oldest_ns: seen.oldest.map(Span::as_nanos),
        at_device: seen.at_device,
        outstanding: seen.outstanding,
        bound: seen.bound.map_or(0, NonZeroU32::get),
    }
}

fn observed(found: proto::Observed) -> Result<(String, PortObservation), Wrong> {
    let name = volume_name(found.volume.clone())?;
    let seen = observation(found).map_err(|wrong| format!("volume {name}: {wrong}"))?;
    Ok((name, seen))
}

fn observation(found: proto::Observed) -> Result<PortObservation, Wrong> {
    #[allow(clippy::cast_precision_loss)] // a power of two
    let mean = |what: &str, value: f64| {
        let fits = (0.0..=MOST_REQUESTS as f64).contains(&value); // no number is in no range
        fits.then_some(value)
            .ok_or_else(|| format!("{value} requests {what}; accepted: from 0 to {MOST_REQUESTS}"))
    };
    let (buckets, counts) = (found.latency_buckets, found.latency_counts);
    if buckets.len() != counts.len() || buckets.len() > MOST_BUCKETS {
        let (buckets, counts) = (buckets.len(), counts.len());
        return Err(format!(
            "{buckets} buckets of latencies and {counts} counts; accepted: as many of both, at most {MOST_BUCKETS}"
        ));
    }
    let latencies = buckets.into_iter().map(|bucket| u16::try_from(bucket).unwrap_or(u16::MAX)).zip(counts);
    Ok(PortObservation {
        over: span("of measuring", found.over_ns)?,
        arrived: at_most("requests arrived", found.arrived, MOST_REQUESTS)?,
        arrived_bytes: at_most("bytes arrived", found.arrived_bytes, MOST_BYTES_SEEN)?,
        answered: at_most("requests answered", found.answered, MOST_REQUESTS)?,
        answered_bytes: at_most("bytes answered", found.answered_bytes, MOST_BYTES_SEEN)?,
        latency_sum: Span::from_nanos(found.latency_sum_ns),
        latencies: LatencyHistogram::from_counts(latencies),
        oldest: found.oldest_ns.map(|oldest| span("of waiting", oldest)).transpose()?,
        at_device: mean("at the device", found.at_device)?,
        outstanding: mean("outstanding", found.outstanding)?,
        bound: NonZeroU32::new(found.bound),
    })
}

fn volume_name(found: String) -> Result<String, Wrong> {
    name("volume", &found).map(|()| found)
}

/// Whether this is a name that a configuration could have. It goes into logs, tables and metrics unchanged.
fn name(of: &str, found: &str) -> Result<(), Wrong> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match found.len() {
        1..=LONGEST_NAME if found.bytes().all(plain) => Ok(()),
        1..=LONGEST_NAME => Err(format!("a {of} with the name {found:?}; accepted: A-Z a-z 0-9 . _ -")),
        length => Err(format!("a {of} whose name has {length} bytes; accepted: 1 to {LONGEST_NAME}")),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn some_grant() -> Grant {
        Grant {
            concurrency: NonZeroU32::new(7).unwrap(),
            max_iops: MilliIops::new(1500),
            max_bandwidth: None,
        }
    }

    fn message(message: proto::FromGateway) -> proto::from_gateway::Message {
        message.message.unwrap()
    }

    #[test]
    fn what_is_sent_is_what_comes() {
        let held = Held { volume: "a".to_owned(), grant: some_grant(), fallback: some_grant() };
        let said = Hello { run: 9, volumes: vec![held], left: Span::from_secs(3), is_of_promises: false };
        let proto::from_gateway::Message::Hello(sent) = message(hello_to_wire("g", &said)) else { panic!() };
        assert_eq!(hello(sent), Ok(said));

        let mut seen = PortObservation {
            over: Span::from_secs(2),
            oldest: Some(Span::ZERO),
            at_device: 1.25,
            ..PortObservation::default()
        };
        seen.latencies.record(Span::from_millis(3));
        let said = Report { number: 4, volumes: vec![("a".to_owned(), seen)] };
        let proto::from_gateway::Message::Report(sent) = message(report_to_wire(&said)) else { panic!() };
        assert_eq!(report(sent), Ok(said));

        let volume = VolumeGrant { volume: "a".to_owned(), grant: some_grant(), fallback: some_grant() };
        let (lease, alone_after) = (Span::from_secs(6), Span::from_secs(18));
        let said = Grants { number: 1, answers: 2, lease, alone_after, volumes: vec![volume] };
        assert_eq!(grants(grants_to_wire(&said)), Ok(said));

        let strain = Strain { window: 0.5, lately: 0.25, likely: 0.75, latency: 0.01, service: 0.001 };
        let (latency, counts) = (Some(Span::from_millis(10)), (3, 2, 7));
        let said = Standing {
            is_promised: true,
            is_there: true,
            latency,
            strain: Some(strain),
            last_second: 0.9,
            backgrounds: counts.0,
            bounded: counts.1,
            bounds: 12.5,
            is_in_the_way: true,
            cuts: counts.2,
        };
        let proto::from_gateway::Message::Standing(sent) = message(standing_to_wire(&said)) else { panic!() };
        assert_eq!(standing(sent), said);
        assert_eq!(others_to_wire(&said).others.map(standing), Some(said));
    }

    /// Otherwise the gateway would refuse it as damaged, and its error would not name the version.
    #[test]
    fn a_grant_of_version_2_can_be_read() {
        let concurrency = [8, 7];
        let max_iops = [&[0x11][..], &1.5_f64.to_le_bytes()].concat(); // field 2, eight bytes
        let read = proto::Grant::decode(&[&concurrency[..], &max_iops].concat()[..]);
        assert_eq!(read, Ok(proto::Grant { concurrency: 7, ..proto::Grant::default() }));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_was_found() {
        let observed_with = |change: fn(&mut proto::Observed)| {
            let mut sent = observed_to_wire("a", &PortObservation::default());
            change(&mut sent);
            observed(sent).unwrap_err()
        };
        let amount = "requests at the device; accepted: from 0 to 1099511627776";
        for (wrong, found) in [
            (observed_with(|sent| sent.at_device = f64::NAN), "NaN"),
            (observed_with(|sent| sent.at_device = f64::INFINITY), "inf"),
            (observed_with(|sent| sent.at_device = -1.0), "-1"),
            (observed_with(|sent| sent.at_device = 1e30), "1000000000000000000000000000000"),
        ] {
            assert_eq!(wrong, format!("volume a: {found} {amount}"));
        }
        let huge = observed_with(|sent| sent.answered_bytes = u64::MAX);
        assert_eq!(huge, "volume a: 18446744073709551615 bytes answered; accepted: at most 140737488355328");
        let long = observed_with(|sent| sent.over_ns = u64::MAX);
        assert_eq!(long, "volume a: 18446744073.709s of measuring; accepted: at most 31622400s");
        let buckets = "accepted: as many of both, at most 2048";
        let uneven = observed_with(|sent| sent.latency_counts.push(1));
        assert_eq!(uneven, format!("volume a: 0 buckets of latencies and 1 counts; {buckets}"));
        let many = observed_with(|sent| {
            (sent.latency_buckets, sent.latency_counts) = (vec![7; 2049], vec![1; 2049]);
        });
        assert_eq!(many, format!("volume a: 2049 buckets of latencies and 2049 counts; {buckets}"));
        let nameless = observed_with(|sent| sent.volume.clear());
        assert_eq!(nameless, "a volume whose name has 0 bytes; accepted: 1 to 255");
        let forged = observed_with(|sent| sent.volume = "a\nERROR b".to_owned());
        assert_eq!(forged, "a volume with the name \"a\\nERROR b\"; accepted: A-Z a-z 0-9 . _ -");
        let none = proto::Grant { concurrency: 0, ..proto::Grant::default() };
        assert_eq!(grant(none).unwrap_err(), "a concurrency of zero");
        let never = proto::Grant { concurrency: 1, max_milli_iops: Some(0), max_bandwidth: None };
        assert_eq!(grant(never).unwrap_err(), "zero requests a second");
    }
    #[test]
    fn a_message_is_refused_as_a_whole_for_what_is_there_twice_or_too_often() {
        let seen = |name: String| observed_to_wire(&name, &PortObservation::default());
        let twice = vec![seen("a".to_owned()), seen("b".to_owned()), seen("a".to_owned())];
        assert_eq!(report(proto::Report { number: 1, volumes: twice }).unwrap_err(), "volume a twice");
        let many = (0..=MOST_VOLUMES).map(|n| seen(format!("v{n}"))).collect();
        let many = report(proto::Report { number: 1, volumes: many }).unwrap_err();
        assert_eq!(many, "16385 volumes; accepted: at most 16384");
        let unnumbered = hello(proto::Hello { version: VERSION, ..proto::Hello::default() });
        assert_eq!(unnumbered.unwrap_err(), "a run of the gateway without a number");
        let endless = proto::FromController { lease_ns: u64::MAX, ..proto::FromController::default() };
        let endless = grants(endless).unwrap_err();
        assert_eq!(endless, "18446744073.709s of a lease; accepted: at most 31622400s");
    }

    #[test]
    fn the_name_of_a_gateway_is_bounded_before_it_is_printed() {
        let named = |gateway: String| gateway_name(&proto::Hello { gateway, ..proto::Hello::default() });
        let long = named("a".repeat(1 << 20)).unwrap_err();
        assert_eq!(long, "a gateway whose name has 1048576 bytes; accepted: 1 to 255");
        assert!(named("a b".to_owned()).unwrap_err().starts_with("a gateway with the name \"a b\""));
        assert_eq!(named("a.b-c_1".to_owned()), Ok("a.b-c_1".to_owned()));
    }
}
