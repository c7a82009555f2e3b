//! What only several tables together can break: names that lead nowhere, devices used twice, settings that nobody
//! would enforce.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Config;
use super::accepts::quoted;
use super::pool::{Control, Pool, Station};
use super::reader::Section;
use super::volume::{BackendConfig, Volume};

/// Caps are gates of the scheduler; without control there is none.
const CAPS: [&str; 3] = ["max_iops", "max_bandwidth", "max_concurrency"];

/// Holds a volume against its pool and its backend.
pub(super) fn check_volume(
    section: &Section<'_>,
    volume: &Volume,
    pools: &BTreeMap<String, Pool>,
    stations: &BTreeMap<String, Station>,
) {
    match pools.get(&volume.pool.value) {
        None => section.refuse("pool", &one_of("pool", pools.keys())),
        Some(pool) if pool.control.value == Control::None => {
            for cap in CAPS.into_iter().filter(|cap| section.has(cap)) {
                let found = format!(
                    "a cap in pool \"{}\", whose control = \"none\" enforces none",
                    volume.pool.value
                );
                section.refuse_found(cap, found, "nothing, or a pool with control = \"facade\"");
            }
        }
        Some(_) => {}
    }
    if let BackendConfig::Station(name) = &volume.backend.value
        && !stations.contains_key(name)
    {
        section.refuse("backend", &one_of("station", stations.keys()));
    }
    if !matches!(volume.backend.value, BackendConfig::File(_)) && !section.has("size") {
        let found = format!("nothing, and backend \"{}\" has no size of its own", volume.backend.value);
        section.refuse_found("size", found, "a size such as \"20GiB\"");
    }
}

/// Holds the volumes against each other: a station has one pool, a file one volume.
pub(super) fn check_sharing(sections: &[(String, Section<'_>)], config: &Config) {
    let mut station_users: BTreeMap<&str, (&str, &Volume)> = BTreeMap::new();
    let mut file_users: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for (name, section) in sections {
        let Some(volume) = config.volumes.get(name) else { continue };
        match &volume.backend.value {
            BackendConfig::Station(station) => {
                let (first, other) = *station_users.entry(station).or_insert((name, volume));
                if other.pool != volume.pool {
                    let found = format!(
                        "{:?}, which volume.{first} uses from pool {:?}",
                        volume.backend.value.to_string(),
                        other.pool.value
                    );
                    section.refuse_found("backend", found, "a station whose volumes are all in one pool");
                }
            }
            BackendConfig::File(path) => {
                let first = *file_users.entry(real_path(path)).or_insert(name);
                if first != name {
                    let found = format!("{:?}, the file of volume.{first}", volume.backend.value.to_string());
                    section.refuse_found("backend", found, "a file for each volume");
                }
            }
            BackendConfig::Memory => {}
        }
    }
}

/// The path without links and detours; the file itself need not be there yet.
fn real_path(path: &Path) -> PathBuf {
    let of_parent = || {
        let parent = path.parent()?.canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(of_parent).unwrap_or_else(|| path.to_owned())
}

fn one_of<'a>(kind: &str, names: impl ExactSizeIterator<Item = &'a String>) -> String {
    if names.len() == 0 {
        return format!("a {kind} of this file, which has none: add a table [{kind}.NAME]");
    }
    format!("a {kind} of this file: {}", quoted(names))
}
