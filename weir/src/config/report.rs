//! The output of `weir check`: every value in force, with its unit and its origin.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use serde::{Serialize, Serializer};

use super::Config;
use super::cluster::Cluster;
use super::controller::{ControllerConfig, ControllerLaw, TLS_KEYS, TlsConfig};
use weir_model::{Bandwidth, SloGoal, Span};

use super::listen::Address;
use super::objective::show_target;
use super::origin::{Origin, Resolved};
use super::pool::{Control, Pool};
use super::reader::join;
use super::throttle::ThrottleConfig;
use super::transfers::TransfersConfig;
use super::units::{show_bandwidth, show_size, show_span};
use super::volume::{BackendConfig, Volume};

/// Every value in force. For people, one on each line: key, value, origin.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) settings: Vec<Row>,
}

/// One value in force.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) key: String,
    /// With its unit, as a file has it; `-`: there is none.
    pub(crate) value: String,
    #[serde(serialize_with = "as_words")]
    origin: Origin,
}

impl Row {
    /// Where the value comes from, in words.
    pub(crate) fn origin(&self) -> String {
        self.origin.to_string()
    }
}

fn as_words<S: Serializer>(origin: &Origin, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(origin)
}

/// The values of a gateway's file.
pub(crate) fn check_report(config: &Config) -> Report {
    Report { settings: rows(config) }
}

/// The same for the file of a controller.
pub(crate) fn controller_report(config: &ControllerConfig) -> Report {
    let mut rows = Rows(Vec::new());
    rows.push("controller.listen", &config.listen, ToString::to_string);
    rows.push_optional("controller.status", &config.status, ToString::to_string);
    rows.push_optional("controller.control", &config.control, |path| socket(path));
    rows.push_tls("controller", &config.tls);
    let pool = join("pool", &config.pool);
    rows.push(&join(&pool, "control"), &config.law, |law| law.kind().to_string());
    if let ControllerLaw::Maestro(shared) = &config.law.value {
        rows.push(&join(&pool, "total_concurrency"), &shared.total_concurrency, ToString::to_string);
        rows.push(&join(&pool, "control_interval"), &shared.control_interval, |span| show_span(*span));
    }
    for (name, volume) in &config.volumes {
        let table = join("volume", name);
        rows.push_optional(&join(&table, "target"), &volume.target, |target| show_target(*target));
        rows.push(&join(&table, "priority"), &volume.priority, |priority| priority.get().to_string());
        let bandwidth = |rate: &Bandwidth| show_bandwidth(*rate);
        rows.push_optional(&join(&table, "max_iops"), &volume.max_iops, ToString::to_string);
        rows.push_optional(&join(&table, "max_bandwidth"), &volume.max_bandwidth, bandwidth);
        rows.push_optional(&join(&table, "max_concurrency"), &volume.max_concurrency, ToString::to_string);
    }
    Report { settings: rows.0 }
}

/// The same for the file of a packet-delay agent.
pub(crate) fn throttle_report(config: &ThrottleConfig) -> Report {
    let mut rows = Rows(Vec::new());
    let key = |key: &str| join("throttle", key);
    let span = |span: &Span| show_span(*span);
    let bandwidth = |rate: &Bandwidth| show_bandwidth(*rate);
    rows.push(&key("threshold"), &config.threshold, span);
    rows.push(&key("write_limit"), &config.write_limit, bandwidth);
    rows.push(&key("ceiling"), &config.ceiling, span);
    rows.push(&key("packets"), &config.packets, |packets| packets.name().to_owned());
    rows.push(&key("metrics"), &config.metrics, ToString::to_string);
    for (list, whom) in [("exempt", &config.exempt), ("forced", &config.forced)] {
        for (i, who) in whom.iter().enumerate() {
            rows.push(&key(&format!("{list}[{i}]")), who, ToString::to_string);
        }
    }
    rows.push(&key("rate_smoothing"), &config.rate_smoothing, span);
    rows.push(&key("smoothing"), &config.smoothing, span);
    rows.push(&key("proportional_gain"), &config.proportional_gain, ToString::to_string);
    rows.push(&key("integral_time"), &config.integral_time, span);
    rows.push(&key("derivative_time"), &config.derivative_time, span);
    rows.push(&key("setpoint_share"), &config.setpoint_share, ToString::to_string);
    for (name, own) in &config.resources {
        let table = join("resource", name);
        rows.push_optional(&join(&table, "threshold"), &own.threshold, span);
        rows.push_optional(&join(&table, "write_limit"), &own.write_limit, bandwidth);
    }
    Report { settings: rows.0 }
}

