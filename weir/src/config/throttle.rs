//! The file of a packet-delay agent: the thresholds of resources, and whom it delays.
//!
//! Only the threshold has no default. `weir throttle --target-latency 15ms` is the same as a file with
//! nothing but this threshold.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use toml::de::DeValue;
use weir_control::OneSidedPidConfig;
use weir_model::{Bandwidth, Span};
use weir_throttle::{Packets, ResourceSettings, Settings, Who};

use super::accepts::{self, Accepts};
use super::listen::{self, TcpAddress};
use super::origin::Resolved;
use super::pid;
use super::reader::{Document, Element, Section};

const KEYS: &[&str] = &["throttle", "resource"];
const THROTTLE_KEYS: &[&str] = &[
    "threshold",
    "write_limit",
    "ceiling",
    "packets",
    "metrics",
    "exempt",
    "forced",
    "rate_smoothing",
    "smoothing",
    "proportional_gain",
    "integral_time",
    "derivative_time",
    "setpoint_share",
];
const RESOURCE_KEYS: &[&str] = &["threshold", "write_limit"];

/// Times of a law: from a microsecond to longer than anybody waits for a reaction.
const TIMES: RangeInclusive<Span> = Span::from_micros(1)..=Span::from_secs(60);

/// The address where an agent tells its state, unless its file has another one: beside a gateway's.
const USUAL_METRICS: u16 = 9811;

/// A valid configuration of an agent.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ThrottleConfig {
    /// The address of `/metrics` and of its status.
    pub(crate) metrics: Resolved<TcpAddress>,
    /// The read wait that a resource must not exceed.
    pub(crate) threshold: Resolved<Span>,
    /// The bandwidth above which an initiator that writes is delayed.
    pub(crate) write_limit: Resolved<Bandwidth>,
    /// The longest delay.
    pub(crate) ceiling: Resolved<Span>,
    /// Which packets to members are delayed.
    pub(crate) packets: Resolved<Packets>,
    /// The time constant of the moving average of write rates.
    pub(crate) rate_smoothing: Resolved<Span>,
    /// The time constant of the moving average of the read wait.
    pub(crate) smoothing: Resolved<Span>,
    /// How much delay a change of the wait adds.
    pub(crate) proportional_gain: Resolved<f64>,
    /// After this time, an error that lasts has added as much delay as its onset did.
    pub(crate) integral_time: Resolved<Span>,
    /// How far ahead the trend of the wait is followed.
    pub(crate) derivative_time: Resolved<Span>,
    /// The share of the threshold that the law aims at.
    pub(crate) setpoint_share: Resolved<f64>,
    /// The initiators that are never delayed.
    pub(crate) exempt: Vec<Resolved<Who>>,
    /// The initiators that are delayed however little they write.
    pub(crate) forced: Vec<Resolved<Who>>,
    /// What differs for single resources, by name.
    pub(crate) resources: BTreeMap<String, ResourceConfig>,
}

/// What differs for a resource.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ResourceConfig {
    /// Its threshold.
    pub(crate) threshold: Resolved<Option<Span>>,
    /// Its write limit.
    pub(crate) write_limit: Resolved<Option<Bandwidth>>,
}

impl ThrottleConfig {
    /// The settings of the part that decides.
    pub(crate) fn settings(&self) -> Settings {
        let law = OneSidedPidConfig {
            proportional_gain: self.proportional_gain.value,
            integral_time: self.integral_time.value,
            derivative_time: self.derivative_time.value,
            smoothing: self.smoothing.value,
            setpoint_share: self.setpoint_share.value,
            ceiling: self.ceiling.value,
            ..OneSidedPidConfig::default()
        };
        let whom =
            |list: &[Resolved<Who>]| -> BTreeSet<Who> { list.iter().map(|who| who.value.clone()).collect() };
        let own = |(name, config): (&String, &ResourceConfig)| {
            let (threshold, write_limit) = (config.threshold.value, config.write_limit.value);
            (name.clone(), ResourceSettings { threshold, write_limit })
        };
        Settings {
            threshold: self.threshold.value,
            write_limit: self.write_limit.value,
            rate_smoothing: self.rate_smoothing.value,
            packets: self.packets.value,
            law,
            resources: self.resources.iter().map(own).collect(),
            exempt: whom(&self.exempt),
            forced: whom(&self.forced),
        }
    }
}

