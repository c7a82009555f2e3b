//! The configuration of a gateway: it reads a TOML file with units as text, and gives validated values with
//! types.
//!
//! Reading is separate from judging. [`reader`] knows the text: lines, key paths, unknown keys, wrong types.
//! [`accepts`] knows the accepted values of single keys. [`rules`] holds the rules that span several tables.
//! Each other file has one kind of table. All problems of a file are reported together, each in the form
//! `weir.toml:12: volume.db.slo[1].read: found "10 sec?"; accepted: a duration such as "5ms", from 1us to
//! 1h`.
//!
//! The values depend on no other part of the gateway than the vocabulary of `weir-model`. `compose.rs` makes
//! devices, engines and listeners out of them. `docs/config.md` is the operator's view of this module; a test
//! compares the two key by key.

mod accepts;
mod array;
mod changes;
mod cluster;
mod controller;
mod error;
mod fault;
mod file;
mod limits;
mod listen;
mod objective;
mod origin;
mod pid;
mod pool;
mod reader;
mod report;
mod rules;
mod throttle;
mod transfers;
pub(crate) mod units;
mod volume;

use std::collections::BTreeMap;
use std::path::Path;

use array::Array;
use listen::Listen;
use pool::Station;
use reader::{Document, Section};

pub(crate) use changes::Source;
pub(crate) use cluster::Cluster;
pub(crate) use controller::{ControlledVolume, ControllerConfig, ControllerLaw, SharedOut, TlsConfig};
pub(crate) use error::ConfigError;
pub(crate) use fault::{Fault, FaultEffect};
pub(crate) use limits::Limits;
pub(crate) use listen::{Address, TcpAddress, tcp_address_argument};
pub(crate) use origin::Resolved;
pub(crate) use pool::{Control, Pool, Ports};
pub(crate) use report::{Report, check_report, controller_report, throttle_report, transfers_report};
pub(crate) use throttle::{ThrottleConfig, threshold_argument};
pub(crate) use transfers::{NodeConfig, TransfersConfig, bandwidth_argument};
pub(crate) use volume::{BackendConfig, Volume};

/// The tables of a file.
const KEYS: &[&str] = &["listen", "cluster", "limits", "pool", "volume", "station", "array"];

/// A valid configuration. Two are equal if they put the same values in force, in whichever lines these stand.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Config {
    /// The addresses for clients and scrapers.
    pub(crate) listen: Listen,
    /// The most that clients may take of the gateway's memory and time.
    pub(crate) limits: Limits,
    /// The pools, by name.
    pub(crate) pools: BTreeMap<String, Pool>,
    /// The gateway's identity towards controllers; there if a pool has one.
    pub(crate) cluster: Option<Cluster>,
    /// The volumes, by name, which is also the name of the export. There is at least one. The pool of each is
    /// in `pools`. The station or array of a volume, if it has one, is in `stations` or `arrays`.
    pub(crate) volumes: BTreeMap<String, Volume>,
    /// The stations, by name. The volumes on one station are all of the same pool.
    pub(crate) stations: BTreeMap<String, Station>,
    /// The simulated arrays, by name. The volumes on one array are all of the same pool, and fit on it.
    pub(crate) arrays: BTreeMap<String, Array>,
}

impl Config {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read, or anything in it is wrong. Then every problem is named.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        Source::read(path)?.config()
    }

    /// Reads `text`. Errors name `path`.
    ///
    /// # Errors
    /// If anything in it is wrong. Then every problem is named.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        Source::of(path, text.to_owned()).config()
    }
}

/// Resolves every table. The result is only valid if no problem was noted on the way.
fn resolve<'d>(document: &'d Document<'d>, table: &'d toml::de::DeTable<'d>) -> Config {
    let root = Section::root(document, table, KEYS);
    let pool_sections = root.named("pool", pool::KEYS);
    let pools = resolve_each(&pool_sections, pool::resolve_pool);
    let stations = resolve_each(&root.named("station", pool::STATION_KEYS), pool::resolve_station);
    let (arrays, wrong_arrays) = array::resolve(&root);
    let listen = listen::resolve(&root);
    let cluster = cluster::resolve(&root, &pool_sections);
    let sections = root.named("volume", volume::KEYS);
    let mut volumes = BTreeMap::new();
    for (name, section) in &sections {
        check_name(section, name);
        if let Some(volume) = volume::resolve(section) {
            rules::check_volume(section, &volume, &pools, &stations, (&arrays, &wrong_arrays));
            volumes.insert(name.clone(), volume);
        }
    }
    if sections.is_empty() && !root.has("volume") {
        root.refuse_found("volume", "nothing", "at least one table [volume.NAME]");
    }
    let limits = limits::resolve(&root, rules::promises(&pools, &volumes));
    let config = Config { listen, limits, cluster, pools, volumes, stations, arrays };
    rules::check_sharing(&sections, &config);
    rules::check_totals(&pool_sections, &sections, &config);
    config
}

/// The values of each of these tables, by name.
fn resolve_each<T>(
    sections: &[(String, Section<'_>)],
    resolve: fn(&Section<'_>) -> T,
) -> BTreeMap<String, T> {
    let mut resolved = BTreeMap::new();
    for (name, section) in sections {
        check_name(section, name);
        resolved.insert(name.clone(), resolve(section));
    }
    resolved
}

fn check_name(section: &Section<'_>, name: &str) {
    if !is_name(name) {
        section.refuse_table(format!("the name {name:?}"), NAMES);
    }
}

/// Whether the name is accepted. A name goes unquoted into metric labels, log lines and NBD URIs, and must
/// fit an NBD export name.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.is_empty() && name.len() <= 255 && name.bytes().all(plain)
}

/// The accepted names, in words.
pub(crate) const NAMES: &str = "1 to 255 of A-Z a-z 0-9 . _ -";

#[cfg(test)]
mod tests;
