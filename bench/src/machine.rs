//! The machine of a measurement: enough to know which results may be compared, and nothing that says whose
//! machine it was.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::Context;
use serde::Serialize;

use super::bed::{TestBed, output_of};

/// A machine.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    cores: usize,
    /// Whether server and client had a core each.
    pinned: bool,
    cpu: String,
    kernel: String,
    memory_mib: u64,
    /// The file system of the directory with the served files.
    file_system: String,
    /// The other programs.
    programs: Vec<String>,
}

impl Machine {
    /// This machine. `programs` are the programs besides weir that are measured or that measure.
    ///
    /// # Errors
    /// If the kernel does not tell, or a program is missing.
    pub(super) fn read(bed: &TestBed, programs: &[&str]) -> anyhow::Result<Self> {
        let read = |path: &'static str| fs::read_to_string(path).context(path);
        let version = |program: &str| -> anyhow::Result<String> {
            let text = output_of(Command::new(program).arg("--version"), &format!("{program} --version"))?;
            Ok(text.lines().next().unwrap_or_default().to_owned())
        };
        Ok(Self {
            cores: available_parallelism().map_or(1, usize::from),
            pinned: bed.cores().pinned(),
            cpu: value_of(&read("/proc/cpuinfo")?, "model name").unwrap_or("unknown").to_owned(),
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            memory_mib: memory_mib(&read("/proc/meminfo")?),
            file_system: file_system(&read("/proc/self/mounts")?, bed.images()).to_owned(),
            programs: programs.iter().map(|program| version(program)).collect::<anyhow::Result<_>>()?,
        })
    }
}

/// The value of `key` in lines of `key : value`.
fn value_of<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.into_iter().find(|(found, _)| found.trim() == key).map(|(_, value)| value.trim())
}

fn memory_mib(meminfo: &str) -> u64 {
    let total =
        value_of(meminfo, "MemTotal").and_then(|value| value.strip_suffix("kB")?.trim().parse::<u64>().ok());
    total.unwrap_or(0) / 1024
}

/// The type of the file system that `dir` is on. It is that of the deepest mount above `dir`, and of several
/// mounts there, that of the last.
fn file_system<'t>(mounts: &'t str, dir: &Path) -> &'t str {
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let above = fields.filter(|(point, _)| dir.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map_or("unknown", |(_, kind)| kind)
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, cpu, kernel, memory_mib, file_system, .. } = self;
        writeln!(f, "{cores} cores of {cpu}, {memory_mib} MiB, Linux {kernel}, files on {file_system}.")?;
        if !self.programs.is_empty() {
            writeln!(f, "{}.", self.programs.join("; "))?;
        }
        let pinned = if self.pinned { "a core each" } else { "one core together, which says little" };
        writeln!(f, "Server and client have {pinned}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_that_of_the_deepest_mount() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /srv/x tmpfs rw 0 0\n/dev/b /srv xfs rw 0 0\n";
        assert_eq!(file_system(mounts, Path::new("/srv/x/bench")), "tmpfs");
        assert_eq!(file_system(mounts, Path::new("/srv/y")), "xfs");
        assert_eq!(file_system(mounts, Path::new("/srvother")), "ext4");
        assert_eq!(file_system("", Path::new("/")), "unknown");
    }

    #[test]
    fn values_are_found_by_their_key() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC\nmodel\t: 17\n";
        assert_eq!(value_of(text, "model name"), Some("AMD EPYC"));
        assert_eq!(value_of(text, "flags"), None);
        assert_eq!(memory_mib("MemTotal:       24683520 kB\n"), 24105);
    }
}
