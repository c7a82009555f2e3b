//! What the target of the Linux kernel (LIO) says in configfs. Source: drivers/target of Linux 6.1, namely
//! iscsi/iscsi_target_configfs.c, target_core_iblock.c and target_core_file.c.

use std::collections::BTreeSet;
use std::net::IpAddr;

use weir_throttle::DeviceNumber;

use super::address::address;
use super::{Unfit, block, called};

/// Begins the list of a session's connections. Everything above may hold what the initiator calls itself.
const CONNECTIONS: &str = "[iSCSI Connections]";

/// The addresses of the session in an `acls/INITIATOR/info`, `None` if that initiator has no session. A
/// session has no address while its connections are lost or if they are not TCP.
///
/// The kernel tells of one session, the last one that logged in, even if the initiator has several.
///
/// # Errors
/// If it is neither a session nor the absence of one.
pub fn session(info: &str) -> Result<Option<BTreeSet<IpAddr>>, Unfit> {
    if info.starts_with("No active iSCSI Session") {
        return Ok(None);
    }
    let unfit = || Unfit::new(info, "\"No active iSCSI Session…\" or \"InitiatorName: …\"");
    if !info.starts_with("InitiatorName: ") {
        return Err(unfit());
    }
    // The initiator's alias stands above, and may have any lines. So the last heading is the kernel's.
    let (_, connections) = info.rsplit_once(CONNECTIONS).ok_or_else(unfit)?;
    let mut addresses = BTreeSet::new();
    for line in connections.lines() {
        // "   Address 10.9.0.11 TCP  StatSN: 0x…": the kernel calls all that is not TCP "SCTP".
        let mut words = line.split_ascii_whitespace();
        if let (Some("Address"), Some(text), Some("TCP")) = (words.next(), words.next(), words.next()) {
            addresses.insert(address(text)?);
        }
    }
    Ok(Some(addresses))
}

/// The names in `dynamic_sessions`, each of which ends in a NUL byte, and what the last one is that is none.
///
/// The kernel leaves out the names that have no room in one page of memory. An initiator may give itself any
/// bytes but NUL for a name, so each is read by itself: what is odd in one must not hide the others.
pub fn dynamic_sessions(bytes: &[u8]) -> (Vec<String>, Option<Unfit>) {
    let names = bytes.split(|byte| *byte == 0).map(<[u8]>::trim_ascii).filter(|name| !name.is_empty());
    let (names, unfit): (_, Vec<_>) = names.map(called).unzip();
    (names, unfit.into_iter().flatten().last())
}

/// The number of the block device in the `info` of an `iblock` backstore; `None` if it says none, as before
/// the backstore is enabled.
///
/// # Errors
/// If there is something else than numbers.
pub fn iblock(info: &str) -> Result<Option<DeviceNumber>, Unfit> {
    // "        Major: 253 Minor: 3  CLAIMED: IBLOCK", below the lines with the device's names.
    let Some((_, numbers)) = info.rsplit_once("Major: ") else { return Ok(None) };
    let mut words = numbers.split_ascii_whitespace();
    let (Some(major), Some("Minor:"), Some(minor)) = (words.next(), words.next(), words.next()) else {
        return Err(Unfit::new(numbers, "Major: NUMBER Minor: NUMBER"));
    };
    let number = block::number(&format!("{major}:{minor}"))?;
    Ok((number != DeviceNumber { major: 0, minor: 0 }).then_some(number))
}

