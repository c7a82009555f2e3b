//! Messages as they are on the wire, and as they are meant.
//!
//! What a peer sends is checked here: everything that the types of the other side rule out is refused with what was found.

use std::num::NonZeroU32;

use weir_control::{Grant, PortObservation};
use weir_controller::{Grants, Held, Hello, Report, VolumeGrant};
use weir_model::{Bandwidth, Iops, LatencyHistogram, Span};

use crate::proto;

/// The version of the protocol. Another one is refused by both sides.
pub(crate) const VERSION: u32 = 1;

/// A message has at most so many bytes: some thousand volumes with all their latencies.
pub(crate) const MOST_BYTES: usize = 8 << 20;

/// The longest name of a volume, in bytes.
const LONGEST_NAME: usize = 255;

/// Something that a peer must not send: what it was.
type Wrong = String;

/// What the other side says when its version is not ours.
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
    }))
}

pub(crate) fn report_to_wire(report: &Report) -> proto::FromGateway {
    let volumes = report.volumes.iter().map(|(volume, seen)| observed_to_wire(volume, seen)).collect();
    up(proto::from_gateway::Message::Report(proto::Report { number: report.number, volumes }))
}

pub(crate) fn acknowledged_to_wire(number: u64) -> proto::FromGateway {
    up(proto::from_gateway::Message::Acknowledged(proto::Acknowledged { number }))
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
    }
}

pub(crate) fn hello(hello: proto::Hello) -> Result<Hello, Wrong> {
    let held = |volume| {
        let VolumeGrant { volume, grant, fallback } = volume_grant(volume)?;
        Ok(Held { volume, grant, fallback })
    };
    let volumes = hello.volumes.into_iter().map(held).collect::<Result<_, Wrong>>()?;
    Ok(Hello { volumes, left: Span::from_nanos(hello.left_ns) })
}

pub(crate) fn report(report: proto::Report) -> Result<Report, Wrong> {
    let volumes = report.volumes.into_iter().map(observed).collect::<Result<_, Wrong>>()?;
    Ok(Report { number: report.number, volumes })
}

pub(crate) fn grants(grants: proto::FromController) -> Result<Grants, Wrong> {
    Ok(Grants {
        number: grants.number,
        answers: grants.answers,
        lease: Span::from_nanos(grants.lease_ns),
        alone_after: Span::from_nanos(grants.alone_after_ns),
        volumes: grants.volumes.into_iter().map(volume_grant).collect::<Result<_, Wrong>>()?,
    })
}

fn volume_grant(volume: proto::VolumeGrant) -> Result<VolumeGrant, Wrong> {
    let name = name(volume.volume)?;
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
        max_iops: grant.max_iops.map(Iops::get),
        max_bandwidth: grant.max_bandwidth.map(Bandwidth::get),
    }
}

fn grant(found: proto::Grant) -> Result<Grant, Wrong> {
    let concurrency = NonZeroU32::new(found.concurrency).ok_or("a concurrency of zero")?;
    let iops = |rate| Iops::new(rate).ok_or_else(|| format!("{rate} requests a second"));
    let bandwidth = |rate| Bandwidth::new(rate).ok_or("zero bytes a second");
    let max_iops = found.max_iops.map(iops).transpose()?;
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
    let name = name(found.volume)?;
    let number = |what: &str, value: f64| {
        let fits = value.is_finite() && value >= 0.0;
        fits.then_some(value).ok_or_else(|| format!("volume {name}: {value} requests {what}"))
    };
    let (buckets, counts) = (found.latency_buckets, found.latency_counts);
    if buckets.len() != counts.len() {
        return Err(format!(
            "volume {name}: {} buckets of latencies and {} counts",
            buckets.len(),
            counts.len()
        ));
    }
    let latencies = buckets.into_iter().map(|bucket| u16::try_from(bucket).unwrap_or(u16::MAX)).zip(counts);
    let seen = PortObservation {
        over: Span::from_nanos(found.over_ns),
        arrived: found.arrived,
        arrived_bytes: found.arrived_bytes,
        answered: found.answered,
        answered_bytes: found.answered_bytes,
        latency_sum: Span::from_nanos(found.latency_sum_ns),
        latencies: LatencyHistogram::from_counts(latencies),
        oldest: found.oldest_ns.map(Span::from_nanos),
        at_device: number("at the device", found.at_device)?,
        outstanding: number("outstanding", found.outstanding)?,
        bound: NonZeroU32::new(found.bound),
    };
    Ok((name, seen))
}

fn name(found: String) -> Result<String, Wrong> {
    match found.len() {
        1..=LONGEST_NAME => Ok(found),
        length => Err(format!("a volume whose name has {length} bytes; accepted: 1 to {LONGEST_NAME}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_grant() -> Grant {
        Grant { concurrency: NonZeroU32::new(7).unwrap(), max_iops: Iops::new(1.5), max_bandwidth: None }
    }

    fn message(message: proto::FromGateway) -> proto::from_gateway::Message {
        message.message.unwrap()
    }

    #[test]
    fn what_is_sent_is_what_comes() {
        let held = Held { volume: "a".to_owned(), grant: some_grant(), fallback: some_grant() };
        let said = Hello { volumes: vec![held], left: Span::from_secs(3) };
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
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_was_found() {
        let observed_with = |change: fn(&mut proto::Observed)| {
            let mut sent = observed_to_wire("a", &PortObservation::default());
            change(&mut sent);
            observed(sent).unwrap_err()
        };
        assert_eq!(observed_with(|sent| sent.at_device = f64::NAN), "volume a: NaN requests at the device");
        let uneven = observed_with(|sent| sent.latency_counts.push(1));
        assert_eq!(uneven, "volume a: 0 buckets of latencies and 1 counts");
        let nameless = observed_with(|sent| sent.volume.clear());
        assert_eq!(nameless, "a volume whose name has 0 bytes; accepted: 1 to 255");
        let none = proto::Grant { concurrency: 0, ..proto::Grant::default() };
        assert_eq!(grant(none).unwrap_err(), "a concurrency of zero");
        let never = proto::Grant { concurrency: 1, max_iops: Some(-1.0), max_bandwidth: None };
        assert_eq!(grant(never).unwrap_err(), "-1 requests a second");
    }
}