/// The same for the file of a coordinator of transfers.
pub(crate) fn transfers_report(config: &TransfersConfig) -> Report {
    let mut rows = Rows(Vec::new());
    let bandwidth = |rate: &Bandwidth| show_bandwidth(*rate);
    rows.push("transfers.policy", &config.policy, ToString::to_string);
    rows.push("transfers.state", &config.state, |path| path.display().to_string());
    rows.push_optional("transfers.address", &config.address, ToString::to_string);
    if let Some(tls) = &config.tls {
        rows.push_tls("transfers", tls);
    }
    rows.push("transfers.metrics", &config.metrics, ToString::to_string);
    for (i, class) in config.classes.iter().enumerate() {
        rows.push(&format!("transfers.classes[{i}]"), class, Clone::clone);
    }
    rows.push("transfers.rate", &config.rate, bandwidth);
    for (name, node) in &config.nodes {
        let table = join("node", name);
        let key = |key| join(&table, key);
        rows.push(&key("url"), &node.url, ToString::to_string);
        rows.push_optional(&key("credentials"), &node.credentials, |path| path.display().to_string());
        rows.push_optional(&key("peak_read"), &node.peak_read, bandwidth);
        rows.push_optional(&key("peak_write"), &node.peak_write, bandwidth);
        rows.push_optional(&key("class"), &node.class, |class| config.class_name(*class).to_owned());
        rows.push(&key("cost"), &node.cost, ToString::to_string);
        rows.push_optional(&key("capacity"), &node.capacity, |size| show_size(*size));
        rows.push(&key("domain"), &node.domain, Clone::clone);
        rows.push_optional(&key("sensor"), &node.sensor, ToString::to_string);
    }
    Report { settings: rows.0 }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let width = |of: fn(&Row) -> &String| {
            self.settings.iter().map(|row| of(row).chars().count()).max().unwrap_or(0)
        };
        let (key_width, value_width) = (width(|row| &row.key), width(|row| &row.value));
        for Row { key, value, origin } in &self.settings {
            writeln!(f, "{key:key_width$}  {value:value_width$}  {origin}")?;
        }
        Ok(())
    }
}

fn rows(config: &Config) -> Vec<Row> {
    let mut rows = Rows(Vec::new());
    for (i, address) in config.listen.nbd.iter().enumerate() {
        rows.push(&format!("listen.nbd[{i}]"), address, ToString::to_string);
    }
    rows.push_optional("listen.metrics", &config.listen.metrics, ToString::to_string);
    rows.push_optional("listen.control", &config.listen.control, |path| socket(path));
    rows.push_limits(config);
    if let Some(Cluster { name, tls }) = &config.cluster {
        rows.push("cluster.name", name, Clone::clone);
        rows.push_tls("cluster", tls);
    }
    for (name, pool) in &config.pools {
        rows.push_pool(name, pool);
    }
    for (name, station) in &config.stations {
        let table = join("station", name);
        rows.push(&join(&table, "servers"), &station.servers, ToString::to_string);
        rows.push(&join(&table, "service_time"), &station.service_time, |span| show_span(*span));
    }
    for array in config.arrays.values() {
        array.written.iter().for_each(|(key, value)| rows.push(key, value, Clone::clone));
    }
    for (name, volume) in &config.volumes {
        rows.push_volume(name, volume, config.pools.get(&volume.pool.value));
    }
    rows.0
}

