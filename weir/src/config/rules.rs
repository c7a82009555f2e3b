//! The rules that span several tables: names must exist, a device has one user, and a setting must be one
//! that the control enforces.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use weir_model::Target;

use super::Config;
use super::accepts::quoted;
use super::array::Array;
use super::pool::{Control, Pool, Ports, Station};
use super::reader::{Section, join};
use super::units;
use super::volume::{BackendConfig, Volume};

/// The caps. They are gates of the scheduler, and without control there is no scheduler.
const CAPS: [&str; 3] = ["max_iops", "max_bandwidth", "max_concurrency"];

/// The keys that only Maestro's law and the law of promises know.
const OBJECTIVE: [&str; 2] = ["target", "priority"];

/// Checks a volume together with its pool and its backend.
pub(super) fn check_volume(
    section: &Section<'_>,
    volume: &Volume,
    pools: &BTreeMap<String, Pool>,
    stations: &BTreeMap<String, Station>,
    (arrays, wrong_arrays): (&BTreeMap<String, Array>, &BTreeSet<String>),
) {
    match pools.get(&volume.pool.value) {
        None => section.refuse("pool", &one_of("pool", pools.keys())),
        Some(pool) => {
            check_control(section, &volume.pool.value, &pool.control.value);
            if matches!(pool.control.value, Control::Promise(_)) {
                check_rate(section, volume);
            }
        }
    }
    match &volume.backend.value {
        BackendConfig::Station(name) if !stations.contains_key(name) => {
            section.refuse("backend", &one_of("station", stations.keys()));
        }
        // An array with a mistake is there, and its mistake is said already.
        BackendConfig::Array(name, _) if !arrays.contains_key(name) && !wrong_arrays.contains(name) => {
            section.refuse("backend", &one_of("array", arrays.keys()));
        }
        _ => {}
    }
    check_size(section, volume);
    if section.has("connections") && !matches!(volume.backend.value, BackendConfig::Upstream(_)) {
        let found = format!("a number of connections, and backend \"{}\" has none", volume.backend.value);
        section.refuse_found("connections", found, "nothing, or a backend \"nbd://host:port/export\"");
    }
}

/// Checks the size: a file may have none, another server must have none, all others must have one.
fn check_size(section: &Section<'_>, volume: &Volume) {
    match (&volume.backend.value, section.has("size")) {
        (BackendConfig::File(_), _) | (BackendConfig::Upstream(_), false) => {}
        (BackendConfig::Upstream(_), true) => {
            let found = format!("a size, and backend \"{}\" has its own", volume.backend.value);
            section.refuse_found("size", found, "nothing");
        }
        (_, true) => {}
        (_, false) => {
            let found = format!("nothing, and backend \"{}\" has no size of its own", volume.backend.value);
            section.refuse_found("size", found, "a size such as \"20GiB\"");
        }
    }
}

/// By how many times a volume's own cap has to be above the rate that it is promised. A client that is held
/// to just what it is promised seems to miss that all the time, and others would be held back in vain.
const ABOVE: f64 = 1.1;

/// Refuses a rate as a promise that the volume's own cap is not well above.
fn check_rate(section: &Section<'_>, volume: &Volume) {
    let caps = (volume.max_iops.value, volume.max_bandwidth.value);
    let (key, cap) = match (volume.target.value, caps) {
        (Some(Target::Rate(rate)), (Some(cap), _)) if cap.get() < rate.get() * ABOVE => {
            ("max_iops", format!("{}iops", cap.get()))
        }
        (Some(Target::Throughput(rate)), (_, Some(cap)))
            if (cap.get() as f64) < rate.get() as f64 * ABOVE =>
        {
            ("max_bandwidth", units::show_bandwidth(cap))
        }
        _ => return,
    };
    let accepted = format!("a rate that {key} is at least {ABOVE} times of");
    section.refuse_found("target", format!("a rate beside a {key} of {cap}"), &accepted);
}

/// Refuses the settings that an array's controller has for all gateways. If each gateway enforced a limit for
/// itself, the sum would be several times the limit.
fn refuse_what_is_shared_out(section: &Section<'_>, pool: &str) {
    for key in OBJECTIVE.iter().chain(&CAPS).chain(&["slo"]) {
        if section.has(key) {
            let found = format!("a setting of a volume in pool {pool:?}, which has a controller");
            section.refuse_found(key, found, "nothing; it stands in the file of the controller, without slo");
        }
    }
}

/// Refuses the settings that this control does not enforce.
fn check_control(section: &Section<'_>, pool: &str, control: &Control) {
    let refuse = |key: &str, what: &str, why: &str, accepted: &str| {
        if section.has(key) {
            let found = format!("{what} in pool {pool:?}, whose control = \"{}\" {why}", control.kind());
            section.refuse_found(key, found, accepted);
        }
    };
    let refuse_caps = || {
        let accepted = "nothing, or a pool with control = \"facade\", \"maestro\", \"promise\" or \"pid\"";
        CAPS.iter().for_each(|cap| refuse(cap, "a cap", "enforces none", accepted));
    };
    let refuse_objective = || {
        let accepted = "nothing, or a pool with control = \"maestro\" or \"promise\"";
        OBJECTIVE.iter().for_each(|key| refuse(key, &format!("a {key}"), "knows none", accepted));
    };
    match control {
        Control::Leased(_) => refuse_what_is_shared_out(section, pool),
        Control::Maestro(_) => {
            let accepted = "nothing; give it a target, such as { latency = \"10ms\" }";
            refuse("slo", "an slo", "knows targets instead", accepted);
        }
        Control::Promise(_) => {
            if section.has("target") {
                let accepted = "nothing, or an slo without a target";
                refuse("slo", "an slo beside a target", "holds a volume to one promise", accepted);
            }
        }
        Control::Facade(_) | Control::Pid(_) => refuse_objective(),
        Control::None => {
            refuse_caps();
            refuse_objective();
        }
    }
}

