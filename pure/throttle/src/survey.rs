//! What the sensors found on the host, as plain facts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// The number of a block device, as in `/sys/dev/block/MAJOR:MINOR`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DeviceNumber {
    /// The driver's part.
    pub major: u32,
    /// The device's part.
    pub minor: u32,
}

/// All targets of a host, the connections to them, and the devices behind them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Survey {
    /// Each target, of each framework.
    pub targets: Vec<Target>,
    /// The established TCP connections at all portals.
    pub connections: BTreeSet<Connection>,
    /// The interface through which the packets to a connection's peer leave, as the routes of the host say.
    /// The packets of a connection without an entry cannot be delayed.
    pub interfaces: BTreeMap<Connection, String>,
    /// The devices behind the LUNs, and all devices below these.
    pub devices: BTreeMap<DeviceNumber, Device>,
}

impl Survey {
    /// Whether both are the same but for what the sessions have written: then nobody came, went or moved.
    pub(crate) fn is_same_but_for_counters(&self, other: &Self) -> bool {
        let Self { targets, connections, interfaces, devices } = self;
        *connections == other.connections
            && *interfaces == other.interfaces
            && *devices == other.devices
            && targets.len() == other.targets.len()
            && targets.iter().zip(&other.targets).all(|(ours, theirs)| ours.is_same_but_for_counters(theirs))
    }
}

/// Which software serves a target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Framework {
    /// The target of the Linux kernel, read through configfs.
    Lio,
    /// The target daemon in user space, read through `tgtadm`.
    Tgt,
    /// SCST, read through sysfs.
    Scst,
}

/// A target portal group: what an initiator logs in to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The software that serves it.
    pub framework: Framework,
    /// Its name (IQN), and the tag of its portal group where it has several: `iqn.2026-01.example:a,1`.
    pub name: String,
    /// The addresses that it listens on. An unspecified address stands for all addresses of the host.
    pub portals: BTreeSet<SocketAddr>,
    /// The device behind each LUN that stands on a block device of this host.
    pub luns: BTreeMap<u64, DeviceNumber>,
    /// The initiators that are logged in.
    pub sessions: Vec<Session>,
    /// Why no delay can reach its initiators, such as `"iSER: its packets pass no queue of this host"`.
    pub out_of_reach: Option<String>,
}

impl Target {
    fn is_same_but_for_counters(&self, other: &Self) -> bool {
        let Self { framework, name, portals, luns, sessions, out_of_reach } = self;
        *framework == other.framework
            && *name == other.name
            && *portals == other.portals
            && *luns == other.luns
            && *out_of_reach == other.out_of_reach
            && sessions.len() == other.sessions.len()
            && sessions.iter().zip(&other.sessions).all(|(ours, theirs)| {
                let Session { initiator, addresses, written } = ours;
                *initiator == theirs.initiator
                    && *addresses == theirs.addresses
                    && written.keys().eq(theirs.written.keys())
            })
    }
}

/// An initiator that is logged in to a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// The initiator's name.
    pub initiator: String,
    /// The addresses of its connections. Empty where the framework does not tell: then the session has one or
    /// more of the connections at the target's portals that no other session has.
    pub addresses: BTreeSet<IpAddr>,
    /// How many bytes it has written to each LUN. Empty where the framework does not tell: then the writes of
    /// a LUN's device count for each of its sessions without an own counter.
    pub written: BTreeMap<u64, u64>,
}

/// An established TCP connection between a portal and an initiator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Connection {
    /// The portal's end.
    pub local: SocketAddr,
    /// The initiator's end.
    pub peer: SocketAddr,
}

/// A block device.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Device {
    /// The kernel's name: `dm-3`, `sda1`.
    pub name: String,
    /// The devices that it stands on directly (sysfs `slaves`); for a partition, the disk. A disk has none.
    pub below: BTreeSet<DeviceNumber>,
    /// What device-mapper knows of it.
    pub mapper: Option<Mapper>,
}

/// What device-mapper knows of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapper {
    /// `dm/name`: of a logical volume `GROUP-VOLUME`, where each `-` within a name is doubled.
    pub name: String,
    /// `dm/uuid`: of a logical volume, `LVM-`, 32 characters for the group and 32 for the volume.
    pub uuid: String,
}

/// The counters of a block device at an instant, from sysfs `stat` and `inflight`. They may wrap.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BlockCounters {
    /// Reads that it has finished.
    pub reads: u64,
    /// The milliseconds that these reads took, in sum. The kernel counts them in 32 bits.
    pub read_millis: u32,
    /// Sectors of 512 bytes that it has written.
    pub sectors_written: u64,
    /// Reads that it is working on. They matter only where no read has finished since the reading before;
    /// otherwise the sensor does not look, and it is zero.
    pub reads_in_flight: u32,
}
