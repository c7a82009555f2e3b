//! `[pool.NAME]` and `[station.NAME]`: the devices that volumes share, and the control over their requests.

use std::fmt;
use std::num::NonZeroU32;

use toml::de::DeValue;
use weir_model::{QueueDepth, Span, TimeShare};
use weir_status::ControlKind;

use super::accepts::{self, Accepts};
use super::listen::{TcpAddress, read_tcp};
use super::origin::Resolved;
use super::pid::{self, Pid};
use super::reader::Section;

pub(super) const KEYS: &[&str] = &[
    "control",
    "control_period",
    "growth",
    "initial_depth",
    "max_depth",
    "slo_window",
    "background_share",
    "total_concurrency",
    "control_interval",
    "controller",
    "ports",
    "threshold",
    "write_limit",
    "ceiling",
    "proportional_gain",
    "integral_time",
];

pub(super) const TOTAL_KEYS: &[&str] = &["disks"];

pub(super) const STATION_KEYS: &[&str] = &["servers", "service_time"];

/// The largest queue depth. An array of hundreds of disks takes some thousand requests; no device takes more
/// than this.
const MOST_DEPTH: u32 = 65_536;

/// The requests that a disk takes at a time without serving them worse: the rule of Maestro's authors.
const REQUESTS_PER_DISK: u32 = 4;

/// Volumes that share a device, and are therefore scheduled together.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pool {
    /// The control over its requests.
    pub(crate) control: Resolved<Control>,
    /// The window over which a volume's rate and latency are compared with its SLO.
    pub(crate) slo_window: Resolved<Span>,
}

/// The control over the requests that the device of a pool sees, with the settings of this control only.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Control {
    /// No control: every request goes to the device as it comes.
    None,
    /// Deadline order, and a queue depth fed back from the latencies (Façade §3).
    Facade(Facade),
    /// A bound for each volume on its requests at the device, by target and priority (Maestro §3.2).
    Maestro(Maestro),
    /// Bounds like Maestro's, but granted by the array's controller, for all gateways before the array.
    Leased(Leased),
    /// Volumes without a promise are held back as far as promises need it.
    Promise(Promise),
    /// Replies to heavy writers are held while reads wait too long (packet delay, appendix).
    Pid(Pid),
}

/// The settings of Façade's law, and of the deadline order that it needs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Facade {
    /// How often the law sets the queue depth.
    pub(crate) control_period: Resolved<Span>,
    /// The share by which the law lets the queue depth grow when no volume is late; above 0, at most 1.
    pub(crate) growth: Resolved<f64>,
    /// The queue depth before anything was measured; at most `max_depth`.
    pub(crate) initial_depth: Resolved<QueueDepth>,
    /// The queue depth that the law never exceeds.
    pub(crate) max_depth: Resolved<QueueDepth>,
    /// The share of the device's time that volumes without an SLO get while volumes with an SLO keep it full.
    pub(crate) background_share: Resolved<TimeShare>,
}

/// The settings of Maestro's law in one gateway.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Maestro {
    /// How many requests all volumes may have at the device together.
    pub(crate) total_concurrency: Resolved<TotalConcurrency>,
    /// How often the law shares these requests out.
    pub(crate) control_interval: Resolved<Span>,
    /// The ports of the pool. A volume's requests have a bound of their own at each port.
    pub(crate) ports: Resolved<Ports>,
}

/// The settings of a pool whose bounds a controller grants.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Leased {
    /// The address of the controller, as a name or an address and a port.
    pub(crate) controller: Resolved<TcpAddress>,
    /// How often the gateway reports its measurements to the controller.
    pub(crate) control_interval: Resolved<Span>,
}

/// The settings of a pool under the law of promises.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Promise {
    /// The share of the device's time that volumes without a promise get in any case.
    pub(crate) background_share: Resolved<TimeShare>,
    /// The address of the controller of the array, if other gateways serve it too.
    pub(crate) controller: Resolved<Option<TcpAddress>>,
}

impl Promise {
    const KEYS: &[&str] = &["background_share", "controller"];
}

impl Facade {
    const KEYS: &[&str] = &["control_period", "growth", "initial_depth", "max_depth", "background_share"];
}

impl Maestro {
    const KEYS: &[&str] = &["total_concurrency", "control_interval", "controller", "ports"];
}

/// The words in the file that choose a control. With the key `controller`, `maestro` becomes a leased pool.
const WORDS: &[(&str, ControlKind)] = &[
    (ControlKind::Facade.name(), ControlKind::Facade),
    (ControlKind::Maestro.name(), ControlKind::Maestro),
    (ControlKind::Promise.name(), ControlKind::Promise),
    (ControlKind::Pid.name(), ControlKind::Pid),
    (ControlKind::None.name(), ControlKind::None),
];

/// The settings of each word, in addition to those of every pool.
const KEYS_OF_CONTROL: &[(ControlKind, &[&str])] = &[
    (ControlKind::Facade, Facade::KEYS),
    (ControlKind::Maestro, Maestro::KEYS),
    (ControlKind::Promise, Promise::KEYS),
    (ControlKind::Pid, pid::KEYS),
];

