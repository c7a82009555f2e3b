//! Interfaces by name and by number, and how fast they are (netdevice(7)).

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

/// What is assumed of an interface that does not tell: 100 Gbit/s, in bytes per second. Too high a rate only
/// lets a leaf hold more packets.
const FASTEST: u64 = 12_500_000_000;
/// A megabit per second, the unit of sysfs, in bytes per second.
const MEGABIT: u64 = 125_000;

/// The interfaces of a network namespace.
pub(super) struct Interfaces(OwnedFd);

impl Interfaces {
    /// The interfaces that the calling thread sees.
    pub(super) fn open() -> Result<Self, Errno> {
        socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).map(Self)
    }

    /// The number of an interface; `None` if there is no such interface.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        netdevice::name_to_index(&self.0, name).ok()
    }

    /// The name of an interface; `None` if it went away.
    pub(super) fn name(&self, number: u32) -> Option<String> {
        netdevice::index_to_name(&self.0, number).ok()
    }
}

/// How many bytes a second an interface sends at most.
pub(super) fn line_rate(name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/sys/class/net/{name}/speed"));
    let megabits = text.ok().and_then(|text| text.trim().parse::<u64>().ok()).filter(|speed| *speed > 0);
    megabits.map_or(FASTEST, |speed| speed.saturating_mul(MEGABIT))
}
