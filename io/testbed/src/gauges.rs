//! What the kernel counts: requests of each volume, and what TCP had to send again.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Sub;

use anyhow::Context;
use weir_lab::delay::{Direction, InitiatorSpec, Tcp};

use crate::bed::Host;
use crate::shell::program_at;

const SECTOR: u64 = 512;

/// What a volume has done since the machine started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Volume {
    /// Its reads that are finished.
    pub(crate) reads: u64,
    /// How long these took in all, in milliseconds.
    pub(crate) read_millis: u64,
    /// The bytes that were read.
    pub(crate) read: u64,
    /// The bytes that were written.
    pub(crate) written: u64,
}

impl Sub for Volume {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            read_millis: self.read_millis - earlier.read_millis,
            read: self.read - earlier.read,
            written: self.written - earlier.written,
        }
    }
}

impl Volume {
    /// How many requests of an initiator this is, by the bytes.
    pub(crate) fn requests(&self, spec: &InitiatorSpec) -> u64 {
        let bytes = match spec.direction {
            Direction::Read => self.read,
            Direction::Write => self.written,
        };
        bytes / u64::from(spec.request.0.0)
    }
}

/// The counters of the volumes of the initiators.
#[derive(Debug)]
pub(crate) struct Volumes {
    /// The kernel's name of each initiator's volume, such as `dm-0`.
    devices: Vec<String>,
}

impl Volumes {
    /// Finds the volumes of a bed.
    ///
    /// # Errors
    /// If one of them is not there.
    pub(crate) fn find(hosts: &[Host]) -> anyhow::Result<Self> {
        let mut known = BTreeMap::new();
        for entry in fs::read_dir("/sys/block")? {
            let entry = entry?;
            if let Ok(name) = fs::read_to_string(entry.path().join("dm/name")) {
                known.insert(name.trim().to_owned(), entry.file_name().to_string_lossy().into_owned());
            }
        }
        let device = |host: &Host| {
            let name = host.mapped_name();
            known.get(&name).cloned().with_context(|| format!("there is no volume {name}"))
        };
        Ok(Self { devices: hosts.iter().map(device).collect::<Result<_, _>>()? })
    }

    /// The counters now, in the order of the initiators.
    ///
    /// # Errors
    /// If the kernel does not tell them.
    pub(crate) fn read(&self) -> anyhow::Result<Vec<Volume>> {
        let text = fs::read_to_string("/proc/diskstats").context("/proc/diskstats")?;
        let lines: BTreeMap<_, _> = text.lines().filter_map(line).collect();
        let volume = |device: &String| lines.get(device.as_str()).copied();
        let volumes: Option<Vec<_>> = self.devices.iter().map(volume).collect();
        volumes.context("a volume is gone from /proc/diskstats")
    }
}

/// A line of diskstats: major, minor, name, then counters.
fn line(text: &str) -> Option<(&str, Volume)> {
    let mut fields = text.split_ascii_whitespace().skip(2);
    let name = fields.next()?;
    let fields: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let &[reads, _, sectors_read, read_millis, _, _, sectors_written, ..] = fields.as_slice() else {
        return None;
    };
    Some((
        name,
        Volume { reads, read_millis, read: sectors_read * SECTOR, written: sectors_written * SECTOR },
    ))
}

/// What TCP counted at the target's host and at all initiators since the machine started.
pub(crate) fn tcp(hosts: &[Host]) -> anyhow::Result<Tcp> {
    const FILES: [&str; 2] = ["/proc/net/snmp", "/proc/net/netstat"];
    let mut texts = Vec::new();
    for file in FILES {
        texts.push(fs::read_to_string(file).context(file)?);
    }
    for host in hosts {
        let said = program_at(&host.space(), "cat").args(FILES).output().context("ip netns exec")?;
        texts.push(String::from_utf8_lossy(&said.stdout).into_owned());
    }
    let sum = |name: &str| texts.iter().map(|text| counter(text, name)).sum();
    Ok(Tcp { timeouts: sum("TCPTimeouts"), retransmitted: sum("RetransSegs") })
}

/// What TCP counted since an earlier time.
pub(crate) fn tcp_since(earlier: Tcp, hosts: &[Host]) -> anyhow::Result<Tcp> {
    let now = tcp(hosts)?;
    Ok(Tcp {
        timeouts: now.timeouts - earlier.timeouts,
        retransmitted: now.retransmitted - earlier.retransmitted,
    })
}

/// A counter from lines in pairs: `Tcp: NAME NAME …`, then `Tcp: 1 2 …`. Zero if it is not there.
fn counter(text: &str, name: &str) -> u64 {
    let lines: Vec<_> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[0].split(':').next() == pair[1].split(':').next());
    let values =
        pairs.flat_map(|pair| pair[0].split_ascii_whitespace().zip(pair[1].split_ascii_whitespace()));
    values.filter(|(known, _)| *known == name).find_map(|(_, value)| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_diskstats_has_reads_their_time_and_the_bytes() {
        let text = " 253       2 dm-2 100 0 800 2412 50 0 1600 999 0 3000 3411 0 0 0 0 0 0";
        let volume = Volume { reads: 100, read_millis: 2412, read: 800 * 512, written: 1600 * 512 };
        assert_eq!(line(text), Some(("dm-2", volume)));
        assert_eq!(line("253 0"), None);
    }

    #[test]
    fn a_counter_is_found_by_the_name_above_it() {
        let text = "Ip: A B\nIp: 1 2\nTcp: InSegs RetransSegs\nTcp: 70 8\nTcpExt: TCPTimeouts\nTcpExt: 3\n";
        assert_eq!(["RetransSegs", "TCPTimeouts", "Nothing"].map(|name| counter(text, name)), [8, 3, 0]);
    }
}