impl Control {
    /// The control's word in the file.
    pub(crate) const fn kind(&self) -> ControlKind {
        match self {
            Self::None => ControlKind::None,
            Self::Facade(_) => ControlKind::Facade,
            Self::Maestro(_) | Self::Leased(_) => ControlKind::Maestro,
            Self::Promise(_) => ControlKind::Promise,
            Self::Pid(_) => ControlKind::Pid,
        }
    }
}

impl Pool {
    /// The address of its controller, if it has one.
    pub(crate) const fn controller(&self) -> Option<&TcpAddress> {
        match &self.control.value {
            Control::Leased(leased) => Some(&leased.controller.value),
            Control::Promise(promise) => promise.controller.value.as_ref(),
            Control::None | Control::Facade(_) | Control::Maestro(_) | Control::Pid(_) => None,
        }
    }

    /// How often the bounds of its volumes are set, if Maestro's law or a controller sets them.
    pub(crate) const fn control_interval(&self) -> Option<Span> {
        match &self.control.value {
            Control::Maestro(maestro) => Some(maestro.control_interval.value),
            Control::Leased(leased) => Some(leased.control_interval.value),
            Control::None | Control::Facade(_) | Control::Promise(_) | Control::Pid(_) => None,
        }
    }

    /// The ports of the pool.
    pub(crate) const fn ports(&self) -> Ports {
        match &self.control.value {
            Control::Maestro(maestro) => maestro.ports.value,
            Control::None
            | Control::Facade(_)
            | Control::Leased(_)
            | Control::Promise(_)
            | Control::Pid(_) => Ports::One,
        }
    }
}

/// The ports through which requests come to a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ports {
    /// One port, for all addresses together.
    One,
    /// A port for each listening address.
    Listeners,
}

const PORTS: &[(&str, Ports)] =
    &[(Ports::One.name(), Ports::One), (Ports::Listeners.name(), Ports::Listeners)];

impl Ports {
    /// The word in the file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Listeners => "listeners",
        }
    }
}

/// How many requests a device may have at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TotalConcurrency {
    /// This number.
    Requests(NonZeroU32),
    /// As many as this number of disks takes.
    Disks(NonZeroU32),
    /// As many as the device takes without getting slower, found by probing.
    Auto,
}

impl TotalConcurrency {
    /// The number, if it is known beforehand.
    pub(crate) fn requests(self) -> Option<NonZeroU32> {
        match self {
            Self::Requests(requests) => Some(requests),
            Self::Disks(disks) => Some(
                disks.saturating_mul(const { NonZeroU32::new(REQUESTS_PER_DISK).expect("it is above zero") }),
            ),
            Self::Auto => None,
        }
    }
}

impl fmt::Display for TotalConcurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.requests()) {
            (Self::Disks(disks), Some(requests)) => {
                write!(f, "{requests}, {REQUESTS_PER_DISK} for each of {disks} disks")
            }
            (_, Some(requests)) => requests.fmt(f),
            (_, None) => f.write_str("auto, found by probing"),
        }
    }
}

/// A device made of servers in parallel, each of which takes a fixed time for a request.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Station {
    /// How many requests are served at a time.
    pub(crate) servers: Resolved<NonZeroU32>,
    /// How long each request takes.
    pub(crate) service_time: Resolved<Span>,
}

pub(super) fn resolve_pool(section: &Section<'_>) -> Pool {
    let word = section.or_default(
        "control",
        &accepts::word(WORDS),
        ControlKind::Promise,
        "promises are what a pool is for, and it holds back nobody for nothing",
    );
    refuse_settings_of_others(section, word.value);
    let control = match word.value {
        ControlKind::None => Control::None,
        ControlKind::Facade => Control::Facade(resolve_facade(section)),
        ControlKind::Maestro => resolve_maestro(section),
        ControlKind::Promise => {
            let reason =
                "of a device that promises need, one request at a time: a request of 5ms every 500ms";
            Control::Promise(Promise {
                background_share: background_share(section, reason),
                controller: resolve_controller(section),
            })
        }
        ControlKind::Pid => Control::Pid(pid::resolve(section)),
    };
    Pool {
        control: Resolved { value: control, origin: word.origin },
        slo_window: section.or_default(
            "slo_window",
            &accepts::duration(Span::from_millis(10)..=Span::from_secs(3600)),
            Span::from_secs(1),
            "as in Façade §3: long enough for a mean, short enough to notice",
        ),
    }
}

fn background_share(section: &Section<'_>, reason: &'static str) -> Resolved<TimeShare> {
    section.or_default("background_share", &accepts::time_share(), TimeShare::PERCENT, reason)
}