fn socket(path: &Path) -> String {
    Address::Unix(path.to_owned()).to_string()
}

struct Rows(Vec<Row>);

impl Rows {
    fn push<T>(&mut self, key: &str, resolved: &Resolved<T>, show: impl Fn(&T) -> String) {
        let value = show(&resolved.value);
        self.0.push(Row { key: key.to_owned(), value, origin: resolved.origin });
    }

    fn push_optional<T>(&mut self, key: &str, resolved: &Resolved<Option<T>>, show: impl Fn(&T) -> String) {
        self.push(key, resolved, |value| value.as_ref().map_or("-".to_owned(), &show));
    }

    fn push_tls(&mut self, table: &str, tls: &TlsConfig) {
        for (key, file) in TLS_KEYS.iter().zip([&tls.ca, &tls.certificate, &tls.key]) {
            self.push(&join(table, key), file, |path| path.display().to_string());
        }
    }

    fn push_limits(&mut self, config: &Config) {
        let limits = &config.limits;
        self.push("limits.connections", &limits.connections, ToString::to_string);
        let counts = [
            ("connections_per_address", &limits.connections_per_address),
            ("connections_per_volume", &limits.connections_per_volume),
            ("connections_kept", &limits.connections_kept),
            ("handshakes", &limits.handshakes),
        ];
        for (key, count) in counts {
            self.push(&join("limits", key), count, ToString::to_string);
        }
        self.push("limits.handshake_timeout", &limits.handshake_timeout, |span| show_span(*span));
        self.push("limits.requests_per_connection", &limits.requests_per_connection, ToString::to_string);
        self.push("limits.bytes_per_connection", &limits.bytes_per_connection, |size| show_size(*size));
        self.push("limits.bytes_in_flight", &limits.bytes_in_flight, |size| show_size(*size));
        self.push("limits.reply_timeout", &limits.reply_timeout, |span| show_span(*span));
        self.push("limits.shutdown_timeout", &limits.shutdown_timeout, |span| show_span(*span));
        self.push("limits.api_connections", &limits.api_connections, ToString::to_string);
        self.push("limits.api_timeout", &limits.api_timeout, |span| show_span(*span));
        self.push("limits.api_header_bytes", &limits.api_header_bytes, |size| show_size(*size));
        self.push("limits.api_body_bytes", &limits.api_body_bytes, |size| show_size(*size));
    }

    fn push_pool(&mut self, name: &str, pool: &Pool) {
        let table = join("pool", name);
        let key = |key| join(&table, key);
        self.push(&key("control"), &pool.control, |control| control.kind().to_string());
        match &pool.control.value {
            Control::None => {}
            Control::Leased(leased) => {
                self.push(&key("controller"), &leased.controller, ToString::to_string);
                self.push(&key("control_interval"), &leased.control_interval, |span| show_span(*span));
            }
            Control::Maestro(maestro) => {
                self.push(&key("total_concurrency"), &maestro.total_concurrency, ToString::to_string);
                self.push(&key("control_interval"), &maestro.control_interval, |span| show_span(*span));
                self.push(&key("ports"), &maestro.ports, |ports| ports.name().to_owned());
            }
            Control::Promise(promise) => {
                self.push(&key("background_share"), &promise.background_share, ToString::to_string);
                self.push_optional(&key("controller"), &promise.controller, ToString::to_string);
            }
            Control::Pid(pid) => {
                self.push(&key("threshold"), &pid.threshold, |span| show_span(*span));
                self.push(&key("write_limit"), &pid.write_limit, |rate| show_bandwidth(*rate));
                self.push(&key("ceiling"), &pid.ceiling, |span| show_span(*span));
                self.push(&key("proportional_gain"), &pid.proportional_gain, ToString::to_string);
                self.push(&key("integral_time"), &pid.integral_time, |span| show_span(*span));
            }
            Control::Facade(facade) => {
                self.push(&key("control_period"), &facade.control_period, |span| show_span(*span));
                self.push(&key("growth"), &facade.growth, ToString::to_string);
                self.push(&key("initial_depth"), &facade.initial_depth, ToString::to_string);
                self.push(&key("max_depth"), &facade.max_depth, ToString::to_string);
                self.push(&key("background_share"), &facade.background_share, ToString::to_string);
            }
        }
        self.push(&key("slo_window"), &pool.slo_window, |span| show_span(*span));
    }