/// Checks the numbers of requests. A pool's total must have one request for each volume at each port. A
/// volume's own `max_concurrency` must have one for each port.
pub(super) fn check_totals(
    pools: &[(String, Section<'_>)],
    volumes: &[(String, Section<'_>)],
    config: &Config,
) {
    for (name, section) in pools {
        let pool = &config.pools[name];
        let ports = match pool.ports() {
            Ports::One => 1,
            Ports::Listeners => config.listen.nbd.len(),
        };
        let in_pool = |volume: &&Volume| volume.pool.value == *name;
        let count = config.volumes.values().filter(in_pool).count();
        let total = match &pool.control.value {
            Control::Maestro(maestro) => maestro.total_concurrency.value.requests(),
            Control::None
            | Control::Facade(_)
            | Control::Leased(_)
            | Control::Promise(_)
            | Control::Pid(_) => None,
        };
        if let Some(total) = total.filter(|total| u64::from(total.get()) < (count * ports) as u64) {
            let found = format!("{total} requests for {count} volumes{}", at(ports));
            let accepted = format!("at least {}, one for each volume{}", count * ports, at_each(ports));
            section.refuse_found("total_concurrency", found, &accepted);
        }
        for (volume, section) in volumes {
            let volume = config.volumes.get(volume).filter(in_pool);
            let limit = volume.and_then(|volume| volume.max_concurrency.value);
            if limit.is_some_and(|limit| u64::from(limit.get()) < ports as u64) {
                section.refuse("max_concurrency", &format!("at least {ports}, one{}", at_each(ports)));
            }
        }
    }
}

fn at(ports: usize) -> String {
    if ports > 1 { format!(" at {ports} ports") } else { String::new() }
}

fn at_each(ports: usize) -> &'static str {
    if ports > 1 { " at each port" } else { "" }
}

/// How many volumes have a promise, or may have one in the file of a controller.
pub(super) fn promises(pools: &BTreeMap<String, Pool>, volumes: &BTreeMap<String, Volume>) -> u64 {
    let is_leased = |volume: &Volume| {
        let control = pools.get(&volume.pool.value).map(|pool| &pool.control.value);
        matches!(control, Some(Control::Leased(_)))
    };
    let is_promised =
        |volume: &&Volume| volume.slo.value.is_some() || volume.target.value.is_some() || is_leased(volume);
    volumes.values().filter(is_promised).count() as u64
}

/// Checks the volumes against each other: a station or an array has one pool, a file has one volume, and an
/// array has room for all of its volumes.
pub(super) fn check_sharing(sections: &[(String, Section<'_>)], config: &Config) {
    let mut device_users: BTreeMap<String, (&str, &Volume)> = BTreeMap::new();
    let mut file_users: BTreeMap<PathBuf, &str> = BTreeMap::new();
    let mut free: BTreeMap<&str, u64> =
        config.arrays.iter().map(|(name, array)| (name.as_str(), array.options.size())).collect();
    for (name, section) in sections {
        let Some(volume) = config.volumes.get(name) else { continue };
        let (device, file) = match &volume.backend.value {
            BackendConfig::Memory | BackendConfig::Upstream(_) => (None, None),
            BackendConfig::File(path) => (None, Some(path)),
            BackendConfig::Station(station) => (Some(("station", station)), None),
            BackendConfig::Array(array, path) => (Some(("array", array)), Some(path)),
        };
        if let Some((kind, device)) = device {
            let (first, other) = *device_users.entry(join(kind, device)).or_insert((name, volume));
            if other.pool != volume.pool {
                let which = if file.is_some() { "whose array" } else { "which" };
                let found = format!(
                    "{:?}, {which} volume.{first} uses from pool {:?}",
                    volume.backend.value.to_string(),
                    other.pool.value
                );
                let accepted = format!("{} {kind} whose volumes are all in one pool", article(kind));
                section.refuse_found("backend", found, &accepted);
            }
            if let Some(free) = free.get_mut(device.as_str()).filter(|_| kind == "array") {
                check_room(section, device, volume, free);
            }
        }
        if let Some(path) = file {
            let first = *file_users.entry(real_path(path)).or_insert(name);
            if first != name {
                let found = format!("{:?}, the file of volume.{first}", volume.backend.value.to_string());
                section.refuse_found("backend", found, "a file for each volume");
            }
        }
    }
}

/// Takes the volume's bytes from the free bytes of its array.
fn check_room(section: &Section<'_>, array: &str, volume: &Volume, free: &mut u64) {
    let Some(size) = volume.size.value else { return };
    match free.checked_sub(size.as_u64()) {
        Some(rest) => *free = rest,
        None => section.refuse("size", &format!("at most {free} bytes, which array {array} has left for it")),
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with('a') { "an" } else { "a" }
}

/// The path without links and detours. The file itself need not exist yet.
fn real_path(path: &Path) -> PathBuf {
    let of_parent = || {
        let parent = path.parent()?.canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(of_parent).unwrap_or_else(|| path.to_owned())
}

fn one_of<'a>(kind: &str, names: impl ExactSizeIterator<Item = &'a String>) -> String {
    if names.len() == 0 {
        return format!("{} {kind} of this file, which has none: add a table [{kind}.NAME]", article(kind));
    }
    format!("{} {kind} of this file: {}", article(kind), quoted(names))
}