fn resolve_facade(section: &Section<'_>) -> Facade {
    let facade = Facade {
        control_period: section.or_default(
            "control_period",
            &accepts::duration(Span::from_millis(1)..=Span::from_secs(1)),
            Span::from_millis(50),
            "some hundred requests of a busy device, and far below the window",
        ),
        growth: section.or_default("growth", &accepts::share(), 0.1, "epsilon in Façade §3"),
        initial_depth: section.or_default("initial_depth", &depth(), QueueDepth::new(200), "as in Façade §3"),
        max_depth: section.or_default(
            "max_depth",
            &depth(),
            QueueDepth::new(4096),
            "beyond what any device works on at a time, and a bound on its queue",
        ),
        background_share: background_share(
            section,
            "of a device kept full by SLOs, one request at a time: a request of 5ms every 500ms",
        ),
    };
    let (initial, max) = (facade.initial_depth.value, facade.max_depth.value);
    if initial > max {
        let (key, accepted) = if section.has("initial_depth") {
            ("initial_depth", format!("at most max_depth, {max}"))
        } else {
            ("max_depth", format!("at least initial_depth, {initial} by default"))
        };
        section.refuse(key, &accepted);
    }
    facade
}

/// Maestro's law, or a controller's grants, if the pool has a controller.
fn resolve_maestro(section: &Section<'_>) -> Control {
    let (total_concurrency, control_interval) = resolve_shares(section);
    let found = resolve_controller(section);
    let ports = section.or_default(
        "ports",
        &accepts::word(PORTS),
        Ports::One,
        "one port; use \"listeners\" only if each address is a port of the array",
    );
    let Some(controller) = found.value else {
        return Control::Maestro(Maestro { total_concurrency, control_interval, ports });
    };
    refuse_settings_of_the_controller(section);
    let controller = Resolved { value: controller, origin: found.origin };
    Control::Leased(Leased { controller, control_interval })
}

/// Refuses the settings that the controller has for all gateways: a single gateway cannot decide them.
fn refuse_settings_of_the_controller(section: &Section<'_>) {
    for key in ["total_concurrency", "ports"].iter().filter(|key| section.has(key)) {
        section.refuse_found(key, "a setting that the pool's controller has in its file", "nothing");
    }
}

fn resolve_controller(section: &Section<'_>) -> Resolved<Option<TcpAddress>> {
    let address = Accepts::text("the address of a controller such as \"10.0.0.1:7700\"", read_tcp);
    section.optional("controller", &address, "the gateway has the device for itself")
}

/// The requests that Maestro's law shares out, and how often.
pub(super) fn resolve_shares(section: &Section<'_>) -> (Resolved<TotalConcurrency>, Resolved<Span>) {
    let total = section.or_default(
        "total_concurrency",
        &total_concurrency(),
        TotalConcurrency::Auto,
        "nobody can see how many disks are behind a file",
    );
    let interval = section.or_default(
        "control_interval",
        &accepts::duration(Span::from_millis(10)..=Span::from_secs(60)),
        Span::from_secs(2),
        "as in Maestro §3.2, whose authors gained nothing from shorter ones",
    );
    (total, interval)
}

pub(super) fn resolve_station(section: &Section<'_>) -> Station {
    let servers = section.required("servers", &accepts::count(4096));
    let service_time =
        section.required("service_time", &accepts::duration(Span::from_micros(1)..=Span::from_secs(60)));
    Station {
        servers: servers.unwrap_or(Resolved::placeholder(NonZeroU32::MIN)),
        service_time: service_time.unwrap_or(Resolved::placeholder(Span::from_millis(1))),
    }
}

fn refuse_settings_of_others(section: &Section<'_>, word: ControlKind) {
    for key in KEYS.iter().filter(|key| section.has(key)) {
        let others: Vec<_> = KEYS_OF_CONTROL.iter().filter(|(_, keys)| keys.contains(key)).collect();
        if !others.is_empty() && others.iter().all(|(other, _)| *other != word) {
            let words: Vec<_> = others.iter().map(|(other, _)| format!("\"{other}\"")).collect();
            let other = format!("control = {}", words.join(" or "));
            section.refuse_found(key, format!("a setting of {other}"), &format!("nothing, or {other}"));
        }
    }
}

fn total_concurrency() -> Accepts<TotalConcurrency> {
    let words = format!(
        "a number of requests from 1 to {MOST_DEPTH}, {{ disks = 40 }} for {REQUESTS_PER_DISK} a disk, or \"auto\""
    );
    let disks = accepts::count(MOST_DEPTH / REQUESTS_PER_DISK);
    let requests = accepts::count(MOST_DEPTH);
    Accepts::value(words, move |value| match value {
        DeValue::String(text) => (text == "auto").then_some(TotalConcurrency::Auto),
        DeValue::Table(table) => {
            let known = table.keys().all(|key| TOTAL_KEYS.contains(&key.get_ref().as_ref()));
            let number = table.get("disks").filter(|_| known)?;
            disks.read(number.get_ref()).map(TotalConcurrency::Disks)
        }
        number => requests.read(number).map(TotalConcurrency::Requests),
    })
}

fn depth() -> Accepts<QueueDepth> {
    accepts::count(MOST_DEPTH).then(|n| Some(QueueDepth::new(n.get())))
}
