//! The time on a core and the memory that a process has used.
//!
//! `/proc/PID/stat` has the time of a process in ticks of 10 ms, too coarse for a difference of a tenth of a
//! microsecond a request. `/proc/PID/task/*/schedstat` has it in nanoseconds, for each thread. The time of a
//! thread disappears when the thread ends. So both readings are made while the client is connected, when no
//! server ends threads.

use std::collections::BTreeMap;
use std::time::Instant;
use std::{fs, io};

use anyhow::{Context, anyhow};
use rustix::io::Errno;

/// The time that each thread of a process had used at an instant.
#[derive(Debug)]
pub(super) struct CpuTimes {
    at: Instant,
    threads: BTreeMap<u32, u64>,
}

impl CpuTimes {
    /// Of the process `pid`, now.
    ///
    /// # Errors
    /// If there is no such process.
    pub(super) fn read(pid: u32) -> anyhow::Result<Self> {
        let dir = format!("/proc/{pid}/task");
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir(&dir).with_context(|| dir.clone())? {
            let path = entry.with_context(|| dir.clone())?.path();
            let Some(thread) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else {
                continue;
            };
            match fs::read_to_string(path.join("schedstat")) {
                Ok(text) => threads.insert(thread, nanoseconds(&text).with_context(|| dir.clone())?),
                Err(error) if has_just_ended(&error) => None,
                Err(error) => return Err(error).context(dir),
            };
        }
        Ok(Self { at: Instant::now(), threads })
    }

    /// The share of a core that was used since `before`; above 1 if threads ran on several.
    #[allow(clippy::cast_precision_loss)] // exact up to 104 days
    pub(super) fn cores_since(&self, before: &Self) -> f64 {
        let elapsed = self.at.duration_since(before.at).as_secs_f64();
        if elapsed > 0.0 { used(&before.threads, &self.threads) as f64 / 1e9 / elapsed } else { 0.0 }
    }
}

/// A thread that ends between the listing and the reading is not found, or its process is gone.
fn has_just_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// Kibibytes of memory that the process `pid` has in use.
///
/// # Errors
/// If there is no such process.
pub(super) fn resident_kib(pid: u32) -> anyhow::Result<u64> {
    kib_of(pid, "VmRSS:")
}

/// The most kibibytes of memory that the process `pid` has ever had in use.
///
/// # Errors
/// If there is no such process.
pub(super) fn peak_resident_kib(pid: u32) -> anyhow::Result<u64> {
    kib_of(pid, "VmHWM:")
}

fn kib_of(pid: u32, key: &str) -> anyhow::Result<u64> {
    let file = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&file).with_context(|| file.clone())?;
    kib_in(&status, key).with_context(|| format!("{file}: no {key}"))
}

fn kib_in(status: &str, key: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(key))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// The first of the three numbers: nanoseconds on a core (Linux, `Documentation/scheduler/sched-stats.rst`).
fn nanoseconds(schedstat: &str) -> anyhow::Result<u64> {
    let first = schedstat.split_whitespace().next().and_then(|number| number.parse().ok());
    first.ok_or_else(|| anyhow!("schedstat: found {schedstat:?}; accepted: three numbers"))
}

fn used(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> u64 {
    let since = |(thread, ns): (&u32, &u64)| ns.saturating_sub(before.get(thread).copied().unwrap_or(0));
    after.iter().map(since).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_the_time_on_a_core() {
        assert_eq!(nanoseconds("919199141 214769037 12608\n").unwrap(), 919_199_141);
        assert!(nanoseconds("").is_err());
        assert!(nanoseconds("x 1 2").is_err());
    }

    #[test]
    fn threads_that_begin_count_whole_and_threads_that_end_not_at_all() {
        let before = BTreeMap::from([(1, 100), (2, 1_000)]);
        let after = BTreeMap::from([(1, 150), (3, 7)]);
        assert_eq!(used(&before, &after), 57);
    }

    #[test]
    fn resident_memory_is_read_in_kibibytes() {
        let status = "VmHWM:\t  2345 kB\nVmRSS:\t    1234 kB\n";
        assert_eq!([kib_in(status, "VmRSS:"), kib_in(status, "VmHWM:")], [Some(1234), Some(2345)]);
        assert_eq!(kib_in("VmSize:\t  9 kB\n", "VmRSS:"), None);
    }

    #[test]
    fn this_process_has_used_a_core_and_memory() {
        let me = std::process::id();
        assert!(!CpuTimes::read(me).unwrap().threads.is_empty());
        assert!(resident_kib(me).unwrap() > 0);
    }
}
