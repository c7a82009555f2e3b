//! What the agent of a storage node reports: the block devices that it watches.
//!
//! There is no JSON of it, and so no `serde` here: the coordinator reads `/metrics`, as any monitoring does.

/// The state of an agent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeAgentStatus {
    /// What it watches, in the order of its arguments.
    pub devices: Vec<WatchedDevice>,
}

/// A device that the agent watches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchedDevice {
    /// The directory that is on the device; `None`: the operator has named the device itself.
    pub path: Option<String>,
    /// The kernel's name of the device, such as `sda`. If the device is not there, the last one that was.
    pub device: String,
    /// What the device has done so far; `None`: it is not there.
    pub totals: Option<DeviceTotals>,
}

/// What a device has done since the kernel knows it: counters. The kernel begins a counter anew at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceTotals {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Reads that are done.
    pub reads: u64,
    /// Writes that are done.
    pub writes: u64,
    /// For how many milliseconds it had something to do.
    pub busy_ms: u64,
}