/// Resolves every table. The result is only valid if no problem was noted on the way.
pub(super) fn resolve<'d>(document: &'d Document<'d>, table: &'d toml::de::DeTable<'d>) -> ThrottleConfig {
    let root = Section::root(document, table, KEYS);
    let usual = Settings::new(Span::from_millis(15));
    let own = root.section("throttle", THROTTLE_KEYS);
    if own.is_none() && !root.has("throttle") {
        root.refuse_found("throttle", "nothing", "a table [throttle] with the key threshold");
    }
    let section = own.as_ref();
    let threshold = section.and_then(|section| section.required("threshold", &threshold()));
    let exempt = whom(section, "exempt", &[]);
    let forced = whom(section, "forced", &exempt);
    ThrottleConfig {
        metrics: or_default(
            section,
            "metrics",
            &listen::tcp("127.0.0.1:9811"),
            TcpAddress { host: "127.0.0.1".to_owned(), port: USUAL_METRICS },
            "beside a gateway's 9810",
        ),
        threshold: threshold.unwrap_or(Resolved::placeholder(usual.threshold)),
        write_limit: or_default(
            section,
            "write_limit",
            &accepts::bandwidth(),
            usual.write_limit,
            "a database's log passes, a copy does not",
        ),
        ceiling: or_default(
            section,
            "ceiling",
            &pid::ceiling(weir_throttle::HIGHEST_CEILING),
            usual.law.ceiling,
            "far from every time-out of an initiator",
        ),
        packets: or_default(
            section,
            "packets",
            &packets(),
            usual.packets,
            "answers and requests for data slow a writer on every network",
        ),
        rate_smoothing: time(
            section,
            "rate_smoothing",
            usual.rate_smoothing,
            "a burst of half a second passes",
        ),
        smoothing: time(
            section,
            "smoothing",
            usual.law.smoothing,
            "a single slow read moves the delay little",
        ),
        proportional_gain: or_default(
            section,
            "proportional_gain",
            &pid::proportional_gain(),
            usual.law.proportional_gain,
            "SIMC's for writers with a fixed number of requests outstanding",
        ),
        integral_time: time(section, "integral_time", usual.law.integral_time, "as long as the smoothing"),
        derivative_time: or_default(
            section,
            "derivative_time",
            &accepts::duration(Span::ZERO..=*TIMES.end()),
            usual.law.derivative_time,
            "the trend of a few reads is mostly noise",
        ),
        setpoint_share: or_default(
            section,
            "setpoint_share",
            &accepts::share(),
            usual.law.setpoint_share,
            "the wait may sway by a tenth",
        ),
        exempt,
        forced,
        resources: root.named("resource", RESOURCE_KEYS).iter().map(resource).collect(),
    }
}

/// A threshold as an argument.
///
/// # Errors
/// If it is none, in words for the operator.
pub(crate) fn threshold_argument(text: &str) -> Result<Span, String> {
    let threshold = threshold();
    threshold.read(&DeValue::String(text.into())).ok_or_else(|| format!("accepted: {}", threshold.words()))
}

fn resource((name, section): &(String, Section<'_>)) -> (String, ResourceConfig) {
    let config = ResourceConfig {
        threshold: section.optional("threshold", &threshold(), "as throttle.threshold"),
        write_limit: section.optional("write_limit", &accepts::bandwidth(), "as throttle.write_limit"),
    };
    (name.clone(), config)
}

fn threshold() -> Accepts<Span> {
    accepts::duration(Span::from_micros(1)..=Span::from_secs(60))
}

fn packets() -> Accepts<Packets> {
    let named = |text: &str| Packets::EACH.into_iter().find(|packets| packets.name() == text);
    Accepts::text("\"all\", \"acks\" or \"payload\"", named)
}

fn time(section: Option<&Section<'_>>, key: &str, default: Span, reason: &'static str) -> Resolved<Span> {
    or_default(section, key, &accepts::duration(TIMES), default, reason)
}

fn or_default<T: 'static>(
    section: Option<&Section<'_>>,
    key: &str,
    accepts: &Accepts<T>,
    default: T,
    reason: &'static str,
) -> Resolved<T> {
    match section {
        Some(section) => section.or_default(key, accepts, default, reason),
        None => Resolved::placeholder(default),
    }
}

/// The initiators under `key`, none of which `others`, those that are exempt, may cover.
fn whom(section: Option<&Section<'_>>, key: &str, others: &[Resolved<Who>]) -> Vec<Resolved<Who>> {
    let words = "an initiator: an iSCSI name (iqn., eui., naa.), an address, or ADDRESS/BITS";
    let accepts = Accepts::text(words, |text| text.parse().ok());
    let elements =
        section.map(|section| section.elements(key, "an array of initiators, such as [\"10.0.0.5\"]"));
    let read = |element: &Element<'_>| {
        let found = element.read(&accepts);
        let covers = |found: &Resolved<Who>| others.iter().find(|other| other.value.covers(&found.value));
        if let Some(exempt) = found.as_ref().and_then(covers) {
            element.refuse(&format!(
                "an initiator that throttle.exempt does not cover, as {} does",
                exempt.value
            ));
        }
        found
    };
    elements.unwrap_or_default().iter().filter_map(read).collect()
}
