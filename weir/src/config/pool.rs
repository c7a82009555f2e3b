//! `[pool.NAME]` and `[station.NAME]`: the devices that volumes share, and who decides what they see.

use std::num::NonZeroU32;

use weir_model::{QueueDepth, Span};

use super::accepts::{self, Accepts};
use super::origin::Resolved;
use super::reader::Section;

pub(super) const KEYS: &[&str] = &[
    "control",
    "control_period",
    "growth",
    "initial_depth",
    "max_depth",
    "slo_window",
    "background_deadline",
];

pub(super) const STATION_KEYS: &[&str] = &["servers", "service_time"];

/// Settings of the law and of the deadline order: nothing to set where there is no control.
const KEYS_OF_CONTROL: &[&str] =
    &["control_period", "growth", "initial_depth", "max_depth", "background_deadline"];

/// Device queues as they are: an array of hundreds of disks takes some thousand requests, nothing takes more.
const MOST_DEPTH: u32 = 65_536;

/// Who decides what the device of a pool sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Control {
    /// Nobody: every request goes to the device as it comes.
    None,
    /// Deadline order, and a queue depth fed back from the latencies (Façade §3).
    Facade,
}

const CONTROLS: &[(&str, Control)] =
    &[(Control::Facade.name(), Control::Facade), (Control::None.name(), Control::None)];

impl Control {
    /// As it is written in the file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Facade => "facade",
        }
    }
}

/// Volumes that share a device, and are therefore scheduled together.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pool {
    /// Who decides. If nobody does, only `slo_window` of what follows is in force.
    pub(crate) control: Resolved<Control>,
    /// How often the law sets the queue depth.
    pub(crate) control_period: Resolved<Span>,
    /// The share by which the law lets the queue depth grow when no volume is late; above 0, at most 1.
    pub(crate) growth: Resolved<f64>,
    /// The queue depth before anything was measured; at most `max_depth`.
    pub(crate) initial_depth: Resolved<QueueDepth>,
    /// The queue depth that the law never exceeds.
    pub(crate) max_depth: Resolved<QueueDepth>,
    /// The window over which a volume's rate and latency are held against its SLO.
    pub(crate) slo_window: Resolved<Span>,
    /// The deadline of requests to volumes that have no SLO.
    pub(crate) background_deadline: Resolved<Span>,
}

/// A device made of servers in parallel, each of which takes a fixed time for a request.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Station {
    /// How many requests are served at a time.
    pub(crate) servers: Resolved<NonZeroU32>,
    /// How long each takes.
    pub(crate) service_time: Resolved<Span>,
}

pub(super) fn resolve_pool(section: &Section<'_>) -> Pool {
    let control = section.or_default(
        "control",
        &accepts::word(CONTROLS),
        Control::Facade,
        "guarantees are what a pool is for",
    );
    if control.value == Control::None {
        refuse_settings_of_control(section);
    }
    let second = Span::from_secs(1);
    let pool = Pool {
        control,
        control_period: section.or_default(
            "control_period",
            &accepts::duration(Span::from_millis(1)..=second),
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
        slo_window: section.or_default(
            "slo_window",
            &accepts::duration(Span::from_millis(10)..=Span::from_secs(3600)),
            second,
            "as in Façade §3: long enough for a mean, short enough to notice",
        ),
        background_deadline: section.or_default(
            "background_deadline",
            &accepts::duration(Span::from_millis(1)..=Span::from_secs(3600)),
            Span::from_secs(10),
            "behind every SLO, well before a client's timeout of 30s",
        ),
    };
    let (initial, max) = (pool.initial_depth.value, pool.max_depth.value);
    if initial > max {
        let (key, accepted) = if section.has("initial_depth") {
            ("initial_depth", format!("at most max_depth, {max}"))
        } else {
            ("max_depth", format!("at least initial_depth, {initial} by default"))
        };
        section.refuse(key, &accepted);
    }
    pool
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

fn refuse_settings_of_control(section: &Section<'_>) {
    for key in KEYS_OF_CONTROL {
        if section.has(key) {
            let found = "a setting of the control that control = \"none\" turns off";
            section.refuse_found(key, found, "nothing, or control = \"facade\"");
        }
    }
}

fn depth() -> Accepts<QueueDepth> {
    accepts::count(MOST_DEPTH).then(|n| Some(QueueDepth::new(n.get())))
}