    fn push_volume(&mut self, name: &str, volume: &Volume, pool: Option<&Pool>) {
        let control = pool.map(|pool| &pool.control.value);
        let is_leased = matches!(control, Some(Control::Leased(_)));
        let table = join("volume", name);
        let key = |key| join(&table, key);
        self.push(&key("pool"), &volume.pool, Clone::clone);
        self.push(&key("backend"), &volume.backend, ToString::to_string);
        self.push_optional(&key("size"), &volume.size, |size| show_size(*size));
        if let BackendConfig::Upstream(_) = volume.backend.value {
            self.push(&key("connections"), &volume.connections, ToString::to_string);
        }
        self.push_optional(&key("description"), &volume.description, Clone::clone);
        if is_leased {
            // The controller's file has all targets and limits.
        } else if let Some(Control::Maestro(_)) = control {
            self.push_optional(&key("target"), &volume.target, |target| show_target(*target));
            self.push(&key("priority"), &volume.priority, |priority| priority.get().to_string());
        } else if let Some(Control::Promise(_)) = control {
            if volume.slo.value.is_some() {
                self.push_slo(&key("slo"), volume, control);
            } else {
                self.push_optional(&key("target"), &volume.target, |target| show_target(*target));
            }
            if volume.target.value.is_some() {
                self.push(&key("slo_goal"), &volume.slo_goal, ToString::to_string);
            }
            self.push(&key("priority"), &volume.priority, |priority| priority.get().to_string());
        } else {
            self.push_slo(&key("slo"), volume, control);
        }
        let has_judged_target = volume.target.value.is_some() && matches!(control, Some(Control::Promise(_)));
        if volume.slo.value.is_some() {
            self.push(&key("slo_goal"), &volume.slo_goal, ToString::to_string);
        } else if !has_judged_target && !matches!(volume.slo_goal.origin, Origin::Default(_)) {
            let shown = |goal: &SloGoal| format!("{goal}; no effect: no promise");
            self.push(&key("slo_goal"), &volume.slo_goal, shown);
        }
        if control != Some(&Control::None) && !is_leased {
            self.push_optional(&key("max_iops"), &volume.max_iops, ToString::to_string);
            self.push_optional(&key("max_bandwidth"), &volume.max_bandwidth, |rate| show_bandwidth(*rate));
            self.push_optional(&key("max_concurrency"), &volume.max_concurrency, ToString::to_string);
        }
        for (i, fault) in volume.faults.iter().enumerate() {
            self.push(&format!("{table}.faults[{i}]"), fault, ToString::to_string);
        }
    }

    /// A line for each point of the curve. If no law enforces it, the line says that the point is only
    /// measured.
    fn push_slo(&mut self, key: &str, volume: &Volume, control: Option<&Control>) {
        let Some(slo) = &volume.slo.value else {
            self.push_optional(key, &volume.slo, |_| String::new());
            return;
        };
        let note = match control {
            Some(Control::None | Control::Pid(_)) => {
                let word = control.map_or("", |control| control.kind().name());
                format!("; measured, not enforced (control = {word})")
            }
            _ => String::new(),
        };
        for (i, (point, place)) in slo.points().iter().zip(&volume.slo_points).enumerate() {
            let (read, write) = (show_span(point.read), show_span(point.write));
            let value = format!("up to {}: read {read}, write {write}{note}", point.up_to);
            self.0.push(Row { key: format!("{key}[{i}]"), value, origin: place.origin });
        }
    }
}
