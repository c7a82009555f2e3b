//! No text makes a parser panic or give more than the text has; what is written is what is read.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use proptest::prelude::*;
use weir_throttle::DeviceNumber;

use super::{MOST_NAME_BYTES, address, block, lio, mounts, name, tcp, tgt};

/// Texts of the words that the parsers look for, and of anything else.
fn odd_text() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "InitiatorName: ",
        "[iSCSI Connections]",
        "   Address ",
        "10.9.0.11",
        " TCP ",
        "\n",
        "\0",
        "::",
        "[",
        "]",
        "Major: ",
        " Minor: ",
        "File: /",
        "  Size: ",
        "Target 1: a",
        "\nTarget 2: b\n",
        "\nSession: 1\n",
        "    Connection: 0\n",
        "        Initiator: ",
        "        IP Address: ",
        "    System information:",
        "        Driver: ",
        "    I_T nexus information:",
        "        I_T nexus: 1",
        "            Initiator: ",
        " alias: ",
        "                IP Address: ",
        "    LUN information:",
        "        LUN: ",
        "            Backing store path: /",
        "Portal: ",
        ":3260,1",
        " - ",
        "99999999999999999999",
        "-1",
        "0 ",
        ":",
        "%",
        "\\040",
        "é",
    ]);
    let piece = prop_oneof![4 => words.prop_map(str::to_owned), 1 => ".{0,8}"];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_text_has_an_answer(text in odd_text()) {
        if let Ok(Some(addresses)) = lio::session(&text) {
            prop_assert!(addresses.len() <= text.matches("Address").count());
        }
        let (names, _) = lio::dynamic_sessions(text.as_bytes());
        prop_assert!(names.iter().all(|text| name(text).is_ok()));
        let _ = lio::iblock(&text);
        prop_assert!(lio::fileio(&text).is_none_or(|path| path.starts_with('/')));
        let targets = tgt::targets(&text).read;
        prop_assert!(targets.len() <= text.matches("Target ").count());
        prop_assert!(targets.iter().all(|target| (1..=MOST_NAME_BYTES).contains(&target.name.len())));
        let numbers: BTreeSet<_> = targets.iter().map(|target| target.number).collect();
        prop_assert_eq!(numbers.len(), targets.len());
        let connections = tgt::connections(&text).read;
        prop_assert!(connections.len() <= text.matches("Session: ").count());
        prop_assert!(connections.iter().all(|connection| name(&connection.initiator).is_ok()));
        let _ = tgt::portals(&text);
        let _ = (block::number(&text), block::stat(&text), block::totals(&text));
        let _ = block::reads_in_flight(&text);
        let _ = (mounts::mounted_at(Path::new("/srv/a"), &text), tcp::openings(&text));
        if let Err(unfit) = name(&text) {
            prop_assert!(unfit.found.chars().count() <= 60);
        }
    }

    #[test]
    fn addresses_survive_being_written(ip: IpAddr, port in 1..=u16::MAX) {
        prop_assert_eq!(address::address(&ip.to_string()), Ok(ip.to_canonical()));
        let portal = SocketAddr::new(ip.to_canonical(), port);
        prop_assert_eq!(address::portal(&portal.to_string()), Ok(portal));
    }

    #[test]
    fn numbers_and_counters_survive_being_written(major: u32, minor: u32, fields: [u32; 9]) {
        prop_assert_eq!(block::number(&format!("{major}:{minor}\n")), Ok(DeviceNumber { major, minor }));
        let text = fields.map(|field| format!("{field:8}")).join(" ");
        let (counters, in_flight) = block::stat(&text).unwrap();
        prop_assert_eq!(counters.reads, u64::from(fields[0]));
        prop_assert_eq!(counters.read_millis, fields[3]);
        prop_assert_eq!(counters.sectors_written, u64::from(fields[6]));
        prop_assert_eq!(in_flight, u64::from(fields[8]));
        prop_assert!(block::totals(&text).is_err(), "the tenth field is not there");
        let totals = block::totals(&format!("{text} 7\n")).unwrap();
        prop_assert_eq!(totals.sectors_read, u64::from(fields[2]));
        prop_assert_eq!((totals.sectors_written, totals.busy_millis), (u64::from(fields[6]), 7));
    }
}
