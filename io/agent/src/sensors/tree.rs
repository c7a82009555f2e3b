//! Trees of files that look like `/sys`, `/proc` and `/run`, for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weir_throttle::DeviceNumber;

use super::reading::Reader;

/// A tree in a folder of its own.
pub(super) struct Tree(TempDir);

/// What LIO says of an initiator that is not logged in.
pub(super) const NO_SESSION: &str = "No active iSCSI Session for Initiator Endpoint: iqn\n";

impl Tree {
    pub(super) fn new() -> Self {
        Self(TempDir::new().expect("the folder for temporary files can be written"))
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(super) fn sys(&self) -> PathBuf {
        self.at("sys")
    }

    pub(super) fn proc(&self) -> PathBuf {
        self.at("proc")
    }

    #[allow(clippy::unused_self)] // as the other parts of a test
    pub(super) fn reader(&self) -> Reader {
        Reader::new()
    }

    pub(super) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("it is below the tree")).expect("the tree can be written");
        fs::write(path, text).expect("the tree can be written");
    }

    pub(super) fn folder(&self, path: &str) {
        fs::create_dir_all(self.at(path)).expect("the tree can be written");
    }

    pub(super) fn link(&self, path: &str, to: impl AsRef<Path>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("it is below the tree")).expect("the tree can be written");
        symlink(to, path).expect("the tree can be written");
    }

    pub(super) fn remove(&self, path: &str) {
        let path = self.at(path);
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.expect("it was there");
    }

    /// A block device: its folder, and the link to it by number.
    pub(super) fn disk(&self, name: &str, number: DeviceNumber) {
        let DeviceNumber { major, minor } = number;
        self.write(&format!("sys/devices/block/{name}/dev"), format!("{major}:{minor}\n"));
        self.counters(name, 0, 0, 0);
        self.link(&format!("sys/dev/block/{major}:{minor}"), format!("../../devices/block/{name}"));
    }

    /// What a device has done so far.
    pub(super) fn counters(&self, name: &str, reads: u64, sectors_written: u64, reads_in_flight: u32) {
        let stat = format!("{reads} 0 0 {reads} 0 0 {sectors_written} 0 {reads_in_flight} 0 0\n");
        self.write(&format!("sys/devices/block/{name}/stat"), stat);
        self.write(&format!("sys/devices/block/{name}/inflight"), format!("{reads_in_flight:8}        0\n"));
    }

    pub(super) fn partition(&self, disk: &str, name: &str, number: DeviceNumber) {
        self.disk(&format!("{disk}/{name}"), number);
        self.write(&format!("sys/devices/block/{disk}/{name}/partition"), "1\n");
    }

    pub(super) fn mapped(&self, name: &str, number: DeviceNumber, mapper: &str, uuid: &str, below: &[&str]) {
        self.disk(name, number);
        self.write(&format!("sys/devices/block/{name}/dm/name"), format!("{mapper}\n"));
        self.write(&format!("sys/devices/block/{name}/dm/uuid"), format!("{uuid}\n"));
        for device in below {
            let last = device.rsplit('/').next().expect("a split has a part");
            self.link(
                &format!("sys/devices/block/{name}/slaves/{last}"),
                self.at(&format!("sys/devices/block/{device}")),
            );
        }
    }

    /// A backstore of LIO on a device.
    pub(super) fn iblock(&self, name: &str, DeviceNumber { major, minor }: DeviceNumber) {
        let info = format!(
            "Status: ACTIVATED  Max Queue Depth: 64  SectorSize: 512  HwMaxSectors: 256\n        iBlock device: {name}  \
             UDEV PATH: /dev/{name}  readonly: 0\n        Major: {major} Minor: {minor}  CLAIMED: IBLOCK\n"
        );
        self.write(&format!("sys/kernel/config/target/core/iblock_0/{name}/info"), info);
    }

    /// A portal group of LIO with LUNs on backstores of `iblock_0`.
    pub(super) fn group(&self, iqn: &str, tag: u16, portals: &[&str], luns: &[(u64, &str)]) {
        let group = group(iqn, tag);
        self.write(&format!("{group}/enable"), "1\n");
        self.write(&format!("{group}/dynamic_sessions"), "");
        self.folder(&format!("{group}/acls"));
        portals.iter().for_each(|portal| self.write(&format!("{group}/np/{portal}/iser"), "0\n"));
        for (number, backstore) in luns {
            let link = format!("{group}/lun/lun_{number}/{backstore}");
            self.link(&link, format!("../../../../../../target/core/iblock_0/{backstore}"));
        }
    }

    /// How many sessions LIO counts for an IQN.
    pub(super) fn sessions(&self, iqn: &str, count: usize) {
        let file = "fabric_statistics/iscsi_instance/sessions";
        self.write(&format!("sys/kernel/config/target/iscsi/{iqn}/{file}"), format!("{count}\n"));
    }

    /// An access entry of LIO, in the place of an earlier one, with the addresses of a session if there are
    /// any.
    pub(super) fn entry(&self, iqn: &str, initiator: &str, addresses: &[&str], luns: &[(u64, u64, u64)]) {
        let entry = format!("{}/acls/{initiator}", group(iqn, 1));
        let _ = fs::remove_dir_all(self.at(&entry)); // unless it is the first
        let mut info = NO_SESSION.to_owned();
        if !addresses.is_empty() {
            info = format!(
                "InitiatorName: {initiator}\nInitiatorAlias: \nLIO Session ID: 3   ISID: 0x80  TSIH: 3  \
                 SessionType: Normal\nSession State: TARG_SESS_STATE_LOGGED_IN\n--[iSCSI Connections]--\n"
            );
            for address in addresses {
                info += &format!(
                    "CID: 0  Connection State: TARG_CONN_STATE_LOGGED_IN\n   Address {address} TCP  StatSN: 0x1\n"
                );
            }
        }
        self.write(&format!("{entry}/info"), info);
        for (own, lun, mebibytes) in luns {
            self.link(&format!("{entry}/lun_{own}/default"), format!("../../../lun/lun_{lun}"));
            let counter = format!("{entry}/lun_{own}/statistics/scsi_auth_intr/write_mbytes");
            self.write(&counter, format!("{mebibytes}\n"));
        }
    }
}

/// The folder of a portal group of LIO.
pub(super) fn group(iqn: &str, tag: u16) -> String {
    format!("sys/kernel/config/target/iscsi/{iqn}/tpgt_{tag}")
}