/// The path in the `info` of a `fileio` backstore: of a file or of a block device.
pub fn fileio(info: &str) -> Option<&str> {
    // "TCM FILEIO ID: 0        File: /srv/a.img  Size: 1048576  Mode: O_DSYNC Async: 0"
    let (_, rest) = info.split_once("File: ")?;
    let (path, _) = rest.rsplit_once("  Size: ")?;
    path.starts_with('/').then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "InitiatorName: iqn.2026-01.example:i1\nInitiatorAlias: \nLIO Session ID: 3   \
        ISID: 0x80 12 34 56 00 00  TSIH: 3  SessionType: Normal\nSession State: TARG_SESS_STATE_LOGGED_IN\n\
        ---------------------[iSCSI Session Values]-----------------------\n  CmdSN/WR  :  CmdSN/WC  :  ExpCmdSN  \
        :  MaxCmdSN  :     ITT    :     TTT\n 0x00000040   0x00000040   0x00000001   0x00000040   0x00000000   \
        0x00000003\n----------------------[iSCSI Connections]-------------------------\nCID: 0  Connection State: \
        TARG_CONN_STATE_LOGGED_IN\n   Address 10.9.0.11 TCP  StatSN: 0x00000001\n";

    fn addresses(texts: &[&str]) -> Result<Option<BTreeSet<IpAddr>>, Unfit> {
        Ok(Some(texts.iter().map(|text| text.parse().unwrap()).collect()))
    }

    #[test]
    fn a_session_has_the_addresses_of_its_connections() {
        assert_eq!(session(INFO), addresses(&["10.9.0.11"]));
        let second =
            "CID: 1  Connection State: TARG_CONN_STATE_LOGGED_IN\n   Address fd00::2 TCP  StatSN: 0x01\n";
        assert_eq!(session(&format!("{INFO}{second}")), addresses(&["10.9.0.11", "fd00::2"]));
        let (lost, _) = INFO.split_once("CID:").unwrap();
        assert_eq!(session(lost), addresses(&[]));
        assert_eq!(session(&INFO.replace(" TCP ", " SCTP ")), addresses(&[]));
        let none = "No active iSCSI Session for Initiator Endpoint: iqn.2026-01.example:i1\n";
        assert_eq!(session(none), Ok(None));
    }

    #[test]
    fn an_alias_cannot_give_a_session_the_address_of_another() {
        let alias =
            "InitiatorAlias: x\n--[iSCSI Connections]--\nCID: 0\n   Address 10.9.0.99 TCP  StatSN: 0\n";
        let forged = INFO.replace("InitiatorAlias: \n", alias);
        assert_eq!(session(&forged), addresses(&["10.9.0.11"]));
    }

    #[test]
    fn what_is_no_session_is_refused() {
        for text in [
            "",
            "\n",
            "InitiatorName: x",
            "Address 1.2.3.4 TCP",
            "InitiatorName: x\n[iSCSI Connections]\nAddress y TCP",
        ] {
            assert!(session(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_of_dynamic_sessions_end_in_a_nul_byte() {
        assert_eq!(dynamic_sessions(b""), (vec![], None));
        let (names, unfit) = dynamic_sessions(b"iqn.a:1\0iqn.a:2\0");
        assert_eq!((names, unfit), (vec!["iqn.a:1".to_owned(), "iqn.a:2".to_owned()], None));
    }

    #[test]
    fn an_odd_name_among_the_dynamic_sessions_hides_no_other() {
        let (names, unfit) = dynamic_sessions(b"iqn.a:1\0x\ny\0iqn.\xff\0iqn.\xfe\0iqn.a:2\0");
        assert_eq!(names, ["iqn.a:1", "x\\ny", "iqn.\\xff", "iqn.\\xfe", "iqn.a:2"]);
        assert!(unfit.is_some());
    }

    #[test]
    fn a_backstore_tells_its_device_or_its_file() {
        let info = "Status: ACTIVATED  Max Queue Depth: 64  SectorSize: 512  HwMaxSectors: 256\n        iBlock \
            device: dm-3  UDEV PATH: /dev/vg/a  readonly: 0\n        Major: 253 Minor: 3  CLAIMED: IBLOCK\n";
        assert_eq!(iblock(info), Ok(Some(DeviceNumber { major: 253, minor: 3 })));
        assert_eq!(iblock("Status: DEACTIVATED\n        Major: 0 Minor: 0\n"), Ok(None));
        assert_eq!(iblock(""), Ok(None));
        assert!(iblock("Major: x Minor: 0").is_err() && iblock("Major: 8").is_err());
        let info = "Status: ACTIVATED  Max Queue Depth: 0\n        TCM FILEIO ID: 0        File: /srv/a  b.img  \
            Size: 1048576  Mode: O_DSYNC Async: 0\n";
        assert_eq!(fileio(info), Some("/srv/a  b.img"));
        assert_eq!(fileio("File: relative  Size: 1"), None);
        assert_eq!(fileio("File: /cut"), None);
    }
}
